#include "analyzer/ingest/stream_reader.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "analyzer/ingest/crc32c.h"
#include "analyzer/ingest/stream_columns.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kHeader = 8;  // length and checksum of a chunk
constexpr size_t kMostNotes = 20;
// What the search for the next chunk behind damage may check in all.
constexpr uint64_t kSearchBytes = uint64_t{256} << 20;
// The first byte of a payload: field 1, a varint that is never 0.
constexpr unsigned char kFirstByte = 0x08;

uint32_t Word(std::string_view bytes, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return v;
}

bool PlausibleHeader(std::string_view bytes, size_t at) {
  if (bytes.size() < at + kHeader + 1) return false;
  const uint32_t length = Word(bytes, at);
  return length != 0 && length <= kMaxStreamChunkBytes && static_cast<unsigned char>(bytes[at + kHeader]) == kFirstByte;
}

// Bytes of a file in a window that is moved on; enough of them for the longest chunk, unless the file ends.
class Source {
 public:
  virtual ~Source() = default;
  // At least kHeader + kMaxStreamChunkBytes from the current position on, or all that is left.
  virtual absl::StatusOr<std::string_view> Window() = 0;
  virtual void Advance(size_t n) = 0;
};

class BytesSource : public Source {
 public:
  explicit BytesSource(std::string_view bytes) : bytes_(bytes) {}
  absl::StatusOr<std::string_view> Window() override { return bytes_; }
  void Advance(size_t n) override { bytes_.remove_prefix(n); }

 private:
  std::string_view bytes_;
};

class FileSource : public Source {
 public:
  FileSource(int fd, const std::string& path, uint64_t size, const Progress& progress)
      : fd_(fd), path_(path), size_(size), progress_(progress) {}
  ~FileSource() override { close(fd_); }
  FileSource(const FileSource&) = delete;

  absl::StatusOr<std::string_view> Window() override {
    if (buffer_.size() - at_ < kHeader + kMaxStreamChunkBytes && !end_) {
      buffer_.erase(0, at_);
      at_ = 0;
      while (buffer_.size() < 2 * (kHeader + kMaxStreamChunkBytes) && !end_) {
        const size_t have = buffer_.size();
        buffer_.resize(2 * (kHeader + kMaxStreamChunkBytes));
        const ssize_t got = read(fd_, buffer_.data() + have, buffer_.size() - have);
        const int error = errno;
        buffer_.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
        if (got < 0 && error != EINTR) {
          return absl::UnavailableError(
              absl::StrCat(path_, ": cannot be read: ", strerror(error), "; copy the file to a local disk and try again"));
        }
        end_ = got == 0;
        done_ += static_cast<uint64_t>(std::max<ssize_t>(got, 0));
      }
      if (progress_) progress_(path_, done_, size_);
    }
    return std::string_view(buffer_).substr(at_);
  }
  void Advance(size_t n) override { at_ += n; }

 private:
  int fd_;
  const std::string& path_;
  uint64_t size_, done_ = 0;
  const Progress& progress_;
  std::string buffer_;
  size_t at_ = 0;
  bool end_ = false;
};

class Parser {
 public:
  Parser(Source* source, const std::string& name, StreamSink* sink) : source_(source), name_(name), sink_(sink) {}

