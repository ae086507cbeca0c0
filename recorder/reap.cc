// Removal of what dead processes left (flight_file.h: ReapFlightFiles).
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recorder/flight/owner.h"
#include "recorder/flight_file.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

struct Dead {
  char name[256];
  uint64_t inode;
  uint64_t key;  // local rank, or rank | 1 << 32, or 1 << 33 when neither is known
  int64_t modified_ns;
};

// A file without a magic is one in the making, or its maker died: it takes its lock at once, so an
// unlocked one of this age has nobody left.
constexpr int64_t kMakingNs = 60000000000;

struct Search {
  int dir;
  bool one_machine;  // tmpfs: whoever has a file here runs under our kernel, whatever host it names
  const Identity* identity;
  const char* own_name;
  int64_t now_ns;  // CLOCK_REALTIME, as file times are
  Dead* dead;      // the newest kKeptInAll
  unsigned count;
};

bool OurPattern(const char* name) {
  const size_t n = strlen(name);
  return StartsWith(name, "ringscope-") && n > 17 && n < sizeof(Dead::name) &&
         strcmp(name + n - 7, ".flight") == 0;
}

uint64_t KeyOf(const flight::FileHeader& header, const char* text, size_t size) {
  static constexpr char kLocal[] = "local_rank=";
  uint64_t number;
  if (size > sizeof(kLocal) && strncmp(text, kLocal, sizeof(kLocal) - 1) == 0 &&
      ParseUint(text + sizeof(kLocal) - 1, &number) && number < kNoNumber) {
    return number;
  }
  if (header.rank_hint != kNoNumber) return header.rank_hint | uint64_t{1} << 32;
  return uint64_t{1} << 33;
}

// A name may have been given to another file since it was looked at.
void Remove(const Search& search, const char* name, uint64_t inode) {
  struct stat st;
  if (StatNoFollow(search.dir, name, &st) == 0 && S_ISREG(st.st_mode) &&
      static_cast<uint64_t>(st.st_ino) == inode) {
    (void)unlinkat(search.dir, name, 0);
  }
}

// The owner's lock may have been lost (owner.h) although it runs.
bool OwnerRuns(const flight::FileHeader& header) {
  TextBuffer<64> path;
  path.Add("/proc/").AddInt(header.pid).Add("/stat");
  char stat[1024];
  char state;
  uint64_t start, stack;
  return ReadSmallFile(path.c_str(), stat, sizeof(stat)) > 0 &&
         ParseProcStat(stat, &start, &state, &stack) && start == header.process_start &&
         state != 'Z' && state != 'X' &&
         (stack == 0 || header.process_stack == 0 || stack == header.process_stack);
}

// Keeps the newest kKeptInAll; what falls out of them is removed.
void Add(Search* search, const Dead& dead) {
  if (search->count < kKeptInAll) {
    search->dead[search->count++] = dead;
    return;
  }
  Dead* oldest = search->dead;
  for (unsigned i = 1; i < search->count; ++i) {
    if (search->dead[i].modified_ns < oldest->modified_ns) oldest = &search->dead[i];
  }
  if (oldest->modified_ns >= dead.modified_ns) {
    Remove(*search, dead.name, dead.inode);
    return;
  }
  Remove(*search, oldest->name, oldest->inode);
  *oldest = dead;
}

bool Inspect(void* ctx, const char* name) {
  Search* search = static_cast<Search*>(ctx);
  if (!OurPattern(name) || strcmp(name, search->own_name) == 0) return true;
  struct stat st;
  // Nothing but a plain file of ours is even opened: opening a device or a FIFO does something.
  if (StatNoFollow(search->dir, name, &st) != 0 || !S_ISREG(st.st_mode)) return true;
  const int fd =
      openat(search->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return true;
  // The header is larger than what is taken here; atomics are read as plain bytes of a dead file.
  alignas(8) char bytes[sizeof(flight::FileHeader)] = {};
  char text[64] = {};
  const auto& header = *reinterpret_cast<const flight::FileHeader*>(bytes);
  static constexpr char kNoMagic[sizeof(flight::kMagic)] = {};
  Dead dead;
  if (StatFd(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
      flight::ProbeOwnerLock(fd) == flight::OwnerLock::kFree) {
    const ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
    dead.inode = static_cast<uint64_t>(st.st_ino);
    dead.modified_ns = static_cast<int64_t>(st.st_mtim.tv_sec) * 1000000000 + st.st_mtim.tv_nsec;
    CopyText(dead.name, sizeof(dead.name), name);
    if (n == static_cast<ssize_t>(sizeof(bytes)) &&
        memcmp(header.magic, flight::kMagic, sizeof(flight::kMagic)) == 0) {
      if (header.version == flight::kVersion &&
          (search->one_machine ||
           strncmp(header.host, search->identity->host, sizeof(header.host)) == 0) &&
          !OwnerRuns(header) && pread(fd, text, sizeof(text) - 1, 4096) > 0) {
        dead.key = KeyOf(header, text, sizeof(text));
        Add(search, dead);
      }
    } else if (n >= 0 && memcmp(header.magic, kNoMagic, sizeof(kNoMagic)) == 0 &&
               search->now_ns - dead.modified_ns > kMakingNs) {
      Remove(*search, dead.name, dead.inode);
    }
  }
  close(fd);
  return true;
}

}  // namespace

void ReapFlightFiles(const char* directory, const Identity& identity, const char* own_name) {
  const int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t free_bytes, type = 0;
  const bool known = FreeSpace(dir, &free_bytes, &type);
  Dead dead[kKeptInAll];  // 18 KiB of stack, on our own thread
  Search search = {dir,
                   known && type == kTmpfsMagic,
                   &identity,
                   own_name,
                   static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec,
                   dead,
                   0};
  ListDirectory(dir, Inspect, &search);
  for (unsigned i = 0; i < search.count; ++i) {
    unsigned newer = 0;
    for (unsigned k = 0; k < search.count; ++k) {
      if (k == i || dead[k].key != dead[i].key) continue;
      newer += dead[k].modified_ns > dead[i].modified_ns ||
               (dead[k].modified_ns == dead[i].modified_ns && k > i);
    }
    if (newer >= kKeptPerRank) Remove(search, dead[i].name, dead[i].inode);
  }
  close(dir);
}

}  // namespace ringscope::recorder
