#include "recorder/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

#include "recorder/flight/text.h"

namespace ringscope::recorder {

long ReadSmallFile(const char* path, char* buffer, size_t capacity) {
  buffer[0] = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  size_t size = 0;
  while (size < capacity - 1) {
    const ssize_t n = read(fd, buffer + size, capacity - 1 - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  close(fd);
  buffer[size] = 0;
  return static_cast<long>(size);
}

int StatFd(int fd, struct stat* st) { return static_cast<int>(syscall(SYS_fstat, fd, st)); }

int StatNoFollow(int dir_fd, const char* name, struct stat* st) {
  return static_cast<int>(syscall(SYS_newfstatat, dir_fd, name, st, AT_SYMLINK_NOFOLLOW));
}

bool WriteAll(int fd, const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  while (size) {
    const ssize_t n = write(fd, p, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (n == 0) {
      errno = ENOSPC;
      return false;
    }
    p += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool ListDirectory(int dir_fd, bool (*visit)(void* ctx, const char* name), void* ctx) {
  struct Entry {  // linux_dirent64, see getdents64(2)
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  alignas(8) char buffer[4096];
  if (lseek(dir_fd, 0, SEEK_SET) < 0) return false;
  for (;;) {
    const long n = syscall(SYS_getdents64, dir_fd, buffer, sizeof(buffer));
    if (n < 0) return false;
    if (n == 0) return true;
    for (long at = 0; at < n;) {
      const Entry* entry = reinterpret_cast<const Entry*>(buffer + at);
      const char* name = buffer + at + offsetof(Entry, name);
      if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !visit(ctx, name)) return true;
      at += entry->length;
    }
  }
}

bool MakeDirectories(const char* path, unsigned mode) {
  char buffer[1024];
  if (!CopyText(buffer, sizeof(buffer), path) || buffer[0] == 0) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (char* p = buffer + 1;; ++p) {
    if (*p != '/' && *p != 0) continue;
    const char end = *p;
    *p = 0;
    struct stat made;
    if (mkdir(buffer, mode) == 0) {
      // A umask may have taken even the owner's rights away.
      if (StatNoFollow(AT_FDCWD, buffer, &made) == 0 && (made.st_mode & 0700) != 0700) {
        (void)chmod(buffer, 0700 | (made.st_mode & 0777));
      }
    } else if (errno != EEXIST) {
      // Somebody else's parent directory may be unreadable and still be passed through (EACCES,
      // EROFS on an existing one).
      struct stat st;
      const int why = errno;
      if (StatNoFollow(AT_FDCWD, buffer, &st) != 0) {
        errno = why;
        return false;
      }
    }
    *p = end;
    if (end == 0) return true;
  }
}

void Say(const char* line) {
  static std::atomic<unsigned> said{0};
  const unsigned n = said.fetch_add(1, std::memory_order_relaxed);
  if (n >= kMaxStderrLines) return;
  KeepErrno keep;
  TextBuffer<2048> text;
  text.Add("ringscope: ").Add(line);
  if (n == kMaxStderrLines - 1) text.Add(" (no more lines from this process)");
  text.AddChar('\n');
  // The host's stderr may be a pipe that nobody reads (a full one would hold the caller for ever, a
  // closed one kill the process), a terminal that stops background writers, a file at its limit.
  pollfd ready = {2, POLLOUT, 0};
  if (poll(&ready, 1, 100) != 1 || (ready.revents & (POLLERR | POLLNVAL))) return;
  sigset_t ours, before, pending;
  sigemptyset(&ours);
  for (const int signal : {SIGPIPE, SIGTTOU, SIGXFSZ}) sigaddset(&ours, signal);
  sigpending(&pending);
  if (pthread_sigmask(SIG_BLOCK, &ours, &before) != 0) return;
  if (!WriteAll(2, text.c_str(), text.size()) && (errno == EPIPE || errno == EFBIG)) {
    const int raised = errno == EPIPE ? SIGPIPE : SIGXFSZ;
    if (!sigismember(&pending, raised)) {  // it is ours, not one that the host waits for
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, raised);
      const timespec now = {0, 0};
      while (sigtimedwait(&one, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void FutexWake(const void* word, int count) {
  KeepErrno keep;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void FutexWait(const void* word, uint32_t expected, uint64_t timeout_ns) {
  KeepErrno keep;
  timespec t;
  t.tv_sec = static_cast<time_t>(timeout_ns / 1000000000);
  t.tv_nsec = static_cast<long>(timeout_ns % 1000000000);
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns ? &t : nullptr, nullptr, 0);
}

bool FreeSpace(int fd, uint64_t* free_bytes, uint64_t* fs_type) {
  struct statfs fs;
  if (fstatfs(fd, &fs) != 0) return false;
  *free_bytes = static_cast<uint64_t>(fs.f_bavail) * static_cast<uint64_t>(fs.f_bsize);
  *fs_type = static_cast<uint64_t>(fs.f_type) & 0xffffffff;
  return true;
}

bool IsNetworkFs(uint64_t fs_type) {
  static constexpr uint64_t kTypes[] = {
      0x6969,      // NFS
      0xff534d42,  // CIFS
      0xfe534d42,  // SMB2
      0x0bd00bd0,  // Lustre
      0x47504653,  // GPFS
      0x00c36400,  // Ceph
      0x65735546,  // FUSE (object stores, sshfs, most cluster file systems' clients)
      0x19830326,  // BeeGFS
      0x5346414f,  // AFS
      0x01021997,  // 9p (containers and virtual machines share host folders by it)
      0xaad7aaea,  // PanFS
      0x61636673,  // ACFS
      0x20030528,  // OrangeFS / PVFS2
      0x013111a8,  // IBRIX
      0x6a656a62,  // virtiofs
  };
  for (const uint64_t type : kTypes) {
    if (type == fs_type) return true;
  }
  return false;
}

int GetTid() { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace ringscope::recorder
