#include "analyzer/scrub/scrub_files.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "analyzer/ingest/file_bytes.h"
#include "analyzer/ingest/flight_reader.h"
#include "analyzer/ingest/gzip.h"
#include "analyzer/ingest/pickle.h"
#include "analyzer/ingest/stream_reader.h"
#include "analyzer/ingest/text_reader.h"
#include "analyzer/ingest/trace_reader.h"
#include "analyzer/scrub/out_file.h"
#include "analyzer/scrub/scrub_record.h"

namespace ringscope::scrub {
namespace {

constexpr size_t kHeadBytes = 16384;
constexpr uint64_t kMostStream = uint64_t{4} << 30, kMostPickle = uint64_t{256} << 20;
constexpr int kMaxDepth = 64;

absl::StatusOr<std::string> Whole(const std::string& path, uint64_t most, bool gzip) {
  auto bytes = ingest::ReadWhole(path, most);
  if (!bytes.ok() || !gzip) return bytes;
  auto inflated = ingest::Gunzip(*bytes, most, path);
  if (!inflated.ok()) return inflated.status();
  return std::move(inflated->bytes);
}

std::string BaseName(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool Files::records() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const Input& input) { return input.type != Type::kText; });
}

void Files::Find(const std::vector<std::string>& paths, const std::string& out) {
  std::error_code error;
  if (!out.empty()) out_ = std::filesystem::weakly_canonical(out, error).string();
  for (const std::string& path : paths) {
    if (path == "-") {
      StandardInput();
      continue;
    }
    struct stat st;
    if (stat(path.c_str(), &st) != 0) {
      ++missing_;
      Problem(absl::StrCat(path, ": ", strerror(errno),
                           errno == ENOENT ? "; check the path" : "; read it as the user that wrote it, or as root"));
      continue;
    }
    const std::string base = BaseName(path);
    if (S_ISDIR(st.st_mode)) {
      Directory(path, base == "." || base == ".." || base == "/" ? "" : base, 0);
    } else {
      File(path, base, /*given=*/true);
    }
  }
}

// Two passes need it twice.
void Files::StandardInput() {
  if (spool_ >= 0) return;
  FILE* file = tmpfile();
  if (file == nullptr)
    return Problem(absl::StrCat("standard input: no temporary file: ", strerror(errno), "; set TMPDIR to a directory with room"));
  const auto source = ingest::StandardInput();
  std::string piece;
  while (true) {
    piece.clear();
    const auto more = source->More(&piece);
    if (!more.ok()) Problem(std::string(more.status().message()));
    if (!more.ok() || !*more) break;
    if (fwrite(piece.data(), 1, piece.size(), file) != piece.size()) {
      Problem(absl::StrCat("standard input: ", strerror(errno), "; set TMPDIR to a directory with room"));
      break;
    }
  }
  fflush(file);
  spool_ = fileno(file);  // open as long as the program runs
  Input input;
  input.path = absl::StrCat("/proc/self/fd/", spool_);
  input.shown = "standard input";
  input.name = "stdin.txt";
  if (OfType(&input)) inputs_.push_back(std::move(input));
}

void Files::Directory(const std::string& path, const std::string& name, int depth) {
  std::error_code error;
  if (!out_.empty() && std::filesystem::weakly_canonical(path, error).string() == out_) return;
  if (depth > kMaxDepth)
    return Problem(absl::StrCat(path, ": directories nested deeper than ", kMaxDepth, "; give this one by itself"));
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr)
    return Problem(absl::StrCat(path, ": ", strerror(errno), "; read it as the user that wrote it, or as root"));
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    const std::string child = entry->d_name;
    if (child != "." && child != "..") names.push_back(child);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  for (const std::string& child : names) {
    const std::string child_path = absl::StrCat(path, absl::EndsWith(path, "/") ? "" : "/", child);
    const std::string child_name = name.empty() ? child : absl::StrCat(name, "/", child);
    struct stat st, link;
    if (stat(child_path.c_str(), &st) != 0 || lstat(child_path.c_str(), &link) != 0) continue;
    if (S_ISDIR(st.st_mode) && S_ISLNK(link.st_mode)) {
      Problem(absl::StrCat(child_path, ": a link to a directory; give it by name to have it read"));
    } else if (S_ISDIR(st.st_mode)) {
      Directory(child_path, child_name, depth + 1);
    } else {
      File(child_path, child_name, /*given=*/false);
    }
  }
}

void Files::File(const std::string& path, const std::string& name, bool given) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return Problem(absl::StrCat(path, ": ", strerror(errno), "; left out"));
  if (!S_ISREG(st.st_mode)) {
    missing_ += given;
    return Problem(absl::StrCat(path, ": not a regular file; left out"));
  }
  if (!seen_.emplace(st.st_dev, st.st_ino).second) return;
  Input input;
  input.path = input.shown = path;
  input.name = name;
  if (OfType(&input)) inputs_.push_back(std::move(input));
}

