#include "tests/integration/kill_facts.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "recorder/flight/format.h"
#include "recorder/flight/handles.h"

namespace ringscope::integration {
namespace {

using flight::CommRow;
using flight::EdgeRow;
using flight::OpRow;
using flight::ThreadRow;

uint64_t Bits(uint64_t word, int from, int count) {
  return word >> from & ((uint64_t{1} << count) - 1);
}

class Reader {
 public:
  Reader(const std::vector<uint64_t>& words, Facts* facts)
      : base_(reinterpret_cast<const char*>(words.data())), facts_(*facts) {
    header_ = reinterpret_cast<const flight::FileHeader*>(base_);
  }

  void Read() {
    const auto* comms = Rows<CommRow>(flight::Table::kComms);
    for (uint32_t i = 0; i < Count(flight::Table::kComms); ++i) {
      if (comms[i].stamp != 0) ReadComm(comms[i], i);
    }
    const auto* edges = Rows<EdgeRow>(flight::Table::kEdges);
    for (uint32_t i = 0; i < Count(flight::Table::kEdges); ++i) {
      if (edges[i].stamp != 0) ReadEdge(edges[i]);
    }
    const auto* threads = Rows<ThreadRow>(flight::Table::kThreads);
    for (uint32_t i = 0; i < flight::kThreadRows; ++i) {
      if (threads[i].tid == 0) continue;
      const std::string name = absl::StrCat("thread", i);
      Set(name, "call", Bits(threads[i].call, 0, 8));
      Set(name, "position", threads[i].position);
    }
  }

 private:
  template <typename Row>
  const Row* Rows(flight::Table table) const {
    for (uint32_t i = 0; i < header_->table_count; ++i) {
      if (header_->tables[i].table == static_cast<uint32_t>(table)) {
        return reinterpret_cast<const Row*>(base_ + header_->tables[i].offset);
      }
    }
    return nullptr;
  }

  uint32_t Count(flight::Table table) const {
    for (uint32_t i = 0; i < header_->table_count; ++i) {
      if (header_->tables[i].table == static_cast<uint32_t>(table)) return header_->tables[i].rows;
    }
    return 0;
  }

  void Set(const std::string& name, const char* field, uint64_t value) {
    facts_[name + "." + field] = value;
  }

  static uint64_t Ordinal(const CommRow& comm) { return comm.nodes >> 32; }

  void ReadComm(const CommRow& comm, uint32_t index) {
    const std::string name = CommName(Ordinal(comm));
    Set(name, "id", comm.comm_id);
    Set(name, "rank", Bits(comm.ranks, 0, 32));
    Set(name, "n_ranks", comm.ranks >> 32);
    Set(name, "collectives", comm.collectives);
    Set(name, "p2ps", comm.p2ps);
    Set(name, "launched", comm.launched);
    Set(name, "completed", comm.completed);
    Set(name, "no_row", comm.no_row);
    Set(name, "finalized", comm.finalized != 0);
    const auto* ops = Rows<OpRow>(flight::Table::kOps);
    const uint32_t first = static_cast<uint32_t>(comm.ring),
                   last = first + static_cast<uint32_t>(comm.ring >> 32);
    for (uint32_t i = first; i <= last && i < Count(flight::Table::kOps); ++i) {
      if (ops[i].stamp != 0 && Bits(ops[i].stamp, 32, 16) == index) ReadOp(ops[i], Ordinal(comm));
    }
  }

  void ReadOp(const OpRow& op, uint64_t comm) {
    const uint64_t generation = Bits(op.stamp, 0, 32), flags = op.stream >> 48;
    const std::string name = OpName(comm, flags & flight::kOpP2p, Bits(op.position, 0, 40));
    Set(name, "func", Bits(op.stamp, 48, 8));
    Set(name, "datatype", op.stamp >> 56);
    Set(name, "root", op.position >> 40);
    Set(name, "count", op.count);
    Set(name, "entered", op.entered != 0);
    Set(name, "returned", op.returned != 0);
    Set(name, "enqueued", op.enqueued != 0);
    if (op.launch != 0 && Bits(op.launch, 0, 32) == generation) {
      Set(name, "launched", 1);
      Set(name, "algo", Bits(op.launch, 32, 8));
      Set(name, "proto", Bits(op.launch, 40, 8));
      Set(name, "channels", Bits(op.launch, 48, 8));
      Set(name, "sequence", Bits(op.sequence, 0, 32));
      Set(name, "peer", op.sequence >> 32);
    }
    if (op.kernel != 0 && Bits(op.kernel, 0, 32) == generation) {
      Set(name, "kernels_started", Bits(op.kernel, 32, 16));
      Set(name, "kernels_stopped", op.kernel >> 48);
      Set(name, "gpu_started", op.gpu_started);
      Set(name, "gpu_finished", op.gpu_finished);
    }
    if (op.proxy_ops != 0 && Bits(op.proxy_ops, 0, 32) == generation) {
      Set(name, "proxy_started", Bits(op.proxy_ops, 32, 16));
      Set(name, "proxy_stopped", op.proxy_ops >> 48);
    }
  }

