#include "analyzer/ingest/trace_reader.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "analyzer/ingest/crc32c.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kHeader = 8;  // length and checksum of a chunk

uint32_t Word(std::string_view bytes, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i)
    v |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return v;
}

// A chunk whose length fits in what is left, is not empty (zeros left by a crashed file system
// would be) and whose checksum is right. `budget` bounds the bytes that the search for a chunk may
// check in all.
bool GoodChunk(std::string_view bytes, size_t at, uint64_t* budget) {
  if (bytes.size() < kHeader || at > bytes.size() - kHeader) return false;
  const uint32_t length = Word(bytes, at);
  if (length == 0 || length > kMaxChunkBytes || length > bytes.size() - at - kHeader) return false;
  if (budget != nullptr) {
    if (*budget < length) return false;
    *budget -= length;
  }
  return Crc32c(bytes.substr(at + kHeader, length)) == Word(bytes, at + 4);
}

// A chunk's payload begins with a field of Trace: cheap test before a checksum is computed for a
// chance length.
bool BeginsWithField(std::string_view bytes, size_t at) {
  if (at + kHeader >= bytes.size()) return false;
  const unsigned wire = static_cast<unsigned char>(bytes[at + kHeader]) & 7;
  return wire == 0 || wire == 1 || wire == 2 || wire == 5;
}

// Next offset >= `from` where a good chunk begins, or the end of the bytes.
size_t NextChunk(std::string_view bytes, size_t from, uint64_t* budget) {
  for (size_t at = from; at + kHeader < bytes.size(); ++at) {
    if (bytes[at] == 0 &&
        Word(bytes, at) == 0) {  // a stretch of zeros: no length can begin before its end
      at = std::min(bytes.find_first_not_of('\0', at), bytes.size()) - 4;
      continue;
    }
    if (BeginsWithField(bytes, at) && GoodChunk(bytes, at, budget)) return at;
  }
  return bytes.size();
}

class Parser {
 public:
  Parser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {
    budget_ = uint64_t{512} << 20;
  }

  TraceFile Run() {
    size_t at = kTraceMagic.size();
    while (at < bytes_.size()) {
      if (GoodChunk(bytes_, at, nullptr)) {
        const uint32_t length = Word(bytes_, at);
        Merge(at, bytes_.substr(at + kHeader, length));
        at += kHeader + length;
        continue;
      }
      at = Skip(at);
    }
    Finish();
    return std::move(file_);
  }

 private:
  void Note(size_t at, const std::string& what) {
    file_.notes.push_back(absl::StrCat(name_, ": byte ", at, ": ", what));
  }

  void Merge(size_t at, std::string_view payload) {
    trace::Trace part;
    if (!part.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      file_.torn = true;
      Note(at, absl::StrCat("a chunk of ", payload.size(),
                            " bytes has a right checksum but is not part of a trace; "
                            "it is left out. Written by another program?"));
      return;
    }
    if (part.has_end()) {
      end_seen_ = true;
      expected_ = part.end().chunks();
    } else {
      ++file_.chunks;
    }

    file_.trace.MergeFrom(part);
  }

  // Says what is wrong with the chunk at `at` and returns where to go on.
  size_t Skip(size_t at) {
    file_.torn = true;
    const size_t left = bytes_.size() - at;
    if (left < kHeader) {
      Note(at, absl::StrCat("the file ends inside the head of a chunk (", left,
                            " bytes); the tail is lost. The process "
                            "died while it wrote, or the copy was cut: copy the file again if the "
                            "original is longer"));
      return bytes_.size();
    }
    const uint32_t length = Word(bytes_, at);
    const bool plausible = length != 0 && length <= kMaxChunkBytes;
    // A right length with a wrong checksum: the next chunk is where this one ends.
    if (plausible && length <= left - kHeader) {
      const size_t next = at + kHeader + length;
      if (next == bytes_.size() || GoodChunk(bytes_, next, &budget_)) {
        Note(at, absl::StrCat("a chunk of ", length,
                              " bytes does not match its checksum and is left out; copy the file "
                              "again from its host"));
        return next;
      }
    }
    const size_t next = NextChunk(bytes_, at + 1, &budget_);
    if (next == bytes_.size() && plausible && length > left - kHeader) {
      Note(at, absl::StrCat("a chunk of ", length, " bytes is cut after ", left - kHeader,
                            "; the tail is lost. The process "
                            "died while it wrote, or the copy was cut: copy the file again if the "
                            "original is longer"));
      return next;
    }
    Note(at,
         absl::StrCat(next - at, " damaged bytes are left out; copy the file again from its host"));
    return next;
  }

  void Finish() {
    if (!end_seen_) {
      file_.torn = true;
      if (file_.notes.empty()) {
        Note(bytes_.size(),
             "the end mark is missing, so the tail may be; the process died while it wrote, or the "
             "copy was "
             "cut: copy the file again if the original is longer");
      }
    } else if (expected_ > file_.chunks) {
      file_.torn = true;
      if (file_.notes.empty()) {
        Note(bytes_.size(),
             absl::StrCat(expected_ - file_.chunks, " of ", expected_, " chunks are missing"));
      }
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  TraceFile file_;
  bool end_seen_ = false;
  uint32_t expected_ = 0;
  uint64_t budget_;
};

}  // namespace

bool LooksLikeTrace(std::string_view head) {
  return head.substr(0, kTraceMagic.size()) == kTraceMagic;
}

absl::StatusOr<TraceFile> ParseTrace(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) {
    return absl::DataLossError(
        absl::StrCat(name,
                     ": byte 0: the file is empty; the disk may have been full when it was "
                     "written. The process's flight file may hold the same state"));
  }
  if (!LooksLikeTrace(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": byte 0: not a Ringscope trace (it does not begin with \"",
                     std::string(kTraceMagic), "\"); leave it out"));
  }
  TraceFile file = Parser(bytes, name).Run();
  if (file.chunks == 0) {
    const std::string why = file.notes.empty()
                                ? absl::StrCat(name, ": byte ", bytes.size(), ": no chunk")
                                : file.notes[0];
    return absl::DataLossError(
        absl::StrCat(why,
                     "; nothing could be read out of this trace. The process's flight file "
                     "may hold the same state"));
  }
  return file;
}

absl::StatusOr<TraceFile> ReadTrace(const std::string& path, const Progress& progress) {
  auto bytes = ReadWhole(path, kMaxTraceBytes, progress);
  if (!bytes.ok()) return bytes.status();
  return ParseTrace(*bytes, path);
}

std::string WriteTrace(const std::vector<trace::Trace>& parts) {
  std::string out(kTraceMagic);
  const auto word = [&out](uint32_t v) {
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(v >> (8 * i)));
  };
  const auto chunk = [&](const trace::Trace& part) {
    // Maps in one order, so that the same trace is the same bytes.
    std::string payload;
    google::protobuf::io::StringOutputStream stream(&payload);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    part.SerializeToCodedStream(&coded);
    coded.Trim();
    word(static_cast<uint32_t>(payload.size()));
    word(Crc32c(payload));
    out += payload;
  };
  for (trace::Trace part : parts) {
    part.clear_end();  // that of the file it was read from
    chunk(part);
  }
  trace::Trace end;
  end.mutable_end()->set_chunks(static_cast<uint32_t>(parts.size()));
  chunk(end);
  return out;
}

}  // namespace ringscope::ingest
