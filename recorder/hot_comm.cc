#include "recorder/hot_comm.h"

#include <sched.h>

#include "recorder/hot_stream.h"

namespace ringscope::recorder {
namespace {

using flight::CommRow;
using flight::OpRow;

constexpr uint32_t kBlock = 16;  // operation rows per allocation unit
constexpr uint32_t kMostBlocks = flight::kOpRows / kBlock;
uint32_t Blocks(const Image* image) { return image->op_rows / kBlock; }
constexpr uint32_t kNoRun = 0xffffffff;
constexpr uint32_t kKeptTombstones =
    16;  // destroyed communicators whose operations are kept in any case

// Guards the pool and the choice of a row: init may run on several threads at once. Only init takes
// it, never a callback of an operation, so nothing waits that NCCL's progress depends on; a holder
// does a few thousand stores and leaves. Holds the owner's pid: a child forked while another thread
// of the parent held it takes it over.
std::atomic<int32_t> g_busy{0};
struct PoolGuard {
  explicit PoolGuard(const Image* image) {
    const int32_t mine = image->header->pid;
    for (int32_t seen = 0; !g_busy.compare_exchange_weak(seen, mine, std::memory_order_acquire);) {
      if (seen == mine) {
        sched_yield();
        seen = 0;
      }
    }
  }
  ~PoolGuard() { g_busy.store(0, std::memory_order_release); }
};

// Which blocks belong to a ring. Rebuilt from the communicator table, so that no second truth
// exists.
void MarkUsed(const Image* image, uint8_t* used) {
  const uint32_t blocks = Blocks(image);
  for (uint32_t i = 0; i < blocks; ++i) used[i] = 0;
  for (uint32_t c = 0; c < image->comm_rows; ++c) {
    if (Load(image->comms[c].stamp) == 0) continue;
    const uint64_t ring = Load(image->comms[c].ring);
    const uint32_t first = static_cast<uint32_t>(ring) / kBlock;
    const uint32_t count = (static_cast<uint32_t>(ring >> 32) + 1) / kBlock;
    for (uint32_t b = first; b < first + count && b < blocks; ++b) used[b] = 1;
  }
}

// First run of `rows` free rows at a multiple of `rows`; kNoRun when there is none.
uint32_t FindRun(const Image* image, const uint8_t* used, uint32_t rows) {
  const uint32_t blocks = rows / kBlock, all = Blocks(image);
  for (uint32_t b = 0; b + blocks <= all; b += blocks) {
    bool free = true;
    for (uint32_t i = b; i < b + blocks && free; ++i) free = used[i] == 0;
    if (free) return b * kBlock;
  }
  return kNoRun;
}

// `count`: how many tombstones there are.
CommRow* OldestTombstone(const Image* image, uint32_t* count) {
  CommRow* oldest = nullptr;
  *count = 0;
  for (uint32_t c = 0; c < image->comm_rows; ++c) {
    CommRow* row = &image->comms[c];
    if (Load(row->stamp) == 0 || Load(row->finalized) == 0) continue;
    ++*count;
    if (oldest == nullptr || Load(row->finalized) < Load(oldest->finalized)) oldest = row;
  }
  return oldest;
}

// Frees a tombstone: its operation rows and edges are void from here on. The row keeps its last
// generation in done_group, which nothing reads while the row is free, so that handles of the old
// communicator stay recognisable.
void Bury(Image* image, CommRow* row) {
  const uint64_t index = static_cast<uint64_t>(row - image->comms);
  const uint64_t generation = Load(row->stamp) & 0xffff;
  KeepCommIfStreaming(image, row);
  Store(row->stamp, 0);
  // A reader that sees a word of the row's next use must see that the row was free in between.
  std::atomic_thread_fence(std::memory_order_release);
  for (uint32_t e = 0; e <= image->edge_mask; ++e) {
    const uint64_t stamp = Load(image->edges[e].stamp);
    if (stamp != 0 && (stamp >> 32 & 0xffff) == index) {
      // The generation stays in the row's `queued` handle (hot_edge.h reads it from there on
      // reuse).
      Store(image->edges[e].stamp, 0);
    }
  }
  const uint64_t ring = Load(row->ring);
  for (uint32_t i = 0; i <= static_cast<uint32_t>(ring >> 32); ++i) {
    Store(image->ops[static_cast<uint32_t>(ring) + i].stamp, 0);
  }
  Store(row->done_group, generation);
}

// 256 rows while more than half of the pool is free, then 64, then 16: whatever is given away,
// every communicator row that is left can still have the smallest ring.
uint32_t RingRows(const Image* image, const uint8_t* used, uint32_t rows_left) {
  const uint32_t blocks = Blocks(image);
  uint32_t free = 0;
  for (uint32_t b = 0; b < blocks; ++b) free += used[b] == 0;
  if (free * 2 > blocks) return 256;
  return free + 1 >= rows_left + 64 / kBlock ? 64 : 16;
}

// A row and a ring, burying tombstones, oldest first, where the tables are full. nullptr when all
// rows live.
CommRow* Allocate(Image* image, uint32_t* first, uint32_t* rows) {
  uint8_t used[kMostBlocks];
  for (;;) {
    MarkUsed(image, used);
    CommRow* row = nullptr;
    uint32_t rows_left = 0;
    for (uint32_t c = 0; c < image->comm_rows; ++c) {
      if (Load(image->comms[c].stamp) != 0) continue;
      if (row == nullptr) row = &image->comms[c];
      ++rows_left;
    }
    *rows = RingRows(image, used, rows_left);
    uint32_t tombstones = 0;
    CommRow* oldest = OldestTombstone(image, &tombstones);
    // The dead must not make the living poor: only the newest of them keep their rows while the
    // pool is short.
    if (*rows < 256 && tombstones > kKeptTombstones) {
      Bury(image, oldest);
      continue;
    }
    *first = FindRun(image, used, *rows);
    while (*first == kNoRun && *rows > kBlock) {
      *rows = *rows == 256 ? 64 : 16;
      *first = FindRun(image, used, *rows);
    }
    if (row != nullptr && *first != kNoRun) return row;
    if (oldest == nullptr) return nullptr;
    Bury(image, oldest);
  }
}

bool KernelsSeen(const Image* image, const CommRow* row) {
  const uint64_t ring = Load(row->ring);
  for (uint32_t i = 0; i <= static_cast<uint32_t>(ring >> 32); ++i) {
    const OpRow& op = image->ops[(static_cast<uint32_t>(ring) + i) & (image->op_rows - 1)];
    if (Load(op.stamp) != 0 &&
        flight::Generation(Load(op.kernel)) == flight::Generation(Load(op.stamp)))
      return true;
  }
  return false;
}

bool HasOpenOps(const Image* image, const CommRow* row) {
  const uint64_t ring = Load(row->ring);
  const uint64_t ranks = Load(row->ranks);
  // Where no KernelCh ever came although operations were launched, completion was not visible after
  // all (another plugin's mask, a release that drops them): what was enqueued is then not "open".
  const bool visible = Load(row->flags) & flight::kCommCompletionVisible &&
                       (KernelsSeen(image, row) || Load(row->launched) < 2);
  for (uint32_t i = 0; i <= static_cast<uint32_t>(ring >> 32); ++i) {
    const OpRow& op = image->ops[(static_cast<uint32_t>(ring) + i) & (image->op_rows - 1)];
    if (flight::OpOpen(op, visible, static_cast<uint32_t>(ranks),
                       static_cast<uint32_t>(ranks >> 32)) &&
        !Overtaken(row, &op)) {
      return true;
    }
  }
  return false;
}

std::atomic<uint32_t> g_ordinal{0};

}  // namespace

uint64_t OpenCommunicator(Image* image, const CommIdentity& identity) {
  PoolGuard guard(image);
  uint32_t first = 0, rows = 0;
  CommRow* row = Allocate(image, &first, &rows);
  const uint32_t ordinal = g_ordinal.fetch_add(1, std::memory_order_relaxed);
  if (row == nullptr) {
    Count(image, flight::Counter::kCommNoRow);
    return flight::MakeHandle(image->nonce, flight::HandleKind::kContext, kNoComm);
  }
  uint64_t generation = (Load(row->done_group) + 1) & 0xffff;
  if (generation == 0) generation = 1;
  for (flight::Word* w = &row->comm_id; w != reinterpret_cast<flight::Word*>(row + 1); ++w)
    Store(*w, 0);
  Store(row->comm_id, identity.comm_id);
  const bool identified = identity.rank >= 0;
  const uint32_t ranks = identity.n_ranks > 0 ? static_cast<uint32_t>(identity.n_ranks) : 0;
  Store(row->ranks, (identified ? static_cast<uint32_t>(identity.rank) : flight::kNoRank) |
                        static_cast<uint64_t>(ranks) << 32);
  const uint32_t nodes = identity.n_nodes > 0 ? static_cast<uint32_t>(identity.n_nodes) : 0;
  Store(row->nodes, nodes | static_cast<uint64_t>(ordinal) << 32);
  Store(row->flags, (identity.api_events ? flight::kCommApiEvents : 0u) |
                        (identity.completion ? flight::kCommCompletionVisible : 0u));
  Store(row->ring, first | static_cast<uint64_t>(rows - 1) << 32);
  // Word by word, like everything that a reader may be copying at this moment (rows.h, CopyRow).
  uint64_t name[sizeof(row->name) / 8] = {};
  char* letters = reinterpret_cast<char*>(name);
  for (uint32_t i = 0;
       identity.name != nullptr && identity.name[i] != 0 && i + 1 < sizeof(row->name); ++i) {
    letters[i] = identity.name[i];
  }
  for (uint32_t i = 0; i < sizeof(row->name) / 8; ++i) {
    Store(reinterpret_cast<flight::Word*>(row->name)[i], name[i]);
  }
  Store(row->created, Ticks());
  row->stamp.store(generation | static_cast<uint64_t>(identity.api) << 32 |
                       (identified ? flight::kCommIdentified : 0) | uint64_t{1} << 63,
                   std::memory_order_release);
  return flight::MakeHandle(image->nonce, flight::HandleKind::kContext,
                            static_cast<uint64_t>(row - image->comms) | generation << 16);
}

void LearnNew(CommRow* comm, uint64_t comm_id, uint32_t rank, uint32_t n_ranks) {
  if (n_ranks <= rank) n_ranks = 0;
  const uint64_t stamp = Load(comm->stamp);
  if (stamp & flight::kCommIdentified) {
    // One word, valid alone.
    const uint64_t ranks = Load(comm->ranks);
    const uint32_t own = static_cast<uint32_t>(ranks);
    if (n_ranks > own) Store(comm->ranks, own | static_cast<uint64_t>(n_ranks) << 32);
    return;
  }
  if (stamp == 0 || Load(comm->finalized) != 0) return;  // its row may be given away any moment
  Store(comm->comm_id, comm_id);
  Store(comm->ranks, rank | static_cast<uint64_t>(n_ranks) << 32);
  comm->stamp.store(stamp | flight::kCommIdentified, std::memory_order_release);
}

void CloseCommunicator(Image* image, uint64_t context) {
  CommRow* row = CommOf(image, context);
  if (row == nullptr) {
    Count(image, context == 0 ? flight::Counter::kNullContext : flight::Counter::kStaleHandle);
    return;
  }
  if (Load(row->finalized) != 0) {
    Count(image, flight::Counter::kLateCallback);
    return;
  }
  const bool open = HasOpenOps(image, row);
  Store(row->finalized, Ticks());
  if (open) Count(image, flight::Counter::kCommFinalizedOpen);
  bool last = true;
  for (uint32_t c = 0; c < image->comm_rows && last; ++c) {
    last = Load(image->comms[c].stamp) == 0 || Load(image->comms[c].finalized) != 0;
  }
  if (open) AskSnapshot(flight::Reason::kAbort);
  if (last) {
    image->header->state.fetch_or(flight::kStateUnloaded, std::memory_order_relaxed);
    AskSnapshot(flight::Reason::kFinalize);
  }
}

}  // namespace ringscope::recorder
