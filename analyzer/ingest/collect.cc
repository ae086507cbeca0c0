#include "analyzer/ingest/collect.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analyzer/ingest/byte_source.h"
#include "analyzer/ingest/flight_reader.h"
#include "analyzer/ingest/gzip.h"
#include "analyzer/ingest/stream_reader.h"
#include "analyzer/ingest/text_reader.h"
#include "analyzer/ingest/trace_reader.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kHeadBytes = 16384;
constexpr int kMaxDepth = 64;
// The file by which the processes of a job ask each other for traces (recorder/marker.h); empty.
constexpr char kMarkerName[] = "snapshot-now";

// The first names, without the directory that all of them share.
std::string Listed(const std::vector<std::string>& names, size_t most) {
  size_t common = names.empty() ? 0 : names[0].rfind('/') + 1;
  for (const std::string& name : names) {
    while (common > 0 && name.compare(0, common, names[0], 0, common) != 0)
      common = common > 1 ? names[0].rfind('/', common - 2) + 1 : 0;
  }
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    names.size() == 1 ? names[i] : names[i].substr(common));
  }
  if (names.size() > most) absl::StrAppend(&text, " and ", names.size() - most, " more");
  if (names.size() > 1 && common > 1) absl::StrAppend(&text, " in ", names[0].substr(0, common));
  return text;
}

class Walk {
 public:
  Walk(const Progress& progress, Histories histories) : progress_(progress), histories_(histories) {}

  void Given(const std::string& path) {
    if (path == "-") return StandardText();
    struct stat st;
    if (stat(path.c_str(), &st) != 0) {
      ++out_.missing;
      const bool absent = errno == ENOENT || errno == ENOTDIR;
      out_.problems.push_back(absl::StrCat(
          path, ": ", strerror(errno),
          absent ? "; check the path" : "; read it as the user that ran the job, or as root"));
      return;
    }
    Visit(path, st, 0, /*given=*/true);
  }

  Collected Take() { return std::move(out_); }

 private:
  // A paste.
  void StandardText() {
    if (std::exchange(stdin_read_, true)) return;
    ++out_.walked;
    const auto source = StandardInput();
    Text("(standard input)", "", source.get());
  }

  void Text(const std::string& path, std::string head, ByteSource* source) {
    const auto status = ReadText(path, std::move(head), source, &out_.evidence, &out_.records, progress_);
    if (!status.ok()) Problem(status);
  }

