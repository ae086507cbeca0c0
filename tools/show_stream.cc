#include "tools/show_stream.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "analyzer/ingest/stream_reader.h"
#include "analyzer/report/cursors.h"
#include "analyzer/report/json.h"
#include "analyzer/report/style.h"

namespace ringscope::tools {
namespace {

using ingest::StreamedOperation;
using ingest::StreamedStep;
using ingest::StreamSummary;

std::string Milliseconds(int64_t from, int64_t to) {
  if (from == 0 || to == 0) return "-";
  return absl::StrFormat("%+.3f", (static_cast<double>(to) - static_cast<double>(from)) / 1e6);
}

std::string IdText(const trace::StreamedCommunicator& c) {
  return c.comm_id() == 0 && c.n_ranks() == 0 ? "unknown" : absl::StrFormat("%#x", c.comm_id());
}

// Counts, and keeps the newest lines.
class Lines : public ingest::StreamSink {
 public:
  explicit Lines(const StreamTextOptions& options) : options_(options) {}

  struct Comm {
    trace::StreamedCommunicator identity;
    uint64_t operations = 0, first[2] = {0, 0}, last[2] = {0, 0};  // positions: collectives, point-to-point
  };

  void Operation(const StreamedOperation& op) override {
    const trace::StreamedCommunicator none;
    const trace::StreamedCommunicator& c = op.communicator != nullptr ? *op.communicator : none;
    const auto key = std::make_pair(c.row(), c.generation());
    // More communicators than a process can have: damaged.
    if (comms_.size() < 100000 || comms_.count(key) != 0) {
      Comm& comm = comms_[key];
      if (comm.operations++ == 0) comm.identity = c;
      const int kind = op.signature->p2p() ? 1 : 0;
      if (comm.first[kind] == 0 || op.position < comm.first[kind]) comm.first[kind] = op.position;
      comm.last[kind] = std::max(comm.last[kind], op.position);
    }
    if (options_.operations == 0) return;
    const trace::Signature& s = *op.signature;
    std::string line = absl::StrFormat(
        "  %16.6f  row %u %s #%u of %s%s, %u x %s%s: returned %s, enqueued %s, started %s, finished %s", Seconds(op.entered_ns),
        c.row(), report::FuncName(s.func()), op.position, IdText(c), s.p2p() ? " (p2p)" : "", s.count(),
        absl::AsciiStrToLower(trace::DataType_Name(s.datatype())), s.peer() >= 0 ? absl::StrCat(", peer ", s.peer()) : "",
        Milliseconds(op.entered_ns, op.returned_ns), Milliseconds(op.entered_ns, op.enqueued_ns),
        Milliseconds(op.entered_ns, op.started_ns), Milliseconds(op.entered_ns, op.finished_ns));
    if (op.end == trace::END_NOT_SEEN) line += ", end not seen";
    if (op.end == trace::STILL_OPEN) line += ", still open";
    Keep(&operations_, options_.operations, std::move(line));
  }

  void Step(const StreamedStep& s) override {
    if (options_.steps == 0) return;
    const trace::StreamedTransfer& t = *s.transfer;
    Keep(&steps_, options_.steps,
         absl::StrFormat("  %16.6f  rank %d %s %d, channel %u, %s#%u, step %u: %s%s", Seconds(s.time_ns),
                         static_cast<int>(t.rank()), t.send() ? "->" : "<-", static_cast<int>(t.peer()), t.channel(),
                         t.p2p() ? "p2p " : "", t.position(), s.step,
                         s.state == trace::STEP_FREE ? "done" : absl::AsciiStrToLower(trace::StepState_Name(s.state)),
                         s.bytes != 0 ? absl::StrCat(", ", s.bytes, " bytes") : ""));
  }

  const std::map<std::pair<uint32_t, uint32_t>, Comm>& comms() const { return comms_; }
  const std::deque<std::string>& operations() const { return operations_; }
  const std::deque<std::string>& steps() const { return steps_; }

 private:
  static double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }
  static void Keep(std::deque<std::string>* lines, int most, std::string line) {
    lines->push_back(std::move(line));
    if (most >= 0 && lines->size() > static_cast<size_t>(most)) lines->pop_front();
  }

