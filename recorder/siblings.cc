#include "recorder/siblings.h"

#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "recorder/clock.h"
#include "recorder/flight/ask.h"
#include "recorder/flight/clock_map.h"
#include "recorder/flight/owner.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

using flight::Load;
using flight::SiblingRow;
using flight::SiblingState;

void Store(flight::Word& word, uint64_t v) { word.store(v, std::memory_order_relaxed); }

// The members of a job begin together: a communicator's creation waits for all of them.
constexpr uint64_t kEarlierRunNs = 3000000000;

struct Round {
  Runtime* runtime;
  int dir;
  char prefix[256];
  uint64_t now;  // ticks
  uint64_t realtime_ns;
  uint64_t begun_ns;  // CLOCK_REALTIME of our own first moment
  bool one_machine;   // whoever has a file in this directory runs under our kernel
  uint64_t ask;       // reasons
  uint64_t order;     // ours
  NodeView view;
  uint64_t seen;  // bit per sibling row that a file was found for
  bool own_seen;  // our own file is there: it is the directory that we began with
};

// What procfs says of the process that wrote a file, if it is one of this pid namespace.
struct InProcfs {
  char letter;      // its state; 0: not visible from here
  bool known_gone;  // the process of that number is certainly not the writer (any more)
  int64_t parent;   // pid; 0 not known
};
InProcfs LookInProcfs(const flight::FileHeader& header) {
  InProcfs seen = {};
  TextBuffer<64> path;
  path.Add("/proc/").AddInt(header.pid).Add("/stat");
  char stat[1024];
  uint64_t start, stack;
  char state;
  if (ReadSmallFile(path.c_str(), stat, sizeof(stat)) <= 0 ||
      !ParseProcStat(stat, &start, &state, &stack)) {
    return seen;
  }
  // Same start, another stack: it has called exec, and what it runs now knows nothing of this file.
  if (start != header.process_start ||
      (stack != 0 && header.process_stack != 0 && stack != header.process_stack)) {
    seen.known_gone = true;
    return seen;
  }
  seen.letter = state;
  uint64_t parent;  // "pid (name) S parent"
  const char* p = strrchr(stat, ')');
  if (p && p[1] && p[2] && p[3] && ParseUint(p + 4, &parent)) {
    seen.parent = static_cast<int64_t>(parent);
  }
  return seen;
}

// Its local rank, which WriteTextBlock puts first.
uint32_t LocalRank(int fd) {
  static constexpr char kKey[] = "local_rank=";
  char text[64] = {};
  uint64_t number;
  if (pread(fd, text, sizeof(text) - 1, 4096) <= 0 || !StartsWith(text, kKey) ||
      !ParseUint(text + sizeof(kKey) - 1, &number) || number >= kNoNumber) {
    return kNoNumber;
  }
  return static_cast<uint32_t>(number);
}

bool Stalls(const flight::FileHeader& header) {
  for (const flight::StallFinding& stall : header.stalls) {
    if (Load(stall.what) >> 63 && Load(stall.resolved) == 0) return true;
  }
  return false;
}

uint64_t RealtimeOf(const flight::FileHeader& header) {
  const flight::ClockMap clock(header);
  return static_cast<uint64_t>(clock.Realtime(clock.Ns(Load(header.heartbeat))));
}

// On a file system that one kernel serves, a file's owner lives on this machine whatever host name
// it carries (containers of one job on one node), and its lock says whether it lives. On a network
// file system that needs the same boot id.
bool OneMachine(int dir) {
  struct statfs fs;
  if (fstatfs(dir, &fs) != 0) return false;
  const auto type = static_cast<uint32_t>(fs.f_type);
  return type == 0x01021994 /* tmpfs */ || type == 0xef53 /* ext2-4 */ ||
         type == 0x58465342 /* xfs */ || type == 0x9123683e /* btrfs */ ||
         type == 0x794c7630 /* overlayfs */;
}

// A file that is gone was removed by its owner after a clean end: only then is one removed while
// its job runs.
void MarkVanished(Round* round) {
  const Image& image = round->runtime->image;
  for (uint32_t i = 0; i < flight::kSiblingRows; ++i) {
    SiblingRow& row = image.siblings[i];
    if (Load(row.who) == 0 || round->seen >> i & 1) continue;
    const uint64_t state = Load(row.state) & 0xff;
    if (state == static_cast<uint64_t>(SiblingState::kGone) ||
        state == static_cast<uint64_t>(SiblingState::kExited)) {
      continue;
    }
    Store(row.state, static_cast<uint64_t>(SiblingState::kExited));
    Store(row.since, round->now);
    Store(row.checked, round->now);
  }
}