  void ReadEdge(const EdgeRow& edge) {
    const uint64_t index = Bits(edge.stamp, 32, 16), flags = Bits(edge.stamp, 24, 8);
    if (index >= flight::kCommRows) return;  // another process's (PXN): this model knows none
    const uint64_t comm = Ordinal(Rows<CommRow>(flight::Table::kComms)[index]);
    const bool send = flags & flight::kEdgeSend, p2p = flags & flight::kEdgeP2p;
    if (flags & flight::kEdgePseudo) {
      const std::string name = MessagesName(comm, Bits(edge.peer, 0, 32), send);
      Set(name, "count", edge.steps);
      Set(name, "bytes", edge.bytes);
      return;
    }
    const std::string name =
        EdgeName(comm, edge.peer >> 32, Bits(edge.peer, 0, 32), Bits(edge.stamp, 16, 8), send, p2p);
    Set(name, "ops_started", Bits(edge.ops, 0, 32));
    Set(name, "ops_stopped", edge.ops >> 32);
    Set(name, "current", flight::ProxyOpOrdinal(edge.current));
    for (int state = 0; state < 4; ++state)
      facts_[absl::StrCat(name, ".reached", state)] = Bits(edge.steps, 16 * state, 16);
    Set(name, "steps_total", edge.steps_total);
    Set(name, "bytes", edge.bytes);
    Set(name, "chunk", Bits(edge.chunk, 0, 32));
    Set(name, "n_steps", edge.chunk >> 32);
  }

  const char* base_;
  const flight::FileHeader* header_;
  Facts& facts_;
};

uint64_t Find(const Facts& facts, const std::string& name) {
  const auto at = facts.find(name);
  return at == facts.end() ? 0 : at->second;
}

}  // namespace

std::string CommName(uint64_t ordinal) { return absl::StrCat("comm", ordinal); }

std::string OpName(uint64_t comm, bool p2p, uint64_t position) {
  return absl::StrCat(CommName(comm), p2p ? ".p" : ".c", position);
}

std::string EdgeName(uint64_t comm, uint64_t rank, uint64_t peer, uint64_t channel, bool send,
                     bool p2p) {
  return absl::StrCat(CommName(comm), ".edge.", rank, ".", peer, ".", channel, ".",
                      send ? "s" : "r", p2p ? "p" : "c");
}

std::string MessagesName(uint64_t comm, uint64_t peer, bool send) {
  return absl::StrCat(CommName(comm), ".messages.", peer, ".", send ? "s" : "r");
}

bool ReadFacts(const std::string& path, Facts* facts, uint32_t* event_mask) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                std::istreambuf_iterator<char>());
  if (bytes.size() < sizeof(flight::FileHeader) ||
      std::memcmp(bytes.data(), flight::kMagic, sizeof flight::kMagic) != 0)
    return false;
  std::vector<uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), words.size() * 8);
  *event_mask = reinterpret_cast<const flight::FileHeader*>(words.data())->event_mask;
  Reader(words, facts).Read();
  return true;
}

std::string Compare(const Facts& got, const Facts& before, const Facts& after) {
  std::set<std::string> names;
  for (const Facts* facts : {&got, &before, &after}) {
    for (const auto& [name, value] : *facts) names.insert(name);
  }
  std::string differences;
  for (const std::string& name : names) {
    const uint64_t value = Find(got, name);
    if (value == Find(before, name) || value == Find(after, name)) continue;
    absl::StrAppend(&differences, name, ": file ", value, ", model ", Find(before, name), " or ",
                    Find(after, name), "\n");
  }
  return differences;
}

}  // namespace ringscope::integration
