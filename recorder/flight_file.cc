#include "recorder/flight_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "recorder/clock.h"
#include "recorder/flight/owner.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

using flight::kFileBytes;
using flight::Table;

// Why a place cannot be used; the text completes "... cannot be used: ".
enum class Refusal {
  kNone,
  kNoDirectory,
  kNotOurs,
  kNoSpace,
  kUnsuitable,
  kCannotMake,
  kCannotLock,
  kCannotMap,
  kLimit
};

// As large as `budget` bytes allow; false: not even the smallest.
bool SizesFor(uint64_t budget, flight::TableSizes* sizes) {
  for (uint32_t halvings = 0; halvings <= flight::kHalvings; ++halvings) {
    *sizes = flight::HalvedSizes(halvings);
    if (flight::BytesOf(*sizes) <= budget) return true;
  }
  return false;
}

const char* Why(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "";
    case Refusal::kNoDirectory:
      return "it cannot be made or opened";
    case Refusal::kNotOurs:
      return "it belongs to somebody else or others may write to it";
    case Refusal::kNoSpace:
      return "too little is free there";
    case Refusal::kUnsuitable:
      return "its file system gives no guarantee against a full disk";
    case Refusal::kCannotMake:
      return "no file can be made there";
    case Refusal::kCannotLock:
      return "files cannot be locked there";
    case Refusal::kCannotMap:
      return "files cannot be mapped there";
    case Refusal::kLimit:
      return "the limit on file sizes (ulimit -f) is too low";
  }
  return "";
}

// 14 bits, never 0. Need not be secret, only differ between the processes of a host: a PXN proxy
// tells by it whose handle a foreign parent is.
uint32_t DrawNonce(const Identity& identity, uint32_t attempt) {
  uint64_t x = 0;
#ifdef SYS_getrandom
  if (syscall(SYS_getrandom, &x, sizeof(x), 1 /* GRND_NONBLOCK */) != sizeof(x)) x = 0;
#endif
  x ^= MonotonicNs() * 0x9e3779b97f4a7c15u;
  x ^= (static_cast<uint64_t>(identity.pid) << 20 ^ identity.process_start ^ attempt) *
       0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  const uint32_t nonce = static_cast<uint32_t>(x >> 7) & 0x3fff;
  return nonce ? nonce : 1;
}

void MakeName(const Identity& identity, uint32_t nonce, char* name, size_t capacity) {
  Text out(name, capacity);
  AddFlightPrefix(out, identity);
  AddRank(out, identity.rank);
  out.AddChar('-').AddUint(static_cast<uint64_t>(identity.pid));
  out.AddChar('-').AddUint(nonce).Add(".flight");
}

// With less than this a file is not worth its place: a share of a nearly full /dev/shm.
constexpr uint64_t kLeastBudget = 512 << 10;

bool CopyOnWriteFs(uint64_t type) {
  return type == 0x9123683e /* btrfs */ || type == 0x2fc12fc1 /* zfs */ ||
         type == 0xca451a4e /* bcachefs */;
}

Refusal CheckDirectory(int dir, bool must_be_ours, flight::TableSizes* sizes) {
  struct stat st;
  if (StatFd(dir, &st) != 0) return Refusal::kNoDirectory;
  if (must_be_ours && (st.st_uid != geteuid() || (st.st_mode & 022))) return Refusal::kNotOurs;
  uint64_t free_bytes = 0, type = 0;
  if (!FreeSpace(dir, &free_bytes, &type)) return Refusal::kNoSpace;
  if (IsNetworkFs(type) || CopyOnWriteFs(type)) return Refusal::kUnsuitable;
  // In memory file systems we are a guest among NCCL's own segments, which are what the space is
  // for.
  const uint64_t share = type == kTmpfsMagic ? 32 : 8;
  const uint64_t budget = free_bytes / share;
  return budget >= kLeastBudget && SizesFor(budget, sizes) ? Refusal::kNone : Refusal::kNoSpace;
}

// posix_fallocate past this limit would send SIGXFSZ to the host's thread.
uint64_t FileSizeLimit() {
  struct rlimit limit;
  const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : ~uint64_t{0};
}

// Descriptor numbers below this are the host's: it may close standard streams and take the next
// free number for them, or count on the lowest ones.
constexpr int kLowestDescriptor = 200;

// Moves a fresh descriptor out of the host's way. Before the lock is taken: closing any descriptor
// of a file drops it. -1 (closed) when only a standard stream's number is to be had.
int MoveUp(int fd) {
  for (const int lowest : {kLowestDescriptor, 3}) {
    if (fd >= lowest) return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0) continue;
    close(fd);
    return moved;
  }
  close(fd);
  errno = EMFILE;
  return -1;
}

bool IsTheFile(const FlightFile& file, int fd) {
  struct stat st;
  return fd >= 0 && file.inode != 0 && StatFd(fd, &st) == 0 &&
         static_cast<uint64_t>(st.st_dev) == file.device &&
         static_cast<uint64_t>(st.st_ino) == file.inode;
}

void AddPath(Text& out, const FlightFile& file) {
  out.Add(file.directory).AddChar('/').Add(file.name);
}

