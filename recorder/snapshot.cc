#include "recorder/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "recorder/clock.h"
#include "recorder/flight/encode.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

bool ToFile(void* ctx, const void* data, size_t size) {
  return WriteAll(*static_cast<int*>(ctx), data, size);
}

bool IsLast(flight::Reason reason) {
  return reason == flight::Reason::kFinalize || reason == flight::Reason::kExit;
}

}  // namespace

const char* ErrorText(int error) {
  switch (error) {
    case ENOSPC:
      return "no space left";
    case EDQUOT:
      return "over the quota";
    case EROFS:
      return "the file system is read-only";
    case EACCES:
      return "permission denied";
    case EPERM:
      return "not permitted";
    case ENOENT:
      return "a directory is missing";
    case ENOTDIR:
      return "a part of the path is no directory";
    case EMFILE:
      return "too many open files";
    case ENFILE:
      return "too many open files in the system";
    case EFBIG:
      return "over the limit on file sizes";
    case EIO:
      return "input/output error";
    case ENAMETOOLONG:
      return "the path is too long";
    case ELOOP:
      return "a part of the path is a loop of links";
  }
  return nullptr;
}

InFileSystem::InFileSystem(flight::FileHeader* header) : header_(header) {
  header_->thread_in_call.store(Ticks(), std::memory_order_relaxed);
}
InFileSystem::~InFileSystem() { header_->thread_in_call.store(0, std::memory_order_relaxed); }

const char* ReasonName(flight::Reason reason) {
  switch (reason) {
    case flight::Reason::kNone:
      break;
    case flight::Reason::kStall:
      return "stall";
    case flight::Reason::kFinalize:
      return "finalize";
    case flight::Reason::kExit:
      return "exit";
    case flight::Reason::kRequest:
      return "request";
    case flight::Reason::kQuiet:
      return "quiet";
    case flight::Reason::kWake:
      return "wake";
    case flight::Reason::kMarker:
      return "marker";
    case flight::Reason::kAbort:
      return "abort";
    case flight::Reason::kRecovered:
      return "recovered";
  }
  return "unknown";
}

void SnapshotWriter::Init(Runtime* runtime, unsigned char* scratch) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  runtime_ = runtime;
  scratch_ = scratch;
}

void SnapshotWriter::AddRunRoot(Text& out) const {
  out.Add(runtime_->settings.dir).AddChar('/');
  out.AddName(runtime_->identity.job, "nojob").AddChar('.').AddUint(runtime_->identity.restart);
}

bool SnapshotWriter::WriteFile(flight::Reason reason, uint64_t now_ticks, const char* path) {
  TextBuffer<1280> temporary;
  temporary.Add(path).Add(".tmp");
  if (temporary.cut()) {
    errno = ENAMETOOLONG;
    return false;
  }
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  (void)fchmod(fd, 0600);  // whatever the umask
  flight::EncodeOptions options;
  options.reason = static_cast<uint32_t>(reason);
  options.written_ticks = now_ticks;
  options.sequence = sequence_;
  errno = 0;
  const flight::EncodeResult result =
      flight::EncodeTrace(runtime_->file.base, runtime_->image.header->file_bytes, options,
                          scratch_, flight::kEncodeScratchBytes, ToFile, &fd);
  bool good = result.error == nullptr;
  int why = errno;
  // Without fsync: a trace that a machine's crash takes with it is not worth a wait on a busy file
  // system. close() may still report a quota (NFS).
  if (close(fd) != 0 && good) {
    good = false;
    why = errno;
  }
  if (good && rename(temporary.c_str(), path) != 0) {
    good = false;
    why = errno;
  }
  if (!good) (void)unlink(temporary.c_str());
  errno = why;
  return good;
}

// Appends "/rank3-pid77-", with which the names of this process's traces begin.
void SnapshotWriter::AddStem(Text* path) const {
  path->AddChar('/');
  AddRank(*path, runtime_->identity.rank);
  path->Add("-pid").AddInt(runtime_->identity.pid).AddChar('-');
}

