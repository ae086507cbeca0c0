#include "tests/interface/model.h"

#include <string>

#include "recorder/flight/handles.h"
#include "recorder/flight/rows.h"
#include "tests/interface/dice.h"

namespace ringscope::interface_model {
namespace {

using flight::Load;

constexpr uint64_t kGroupBits = 0xffffffffffff;

void Within(uint64_t got, const Moment& want, const std::string& what) {
  if (want.high == 0 ? got == 0 : got >= want.low && got <= want.high) return;
  Violation(what + " at tick " + std::to_string(got) + ", should be from " +
            std::to_string(want.low) + " to " + std::to_string(want.high));
}

void Same(uint64_t got, uint64_t want, const std::string& where, const char* what) {
  if (got != want)
    Violation(where + what + " is " + std::to_string(got) + ", should be " + std::to_string(want));
}

}  // namespace

Model::Model(const recorder::Image& image)
    : image_(image),
      comms_(image.comm_rows),
      operations_(image.op_rows),
      edge_rows_(image.edge_mask + 1) {
  for (uint32_t i = 0; i < flight::kCounterWords; ++i) expected_[i] = Load(image.counters[i]);
}

uint64_t Model::Counter(flight::Counter which) const {
  return Load(image_.counters[static_cast<uint32_t>(which)]);
}

void Model::Opened(const std::shared_ptr<Comm>& comm) {
  for (auto& old : comms_) {
    if (old == nullptr ||
        (Load(image_.comms[old->row].stamp) & ~flight::kCommIdentified) == old->stamp)
      continue;
    if (!old->finalized)
      Violation("communicator row " + std::to_string(old->row) +
                " was taken from a living communicator");
    for (auto& operation : operations_) {
      if (operation != nullptr && operation->comm == old.get()) operation = nullptr;
    }
    for (auto it = edges_.begin(); it != edges_.end();) {
      const bool gone = it->second.comm == old.get();
      for (auto& row : edge_rows_) {
        if (gone && row == &it->first) row = nullptr;
      }
      it = gone ? edges_.erase(it) : std::next(it);
    }
    old = nullptr;
  }
  if (comm->kept) comms_[comm->row] = comm;
}

bool Model::Over(const Operation& op) {
  if (op.entered_at < op.comm->done_entered && op.group != op.comm->done_group) return true;
  const bool graph = op.flags & flight::kOpGraph;
  if (!op.launched) return op.comm->ranks == 1 || (graph && op.returned);
  if (op.enqueued) {
    if (op.flags & flight::kOpCopyEngine) return true;
    if ((op.flags & flight::kOpP2p) && !(op.flags & flight::kOpTail) &&
        op.peer == static_cast<uint32_t>(op.comm->rank))
      return true;
    if (graph && op.kernels_started == op.kernels_stopped) return true;
  }
  if (!op.comm->visible) return op.enqueued && op.proxy_started == op.proxy_stopped;
  return op.kernels_started > 0 && op.kernels_stopped == op.kernels_started &&
         op.kernels_stopped >= op.channels;
}

bool Model::OpenAtEnd(const Comm& comm) const {
  bool kernels = false, open = false, without = false;
  for (const OperationPtr& op : operations_) {
    if (op == nullptr || op->comm != &comm) continue;
    kernels |= op->kernels_started > 0;
    open |= !Over(*op);
    without |= !Over(*op) && !(op->enqueued && op->proxy_started == op->proxy_stopped);
  }
  if (!comm.visible) return open;
  // Without a single KernelCh completion cannot be seen: what is enqueued then counts as over.
  return kernels || comm.launched < 2 ? open : without;
}

void Model::Resident(const OperationPtr& op) {
  if (flight::OpRowOf(op->handle) == flight::kNoOpRow) {
    Expect(flight::Counter::kOpNoRow);
    ++op->comm->no_row;
    return;
  }
  op->row = flight::OpRowOf(op->handle);
  Require(op->row < operations_.size(), "an operation's handle names no row of the table");
  auto& place = operations_[op->row];
  if (place != nullptr && !Over(*place)) {
    Violation("operation row " + std::to_string(op->row) +
              " was unfinished and given to another operation: position " +
              std::to_string(place->position) + ", flags " + std::to_string(place->flags) +
              (place->launched ? ", launched" : ", not launched") +
              (place->enqueued ? ", enqueued" : "") + ", kernels " +
              std::to_string(place->kernels_started) + "/" +
              std::to_string(place->kernels_stopped) + " of " + std::to_string(place->channels));
  }
  place = op;
}

bool Model::Holds(const OperationPtr& op) const {
  return op != nullptr && flight::OpRowOf(op->handle) != flight::kNoOpRow &&
         operations_[op->row] == op;
}

Edge* Model::FindEdge(const EdgeKey& key) {
  const auto found = edges_.find(key);
  return found == edges_.end() ? nullptr : &found->second;
}

Edge* Model::TakeEdge(const EdgeKey& key, uint32_t row) {
  Require(row < edge_rows_.size(), "a proxy operation's handle names no row of the table");
  const EdgeKey* old = edge_rows_[row];
  if (old != nullptr && *old != key) {
    const Edge& was = edges_.at(*old);
    if (!was.Idle())
      Violation("edge row " + std::to_string(row) + " was busy and given to another edge");
    edge_rows_[row] = nullptr;
    edges_.erase(EdgeKey(*old));
  }
  const auto [place, made] = edges_.try_emplace(key);
  if (!made && edge_rows_[row] != &place->first) Violation("a second row for one edge");
  edge_rows_[row] = &place->first;
  return &place->second;
}

Edge* Model::TakeMessages(const EdgeKey& key) {
  const auto [place, made] = edges_.try_emplace(key);
  if (made) {
    // Where it lies only the table knows: it may have taken an idle edge's row.
    for (uint32_t r = 0; r < edge_rows_.size(); ++r) {
      const uint64_t stamp = Load(image_.edges[r].stamp);
      if (edge_rows_[r] == nullptr || (stamp >> 24 & flight::kEdgePseudo) == 0) continue;
      const Edge& was = edges_.at(*edge_rows_[r]);
      if (was.pseudo) continue;
      if (!was.Idle())
        Violation("edge row " + std::to_string(r) + " was busy and given to a count of messages");
      edges_.erase(EdgeKey(*edge_rows_[r]));
      edge_rows_[r] = nullptr;
    }
  }
  return &place->second;
}

void Model::CompareComm(const Comm& comm) const {
  const flight::CommRow& row = image_.comms[comm.row];
  const std::string where = "communicator " + std::to_string(comm.id) + ": ";
  const uint64_t stamp = Load(row.stamp);
  Same(stamp & ~flight::kCommIdentified, comm.stamp, where, "stamp");
  Same((stamp & flight::kCommIdentified) != 0, comm.identified, where, "identified");
  Same(Load(row.comm_id), comm.identified ? comm.id : 0, where, "id");
  const uint64_t rank = comm.identified ? static_cast<uint32_t>(comm.rank) : flight::kNoRank;
  Same(Load(row.ranks), rank | (comm.sized ? static_cast<uint64_t>(comm.ranks) << 32 : 0), where,
       "rank and size");
  Same(Load(row.collectives), comm.collectives, where, "count of collectives");
  Same(Load(row.p2ps), comm.p2ps, where, "count of sends and receives");
  Same(Load(row.launched), comm.launched, where, "count of launches");
  Same(Load(row.completed), comm.completed, where, "count of completions");
  Same(Load(row.no_row), comm.no_row, where, "count of lost operations");
  Same(Load(row.finalized) != 0, comm.finalized, where, "finalized");
  Same((Load(row.flags) & flight::kCommHasSteps) != 0, comm.has_steps, where, "steps seen");
}

void Model::CompareOperation(const Operation& op) const {
  const flight::OpRow& row = image_.ops[op.row];
  const std::string where = "operation row " + std::to_string(op.row) + ", position " +
                            std::to_string(op.position) + ": ";
  const uint32_t generation = flight::OpGeneration(op.handle);
  Same(Load(row.stamp),
       generation | static_cast<uint64_t>(op.comm->row) << 32 |
           static_cast<uint64_t>(op.func) << 48 | static_cast<uint64_t>(op.type) << 56,
       where, "stamp");
  Same(Load(row.position),
       op.position | (op.root < 0 ? 0xffffffu : static_cast<uint64_t>(op.root)) << 40, where,
       "position and root");
  Same(Load(row.count), op.count, where, "count");
  Same(Load(row.stream), (op.stream & kGroupBits) | static_cast<uint64_t>(op.flags) << 48, where,
       "stream and flags");
  Same(Load(row.group) >> 48, op.tasks, where, "tasks of a tail");
  Within(Load(row.entered), op.entered, where + "entered");
  Within(Load(row.returned), op.returned, where + "returned");
  Within(Load(row.enqueued), op.enqueued, where + "enqueued");
  Same(flight::OpLaunched(row), op.launched, where, "launched");
  if (op.launched) {
    Same(Load(row.sequence), op.sequence | static_cast<uint64_t>(op.peer) << 32, where,
         "sequence and peer");
    Same(Load(row.launch) >> 48 & 0xff, op.channels, where, "channels");
  }
  const auto lane = [&](const flight::Word& word, uint32_t started, uint32_t stopped,
                        const char* what) {
    const uint64_t value = Load(word);
    const bool ours = flight::Generation(value) == generation;
    Same(ours ? value >> 32 & 0xffff : 0, started, where + what, " starts");
    Same(ours ? value >> 48 : 0, stopped, where + what, " stops");
  };
  lane(row.kernel, op.kernels_started, op.kernels_stopped, "KernelCh");
  lane(row.proxy_ops, op.proxy_started, op.proxy_stopped, "ProxyOp");
  if (op.kernels_started != 0) {
    Within(Load(row.started), op.started, where + "started");
    Within(Load(row.finished), op.finished, where + "finished");
    Same(Load(row.gpu_started), op.gpu_started, where, "GPU start");
    Same(Load(row.gpu_finished), op.gpu_finished, where, "GPU stop");
  }
}

void Model::CompareEdges() const {
  size_t found = 0;
  for (uint32_t r = 0; r <= image_.edge_mask; ++r) {
    const flight::EdgeRow& row = image_.edges[r];
    const uint64_t stamp = Load(row.stamp);
    if (stamp == 0) continue;
    const uint64_t who = Load(row.peer);
    const EdgeKey key(stamp >> 32 & 0xffff, Load(row.context), static_cast<uint32_t>(who >> 32),
                      static_cast<uint32_t>(who), stamp >> 16 & 0xff, stamp >> 24 & 0xff);
    const auto place = edges_.find(key);
    if (place == edges_.end()) continue;  // of an earlier world
    ++found;
    const Edge& edge = place->second;
    const std::string where = "edge row " + std::to_string(r) + ": ";
    if (edge.pseudo) {
      Same(Load(row.steps), edge.messages, where, "messages");
      Same(Load(row.bytes), edge.bytes, where, "bytes");
      continue;
    }
    Same(Load(row.ops), edge.started | edge.stopped << 32, where,
         "proxy operations started and stopped");
    Same(Load(row.current), edge.current, where, "running operation");
    const uint64_t steps = Load(row.steps);
    for (uint32_t f = 0; f < 4; ++f) {
      Same(steps >> 16 * f & 0xffff, edge.reached[f], where, "steps that reached a state");
      const uint64_t sum = Load(row.entered[f]);
      if (sum - edge.entered[f].low > edge.entered[f].high - edge.entered[f].low)
        Violation(where + "the sum of times of state " + std::to_string(f) +
                  " is not that of its steps");
    }
    Within(Load(row.changed) & ~uint64_t{1}, edge.changed, where + "changed");
    Same(Load(row.changed) & 1, edge.refused, where, "mark of a refused send");
    Same(Load(row.bytes), edge.bytes, where, "bytes");
    Same(Load(row.steps_total), edge.steps_total, where, "steps of earlier operations");
    Same(Load(row.chunk), edge.chunk | static_cast<uint64_t>(edge.n_steps) << 32, where,
         "chunk and steps");
    Same(Load(row.foreign), edge.foreign, where, "foreign parent");
  }
  Same(found, edges_.size(), "", "number of edges");
}

void Model::Compare() const {
  for (uint32_t i = 0; i < flight::kCounterWords; ++i) {
    // Our own thread writes the traces and looks at siblings; what it counts is not NCCL's doing.
    if (i == static_cast<uint32_t>(flight::Counter::kTraceDropped) ||
        i == static_cast<uint32_t>(flight::Counter::kTraceFailed))
      continue;
    Same(Load(image_.counters[i]), expected_[i], "", ("counter " + std::to_string(i)).c_str());
  }
  for (const auto& comm : comms_) {
    if (comm != nullptr) CompareComm(*comm);
  }
  for (const auto& operation : operations_) {
    if (operation != nullptr) CompareOperation(*operation);
  }
  CompareEdges();
}

}  // namespace ringscope::interface_model