  const StreamTextOptions& options_;
  std::map<std::pair<uint32_t, uint32_t>, Comm> comms_;
  std::deque<std::string> operations_, steps_;
};

std::string Who(const StreamSummary& s) {
  if (!s.head.has_process()) return "the process is not known (the first chunk is missing)";
  const trace::Process& p = s.head.process();
  return absl::StrCat(p.rank() >= 0 ? absl::StrCat("rank ", p.rank()) : "no rank", " on ", p.host(), ", pid ", p.pid(),
                      p.job_id().empty() ? "" : absl::StrCat(", job ", p.job_id()));
}

std::string Losses(const trace::StreamLoss& l) {
  std::string text;
  const auto add = [&text](uint64_t n, const char* what) {
    if (n != 0) absl::StrAppend(&text, text.empty() ? "" : "; ", n, " ", what);
  };
  add(l.operations_no_room(), "operations found no room in a ring");
  add(l.steps_no_room(), "step transitions found no room in a ring");
  add(l.operations_over_rate(), "operations were over RINGSCOPE_STREAM_RATE");
  add(l.steps_over_rate(), "step transitions were over RINGSCOPE_STREAM_RATE");
  add(l.operations_no_row(), "operations found no row in the flight file");
  add(l.removed_bytes(), "bytes of older files went (RINGSCOPE_STREAM_BYTES)");
  return text;
}

std::string Text(const std::string& path, const StreamSummary& s, const Lines& lines, bool colour) {
  const report::Style style(colour);
  std::string out = absl::StrCat(style.Bold(report::Printable(absl::StrCat("Stream ", path))), "\n");
  const auto line = [&out](const std::string& text) { absl::StrAppend(&out, report::Printable(text), "\n"); };
  line(absl::StrCat("  ", Who(s)));
  const double seconds = static_cast<double>(s.last_ns - s.first_ns) / 1e9;
  line(absl::StrFormat("  %u operations, %u step transitions in %u bytes, over %.3f s", s.operations, s.steps, s.bytes, seconds));
  if (seconds > 0) line(absl::StrFormat("  %.1f operations a second", static_cast<double>(s.operations) / seconds));
  line(absl::StrCat("  chunks ", s.first_sequence, " to ", s.last_sequence, " of the process",
                    s.missing_chunks != 0 ? absl::StrCat(", ", s.missing_chunks, " of them missing") : "",
                    s.ended ? "; the process ended in order" : "; no mark of an end: the process lives, was killed, or another "
                                                               "file continues this one"));
  const std::string losses = Losses(s.lost);
  line(absl::StrCat("  lost so far: ", losses.empty() ? "nothing" : losses));
  if (s.unfinished != 0) line(absl::StrCat("  ", s.unfinished, " operations were still open at the end of their communicator"));
  for (const auto& [key, c] : lines.comms()) {
    const trace::StreamedCommunicator& id = c.identity;
    std::string text = absl::StrCat("  communicator ", IdText(id), " ", id.name(), " (row ", key.first, "), rank ", id.rank(),
                                    " of ", id.n_ranks(), ": ", c.operations, " operations");
    if (c.first[0] != 0) absl::StrAppend(&text, ", collectives #", c.first[0], " to #", c.last[0]);
    if (c.first[1] != 0) absl::StrAppend(&text, ", point-to-point #", c.first[1], " to #", c.last[1]);
    line(text);
  }
  if (!lines.operations().empty()) out += "Newest operations (s of CLOCK_MONOTONIC; ms after they were entered)\n";
  for (const std::string& text : lines.operations()) line(text);
  if (!lines.steps().empty()) out += "Newest step transitions (s of CLOCK_MONOTONIC)\n";
  for (const std::string& text : lines.steps()) line(text);
  return out;
}

}  // namespace

absl::StatusOr<std::string> ShowStream(const std::string& path, const StreamTextOptions& options,
                                       const ingest::Progress& progress) {
  Lines lines(options);
  auto summary = ingest::ReadStream(path, &lines, progress);
  if (!summary.ok()) return summary.status();
  if (!options.json) return Text(path, *summary, lines, options.colour);
  // As a chunk: what a chunk would say of the whole file.
  trace::StreamChunk chunk;
  chunk.set_sequence(summary->last_sequence);
  chunk.set_written_ns(summary->last_ns);
  *chunk.mutable_head() = summary->head;
  for (const auto& [key, c] : lines.comms()) *chunk.add_communicators() = c.identity;
  chunk.mutable_operations()->set_count(static_cast<uint32_t>(summary->operations));
  chunk.mutable_steps()->set_count(static_cast<uint32_t>(summary->steps));
  *chunk.mutable_lost() = summary->lost;
  chunk.set_last(summary->ended);
  return report::ToJson(chunk);
}

}  // namespace ringscope::tools
