#include "analyzer/ingest/byte_source.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

namespace ringscope::ingest {
namespace {

constexpr size_t kPiece = 1 << 18;
// Logs compress 10 to 100 times, a bomb 1,000 times and more. What a small file may unpack to, and what each compressed byte
// adds to that.
constexpr uint64_t kFreeUnpacked = uint64_t{64} << 20;
constexpr uint64_t kMostRatio = 300;

absl::Status Bomb(const std::string& name, uint64_t in, uint64_t out) {
  return absl::ResourceExhaustedError(absl::StrCat(name, ": unpacks to more than ", out >> 20, " MiB from ", in,
                                                   " bytes, which no log does; reading stops there. Unpack it by hand if it is one"));
}

class Descriptor : public ByteSource {
 public:
  Descriptor(int fd, std::string name, bool own) : fd_(fd), name_(std::move(name)), own_(own) {}
  ~Descriptor() override {
    if (own_) close(fd_);
  }
  absl::StatusOr<bool> More(std::string* out) override {
    const size_t old = out->size();
    out->resize(old + kPiece);
    ssize_t n;
    do {
      n = read(fd_, out->data() + old, kPiece);
    } while (n < 0 && errno == EINTR);
    out->resize(old + std::max<ssize_t>(n, 0));
    if (n < 0) return absl::UnavailableError(absl::StrCat(name_, ": ", strerror(errno), "; copy it to a local disk"));
    return n > 0;
  }

 private:
  int fd_;
  std::string name_;
  bool own_;
};

class Memory : public ByteSource {
 public:
  explicit Memory(std::string_view bytes) : bytes_(bytes) {}
  absl::StatusOr<bool> More(std::string* out) override {
    const std::string_view piece = bytes_.substr(0, kPiece);
    out->append(piece);
    bytes_.remove_prefix(piece.size());
    return !piece.empty();
  }

 private:
  std::string_view bytes_;
};

// What both unpackers share: compressed bytes in, a bound on what comes out.
class Unpacker : public ByteSource {
 public:
  Unpacker(std::unique_ptr<ByteSource> packed, std::string name) : packed_(std::move(packed)), name_(std::move(name)) {}

 protected:
  // False: no more compressed bytes.
  absl::StatusOr<bool> Refill() {
    in_.clear();
    position_ = 0;
    auto more = packed_->More(&in_);
    total_in_ += in_.size();
    return more;
  }
  absl::Status Count(size_t produced) {
    total_out_ += produced;
    if (total_out_ > kFreeUnpacked && total_out_ > kMostRatio * total_in_) return Bomb(name_, total_in_, total_out_);
    return absl::OkStatus();
  }
  absl::Status Damaged(const char* what) const {
    return absl::DataLossError(absl::StrCat(name_, ": byte ", total_in_ - in_.size() + position_, ": damaged ", what,
                                            " data; what came before it was read. Copy the file again from its host"));
  }
  absl::Status CutShort(const char* what) const {
    return absl::DataLossError(absl::StrCat(name_, ": byte ", total_in_, ": the ", what,
                                            " data ends early; what came before it was read. Copy the file again from its host"));
  }
  std::unique_ptr<ByteSource> packed_;
  std::string name_, in_;
  size_t position_ = 0;  // in in_
  uint64_t total_in_ = 0, total_out_ = 0;
};

class GzipSource : public Unpacker {
 public:
  using Unpacker::Unpacker;
  ~GzipSource() override {
    if (open_) inflateEnd(&stream_);
  }
  absl::StatusOr<bool> More(std::string* out) override {
    if (!open_) {
      if (inflateInit2(&stream_, 15 + 16) != Z_OK) return absl::ResourceExhaustedError(absl::StrCat(name_, ": no memory"));
      open_ = true;
    }
    while (true) {
      if (position_ == in_.size()) {
        auto more = Refill();
        if (!more.ok()) return more.status();
        if (!*more) {
          if (inside_) return CutShort("gzip");
          return false;
        }
      }
      const size_t old = out->size();
      out->resize(old + kPiece);
      stream_.next_in = reinterpret_cast<Bytef*>(in_.data() + position_);
      stream_.avail_in = static_cast<uInt>(in_.size() - position_);
      stream_.next_out = reinterpret_cast<Bytef*>(out->data() + old);
      stream_.avail_out = kPiece;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const size_t produced = kPiece - stream_.avail_out;
      out->resize(old + produced);
      position_ = in_.size() - stream_.avail_in;
      inside_ = result != Z_STREAM_END;
      if (result == Z_STREAM_END) {
        inflateReset(&stream_);  // a gzip file may have several members
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        if (total_out_ > 0 && produced == 0 && stream_.total_in == 0) return false;  // padding after the last member
        return Damaged("gzip");
      }
      if (auto status = Count(produced); !status.ok()) return status;
      if (produced > 0) return true;
    }
  }

 private:
  z_stream stream_ = {};
  bool open_ = false, inside_ = false;
};

class ZstdSource : public Unpacker {
 public:
  using Unpacker::Unpacker;
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }
  absl::StatusOr<bool> More(std::string* out) override {
    if (stream_ == nullptr) {
      stream_ = ZSTD_createDStream();
      if (stream_ == nullptr) return absl::ResourceExhaustedError(absl::StrCat(name_, ": no memory"));
      // A frame may ask for gigabytes of window; zstd -19 --long=27 is the most that its own tool unpacks unasked.
      ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 27);
    }
    while (true) {
      if (position_ == in_.size()) {
        auto more = Refill();
        if (!more.ok()) return more.status();
        if (!*more) {
          if (inside_) return CutShort("zstd");
          return false;
        }
      }
      const size_t old = out->size();
      out->resize(old + kPiece);
      ZSTD_inBuffer in = {in_.data(), in_.size(), position_};
      ZSTD_outBuffer to = {out->data() + old, kPiece, 0};
      const size_t result = ZSTD_decompressStream(stream_, &to, &in);
      out->resize(old + to.pos);
      position_ = in.pos;
      if (ZSTD_isError(result)) return Damaged("zstd");
      inside_ = result != 0;
      if (auto status = Count(to.pos); !status.ok()) return status;
      if (to.pos > 0) return true;
    }
  }

 private:
  ZSTD_DStream* stream_ = nullptr;
  bool inside_ = false;
};

}  // namespace

bool LooksLikeZstd(std::string_view head) { return head.substr(0, 4) == std::string_view("\x28\xb5\x2f\xfd", 4); }

absl::StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const std::string text =
        absl::StrCat(path, ": ", strerror(errno), errno == ENOENT ? "; check the path" : "; read it as the user that wrote it, or as root");
    return errno == ENOENT ? absl::NotFoundError(text) : absl::PermissionDeniedError(text);
  }
  auto file = std::make_unique<Descriptor>(fd, path, /*own=*/true);
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  char magic[4] = {};
  const ssize_t n = pread(fd, magic, sizeof(magic), 0);
  const std::string_view head(magic, std::max<ssize_t>(n, 0));
  if (head.substr(0, 2) == "\x1f\x8b") return std::make_unique<GzipSource>(std::move(file), path);
  if (LooksLikeZstd(head)) return std::make_unique<ZstdSource>(std::move(file), path);
  return file;
}

std::unique_ptr<ByteSource> StandardInput() { return std::make_unique<Descriptor>(0, "standard input", /*own=*/false); }
std::unique_ptr<ByteSource> BytesSource(std::string_view bytes) { return std::make_unique<Memory>(bytes); }

}  // namespace ringscope::ingest