// The next number that no file has: without a job id, runs share a directory, and in containers
// their pids are alike.
void SnapshotWriter::ChooseName(flight::Reason reason, Text* path) {
  TextBuffer<1280> stem;
  stem.Add(path->c_str());
  AddStem(&stem);
  struct stat st;
  for (int tries = 0; tries < 1000; ++tries) {
    ++sequence_;
    TextBuffer<1280> temporary;
    path->Clear();
    path->Add(stem.c_str()).AddUint(sequence_).AddChar('-').Add(ReasonName(reason));
    path->Add(".trace");
    temporary.Add(path->c_str()).Add(".tmp");
    if (StatNoFollow(AT_FDCWD, path->c_str(), &st) != 0 &&
        StatNoFollow(AT_FDCWD, temporary.c_str(), &st) != 0) {
      return;
    }
  }
}

void SnapshotWriter::Remove(const Kept& kept) const {
  TextBuffer<1280> path;
  path.Add(runtime_->settings.dir).AddChar('/');
  AddRunDirectory(path, runtime_->identity);
  AddStem(&path);
  path.AddUint(kept.sequence).AddChar('-').Add(ReasonName(kept.reason)).Add(".trace");
  if (!path.cut()) (void)unlink(path.c_str());
}

SnapshotWriter::Kept* SnapshotWriter::SlotOf(flight::Reason reason) {
  if (IsLast(reason)) return &end_;
  if (reason == flight::Reason::kQuiet) return &quiet_;
  if (reason == flight::Reason::kMarker && !runtime_->identity.job[0]) return &marker_;
  return nullptr;
}

// The trace just written takes its place; what it replaces goes only now, so that there is always
// one.
void SnapshotWriter::MakeRoom(flight::Reason reason) {
  const Kept written = {sequence_, reason};
  Kept* slot = SlotOf(reason);
  Kept replaced = {};
  if (slot && slot->sequence) {
    replaced = *slot;
  } else if (!IsLast(reason)) {
    if (counted_ < runtime_->settings.traces) {
      ++counted_;
    } else {
      replaced = newest_;
      Count(&runtime_->image, flight::Counter::kTraceDropped);
    }
  }
  if (replaced.sequence) {
    Remove(replaced);
    for (Kept* kept : {&newest_, &quiet_, &marker_}) {
      if (kept->sequence != replaced.sequence) continue;
      *kept = kept == &newest_ ? written : Kept{};
    }
  } else if (!IsLast(reason)) {
    newest_ = written;
  }
  if (slot) *slot = written;
}

Written SnapshotWriter::Write(flight::Reason reason, uint64_t now_ticks) {
  if (runtime_->settings.traces == 0) return Written::kNotWanted;
  InFileSystem in_call(runtime_->image.header);
  TextBuffer<1280> path;
  path.Add(runtime_->settings.dir).AddChar('/');
  AddRunDirectory(path, runtime_->identity);
  const size_t directory = path.size();
  bool good = !path.cut() && MakeDirectories(path.c_str(), 0755);
  if (good) {
    ChooseName(reason, &path);
    good = WriteFile(reason, now_ticks, path.c_str());
  }
  flight::FileHeader* header = runtime_->image.header;
  if (!good) {
    const int why = errno;
    Count(&runtime_->image, flight::Counter::kTraceFailed);
    header->state.fetch_or(flight::kStateTraceFailed, std::memory_order_relaxed);
    if (!said_failure_) {
      said_failure_ = true;
      TextBuffer<1536> line;
      line.Add("no trace could be written in ").Add(path.c_str(), directory).Add(": ");
      if (const char* text = ErrorText(why)) {
        line.Add(text);
      } else {
        line.Add("error ").AddInt(why);
      }
      line.Add("; recording goes on");
      if (runtime_->file.directory[0]) {
        line.Add(", the flight file stays: ").Add(runtime_->file.directory).AddChar('/');
        line.Add(runtime_->file.name);
      }
      Say(line.c_str());
    }
    return Written::kFailed;
  }
  CopyText(path_, sizeof(path_), path.c_str());
  header->traces_written.fetch_add(1, std::memory_order_relaxed);
  header->last_reason.store(static_cast<uint64_t>(reason), std::memory_order_relaxed);
  MakeRoom(reason);
  if (runtime_->settings.verbose) {
    TextBuffer<1536> line;
    Say(line.Add("wrote ").Add(path_).c_str());
  }
  return Written::kYes;
}

}  // namespace ringscope::recorder