// `starved_ns`: the longest that our own thread waited for a processor. Where that is long, another one's may wait several
// times as long without being frozen; a stopped process (state T) is one all the same.
SiblingState Judge(const flight::FileHeader& header, flight::OwnerLock lock, uint64_t heartbeat_ns,
                   uint64_t realtime_ns, char letter, bool known_gone, uint64_t starved_ns) {
  const uint64_t period = uint64_t{header.heartbeat_period_ms} * 1000000;
  uint64_t old = kOldHeartbeatPeriods * period;
  if (old < 1000000000) old = 1000000000;
  // (What an unlocked file's heartbeat says is not stretched: who holds no lock is most likely gone.)
  const bool beats = realtime_ns < heartbeat_ns + old;
  if (Load(header.starve_ns) > starved_ns) starved_ns = Load(header.starve_ns);
  if (letter != 'T' && letter != 't' && starved_ns >= kStarvedNs) {
    const uint64_t lag = kStarvedFactor * starved_ns;
    old += lag < header.stall_ns ? lag : header.stall_ns;
  }
  const bool may_beat = realtime_ns < heartbeat_ns + old;
  // Z and X: dead, its parent has not asked yet; or only its first thread has ended. A held lock
  // proves life, also against a process of the same number in another pid namespace.
  const bool dead =
      lock != flight::OwnerLock::kHeld && (letter == 'Z' || letter == 'X' || known_gone);
  // Its thread waits for a file system: the heartbeat says nothing then.
  const bool waits = Load(header.thread_in_call) != 0 && letter != 'T' && letter != 't';
  const SiblingState silent = waits ? SiblingState::kUnknown : SiblingState::kFrozen;
  if (lock == flight::OwnerLock::kUnknown && !dead) {
    return beats ? SiblingState::kAlive : SiblingState::kUnknown;
  }
  if (dead || lock == flight::OwnerLock::kFree) {
    // Its lock can be lost while it lives (owner.h); its heartbeat cannot go on when it does not.
    if (!dead && (beats || letter != 0)) {
      return beats ? SiblingState::kAlive : silent;
    }
    const uint64_t ended = flight::kStateClean | flight::kStateExiting;
    return Load(header.state) & ended ? SiblingState::kExited : SiblingState::kGone;
  }
  return may_beat ? SiblingState::kAlive : silent;
}

SiblingRow* RowOf(Round* round, uint64_t who, uint64_t nonce_start) {
  const Image& image = round->runtime->image;
  SiblingRow* free_row = nullptr;
  for (uint32_t i = 0; i < flight::kSiblingRows; ++i) {
    SiblingRow* row = &image.siblings[i];
    if (Load(row->who) == who && Load(row->nonce_start) == nonce_start) {
      round->seen |= uint64_t{1} << i;
      return row;
    }
    if (!free_row && Load(row->who) == 0) free_row = row;
  }
  if (!free_row) return nullptr;  // 64 siblings are more than a node has GPUs
  round->seen |= uint64_t{1} << (free_row - image.siblings);
  Store(free_row->nonce_start, nonce_start);
  Store(free_row->since, round->now);
  free_row->who.store(who, std::memory_order_release);
  return free_row;
}