bool Files::OfType(Input* input) {
  auto head = ingest::ReadHead(input->path, kHeadBytes);
  if (!head.ok()) return Problem(std::string(head.status().message())), false;
  if (head->empty()) return notes_.push_back(absl::StrCat(input->shown, ": empty; left out")), false;
  if (ingest::LooksLikeGzip(*head)) {
    auto start = ingest::Gunzip(*head, kHeadBytes, input->shown);
    if (!start.ok()) return Problem(std::string(start.status().message())), false;
    input->gzip = true;
    *head = start->bytes;
  } else if (ingest::LooksLikeZstd(*head)) {
    const auto source = ingest::OpenSource(input->path);
    head->clear();
    while (source.ok() && head->size() < kHeadBytes) {
      const auto more = (*source)->More(&*head);
      if (!more.ok() || !*more) break;
    }
  }
  if (absl::StartsWith(*head, "ringscope scrub map ")) {
    Problem(absl::StrCat(input->shown, ": a map of masks, which holds the originals; left out"));
    return false;
  }
  if (ingest::LooksLikeTrace(*head)) {
    input->type = Type::kTrace;
  } else if (ingest::LooksLikeFlight(*head)) {
    input->type = Type::kFlight;
  } else if (ingest::LooksLikeStream(*head)) {
    input->type = Type::kStream;
  } else if (ingest::LooksLikeText(*head)) {
    input->type = Type::kText;
  } else if (ingest::LooksLikePickle(*head)) {
    input->type = Type::kPickle;
  } else {
    Problem(
        absl::StrCat(input->shown, ": neither a text nor a record that is known; left out, for nothing in it could be masked"));
    return false;
  }
  return true;
}

void Files::LearnOne(const Input& input) {
  for (const std::string& hint : {ingest::HintsOfName(input.name).host}) {
    if (!hint.empty()) scrubber_->learner().Host(hint);
  }
  switch (input.type) {
    case Type::kText: {
      auto source = ingest::OpenSource(input.path);
      if (source.ok()) LearnText(source->get(), scrubber_).IgnoreError();  // met again by the second pass
      return;
    }
    case Type::kTrace: {
      auto bytes = Whole(input.path, ingest::kMaxTraceBytes, input.gzip);
      if (!bytes.ok()) return;
      if (auto file = ingest::ParseTrace(*bytes, input.shown); file.ok()) LearnTrace(file->trace, scrubber_);
      return;
    }
    case Type::kFlight: {
      auto bytes = Whole(input.path, ingest::kMaxFlightBytes, input.gzip);
      if (!bytes.ok()) return;
      if (auto file = ingest::ParseFlight(*bytes, input.shown); file.ok()) LearnTrace(file->trace, scrubber_);
      return;
    }
    case Type::kStream: {
      auto bytes = Whole(input.path, kMostStream, input.gzip);
      if (bytes.ok()) LearnStream(*bytes, scrubber_).IgnoreError();
      return;
    }
    case Type::kPickle: {
      auto bytes = Whole(input.path, kMostPickle, input.gzip);
      if (!bytes.ok()) return;
      auto json = JsonOfPickle(*bytes);
      if (json.ok()) LearnText(ingest::BytesSource(*json).get(), scrubber_).IgnoreError();
      return;
    }
  }
}

void Files::Learn() {
  for (const Input& input : inputs_) LearnOne(input);
  scrubber_->Learned();
  Targets();
}

void Files::Targets() {
  std::set<std::string> taken;
  for (Input& input : inputs_) {
    std::string target = scrubber_->FileName(input.name);
    // A name that told no host to the reader must not begin to: "trainer-0.log" is not "host-1.log".
    const bool text = input.type == Type::kText || input.type == Type::kPickle;
    if (text && ingest::HintsOfName(input.name).host.empty() && !ingest::HintsOfName(target).host.empty()) {
      const size_t slash = input.name.rfind('/'), folder = target.rfind('/');
      const std::string base = slash == input.name.npos ? input.name : input.name.substr(slash + 1);
      const std::string masked = scrubber_->OpaqueName(base);
      target = folder == target.npos ? masked : target.substr(0, folder + 1) + masked;
    }
    if (input.gzip && input.type != Type::kText && absl::EndsWith(target, ".gz")) target.resize(target.size() - 3);
    if (!input.gzip && absl::EndsWith(target, ".zst")) target.resize(target.size() - 4);
    if (input.type == Type::kFlight)
      target = absl::StrCat(absl::EndsWith(target, ".flight") ? target.substr(0, target.size() - 7) : target, ".trace");
    if (input.type == Type::kPickle) target += ".json";
    std::string unique = target;
    for (int n = 2; !taken.insert(unique).second; ++n) {
      const size_t dot = target.rfind('.');
      unique = dot == target.npos || target.find('/', dot) != target.npos
                   ? absl::StrCat(target, "-", n)
                   : absl::StrCat(target.substr(0, dot), "-", n, target.substr(dot));
    }
    input.target = unique;
  }
}