  void Visit(const std::string& path, const struct stat& st, int depth, bool given) {
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
      out_.unknown.push_back(absl::StrCat(path, " (not a regular file)"));
      return;
    }
    if (!seen_.emplace(st.st_dev, st.st_ino).second) return;  // another path or a loop of links
    if (S_ISREG(st.st_mode)) return File(path, given);
    if (depth > kMaxDepth) {
      out_.problems.push_back(absl::StrCat(path, ": directories nested deeper than ", kMaxDepth,
                                           "; give this one by itself"));
      return;
    }
    Directory(path, depth, given);
  }

  void Directory(const std::string& path, int depth, bool given) {
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) {
      if (given) ++out_.missing;
      out_.problems.push_back(absl::StrCat(path, ": ", strerror(errno),
                                           "; read it as the user that ran the job, or as root"));
      return;
    }
    std::vector<std::string> names;
    while (const dirent* entry = readdir(directory)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    closedir(directory);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string child = absl::StrCat(path, absl::EndsWith(path, "/") ? "" : "/", name);
      struct stat st, link;
      if (stat(child.c_str(), &st) != 0) {
        // A dangling link, a loop of links, or a file that went away while we walked: nothing to
        // read.
        out_.unknown.push_back(absl::StrCat(child, " (", strerror(errno), ")"));
        continue;
      }
      // A link may lead out of what was given, to the whole machine (/proc/PID/root).
      if (S_ISDIR(st.st_mode) && lstat(child.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
        out_.unknown.push_back(
            absl::StrCat(child, " (a link to a directory; give it by name to read it)"));
        continue;
      }
      Visit(child, st, depth + 1, /*given=*/false);
    }
  }

  void File(const std::string& path, bool given) {
    if (!given && path.substr(path.rfind('/') + 1) == kMarkerName) return;
    ++out_.walked;
    if (progress_) progress_(path, 0, 0);
    auto head = ReadHead(path, kHeadBytes);
    if (!head.ok()) {
      if (given) ++out_.missing;
      return Problem(head.status());
    }
    if (LooksLikeGzip(*head)) return Compressed(path, *head);
    if (LooksLikeTrace(*head)) return Keep(path, ReadTrace(path, progress_));
    if (LooksLikeFlight(*head)) return Keep(path, ReadFlight(path, progress_));
    if (LooksLikeStream(*head)) return Keep(path, ReadStream(path, nullptr, progress_));
    if (LooksLikeZstd(*head)) return TextFile(path);
    Other(path, *head);
  }

  void TextFile(const std::string& path) {
    auto source = OpenSource(path);
    if (!source.ok()) return Problem(source.status());
    std::string head;
    while (head.size() < kHeadBytes) {
      const auto more = (*source)->More(&head);
      if (!more.ok()) return Problem(more.status());
      if (!*more) break;
    }
    if (!LooksLikeText(head) && !IsDocument(head)) {
      out_.unknown.push_back(path);
      return;
    }
    Text(path, std::move(head), source->get());
  }

  void Compressed(const std::string& path, const std::string& head) {
    auto start = Gunzip(head, kHeadBytes, path);
    if (!start.ok()) return Problem(start.status());
    const bool is_trace = LooksLikeTrace(start->bytes), is_flight = LooksLikeFlight(start->bytes);
    if (LooksLikeStream(start->bytes)) {
      out_.problems.push_back(absl::StrCat(path, ": a compressed stream file is not read; gunzip it first"));
      return;
    }
    if (!is_trace && !is_flight) return Other(path, start->bytes);
    auto bytes = ReadWhole(path, kMaxTraceBytes, progress_);
    if (!bytes.ok()) return Problem(bytes.status());
    auto whole = Gunzip(*bytes, is_trace ? kMaxTraceBytes : kMaxFlightBytes, path);
    if (!whole.ok()) return Problem(whole.status());
    if (is_trace) return Keep(path, ParseTrace(whole->bytes, path));
    Keep(path, ParseFlight(whole->bytes, path));
  }

  // Files with the name of a record that hold none are damaged records; the rest are somebody
  // else's.
  void Other(const std::string& path, const std::string& head) {
    const bool named_trace = absl::EndsWith(path, ".trace") || absl::EndsWith(path, ".trace.tmp");
    const bool named_flight =
        absl::EndsWith(path, ".flight") || absl::EndsWith(path, ".flight.tmp");
    if (named_trace) {
      ++out_.damaged;
      return Problem(ParseTrace(head, path).status());
    }
    if (named_flight) {
      ++out_.damaged;
      return Problem(ParseFlight(head, path).status());
    }
    if (absl::EndsWith(path, ".stream")) {
      ++out_.damaged;
      return Problem(ParseStream(head, path, nullptr).status());
    }
    TextFile(path);
  }

  void Problem(const absl::Status& status) {
    out_.problems.push_back(std::string(status.message()));
  }

  void Keep(const std::string& path, absl::StatusOr<TraceFile> file) {
    if (!file.ok()) {
      ++out_.damaged;
      return Problem(file.status());
    }
    out_.problems.insert(out_.problems.end(), file->notes.begin(), file->notes.end());
    out_.records.push_back(
        {std::move(file->trace), path, /*from_flight_file=*/false, file->torn, 0});
    // What was read out of a flight file and written as a trace (`ringscope scrub`) says as much as the file did.
    out_.records.back().from_flight_file = out_.records.back().trace.reason() == trace::REASON_FLIGHT_FILE;
    if (histories_ == Histories::kTake) model::TakeHistories(&out_.records.back());
  }
  void Keep(const std::string& path, absl::StatusOr<StreamSummary> file) {
    if (!file.ok()) {
      ++out_.damaged;
      return Problem(file.status());
    }
    out_.problems.insert(out_.problems.end(), file->notes.begin(), file->notes.end());
    const trace::StreamLoss& l = file->lost;
    out_.streams.push_back({path, file->operations, file->steps,
                            l.operations_no_room() + l.operations_over_rate() + l.steps_no_room() + l.steps_over_rate()});
  }
  void Keep(const std::string& path, absl::StatusOr<FlightFile> file) {
    if (!file.ok()) {
      ++out_.damaged;
      return Problem(file.status());
    }
    out_.problems.insert(out_.problems.end(), file->notes.begin(), file->notes.end());
    out_.records.push_back({std::move(file->trace), path, /*from_flight_file=*/true, file->torn,
                            file->read_realtime_ns});
    if (histories_ == Histories::kTake) model::TakeHistories(&out_.records.back());
  }

  const Progress& progress_;
  const Histories histories_;
  Collected out_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  bool stdin_read_ = false;
};

}  // namespace

