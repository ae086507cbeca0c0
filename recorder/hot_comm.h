// Communicators: rows, rings of operation rows, tombstones. Called from a profiler's init and
// finalize, not a hot path.
#ifndef RINGSCOPE_RECORDER_HOT_COMM_H_
#define RINGSCOPE_RECORDER_HOT_COMM_H_

#include "recorder/flight/format.h"
#include "recorder/flight/handles.h"
#include "recorder/hot_thread.h"

namespace ringscope::recorder {

struct CommIdentity {
  uint64_t comm_id;
  const char* name;  // may be nullptr; copied
  int n_nodes;       // <= 0 unknown
  int n_ranks;       // <= 0 unknown
  int rank;          // < 0: told by the first operation (LearnIdentity)
  uint32_t api;      // version of the profiler table, 1-6
  bool api_events;   // CollApi / P2pApi will come
  bool completion;   // KernelCh asked for and delivered by this release
};

// Opens a row and its ring; returns a context handle, never 0. Without a free row a handle that
// names none is returned and the loss is counted.
uint64_t OpenCommunicator(Image* image, const CommIdentity& identity);

// NCCL freed it (destroyed or aborted): the row stays as a tombstone. Asks for a snapshot when
// operations are open or when it was the last one. Stale and unknown handles are counted and
// ignored.
void CloseCommunicator(Image* image, uint64_t context);

// LearnIdentity's slow part: there is something to learn.
void LearnNew(flight::CommRow* comm, uint64_t comm_id, uint32_t rank, uint32_t n_ranks);

inline constexpr uint32_t kNoComm = 0xffff;

// Row that a context handle names; nullptr for NULL, foreign, unknown or reused ones. Does not
// count: callers know why they ask. A finalized communicator is returned too: callbacks after
// finalize are normal (shared proxies).
inline flight::CommRow* CommOf(Image* image, uint64_t context) {
  if (flight::HandleNonce(context) != image->nonce ||
      flight::KindOf(context) != flight::HandleKind::kContext)
    return nullptr;
  const uint64_t payload = flight::HandlePayload(context);
  const auto index = static_cast<uint32_t>(payload & 0xffff);
  if (index >= image->comm_rows) return nullptr;
  flight::CommRow* row = &image->comms[index];
  const uint64_t stamp = Load(row->stamp);
  if (stamp == 0 || (stamp & 0xffff) != (payload >> 16 & 0xffff)) return nullptr;
  return row;
}
// What an operation tells of its communicator where init told nothing (profiler API below v4).
// `comm_id` and `rank` count once, `n_ranks` when it becomes known (0: this operation does not
// tell). Called from the launching thread.
inline void LearnIdentity(Image* image, uint64_t context, uint64_t comm_id, int rank,
                          uint32_t n_ranks) {
  flight::CommRow* comm = CommOf(image, context);
  if (comm == nullptr || rank < 0) return;
  if (!(Load(comm->stamp) & flight::kCommIdentified) ||
      (n_ranks != 0 && Load(comm->ranks) >> 32 == 0)) {
    LearnNew(comm, comm_id, static_cast<uint32_t>(rank), n_ranks);
  }
}
inline uint32_t IndexOf(const Image* image, const flight::CommRow* row) {
  return row ? static_cast<uint32_t>(row - image->comms) : kNoComm;
}

// An operation that was entered before one that is finished, in another group, is over: the kernels
// of one communicator run in order.
inline bool Overtaken(const flight::CommRow* comm, const flight::OpRow* row) {
  return Load(row->entered) < Load(comm->done_entered) &&
         (Load(row->group) & 0xffffffffffff) != Load(comm->done_group);
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_HOT_COMM_H_