std::vector<std::pair<std::string, std::string>> Files::Names() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const Input& input : inputs_) {
    if (input.shown == input.path) names.emplace_back(input.path, input.target);
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return names;
}

absl::StatusOr<std::string> Files::RecordBytes(const Input& input) {
  switch (input.type) {
    case Type::kText:
      break;
    case Type::kTrace: {
      auto bytes = Whole(input.path, ingest::kMaxTraceBytes, input.gzip);
      if (!bytes.ok()) return bytes.status();
      auto file = ingest::ParseTrace(*bytes, input.shown);
      if (!file.ok()) return file.status();
      return TraceBytes(std::move(file->trace), file->torn, scrubber_);
    }
    case Type::kFlight: {
      absl::StatusOr<ingest::FlightFile> file;
      if (input.gzip) {
        auto bytes = Whole(input.path, ingest::kMaxFlightBytes, true);
        if (!bytes.ok()) return bytes.status();
        file = ingest::ParseFlight(*bytes, input.shown);
      } else {
        file = ingest::ReadFlight(input.path);  // also whether its owner lives, where this is its machine
      }
      if (!file.ok()) return file.status();
      return TraceBytes(std::move(file->trace), file->torn, scrubber_);
    }
    case Type::kStream: {
      auto bytes = Whole(input.path, kMostStream, input.gzip);
      if (!bytes.ok()) return bytes.status();
      uint64_t dropped = 0;
      auto out = StreamBytes(*bytes, scrubber_, &dropped);
      if (!out.ok())
        return absl::DataLossError(absl::StrCat(input.shown, ": byte 8: ", std::string(out.status().message()), "; left out"));
      if (dropped > 0) notes_.push_back(absl::StrCat(input.shown, ": ", dropped, " damaged bytes are not in the masked stream"));
      return out;
    }
    case Type::kPickle: {
      auto bytes = Whole(input.path, kMostPickle, input.gzip);
      if (!bytes.ok()) return bytes.status();
      auto json = JsonOfPickle(*bytes);
      if (!json.ok())
        return absl::InvalidArgumentError(absl::StrCat(input.shown, ": ", std::string(json.status().message()),
                                                       "; left out, for a pickle is masked as plain data only"));
      std::string out;
      const absl::Status status = ScrubText(ingest::BytesSource(*json).get(), scrubber_, [&](std::string_view piece) {
        out += piece;
        return absl::OkStatus();
      });
      if (!status.ok()) return status;
      return out;
    }
  }
  return absl::InternalError("not a record");
}

absl::Status Files::WriteOne(const Input& input, const std::string& path) {
  OutFile out;
  if (input.type != Type::kText) {
    auto bytes = RecordBytes(input);
    if (!bytes.ok()) {
      Problem(std::string(bytes.status().message()));
      return absl::OkStatus();
    }
    if (auto status = out.Open(path, /*gzip=*/false); !status.ok()) return status;
    if (auto status = out.Write(*bytes); !status.ok()) return status;
  } else {
    auto source = ingest::OpenSource(input.path);
    if (!source.ok()) {
      Problem(std::string(source.status().message()));
      return absl::OkStatus();
    }
    if (auto status = out.Open(path, input.gzip); !status.ok()) return status;
    absl::Status written;
    const absl::Status status =
        ScrubText(source->get(), scrubber_, [&](std::string_view piece) { return written = out.Write(piece); });
    if (!written.ok()) return written;
    // Its start is written; it ends early as the input does.
    if (!status.ok()) Problem(std::string(status.message()));
  }
  if (auto status = out.Close(); !status.ok()) return status;
  ++written_;
  return absl::OkStatus();
}

absl::Status Files::WriteAll(const std::string& out) {
  for (const Input& input : inputs_) {
    const std::string path = absl::StrCat(out, "/", input.target);
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error) return absl::UnavailableError(absl::StrCat(out, ": ", error.message(), "; give a directory that can be written"));
    if (auto status = WriteOne(input, path); !status.ok()) return status;
    if (input.type == Type::kFlight)
      notes_.push_back(absl::StrCat(input.shown, ": a flight file; written as a trace that says so"));
    if (input.type == Type::kPickle) notes_.push_back(absl::StrCat(input.shown, ": a pickle; written as JSON"));
  }
  return absl::OkStatus();
}

absl::Status Files::WriteOnly(const Write& write) {
  auto source = ingest::OpenSource(inputs_[0].path);
  if (!source.ok()) return source.status();
  absl::Status written;
  const absl::Status status = ScrubText(source->get(), scrubber_, [&](std::string_view piece) { return written = write(piece); });
  if (!written.ok()) return written;
  if (!status.ok()) Problem(std::string(status.message()));
  ++written_;
  return absl::OkStatus();
}

}  // namespace ringscope::scrub
