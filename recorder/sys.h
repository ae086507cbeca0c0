// The few system calls that the recorder needs outside the callbacks, in forms that neither
// allocate nor change errno for the host, and that need no newer glibc than 2.17 (fstat and friends
// became versioned symbols later, so they are made as raw calls).
#ifndef RINGSCOPE_RECORDER_SYS_H_
#define RINGSCOPE_RECORDER_SYS_H_

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

namespace ringscope::recorder {

// Restores errno at the end of a scope: NCCL and the application must not see ours.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

// Reads at most capacity - 1 bytes of a file and terminates them with NUL; returns the length, or
// -1 (errno set). Meant for procfs and sysfs: follows symlinks, never blocks on a FIFO.
long ReadSmallFile(const char* path, char* buffer, size_t capacity);

// fstat and lstat; 0 or -1 with errno.
int StatFd(int fd, struct stat* st);
int StatNoFollow(int dir_fd, const char* name, struct stat* st);

// Writes all of it, resuming after signals and short writes. False with errno set.
bool WriteAll(int fd, const void* data, size_t size);

// Calls visit(ctx, name) for each entry of an open directory, without "." and "..", until it
// returns false. The buffer of the kernel's answers lies on the stack. False when the directory
// cannot be read.
bool ListDirectory(int dir_fd, bool (*visit)(void* ctx, const char* name), void* ctx);

// Makes the directory and its missing parents, each with `mode`. True if it exists afterwards.
bool MakeDirectories(const char* path, unsigned mode);

// One line on stderr, "ringscope: " before it and a newline behind, in a single write: no stdio,
// whose locks and buffers are the host's. At most kMaxStderrLines a process; the last of them says
// that no more follow.
void Say(const char* line);
inline constexpr unsigned kMaxStderrLines = 40;

// futex(2) within this process.
void FutexWake(const void* word, int count);
// Returns after timeout_ns, when woken, or at once when *word != expected. timeout_ns 0: no
// timeout.
void FutexWait(const void* word, uint32_t expected, uint64_t timeout_ns);

// Bytes free for us and the magic number of the file system (statfs); false if it cannot be asked.
bool FreeSpace(int fd, uint64_t* free_bytes, uint64_t* fs_type);
bool IsNetworkFs(uint64_t fs_type);
inline constexpr uint64_t kTmpfsMagic = 0x01021994;

int GetTid();

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_SYS_H_
