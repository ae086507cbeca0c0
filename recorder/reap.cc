// Removal of what dead processes left (flight_file.h: ReapFlightFiles).
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "recorder/flight/owner.h"
#include "recorder/flight_file.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

struct Dead {
  char name[256];
  uint64_t key;  // local rank, or rank | 1 << 32, or 1 << 33 when neither is known
  int64_t modified_ns;
};

// More dead files than this are left for the next start.
constexpr unsigned kMostDead = 64;

struct Search {
  int dir;
  const Identity* identity;
  const char* own_name;
  Dead* dead;
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

bool Inspect(void* ctx, const char* name) {
  Search* search = static_cast<Search*>(ctx);
  if (!OurPattern(name) || strcmp(name, search->own_name) == 0) return true;
  struct stat st;
  const int fd =
      openat(search->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return true;
  // The header is larger than what is taken here; atomics are read as plain bytes of a dead file.
  alignas(8) char bytes[sizeof(flight::FileHeader)];
  char text[64] = {};
  const auto& header = *reinterpret_cast<const flight::FileHeader*>(bytes);
  if (StatFd(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
      pread(fd, bytes, sizeof(bytes), 0) == static_cast<ssize_t>(sizeof(bytes)) &&
      memcmp(header.magic, flight::kMagic, sizeof(flight::kMagic)) == 0 &&
      header.version == flight::kVersion &&
      strncmp(header.host, search->identity->host, sizeof(header.host)) == 0 &&
      flight::ProbeOwnerLock(fd) == flight::OwnerLock::kFree &&
      pread(fd, text, sizeof(text) - 1, 4096) > 0) {
    Dead* dead = &search->dead[search->count++];
    CopyText(dead->name, sizeof(dead->name), name);
    dead->key = KeyOf(header, text, sizeof(text));
    dead->modified_ns = static_cast<int64_t>(st.st_mtim.tv_sec) * 1000000000 + st.st_mtim.tv_nsec;
  }
  close(fd);
  return search->count < kMostDead;
}

}  // namespace

void ReapFlightFiles(const char* directory, const Identity& identity, const char* own_name) {
  const int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return;
  Dead dead[kMostDead];  // 17 KiB of stack, on our own thread
  Search search = {dir, &identity, own_name, dead, 0};
  ListDirectory(dir, Inspect, &search);
  for (unsigned i = 0; i < search.count; ++i) {
    unsigned newer = 0;
    for (unsigned k = 0; k < search.count; ++k) {
      if (k == i || dead[k].key != dead[i].key) continue;
      newer += dead[k].modified_ns > dead[i].modified_ns ||
               (dead[k].modified_ns == dead[i].modified_ns && k > i);
    }
    if (newer >= kKeptPerRank) unlinkat(dir, dead[i].name, 0);
  }
  close(dir);
}

}  // namespace ringscope::recorder