Refusal MakeIn(const char* directory, bool must_be_ours, const Settings& settings,
               const Identity& identity, FlightFile* file) {
  flight::TableSizes sizes;
  if (!SizesFor(FileSizeLimit(), &sizes)) return Refusal::kLimit;
  if (!MakeDirectories(directory, must_be_ours ? 0700 : 0755)) return Refusal::kNoDirectory;
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (must_be_ours ? O_NOFOLLOW : 0);
  const int dir = open(directory, flags);
  if (dir < 0) return Refusal::kNoDirectory;
  flight::TableSizes room;
  Refusal refusal = CheckDirectory(dir, must_be_ours, &room);
  if (room.ops < sizes.ops) sizes = room;
  const uint64_t bytes = flight::BytesOf(sizes);
  int fd = -1;
  uint32_t nonce = 0;
  if (refusal == Refusal::kNone) {
    refusal = Refusal::kCannotMake;
    for (uint32_t attempt = 0; attempt < 16 && fd < 0; ++attempt) {
      nonce = DrawNonce(identity, attempt);
      MakeName(identity, nonce, file->name, sizeof(file->name));
      fd = openat(dir, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
      if (fd < 0 && errno != EEXIST) break;
    }
  }
  if (fd >= 0) {
    void* base = MAP_FAILED;
    struct stat st;
    // (The mode again: a umask may have taken even the owner's rights away.)
    if ((fd = MoveUp(fd)) < 0 || fchmod(fd, 0600) != 0 || StatFd(fd, &st) != 0) {
      refusal = Refusal::kCannotMake;
    } else if (!flight::TakeOwnerLock(fd)) {
      refusal = Refusal::kCannotLock;
    } else if (posix_fallocate(fd, 0, static_cast<off_t>(bytes)) != 0) {
      refusal = Refusal::kNoSpace;
    } else {
      base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
      refusal = base == MAP_FAILED ? Refusal::kCannotMap : Refusal::kNone;
    }
    if (refusal == Refusal::kNone) {
      file->base = static_cast<unsigned char*>(base);
      file->device = static_cast<uint64_t>(st.st_dev);
      file->inode = static_cast<uint64_t>(st.st_ino);
      file->fd = fd;
      CopyText(file->directory, sizeof(file->directory), directory);
      LayOutImage(settings, identity, nonce, sizes, file->base);
    } else {
      unlinkat(dir, file->name, 0);
      if (fd >= 0) close(fd);
    }
  }
  close(dir);
  return refusal;
}

bool MakeInMemory(const Settings& settings, const Identity& identity, FlightFile* file) {
  void* base = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (base == MAP_FAILED) return false;
  file->base = static_cast<unsigned char*>(base);
  file->fd = -1;
  file->directory[0] = 0;
  file->name[0] = 0;
  LayOutImage(settings, identity, DrawNonce(identity, 0), flight::TableSizes(), file->base);
  reinterpret_cast<flight::FileHeader*>(base)->state.store(flight::kStatePrivateMemory,
                                                           std::memory_order_relaxed);
  return true;
}

}  // namespace

void AddRank(Text& out, uint32_t rank) {
  out.Add("rank");
  if (rank == kNoNumber) {
    out.AddChar('x');
  } else {
    out.AddUint(rank);
  }
}

void AddRunDirectory(Text& out, const Identity& identity) {
  out.AddName(identity.job, "nojob").AddChar('.').AddUint(identity.restart).AddChar('/');
  out.AddName(identity.host, "nohost");
}

void AddFlightJobPrefix(Text& out, const Identity& identity) {
  out.Add("ringscope-")
      .AddName(identity.job, "nojob")
      .AddChar('.')
      .AddUint(identity.restart)
      .AddChar('-');
}

void AddFlightPrefix(Text& out, const Identity& identity) {
  AddFlightJobPrefix(out, identity);
  out.AddName(identity.host, "nohost").AddChar('-');
}

bool MakeFlightFile(const Settings& settings, const Identity& identity, FlightFile* file) {
  memset(file, 0, sizeof(*file));
  file->fd = -1;
  const Refusal first = MakeIn(settings.flight_dir, true, settings, identity, file);
  if (first == Refusal::kNone) return true;

  TextBuffer<1024> second_place;
  second_place.Add(settings.dir).AddChar('/');
  AddRunDirectory(second_place, identity);
  const Refusal second = MakeIn(second_place.c_str(), false, settings, identity, file);

  TextBuffer<1536> line;
  line.Add("the flight file cannot be kept in ").Add(settings.flight_dir).Add(": ").Add(Why(first));
  if (second == Refusal::kNone) {
    Say(line.Add("; it is in ").Add(second_place.c_str()).c_str());
    return true;
  }
  line.Add("; nor in ").Add(second_place.c_str()).Add(": ").Add(Why(second));
  if (MakeInMemory(settings, identity, file)) {
    line.Add("; recording in memory only: a killed process will leave no record");
    Say(line.c_str());
    return true;
  }
  Say(line.Add("; no memory either: recording is off").c_str());
  return false;
}

