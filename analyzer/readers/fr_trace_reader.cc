// What PyTorch's analyzer of flight recorder dumps prints (torchfrtrace; tools/flight_recorder and
// torch/distributed/flight_recorder, torch 2.5 to 2.13): a block of "key: value" lines an operation that it complains about.
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <memory>
#include <string>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/flight_recorder_names.h"

namespace ringscope::ingest {
namespace {

using model::AnalyzerReport;
using Problem = AnalyzerReport::Problem;

constexpr size_t kMostReports = 1000;  // of a file; the first of each group are what counts
constexpr size_t kMostRanks = 1 << 17;
constexpr size_t kMostLines = 12;
constexpr size_t kMostText = 120;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

// "{0, 1, 2}", "{0, 1, ..., 127}", "2" (torch 2.5: how many). False: shortened, by the reporter or by numpy's habit.
bool Ranks(std::string_view text, std::vector<int>* ranks) {
  const size_t open = text.find('{');
  if (open == text.npos) return false;
  text = text.substr(open + 1, text.find('}') - open - 1);
  Scan scan(text);
  while (!scan.rest.empty()) {
    int64_t rank = 0;
    if (!scan.Number(&rank, 1, 7)) {
      scan.rest.remove_prefix(1);
    } else if (ranks->size() < kMostRanks) {
      ranks->push_back(static_cast<int>(rank));
    }
  }
  return !Contains(text, "...");
}

class FrTrace : public LineReader {
 public:
  explicit FrTrace(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    const std::string_view text = Trimmed(line.text);
    if (text.empty()) return open_;
    if (Heading(text, line)) return true;
    if (Unjudged(text, line)) return false;
    const size_t colon = text.find(": ");
    const std::string_view key = text.substr(0, colon), value = colon == text.npos ? "" : Trimmed(text.substr(colon + 2));
    if (text == "collective stack trace:" || key == "collective stack trace") {
      in_stack_ = open_;
      return open_;
    }
    if (Value(key, value, line)) {
      in_stack_ = false;
      return true;
    }
    if (in_stack_ && Frame(text, line)) return true;
    if (open_ && Contains(key, "stack")) Quote(line);  // "rank 1 stack: ..." as people note it beside
    Close();
    return false;
  }
  void End() override { Close(); }

 private:
  static std::string_view Trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
  }

  bool Heading(std::string_view text, const TextLine& line) {
    static const RE2& missing =
        *new RE2(R"(Not all ranks joining collective(?:, sequence number:)? (\d{1,18})(?: at entry (\d{1,18}))?)");
    static const RE2& errors = *new RE2(R"(Collective (\d{1,18}) at entry (\d{1,18}) errors)");
    static const RE2& errors_now = *new RE2(R"(Collective sequence number: (\d{1,18}) has errors)");
    static const RE2& totals =
        *new RE2(R"(Input/output mismatch in the collective(?: sequence number:)? (\d{1,18})(?: at entry (\d{1,18}))?)");
    // torch 2.5's first form: all in one line.
    static const RE2& one_line =
        *new RE2(R"(Not all ranks joining collective for group (\S+) collective (\S+)\s+Missing ranks are (\{[^}]*\}))");
    int64_t sequence = -1;
    std::string entry, group, collective, ranks;
    Problem problem = Problem::kUntold;
    if (RE2::PartialMatch(Piece(text), one_line, &group, &collective, &ranks)) {
      Start(Problem::kMissing, line);
      report_.group = group.substr(0, kMostText);
      SetCollective(collective);
      Ranks(ranks, &report_.missing);
      return true;
    }
    if (RE2::PartialMatch(Piece(text), missing, &sequence, &entry)) {
      problem = Problem::kMissing;
    } else if (RE2::PartialMatch(Piece(text), errors, &sequence, &entry) ||
               RE2::PartialMatch(Piece(text), errors_now, &sequence)) {
      problem = Problem::kDiffers;
    } else if (RE2::PartialMatch(Piece(text), totals, &sequence, &entry)) {
      problem = Problem::kTotals;
    } else {
      return false;
    }
    Start(problem, line);
    report_.sequence = sequence;
    if (!entry.empty() && !absl::SimpleAtoi(entry, &report_.entry)) report_.entry = -1;
    return true;
  }

  bool Unjudged(std::string_view text, const TextLine& line) {
    static const RE2& pattern = *new RE2(R"(because we missed FR dumps from ranks \((\{[^}]*\})\))");
    std::string ranks;
    if (!RE2::PartialMatch(Piece(text), pattern, &ranks)) return false;
    Start(Problem::kNoDumps, line);
    Ranks(ranks, &report_.missing);
    Close();
    return true;
  }

