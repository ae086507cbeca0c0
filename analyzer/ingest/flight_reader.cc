#include "analyzer/ingest/flight_reader.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "analyzer/ingest/owner_probe.h"
#include "analyzer/ingest/stable_rows.h"
#include "analyzer/ingest/trace_reader.h"
#include "recorder/flight/encode.h"
#include "recorder/flight/format.h"

namespace ringscope::ingest {
namespace {

using flight::FileHeader;

// Tables are read in words: the bytes must lie as they do in a mapping.
class Aligned {
 public:
  explicit Aligned(size_t size)
      : data_(static_cast<char*>(::operator new(std::max<size_t>(size, 1), kAlignment))) {}
  ~Aligned() { ::operator delete(data_, kAlignment); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  char* data() { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  char* data_;
};

// Plain copies of the header's fixed words; the header itself holds atomics.
template <typename T>
T Field(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

absl::Status CheckHeader(std::string_view bytes, const std::string& name) {
  const auto bad = [&](size_t at, const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": byte ", at, ": ", what));
  };
  if (bytes.empty()) {
    return absl::DataLossError(
        absl::StrCat(name,
                     ": byte 0: the file is empty; its process ended before it recorded "
                     "anything, or the copy failed: copy it again"));
  }
  if (!LooksLikeFlight(bytes))
    return bad(0, "not a Ringscope flight file (wrong first bytes); leave it out");
  if (bytes.size() < sizeof(FileHeader)) {
    return absl::DataLossError(absl::StrCat(name, ": byte ", bytes.size(),
                                            ": the file ends inside its header; copy it "
                                            "again from its host"));
  }
  const auto order = Field<uint32_t>(bytes, offsetof(FileHeader, byte_order));
  if (order != flight::kByteOrder) {
    return bad(offsetof(FileHeader, byte_order),
               order == __builtin_bswap32(flight::kByteOrder)
                   ? "written on a machine of the other byte order; read it there"
                   : "the byte-order mark is damaged; copy the file again from its host");
  }
  const auto version = Field<uint32_t>(bytes, offsetof(FileHeader, version));
  if (version != flight::kVersion) {
    return bad(offsetof(FileHeader, version),
               absl::StrCat("flight file version ", version, ", this program reads version ",
                            flight::kVersion,
                            "; use the `ringscope` that came with the recorder of the job"));
  }
  return absl::OkStatus();
}

bool Append(void* to, const void* data, size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return true;
}

// The image in memory turned into a trace by the process's own encoder, and that read by the trace
// reader.
absl::StatusOr<FlightFile> Decode(std::string_view bytes, const std::string& name,
                                  const flight::EncodeOptions& options) {
  if (auto status = CheckHeader(bytes, name); !status.ok()) return status;
  Aligned image(bytes.size());
  std::memcpy(image.data(), bytes.data(), bytes.size());
  Aligned scratch(flight::kEncodeScratchBytes);
  std::string encoded;
  const flight::EncodeResult result =
      flight::EncodeTrace(image.data(), bytes.size(), options, scratch.data(),
                          flight::kEncodeScratchBytes, Append, &encoded);
  if (result.error != nullptr) {
    return absl::DataLossError(
        absl::StrCat(name, ": byte 0: ", result.error, "; copy the file again from its host"));
  }
  auto trace = ParseTrace(encoded, name);
  if (!trace.ok()) return trace.status();
  FlightFile file;
  file.trace = std::move(trace->trace);
  file.torn = trace->torn;
  file.notes = std::move(trace->notes);
  const auto expected = Field<uint64_t>(bytes, offsetof(FileHeader, file_bytes));
  if (bytes.size() < expected) {
    file.torn = true;
    file.notes.push_back(
        absl::StrCat(name, ": byte ", bytes.size(), ": the file should have ", expected,
                     " bytes; tables at its end are missing. Copy it again from its host"));
  }
  return file;
}

}  // namespace

bool LooksLikeFlight(std::string_view head) {
  return head.substr(0, sizeof(flight::kMagic)) ==
         std::string_view(flight::kMagic, sizeof(flight::kMagic));
}

absl::StatusOr<FlightFile> ParseFlight(std::string_view bytes, const std::string& name) {
  return Decode(bytes, name, {});
}

absl::StatusOr<FlightFile> ReadFlight(const std::string& path, const Progress& progress) {
  // The owner is looked at first: the record is then at least as new as what is said of its life.
  const int64_t now = RealtimeNs();
  auto bytes = ReadWhole(path, kMaxFlightBytes, progress);
  if (!bytes.ok()) return bytes.status();
  flight::EncodeOptions options;
  int64_t read_at = 0;
  if (CheckHeader(*bytes, path).ok()) {
    Owner owner;
    const char* boot = bytes->data() + offsetof(FileHeader, boot_id);
    owner.boot_id.assign(boot, strnlen(boot, sizeof(FileHeader::boot_id)));
    owner.pid = Field<int32_t>(*bytes, offsetof(FileHeader, pid));
    owner.start_ticks = Field<uint64_t>(*bytes, offsetof(FileHeader, process_start));
    owner.stack = Field<uint64_t>(*bytes, offsetof(FileHeader, process_stack));
    owner.created_realtime_ns = Field<int64_t>(
        *bytes, offsetof(FileHeader, first_anchor) + offsetof(flight::Anchor, realtime_ns));
    const OwnerState state = ProbeOwner(path, owner);
    options.lock_known = state.known;
    options.lock_held = state.exists;
    options.process_state = state.letter;
    if (state.same_machine) read_at = now;
    // A process that may be running writes meanwhile: only what did not change hands is taken.
    if (state.exists || !state.known) {
      auto image = ReadWhole(path, kMaxFlightBytes, nullptr);
      auto after = ReadWhole(path, kMaxFlightBytes, nullptr);
      if (image.ok() && after.ok() && CheckHeader(*image, path).ok()) {
        (void)DropChangingRows(*bytes, *after, &*image);
        bytes = std::move(image);
      }
    }
  }
  auto file = Decode(*bytes, path, options);
  if (file.ok()) file->read_realtime_ns = read_at;
  return file;
}

}  // namespace ringscope::ingest