std::vector<std::string> Collected::Sentences() const {
  std::vector<std::string> out = problems;
  if (!streams.empty()) {
    uint64_t operations = 0, steps = 0, lost = 0;
    std::vector<std::string> names;
    for (const CollectedStream& s : streams) {
      names.push_back(s.path);
      operations += s.operations;
      steps += s.steps;
      lost = std::max(lost, s.lost);
    }
    std::string text = absl::StrCat(streams.size(), streams.size() == 1 ? " stream file holds" : " stream files hold",
                                    " the history of ", operations, " operations");
    if (steps != 0) absl::StrAppend(&text, " and ", steps, " step transitions");
    if (lost != 0) absl::StrAppend(&text, " (with gaps: up to ", lost, " entries of one process were lost)");
    out.push_back(absl::StrCat(text, "; the diagnosis rests on traces and flight files alone, `ringscope show` prints these: ",
                               Listed(names, 3)));
  }
  for (const model::TextFile& file : evidence.files) {
    for (const std::string& note : file.notes) out.push_back(absl::StrCat(file.path, ": ", note));
  }
  for (const auto& [signature, count] : evidence.uncounted) {
    out.push_back(absl::StrCat(count, " further lines of the kind ", signature, " were counted and not kept"));
  }
  if (!unknown.empty()) {
    out.push_back(absl::StrCat(unknown.size(), unknown.size() == 1 ? " file holds" : " files hold",
                               " nothing that was recognised: ", Listed(unknown, 5)));
  }
  return out;
}

bool Collected::anything() const {
  if (!records.empty() || !evidence.events.empty() || !evidence.settings.empty()) return true;
  return std::any_of(evidence.files.begin(), evidence.files.end(),
                     [](const model::TextFile& file) { return !file.readers.empty(); });
}

Collected Collect(const std::vector<std::string>& paths, const Progress& progress, Histories histories) {
  Walk walk(progress, histories);
  for (const std::string& path : paths) walk.Given(path);
  Collected collected = walk.Take();
  std::set<int32_t> speaking;  // files in which something was recognised
  for (const model::Event& event : collected.evidence.events) speaking.insert(event.where.file);
  for (size_t i = 0; i < collected.evidence.files.size(); ++i) {
    const model::TextFile& file = collected.evidence.files[i];
    if (file.readers.empty() && speaking.count(static_cast<int32_t>(i)) == 0)
      collected.unknown.push_back(file.path);
  }
  model::ResolveSpeakers(&collected.evidence);
  return collected;
}

}  // namespace ringscope::ingest