  bool Value(std::string_view key, std::string_view value, const TextLine& line) {
    if (key == "collective" && Contains(value, ":")) {
      if (!open_ || !report_.collective.empty()) Start(Problem::kUntold, line);
      SetCollective(value);
      Quote(line);
      return true;
    }
    if (key == "group info") {
      if (!open_ || !report_.group.empty()) Start(Problem::kUntold, line);
      report_.group = std::string(value.substr(0, kMostText));
      return true;
    }
    if (key == "missing ranks" && value.starts_with("{")) {
      if (!open_) Start(Problem::kUntold, line);
      Ranks(value, &report_.missing);
      if (report_.problem == Problem::kUntold) report_.problem = Problem::kMissing;
      Quote(line);
      return true;
    }
    if (key == "error msg" && Contains(value, "Culprit rank")) {
      if (!open_) Start(Problem::kUntold, line);
      Culprits(value);
      if (report_.problem == Problem::kUntold) report_.problem = Problem::kDiffers;
      Quote(line);
      return true;
    }
    if (!open_) return false;
    if (key == "input sizes" || key == "output sizes") {
      (key[0] == 'i' ? report_.input_sizes : report_.output_sizes) = std::string(value.substr(0, kMostText));
      if (key[0] == 'i') Quote(line);
      return true;
    }
    if (key == "expected ranks") {
      int count = 0;
      if (absl::SimpleAtoi(Absl(value), &count)) {
        report_.world = count;
      } else if (Ranks(value, &report_.expected) && report_.world == 0) {
        report_.world = static_cast<int>(report_.expected.size());
      }
      Quote(line);
      return true;
    }
    if (key == "world size") {
      int count = 0;
      if (absl::SimpleAtoi(Absl(value), &count) && count > 0) report_.world = count;
      Quote(line);
      return true;
    }
    if (key == "collective state") {
      report_.state = std::string(value.substr(0, 20));
      Quote(line);
      return true;
    }
    return key == "internal record id" || key == "total input numel" || key == "total output numel";
  }

  void Culprits(std::string_view value) {
    static const RE2& one = *new RE2(R"(Culprit rank (\d{1,7}); Error type: (\w+))");
    static const RE2& values = *new RE2(R"(Expected ([\w ]+): '([^']*)' does not\s+match found ([\w ]+): '([^']*)')");
    constexpr std::string_view kWord = "Culprit rank ";
    for (size_t at = value.find(kWord); at != value.npos && report_.culprits.size() < kMostRanks;) {
      const size_t next = value.find(kWord, at + kWord.size());
      const std::string_view part = value.substr(at, next == value.npos ? next : next - at);
      model::AnalyzerCulprit culprit;
      std::string found_what;
      if (RE2::PartialMatch(Piece(part), one, &culprit.rank, &culprit.error)) {
        RE2::PartialMatch(Piece(part), values, &culprit.what, &culprit.expected, &found_what, &culprit.found);
        for (std::string* s : {&culprit.error, &culprit.what, &culprit.expected, &culprit.found})
          s->resize(std::min(s->size(), kMostText));
        report_.culprits.push_back(std::move(culprit));
      }
      at = next;
    }
  }

  bool Frame(std::string_view text, const TextLine& line) {
    static const RE2& frame = *new RE2(R"(^(\S.*) at (\S+):(\d+)$)");
    std::string name, file, number;
    if (!RE2::FullMatch(Piece(text), frame, &name, &file, &number)) return false;
    if (report_.site.empty() && !Contains(file, "/torch/")) {
      report_.site = std::string(text.substr(0, 2 * kMostText));
      Quote(line);
    }
    return true;
  }

  void SetCollective(std::string_view name) {
    report_.collective = std::string(name.substr(0, kMostText));
    report_.func = ParseDumpOp(name).func;
  }

  void Start(Problem problem, const TextLine& line) {
    Close();
    report_ = AnalyzerReport();
    report_.problem = problem;
    report_.where = line.where;
    open_ = true;
    Quote(line);
  }
  void Quote(const TextLine& line) {
    if (report_.lines.size() >= kMostLines) return;
    if (!report_.lines.empty() && report_.lines.back().first == line.where) return;
    report_.lines.emplace_back(line.where, std::string(Trimmed(line.quote).substr(0, model::kMaxQuote)));
  }
  void Close() {
    in_stack_ = false;
    if (!std::exchange(open_, false)) return;
    // A lone "collective:" or "group info:" is somebody else's line.
    const bool says = report_.problem != Problem::kUntold || (!report_.collective.empty() && !report_.state.empty());
    if (says && count_++ < kMostReports) context_.evidence->flight_recorder.reports.push_back(std::move(report_));
  }

  const FileContext& context_;
  AnalyzerReport report_;
  bool open_ = false, in_stack_ = false;
  size_t count_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "torchfrtrace",
    {R"(Not all ranks joining collective)", R"(Collective \d+ at entry \d+ errors)",
     R"(Collective sequence number: \d+ has errors)", R"(Input/output mismatch in the collective)",
     R"(because we missed FR dumps from ranks)", R"(missing ranks: \{)", R"(error msg: Culprit rank )",
     R"(^\s*collective: \w+:\w+)", R"(^\s*group info: \S)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<FrTrace>(context); }});

}  // namespace
}  // namespace ringscope::ingest
