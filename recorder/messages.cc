#include "recorder/messages.h"

#include <string.h>

#include "recorder/flight/rows.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

using flight::Load;

void AddWho(Text& line, const Runtime& runtime) {
  if (runtime.identity.rank == kNoNumber) {
    line.Add("pid ").AddInt(runtime.identity.pid);
  } else {
    line.Add("rank ").AddUint(runtime.identity.rank);
  }
  line.Add(" (").Add(runtime.identity.host).Add("): ");
}

void AddCommunicator(Text& line, const Runtime& runtime, uint32_t row) {
  line.Add("communicator ");
  if (row >= runtime.image.comm_rows) {
    line.AddChar('?');
    return;
  }
  flight::CommRow comm;  // a copy: the row may be given to another communicator meanwhile
  if (!flight::CopyRow(runtime.image.comms[row], &comm)) {
    line.AddChar('?');
    return;
  }
  const size_t n = strnlen(comm.name, sizeof(comm.name));
  if (n) line.Add(comm.name, n).Add(" (");
  line.AddHex(Load(comm.comm_id));
  if (n) line.AddChar(')');
  // Without a job rank the one in the communicator is what people have.
  const uint64_t ranks = Load(comm.ranks);
  if (runtime.identity.rank == kNoNumber && static_cast<uint32_t>(ranks) < ranks >> 32) {
    line.Add(" (rank ").AddUint(static_cast<uint32_t>(ranks));
    line.Add(" of ").AddUint(ranks >> 32).Add(" there)");
  }
}

// "AllReduce #11 of communicator ..."
void AddOperation(Text& line, const Runtime& runtime, const flight::StallFinding& stall) {
  const uint64_t what = Load(stall.what);
  const uint32_t row = static_cast<uint32_t>(what & 0xffff);
  if (row < runtime.image.op_rows) {
    const flight::OpRow& op = runtime.image.ops[row];
    const uint64_t stamp = Load(op.stamp);
    if (flight::Generation(stamp) == Load(stall.generation)) {
      line.Add(FuncName(static_cast<uint32_t>(stamp >> 48 & 0xff))).Add(" #");
      line.AddUint(Load(op.position) & 0xffffffffff).Add(" of ");
    }
  }
  AddCommunicator(line, runtime, static_cast<uint32_t>(what >> 16 & 0xffff));
}

}  // namespace

const char* FuncName(uint32_t func) {
  static constexpr const char* kNames[] = {"Operation",     "Broadcast", "Reduce",   "AllGather",
                                           "ReduceScatter", "AllReduce", "SendRecv", "Send",
                                           "Recv",          "AlltoAll",  "Scatter",  "Gather",
                                           "AllGatherV",    "PutSignal", "Signal",   "WaitSignal"};
  return func < sizeof(kNames) / sizeof(kNames[0]) ? kNames[func] : kNames[0];
}

void Speaker::SayOnce(Text* line) {
  if (lines_ >= kMostLines) return;
  if (++lines_ == kMostLines) line->Add(" (further ones are in the traces only)");
  Say(line->c_str());
}

void Speaker::Stall(const Runtime& runtime, const SnapshotWriter& snapshots, Written written,
                    uint32_t slots, uint64_t now_ticks) {
  const flight::StallFinding* stalls = runtime.image.header->stalls;
  uint32_t oldest = flight::kStallFindings, others = 0;
  for (uint32_t i = 0; i < flight::kStallFindings; ++i) {
    if (!(slots >> i & 1)) continue;
    others += oldest < flight::kStallFindings;
    if (oldest == flight::kStallFindings || Load(stalls[i].since) < Load(stalls[oldest].since)) {
      oldest = i;
    }
  }
  if (oldest == flight::kStallFindings) return;
  const flight::StallFinding& stall = stalls[oldest];
  TextBuffer<1900> line;
  AddWho(line, runtime);
  AddOperation(line, runtime, stall);
  if (others) {
    line.Add(" and those of ").AddUint(others).Add(others == 1 ? " other" : " others");
  }
  const uint64_t ns = TicksToNs(*runtime.image.header, now_ticks - Load(stall.since));
  line.Add(others ? " have made no progress for " : " has made no progress for ");
  line.AddSeconds(ns >= 10000000000 ? ns / 1000000000 * 1000000000 : ns / 100000000 * 100000000);
  line.Add(" s; ");
  if (written == Written::kYes) {
    line.Add("wrote ").Add(snapshots.path()).Add(". Next: ringscope diagnose ");
    snapshots.AddRunRoot(line);
    // A killed or stopped process wrote no trace: its flight file tells.
    if (runtime.file.directory[0])
      line.AddChar(' ').Add(runtime.file.directory).Add(" (of all hosts)");
  } else if (runtime.file.directory[0]) {
    line.Add("no trace written, the record is ").Add(runtime.file.directory).AddChar('/');
    line.Add(runtime.file.name).Add(". Next: ringscope diagnose ").Add(runtime.file.directory);
  } else {
    line.Add("no trace written");
  }
  SayOnce(&line);
}

void Speaker::Recovered(const Runtime& runtime, uint32_t slot) {
  const flight::StallFinding& stall = runtime.image.header->stalls[slot];
  const uint64_t ns = TicksToNs(*runtime.image.header, Load(stall.resolved) - Load(stall.since));
  TextBuffer<512> line;
  AddWho(line, runtime);
  AddOperation(line, runtime, stall);
  line.Add(" went on after ").AddSeconds(ns / 100000000 * 100000000).Add(" s");
  SayOnce(&line);
}

void Speaker::Fallback(const Runtime& runtime, uint32_t comm_row) {
  const flight::CommRow& comm = runtime.image.comms[comm_row];
  TextBuffer<640> line;
  AddWho(line, runtime);
  AddCommunicator(line, runtime, comm_row);
  line.Add(" has all of its ").AddUint(Load(comm.ranks) >> 32);
  line.Add(
      " ranks on one node, yet its data goes through the network: NVLink, PCIe peer-to-peer and "
      "shared memory are not used between some of its GPUs. NCCL_DEBUG=INFO shows why");
  Say(line.c_str());
}

}  // namespace ringscope::recorder