void LayOutImage(const Settings& settings, const Identity& identity, uint32_t nonce,
                 const flight::TableSizes& sizes, unsigned char* base) {
  auto* header = reinterpret_cast<flight::FileHeader*>(base);
  header->version = flight::kVersion;
  header->byte_order = flight::kByteOrder;
  header->file_bytes = flight::BytesOf(sizes);
  header->process_nonce = nonce;
  uint64_t offset = 4096;
  uint32_t count = 0;
  const auto add = [&](Table table, uint32_t row_bytes, uint32_t rows, uint64_t next) {
    header->tables[count++] = {static_cast<uint32_t>(table), row_bytes, rows, 0, offset};
    offset = next != 0 ? next : offset + uint64_t{row_bytes} * rows;
  };
  add(Table::kText, 1, flight::kTextBytes, 20 << 10);
  add(Table::kCounters, sizeof(flight::Word), flight::kCounterWords, (20 << 10) + 512);
  add(Table::kSiblings, sizeof(flight::SiblingRow), flight::kSiblingRows, 32 << 10);
  add(Table::kThreads, sizeof(flight::ThreadRow), flight::kThreadRows, flight::kTablesAt);
  add(Table::kComms, sizeof(flight::CommRow), sizes.comms, 0);
  add(Table::kOps, sizeof(flight::OpRow), sizes.ops, 0);
  add(Table::kEdges, sizeof(flight::EdgeRow), sizes.edges, 0);
  header->tables[count++] = {static_cast<uint32_t>(Table::kHost), sizeof(flight::HostRow), 1, 0, flight::kHostAt};
  header->table_count = count;
  header->pid = identity.pid;
  header->uid = identity.uid;
  header->process_start = identity.process_start;
  header->process_stack = identity.process_stack;
  CopyText(header->boot_id, sizeof(header->boot_id), identity.boot_id);
  CopyText(header->host, sizeof(header->host), identity.host);
  header->rank_hint = identity.rank;
  header->stall_ns = settings.stall_ns;
  header->first_stall_ns = settings.first_stall_ns;
  header->event_mask =
      settings.events == kEventsByRelease ? kDefaultEvents : static_cast<uint32_t>(settings.events);
  WriteTextBlock(identity, settings.dir, reinterpret_cast<char*>(base) + header->tables[0].offset,
                 flight::kTextBytes);
}

void PublishImage(unsigned char* base) {
  std::atomic_thread_fence(std::memory_order_release);
  uint64_t magic;
  memcpy(&magic, flight::kMagic, sizeof(magic));
  reinterpret_cast<flight::Word*>(base)->store(magic, std::memory_order_release);
}

Image ImageAt(unsigned char* base) {
  auto* header = reinterpret_cast<flight::FileHeader*>(base);
  const auto desc = [&](Table table) -> const flight::TableDesc& {
    return header->tables[static_cast<uint32_t>(table) - 1];
  };
  const auto at = [&](Table table) { return base + desc(table).offset; };
  Image image;
  image.header = header;
  image.counters = reinterpret_cast<flight::Word*>(at(Table::kCounters));
  image.siblings = reinterpret_cast<flight::SiblingRow*>(at(Table::kSiblings));
  image.threads = reinterpret_cast<flight::ThreadRow*>(at(Table::kThreads));
  image.comms = reinterpret_cast<flight::CommRow*>(at(Table::kComms));
  image.ops = reinterpret_cast<flight::OpRow*>(at(Table::kOps));
  image.edges = reinterpret_cast<flight::EdgeRow*>(at(Table::kEdges));
  image.host = reinterpret_cast<flight::HostRow*>(at(Table::kHost));
  image.nonce = header->process_nonce;
  image.comm_rows = desc(Table::kComms).rows;
  image.op_rows = desc(Table::kOps).rows;
  image.edge_mask = desc(Table::kEdges).rows - 1;
  image.stream = nullptr;
  image.steps = nullptr;
  return image;
}

void RemoveFlightFile(FlightFile* file) {
  if (!file->directory[0]) return;
  TextBuffer<1280> path;
  AddPath(path, *file);
  struct stat st;
  // The host may have changed its root, or somebody the folder.
  if (StatNoFollow(AT_FDCWD, path.c_str(), &st) != 0 ||
      static_cast<uint64_t>(st.st_dev) != file->device ||
      static_cast<uint64_t>(st.st_ino) != file->inode) {
    return;
  }
  (void)unlink(path.c_str());
}

void KeepOwnerLock(FlightFile* file) {
  if (!file->directory[0]) return;
  if (!IsTheFile(*file, file->fd)) {
    file->fd = -1;  // whatever has the number now is not ours
    TextBuffer<1280> path;
    AddPath(path, *file);
    int fd = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fd = MoveUp(fd)) < 0) return;
    if (!IsTheFile(*file, fd)) {
      close(fd);
      return;
    }
    file->fd = fd;
  }
  (void)flight::TakeOwnerLock(file->fd);
}

void CloseInherited(FlightFile* file) {
  if (IsTheFile(*file, file->fd)) close(file->fd);
  file->fd = -1;
  file->inode = 0;
}

}  // namespace ringscope::recorder
