// Stream files: <dir>/<job>.<restart>/<host>/rank<R>-pid<P>-<n>.stream, chunk after chunk. Only our own thread writes them,
// with one write() a chunk, so that a process killed at any moment leaves whole chunks and at most one torn one at the end.
//
// No descriptor is kept between two chunks: a host that closes descriptors it does not know, and then opens files of its own
// under their numbers, must not find our chunks in them; and a forked child inherits none.
#ifndef RINGSCOPE_RECORDER_STREAM_FILE_H_
#define RINGSCOPE_RECORDER_STREAM_FILE_H_

#include <stddef.h>
#include <stdint.h>

#include "recorder/state.h"

namespace ringscope::recorder {

inline constexpr size_t kStreamFrame = 8;  // length and checksum before each payload
// A process's files are at most so many; each takes its share of RINGSCOPE_STREAM_BYTES.
inline constexpr uint32_t kStreamFiles = 8;

class StreamFiles {
 public:
  // Lives in zeroed memory.
  void Init(Runtime* runtime);

  // False for good once something could not be written (said on stderr once).
  bool usable() const { return !failed_; }
  // A chunk of so many payload bytes will be the first of a new file.
  bool BeginsFile(size_t bytes) const;
  // Would a chunk of so many payload bytes keep RINGSCOPE_STREAM_RATE at this moment (ns of CLOCK_MONOTONIC)?
  bool WithinRate(size_t bytes, uint64_t now_ns);
  // Writes one chunk: `chunk` holds kStreamFrame bytes of room, then the payload. `begins_file` is what BeginsFile() said.
  // kAnew: the file is gone or was changed by somebody; BeginsFile() is true now.
  enum class Result { kYes, kAnew, kFailed };
  Result Write(unsigned char* chunk, size_t bytes, bool begins_file);

  uint64_t written() const { return written_; }  // bytes, over all files
  uint64_t removed() const { return removed_; }  // bytes of files that had to go

 private:
  struct Kept {
    uint32_t number;
    uint64_t bytes;
  };
  int Create();
  int Reopen() const;
  void PathOf(uint32_t number, Text* path) const;
  void RemoveOldest();
  void Fail(int error);

  Runtime* runtime_;
  bool failed_, anew_;
  uint32_t number_;  // of the newest file
  uint64_t inode_;   // of it
  Kept kept_[kStreamFiles + 1];  // oldest first; the last one is being written
  uint32_t kept_count_;
  uint64_t kept_bytes_, written_, removed_;
  uint64_t tokens_, refilled_ns_;  // bytes that may be written now
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_STREAM_FILE_H_
