#include "analyzer/model/foreign_edges.h"

namespace ringscope::model {
namespace {

// Handles as recorder/flight/handles.h makes them; the layout reaches the file and is fixed. (A
// test compares.)
constexpr uint32_t HandleNonce(uint64_t h) { return static_cast<uint32_t>(h >> 50); }
constexpr uint32_t HandleKind(uint64_t h) { return static_cast<uint32_t>(h >> 46 & 15); }
constexpr uint32_t HandleRow(uint64_t h) { return static_cast<uint32_t>(h & 0xffff); }
constexpr uint32_t ContextGeneration(uint64_t h) { return static_cast<uint32_t>(h >> 16 & 0xffff); }
constexpr uint32_t OpGeneration(uint64_t h) { return static_cast<uint32_t>(h >> 16 & 0x3fffff); }
constexpr uint32_t kKindContext = 1;
constexpr uint32_t kKindOp = 3;

// Records of recorders that did not write generations hold 0: then the row alone has to do.
bool SameGeneration(uint32_t recorded, uint32_t handle) {
  return recorded == 0 || recorded == handle;
}

}  // namespace

bool SameMachine(const Process& a, const Process& b) {
  return a.host == b.host && a.trace.process().boot_id() == b.trace.process().boot_id();
}

ForeignHandles::ForeignHandles(const Job& job, const std::vector<std::map<uint32_t, RowRef>>& rows)
    : job_(job), rows_(rows) {
  for (const Process& p : job.processes) {
    if (p.trace.process().nonce() != 0) by_nonce_[p.trace.process().nonce()].push_back(p.index);
  }
}

const Member& ForeignHandles::MemberAt(const RowRef& at) const {
  return job_.communicators[static_cast<size_t>(at.communicator)]
      .members[static_cast<size_t>(at.rank)];
}

const ForeignHandles::OpRef* ForeignHandles::Find(int process, uint64_t handle) {
  if (HandleKind(handle) != kKindOp ||
      HandleNonce(handle) != job_.processes[static_cast<size_t>(process)].trace.process().nonce()) {
    return nullptr;
  }
  const auto [at, fresh] = ops_.try_emplace(process);
  if (fresh) {
    for (const auto& [row, member] : rows_[static_cast<size_t>(process)]) {
      const std::vector<Op>& ops = MemberAt(member).ops;
      for (size_t i = 0; i < ops.size(); ++i) at->second[ops[i].raw.row()] = {member, i};
    }
  }
  const auto found = at->second.find(HandleRow(handle));
  if (found == at->second.end()) return nullptr;
  const Op& op = MemberAt(found->second.member).ops[found->second.op];
  return SameGeneration(op.raw.generation(), OpGeneration(handle)) ? &found->second : nullptr;
}

EdgeOwners ForeignHandles::OwnersOf(const Process& relay, const trace::Edge& e) {
  EdgeOwners owners;
  const auto processes = [&](uint64_t handle) {
    std::vector<int> found;
    const auto at = by_nonce_.find(HandleNonce(handle));
    if (at == by_nonce_.end()) return found;
    for (const int p : at->second) {
      // The relay took the operation for another process's although the handle may bear its own
      // nonce.
      if (p != relay.index && SameMachine(job_.processes[static_cast<size_t>(p)], relay))
        found.push_back(p);
    }
    return found;
  };
  const auto of_that_rank = [&](const RowRef& at) {
    return at.rank >= 0 && static_cast<uint32_t>(at.rank) == e.rank();
  };
  if (HandleKind(e.foreign_context()) == kKindContext) {
    for (const int p : processes(e.foreign_context())) {
      const auto row = rows_[static_cast<size_t>(p)].find(HandleRow(e.foreign_context()));
      if (row == rows_[static_cast<size_t>(p)].end() || !of_that_rank(row->second)) continue;
      if (SameGeneration(MemberAt(row->second).raw->generation(),
                         ContextGeneration(e.foreign_context()))) {
        owners.members.push_back(row->second);
      } else {
        owners.gone = true;
      }
    }
  }
  if (!owners.members.empty()) owners.gone = false;
  if (!owners.members.empty() || owners.gone) return owners;
  // NCCL hands down no context after a failed init (2.28, 2.29), and that of another rank where
  // operations were merged (2.23).
  for (const int p : processes(e.foreign_parent())) {
    const OpRef* op = Find(p, e.foreign_parent());
    if (op != nullptr && of_that_rank(op->member)) owners.members.push_back(op->member);
  }
  return owners;
}

const Op* ForeignHandles::RunningOp(const RowRef& owner, const trace::Edge& e) {
  const Member& m = MemberAt(owner);
  const OpRef* newest = Find(m.process, e.foreign_parent());
  if (newest == nullptr || newest->member.communicator != owner.communicator ||
      newest->member.rank != owner.rank) {
    return nullptr;
  }
  const Op* op = &m.ops[newest->op];
  if (!e.has_current()) return e.ops_started() - e.ops_stopped() <= 1 ? op : nullptr;
  if ((op->raw.row() & 0xff) == e.current_op_row()) return op;
  // Several are appended. Of the running one the low bits of its row are known, which name one row
  // of the communicator's ring: it was entered before the newest.
  for (size_t i = newest->op; i-- > 0;) {
    if ((m.ops[i].raw.row() & 0xff) == e.current_op_row()) return &m.ops[i];
  }
  return nullptr;
}

}  // namespace ringscope::model
