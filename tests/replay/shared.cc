#include "tests/replay/shared.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "tests/replay/text_file.h"

namespace ringscope::replay {
namespace {

constexpr char kMagic[8] = {'R', 'S', 'R', 'E', 'T', 'U', 'R', 'N'};

std::string ReturnedPath(const std::string& dir, int process) {
  return absl::StrCat(dir, "/returned.", process, ".bin");
}

}  // namespace

absl::StatusOr<Shared> Shared::Make(const Capture& capture) {
  size_t size = sizeof(JobShared) + capture.processes.size() * sizeof(ProcessShared);
  for (const Process& process : capture.processes) {
    size += (process.slots.size() + process.contexts.size()) * sizeof(SharedHandle);
  }
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no shared memory of ", size, " bytes: ", strerror(errno)));
  }
  // Fresh zero pages: all-zero is the initial state of every structure here.
  auto* at = static_cast<unsigned char*>(memory);
  Shared shared;
  shared.job_ = reinterpret_cast<JobShared*>(at);
  at += sizeof(JobShared);
  shared.processes_ = reinterpret_cast<ProcessShared*>(at);
  at += capture.processes.size() * sizeof(ProcessShared);
  for (const Process& process : capture.processes) {
    shared.handles_.push_back(reinterpret_cast<SharedHandle*>(at));
    at += process.slots.size() * sizeof(SharedHandle);
    shared.contexts_.push_back(reinterpret_cast<SharedHandle*>(at));
    at += process.contexts.size() * sizeof(SharedHandle);
  }
  return shared;
}

absl::StatusOr<ReturnedFile> ReturnedFile::Make(const std::string& dir, int process,
                                                const std::vector<uint32_t>& tids) {
  const size_t size = sizeof(ReturnedHeader) + tids.size() * sizeof(ReturnedThread);
  const std::string path = ReturnedPath(dir, process);
  int fd = -1;
  if (!dir.empty()) {
    fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) {
      if (fd >= 0) close(fd);
      return absl::PermissionDeniedError(
          absl::StrCat(path, ": cannot be written: ", strerror(errno)));
    }
  }
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
  if (fd >= 0) close(fd);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": ", strerror(errno)));
  }
  auto* header = static_cast<ReturnedHeader*>(memory);
  std::memcpy(header->magic, kMagic, sizeof kMagic);
  header->version = 1;
  header->process = static_cast<uint64_t>(process);
  header->threads = tids.size();
  ReturnedFile file;
  file.threads_ = reinterpret_cast<ReturnedThread*>(header + 1);
  for (size_t i = 0; i < tids.size(); ++i) file.threads_[i].tid = tids[i];
  return file;
}

absl::StatusOr<std::vector<ReturnedCounts>> ReadReturned(const std::string& dir, int process) {
  const std::string path = ReturnedPath(dir, process);
  absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  ReturnedHeader header;
  if (text->size() < sizeof header || std::memcmp(text->data(), kMagic, sizeof kMagic) != 0) {
    return absl::DataLossError(absl::StrCat(path, ": not a file of returned callbacks"));
  }
  std::memcpy(&header, text->data(), sizeof header);
  if (text->size() != sizeof header + header.threads * sizeof(ReturnedThread)) {
    return absl::DataLossError(absl::StrCat(path, ": wrong size"));
  }
  std::vector<ReturnedCounts> rows(header.threads);
  std::memcpy(rows.data(), text->data() + sizeof header, header.threads * sizeof(ReturnedCounts));
  return rows;
}

}  // namespace ringscope::replay