// Asks a living sibling, and takes from its header what the node as a whole is asked about.
void Exchange(Round* round, int fd, const flight::FileHeader& header, SiblingState state,
              int64_t parent) {
  const Identity& self = round->runtime->identity;
  const bool lives = state == SiblingState::kAlive;
  round->view.fallback_said |= (Load(header.state) & flight::kStateFallbackSaid) != 0;
  // Without a job id the name does not prove that it is of our run: of another run's it must not
  // depend whether this one speaks. What a launcher started has one parent.
  const bool same_run = self.job[0] || parent == 0 || parent == getppid();
  if (lives && same_run && Stalls(header)) {
    const uint64_t order = NodeOrder(LocalRank(fd), header.rank_hint, header.pid);
    round->view.stalled_before |= order < round->order;
  }
  struct stat st;
  if (!round->ask || state == SiblingState::kGone || state == SiblingState::kExited ||
      StatFd(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 4096 || st.st_uid != self.uid) {
    return;
  }
  (void)flight::AskOwner(fd, self.uid, round->ask,
                         static_cast<uint32_t>(self.pid) | uint64_t{self.rank} << 32);
}

bool LookAt(void* ctx, const char* name) {
  Round* round = static_cast<Round*>(ctx);
  const Runtime* runtime = round->runtime;
  // Our own file must not be opened: closing it would drop our lock.
  if (strcmp(name, runtime->file.name) == 0) {
    round->own_seen = true;
    return true;
  }
  if (!StartsWith(name, round->prefix)) return true;
  const int access = round->ask ? O_RDWR : O_RDONLY;
  const int fd = openat(round->dir, name, access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return true;
  alignas(8) char bytes[sizeof(flight::FileHeader)];
  const auto& header = *reinterpret_cast<const flight::FileHeader*>(bytes);
  const bool ours = pread(fd, bytes, sizeof(bytes), 0) == static_cast<ssize_t>(sizeof(bytes)) &&
                    memcmp(header.magic, flight::kMagic, sizeof(flight::kMagic)) == 0 &&
                    header.version == flight::kVersion &&
                    (round->one_machine || strncmp(header.boot_id, runtime->identity.boot_id,
                                                   sizeof(header.boot_id)) == 0);
  const uint64_t heartbeat = ours ? RealtimeOf(header) : 0;
  // Dead before this process began: left over from an earlier run under the same name (runs without
  // a job id).
  if (!ours || heartbeat + kEarlierRunNs < round->begun_ns) {
    close(fd);
    return true;
  }
  const flight::OwnerLock lock = flight::ProbeOwnerLock(fd);
  const InProcfs seen = LookInProcfs(header);
  const SiblingState state =
      Judge(header, lock, heartbeat, round->realtime_ns, seen.letter, seen.known_gone,
            Load(runtime->image.header->starve_ns));
  Exchange(round, fd, header, state, seen.parent);
  close(fd);

  const uint64_t who = static_cast<uint32_t>(header.pid) | uint64_t{header.rank_hint} << 32;
  SiblingRow* row =
      RowOf(round, who, (header.process_nonce & 0xffffffff) | header.process_start << 32);
  if (!row) return true;
  const auto number = static_cast<uint64_t>(state);
  if ((Load(row->state) & 0xff) != number) Store(row->since, round->now);
  Store(row->state, number | static_cast<uint64_t>(static_cast<unsigned char>(seen.letter)) << 8);
  Store(row->heartbeat_realtime_ns, heartbeat);
  Store(row->checked, round->now);
  return true;
}

}  // namespace

uint64_t NodeOrder(uint32_t local_rank, uint32_t rank, int32_t pid) {
  constexpr uint64_t kByRank = uint64_t{1} << 62, kByPid = uint64_t{1} << 63;
  if (local_rank != kNoNumber) return uint64_t{local_rank & 0xffffff} << 32 | rank;
  if (rank != kNoNumber) return kByRank | rank;
  return kByPid | static_cast<uint32_t>(pid);
}

NodeView LookAtSiblings(Runtime* runtime, uint64_t now, uint64_t ask) {
  Round round = {};
  if (!runtime->file.directory[0]) return round.view;
  round.runtime = runtime;
  round.now = now;
  round.ask = ask;
  const Identity& self = runtime->identity;
  round.order = NodeOrder(self.local_rank, self.rank, self.pid);
  Text prefix(round.prefix, sizeof(round.prefix));
  AddFlightJobPrefix(prefix, self);
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  round.realtime_ns = uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
  round.begun_ns = Load(runtime->image.header->first_anchor.realtime_ns);
  round.dir = open(runtime->file.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (round.dir < 0) return round.view;
  round.one_machine = OneMachine(round.dir);
  // Without our own file it is another directory of that name (chroot), or somebody has swept it:
  // nothing follows from what is missing there.
  if (ListDirectory(round.dir, LookAt, &round) && round.own_seen) MarkVanished(&round);
  close(round.dir);
  return round.view;
}

}  // namespace ringscope::recorder