  absl::StatusOr<StreamSummary> Run() {
    auto window = source_->Window();
    if (!window.ok()) return window.status();
    if (window->empty()) {
      return absl::DataLossError(absl::StrCat(
          name_, ": byte 0: the file is empty; the disk may have been full when it was written. The process's traces and "
                 "flight file may hold its state"));
    }
    if (!LooksLikeStream(*window)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": byte 0: not a Ringscope stream (it does not begin with RNGSTR01); leave it out"));
    }
    Advance(kStreamMagic.size());
    for (;;) {
      window = source_->Window();
      if (!window.ok()) return window.status();
      if (window->empty()) break;
      if (!Take(*window)) Skip(*window);
    }
    out_.bytes = at_;
    if (out_.chunks == 0 && out_.torn) {
      return absl::DataLossError(out_.notes.empty() ? absl::StrCat(name_, ": nothing could be read") : out_.notes[0]);
    }
    return std::move(out_);
  }

 private:
  void Advance(size_t n) {
    source_->Advance(n);
    at_ += n;
  }

  void Note(const std::string& what) {
    out_.torn = true;
    if (out_.notes.size() < kMostNotes) out_.notes.push_back(absl::StrCat(name_, ": byte ", at_, ": ", what));
  }

  static bool IsChunk(std::string_view bytes, size_t at) {
    if (!PlausibleHeader(bytes, at)) return false;
    const uint32_t length = Word(bytes, at);
    return length <= bytes.size() - at - kHeader && Crc32c(bytes.substr(at + kHeader, length)) == Word(bytes, at + 4);
  }

  // Reads the chunk at the beginning of the window, if there is one.
  bool Take(std::string_view bytes) {
    if (!IsChunk(bytes, 0)) return false;
    const uint32_t length = Word(bytes, 0);
    trace::StreamChunk chunk;
    if (!chunk.ParseFromArray(bytes.data() + kHeader, static_cast<int>(length))) {
      Note(absl::StrCat("a chunk of ", length, " bytes has a right checksum but is not part of a stream; it is left out. "
                                               "Written by another program?"));
    } else {
      Use(chunk);
    }
    Advance(kHeader + length);
    return true;
  }

  void Use(const trace::StreamChunk& chunk) {
    const uint64_t sequence = chunk.sequence();
    if (out_.chunks == 0) out_.first_sequence = sequence;
    if (out_.chunks != 0 && sequence > out_.last_sequence + 1) out_.missing_chunks += sequence - out_.last_sequence - 1;
    out_.last_sequence = std::max(out_.last_sequence, sequence);
    ++out_.chunks;
    if (chunk.has_head() && !out_.head.has_process()) out_.head = chunk.head();
    if (chunk.has_lost()) out_.lost = chunk.lost();
    out_.ended = out_.ended || chunk.last();
    if (sink_ != nullptr) sink_->Chunk(chunk);
    if (!HandOut(chunk, sink_, &out_))
      Note("a chunk names things that it does not hold; that part is left out. Written by another program?");
  }

  // Says what is wrong with the chunk at the beginning of the window and goes on to the next one.
  void Skip(std::string_view bytes) {
    if (bytes.size() < kHeader + 1) {
      Note(absl::StrCat("the file ends inside the head of a chunk (", bytes.size(),
                        " bytes); the process died while it wrote, or the copy was cut"));
      return Advance(bytes.size());
    }
    const uint32_t length = Word(bytes, 0);
    size_t next = 1;
    for (; next < bytes.size(); ++next) {
      if (!PlausibleHeader(bytes, next)) continue;
      const uint64_t cost = std::min<uint64_t>(Word(bytes, next), bytes.size());
      if (cost > budget_) {
        next = bytes.size();
        break;
      }
      budget_ -= cost;
      if (IsChunk(bytes, next)) break;
      // A chunk that only begins in this window is looked at again in the next one.
      if (Word(bytes, next) > bytes.size() - next - kHeader && bytes.size() >= kHeader + kMaxStreamChunkBytes) break;
    }
    if (next >= bytes.size() && length != 0 && length <= kMaxStreamChunkBytes && length > bytes.size() - kHeader) {
      Note(absl::StrCat("a chunk of ", length, " bytes is cut after ", bytes.size() - kHeader,
                        "; the process died while it wrote, or the copy was cut: copy the file again if the original is "
                        "longer"));
    } else {
      Note(absl::StrCat(next, " damaged bytes are left out; copy the file again from its host"));
    }
    Advance(std::min(next, bytes.size()));
  }

  Source* source_;
  const std::string& name_;
  StreamSink* sink_;
  StreamSummary out_;
  uint64_t at_ = 0;
  uint64_t budget_ = kSearchBytes;
};

}  // namespace

bool LooksLikeStream(std::string_view head) { return head.substr(0, kStreamMagic.size()) == kStreamMagic; }

absl::StatusOr<StreamSummary> ParseStream(std::string_view bytes, const std::string& name, StreamSink* sink) {
  BytesSource source(bytes);
  return Parser(&source, name, sink).Run();
}

absl::StatusOr<StreamSummary> ReadStream(const std::string& path, StreamSink* sink, const Progress& progress) {
  auto head = ReadHead(path, 1);  // says what is wrong with a path, and refuses what is no regular file
  if (!head.ok()) return head.status();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::UnavailableError(absl::StrCat(path, ": cannot be read: ", strerror(error), "; try again"));
  }
  FileSource source(fd, path, static_cast<uint64_t>(st.st_size), progress);
  return Parser(&source, path, sink).Run();
}

}  // namespace ringscope::ingest
