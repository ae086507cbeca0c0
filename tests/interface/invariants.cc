#include "tests/interface/invariants.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <vector>

#include "recorder/flight/handles.h"
#include "recorder/flight/rows.h"
#include "tests/interface/dice.h"

namespace ringscope::interface_model {
namespace {

using flight::Load;
using recorder::Image;

[[noreturn]] void Fail(const char* table, uint32_t row, const std::string& what) {
  Violation(std::string(table) + " row " + std::to_string(row) + ": " + what);
}
void Must(bool holds, const char* table, uint32_t row, const char* what) {
  if (!holds) Fail(table, row, what);
}

void CheckComms(const Image& image, uint64_t now, std::vector<int32_t>* owner) {
  for (uint32_t c = 0; c < image.comm_rows; ++c) {
    const flight::CommRow& row = image.comms[c];
    const uint64_t stamp = Load(row.stamp);
    if (stamp == 0) continue;
    const auto must = [&](bool holds, const char* what) { Must(holds, "communicator", c, what); };
    must(stamp >> 63, "used, but its stamp lacks the mark");
    must((stamp & 0xffff) != 0, "generation 0");
    const uint32_t api = stamp >> 32 & 0xff;
    must(api >= 1 && api <= 6, "no profiler API version");
    const uint64_t ring = Load(row.ring);
    const uint64_t base = static_cast<uint32_t>(ring), rows = (ring >> 32) + 1;
    must(rows >= 16 && std::has_single_bit(rows) && base % rows == 0, "crooked ring");
    must(base + rows <= image.op_rows, "ring outside of the table");
    for (uint64_t i = base; i < base + rows; ++i) {
      must((*owner)[i] < 0, "ring overlaps another one");
      (*owner)[i] = static_cast<int32_t>(c);
    }
    const uint64_t finalized = Load(row.finalized), created = Load(row.created);
    must(created != 0 && created <= now, "created in the future");
    must(finalized == 0 || (finalized >= created && finalized <= now),
         "finalized before it was created, or in the future");
    must(Load(row.last_progress) <= now && Load(row.done_entered) <= now, "progress in the future");
    must(Load(row.no_row) <= Load(row.collectives) + Load(row.p2ps),
         "more operations lost than seen");
    must(Load(row.head) <= Load(row.collectives) + Load(row.p2ps),
         "more rows taken than operations");
  }
}

struct Seen {
  uint32_t comm;
  bool p2p;
  uint64_t entered, position;
  auto Key() const { return std::tie(comm, p2p, entered, position); }
};

void CheckOps(const Image& image, uint64_t now, const std::vector<int32_t>& owner) {
  static thread_local std::vector<Seen> seen;
  seen.clear();
  for (uint32_t r = 0; r < image.op_rows; ++r) {
    const flight::OpRow& row = image.ops[r];
    const uint64_t stamp = Load(row.stamp);
    if (stamp == 0) continue;
    const auto must = [&](bool holds, const char* what) { Must(holds, "operation", r, what); };
    const uint32_t generation = flight::Generation(stamp), c = stamp >> 32 & 0xffff;
    must(generation != 0, "generation 0");
    must(c < image.comm_rows && owner[r] == static_cast<int32_t>(c),
         "not in the ring of its communicator");
    must((stamp >> 48 & 0xff) <= static_cast<uint64_t>(flight::Func::kWaitSignal),
         "unknown function");
    must(stamp >> 56 <= static_cast<uint64_t>(flight::DataType::kFloat8e5m2), "unknown data type");
    const flight::CommRow& comm = image.comms[c];
    const uint32_t flags = static_cast<uint32_t>(Load(row.stream) >> 48);
    const bool p2p = flags & flight::kOpP2p;
    const uint64_t position = Load(row.position) & 0xffffffffff;
    must(position >= 1 && position <= Load(p2p ? comm.p2ps : comm.collectives),
         "position that its communicator has not reached");
    const uint64_t entered = Load(row.entered), returned = Load(row.returned),
                   enqueued = Load(row.enqueued);
    must(entered != 0 && entered <= now, "entered never, or in the future");
    must(returned == 0 || (returned >= entered && returned <= now),
         "returned before it was entered");
    must(enqueued == 0 || (enqueued >= entered && enqueued <= now),
         "enqueued before it was entered");
    const uint64_t launch = Load(row.launch);
    must(flight::Generation(launch) <= generation, "launch lane of a later use");
    must((launch >> 32 & 0xff) <= static_cast<uint64_t>(flight::Algo::kCopyEngine),
         "unknown algorithm");
    for (const uint64_t lane : {Load(row.kernel), Load(row.proxy_ops)}) {
      must(flight::Generation(lane) <= generation, "proxy lane of a later use");
      must(lane >> 48 <= (lane >> 32 & 0xffff), "more stops than starts");
    }
    const uint64_t kernel = Load(row.kernel);
    if (flight::Generation(kernel) == generation) {
      const uint64_t started = Load(row.started), finished = Load(row.finished);
      must((kernel >> 32 & 0xffff) >= 1 && started >= entered && started <= now,
           "kernel started before the call");
      must((finished != 0) == (kernel >> 48 != 0) && finished <= now,
           "kernel stop without its time, or the reverse");
    }
    seen.push_back({c, p2p, entered, position});
  }
  // Positions are given in the order of the calls, each once.
  std::sort(seen.begin(), seen.end(),
            [](const Seen& a, const Seen& b) { return a.Key() < b.Key(); });
  for (size_t i = 1; i < seen.size(); ++i) {
    const Seen &a = seen[i - 1], &b = seen[i];
    if (a.comm == b.comm && a.p2p == b.p2p && a.position >= b.position)
      Violation("communicator " + std::to_string(a.comm) + ": position " +
                std::to_string(b.position) + " was entered after position " +
                std::to_string(a.position));
  }
}

void CheckEdges(const Image& image, uint64_t now, bool quiet) {
  std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> keys;
  for (uint32_t r = 0; r <= image.edge_mask; ++r) {
    const flight::EdgeRow& row = image.edges[r];
    const uint64_t stamp = Load(row.stamp);
    if (stamp == 0) continue;
    const auto must = [&](bool holds, const char* what) { Must(holds, "edge", r, what); };
    must(stamp >> 63, "used, but its stamp lacks the mark");
    const uint32_t flags = stamp >> 24 & 0xff, c = stamp >> 32 & 0xffff;
    must(flags < 16, "unknown flags");
    must(flags & flight::kEdgeForeign ? c == 0xffff : c < image.comm_rows, "no such communicator");
    const uint64_t context = Load(row.context);
    must((flags & flight::kEdgeForeign) || context == 0, "own edge with a foreign context");
    must(Load(row.changed) <= now, "progress in the future");
    if (quiet) {
      must((flags & flight::kEdgeForeign) || Load(image.comms[c].stamp) != 0,
           "edge of a communicator that is gone");
      keys.emplace_back(stamp >> 16, Load(row.peer), context);
    }
    if (flags & flight::kEdgePseudo) continue;
    const uint64_t steps = Load(row.steps);
    for (uint32_t f = 0; f < 3; ++f)
      must((steps >> 16 * f & 0xffff) >= (steps >> 16 * (f + 1) & 0xffff),
           "more steps left a state than reached it");
    const uint64_t ops = Load(row.ops);
    must(ops >> 32 <= (ops & 0xffffffff), "more proxy operations stopped than started");
    for (const uint64_t handle : {Load(row.current), Load(row.queued)}) {
      if (handle == 0) continue;
      must(flight::HandleNonce(handle) == image.nonce &&
               flight::KindOf(handle) == flight::HandleKind::kProxyOp &&
               (flight::ProxyOpEdge(handle) & image.edge_mask) == r,
           "its operation is none of its own");
      must(!quiet || flight::ProxyOpGeneration(handle) == (stamp & 0x3f),
           "its operation is of an earlier use");
    }
  }
  std::sort(keys.begin(), keys.end());
  Require(std::adjacent_find(keys.begin(), keys.end()) == keys.end(),
          "two edge rows for one connection");
}

void CheckThreads(const Image& image, uint64_t now) {
  for (uint32_t t = 0; t < flight::kThreadRows; ++t) {
    const flight::ThreadRow& row = image.threads[t];
    if (Load(row.tid) == 0) continue;
    const uint64_t call = Load(row.call);
    Must((call & 0xff) <= static_cast<uint64_t>(flight::Call::kFinalize), "thread", t,
         "unknown call");
    const uint32_t c = call >> 32 & 0xffff;
    Must(c < image.comm_rows || c == 0xffff, "thread", t, "no such communicator");
    Must(Load(row.since) <= now, "thread", t, "since the future");
  }
}

}  // namespace

void CheckTables(const Image& image, uint64_t now, bool quiet) {
  if (quiet) {
    std::vector<int32_t> owner(image.op_rows, -1);
    CheckComms(image, now, &owner);
    CheckOps(image, now, owner);
  }
  CheckEdges(image, now, quiet);
  CheckThreads(image, now);
}

}  // namespace ringscope::interface_model
