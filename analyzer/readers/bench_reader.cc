// Results of benchmarks: nccl-tests, tables of trials over groups of nodes; and which rank drives which GPU ("rank 11 = node2
// GPU 3", nccl-tests' list of ranks).
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <re2/re2.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/gpu_snapshots.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMostNodes = 4096;    // of one trial
constexpr size_t kMostTrials = 20000;  // of one file
constexpr size_t kMostRows = 20000;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

// "n1101..n1107,n1147", "node[01-04,7]", "a,b,c" -> names. nullopt: no list of nodes.
std::optional<std::vector<std::string>> Nodes(std::string_view text) {
  std::vector<std::string> nodes;
  static const RE2& dots = *new RE2(R"(^([A-Za-z][\w.-]*?)(\d{1,9})(?:\.\.|…)(?:[A-Za-z][\w.-]*?)?(\d{1,9})$)");
  static const RE2& slurm = *new RE2(R"(^([A-Za-z][\w.-]*)\[([\d,-]+)\]([\w.-]*)$)");
  static const RE2& plain = *new RE2(R"(^[A-Za-z][\w.-]*\d[\w.-]*$)");
  const auto range = [&](const std::string& stem, const std::string& first, const std::string& last, const std::string& tail) {
    int64_t a = 0, b = 0;
    if (!absl::SimpleAtoi(first, &a) || !absl::SimpleAtoi(last, &b) || b < a || b - a >= static_cast<int64_t>(kMostNodes))
      return false;
    for (int64_t n = a; n <= b && nodes.size() < kMostNodes; ++n) {
      std::string digits = absl::StrCat(n);
      if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
      nodes.push_back(stem + digits + tail);
    }
    return true;
  };
  // Commas inside brackets do not part names.
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (depth > 0 || (text[i] != ',' && text[i] != '+' && text[i] != ';'))) continue;
    const std::string item(text.substr(start, i - start));
    start = i + 1;
    std::string stem, first, last, tail;
    if (item.empty()) continue;
    if (RE2::FullMatch(item, dots, &stem, &first, &last)) {
      if (!range(stem, first, last, "")) return std::nullopt;
    } else if (RE2::FullMatch(item, slurm, &stem, &first, &tail)) {
      for (const absl::string_view part : absl::StrSplit(first, ',')) {
        const std::vector<std::string> ends = absl::StrSplit(part, '-');
        if (ends.size() > 2 || !range(stem, ends[0], ends.back(), tail)) return std::nullopt;
      }
    } else if (RE2::FullMatch(item, plain)) {
      nodes.push_back(item);
    } else {
      return std::nullopt;
    }
    if (nodes.size() >= kMostNodes) return std::nullopt;
  }
  if (nodes.empty()) return std::nullopt;
  return nodes;
}

class Bench : public LineReader {
 public:
  explicit Bench(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (line.text.size() > 16000) return false;
    Place(line);
    if (NcclTestsHead(line) || NcclTestsRow(line)) return true;
    KeyValues(line);
    if (TrialHead(line)) return true;
    if (TrialRow(line)) return true;
    return ++idle_ < 3 && (table_ > 0 || value_column_ >= 0);
  }

 private:
  model::SpeedFacts& Speed() { return context_.evidence->hardware.speed; }

  // ---- which rank is where
  void Place(const TextLine& line) {
    // nccl-tests: "#  Rank  0 Group  0 Pid  12345 on   node1 device  0 [0x61] NVIDIA …"
    static const RE2& header = *new RE2(
        R"(^#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+(\d+)\s+\[(0x[0-9a-fA-F]+|[0-9a-fA-F:.]+)\])");
    static const RE2& note =
        *new RE2(R"((?i)\brank ?#?(\d{1,7})\s*(?:=>|->|=|:|is|on|at|runs on|\|)\s*([A-Za-z][\w.-]*)?[\s,:/]*gpu ?#?(\d{1,3})\b)");
    static const RE2& reverse =
        *new RE2(R"((?i)^\W*([A-Za-z][\w.-]*\d[\w.-]*)[\s,:/]+gpu ?#?(\d{1,3})\s*(?:=>|->|=|:|is)\s*rank ?#?(\d{1,7})\b)");
    model::RankPlace place;
    std::string bus;
    const re2::StringPiece text = Piece(line.text);
    if (RE2::PartialMatch(text, header, &place.rank, &place.host, &place.gpu, &bus)) {
      if (!Contains(bus, "0x")) place.bus_id = model::ParseBusId(bus);
    } else if (!RE2::PartialMatch(text, note, &place.rank, &place.host, &place.gpu) &&
               !RE2::PartialMatch(text, reverse, &place.host, &place.gpu, &place.rank)) {
      return;
    }
    if (places_++ >= kMostRows) return;
    place.where = line.where;
    place.quote = QuoteLine(line.text);
    context_.evidence->hardware.places.push_back(std::move(place));
  }

  // ---- nccl-tests
  bool NcclTestsHead(const TextLine& line) {
    static const RE2& head = *new RE2(R"(^#\s+size\s+count\s+type\b)");
    static const RE2& start = *new RE2(R"(^# nThread \d+ nGpus \d+)");
    static const RE2& operation = *new RE2(
        R"(\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoall|sendrecv|gather|scatter|hypercube)_perf\b)");
    const re2::StringPiece text = Piece(line.text);
    std::string name;
    if (RE2::PartialMatch(text, operation, &name)) operation_ = name;
    if (RE2::PartialMatch(text, start)) {
      table_ = ++tables_;
      idle_ = 0;
      return true;
    }
    if (!RE2::PartialMatch(text, head)) return false;
    if (table_ == 0) table_ = ++tables_;
    idle_ = 0;
    return true;
  }

  // "   1048576        262144     float     sum      -1    45.6   23.00   43.12      0    45.1 …": 11 to 14 columns; the root
  // column and the count of wrong values are missing in old releases.
  bool NcclTestsRow(const TextLine& line) {
    if (table_ == 0) return false;
    static const RE2& row = *new RE2(
        R"(^\s*(\d+)\s+\d+\s+[a-z]\w*\s+(?:[a-z]\w*\s+)?(?:-?\d+\s+)?(\d+(?:\.\d+)?)\s+(\d+\.\d+)\s+(\d+\.\d+)\s+(\S+)(?:\s+(\d+)"
        R"((?:\.\d+)?)\s+(\d+\.\d+)\s+(\d+\.\d+)\s+(\S+))?\s*$)");
    model::NcclTestRow result;
    std::string wrong1, t2, a2, b2, wrong2;
    if (!RE2::FullMatch(Piece(line.text), row, &result.bytes, &result.micros, &result.algbw, &result.busbw, &wrong1, &t2, &a2,
                        &b2, &wrong2))
      return line.text.starts_with("#");
    idle_ = 0;
    if (!b2.empty() && !absl::SimpleAtod(b2, &result.in_place_busbw)) result.in_place_busbw = -1;
    for (const std::string* wrong : {&wrong1, &wrong2}) {
      double count = 0;  // "0", "N/A", old releases: an error as "0e+00"
      if (!absl::SimpleAtod(*wrong, &count) || !(count >= 0 && count < 1e15)) continue;
      result.wrong = std::max<int64_t>(result.wrong, 0) + (count >= 1 ? static_cast<int64_t>(count) : 0);
    }
    result.table = table_;
    result.operation = operation_;
    result.where = line.where;
    result.by = line.by;
    if (Speed().nccl_tests.size() < kMostRows) Speed().nccl_tests.push_back(std::move(result));
    return true;
  }

  // ---- trials over groups of nodes
  static std::vector<std::string_view> Cells(std::string_view text) {
    std::vector<std::string_view> cells;
    for (const absl::string_view cell : absl::StrSplit(Absl(text), absl::ByAnyChar(" \t|"), absl::SkipEmpty()))
      cells.push_back({cell.data(), cell.size()});
    return cells;
  }

  static bool ValueName(std::string_view name, bool* more_is_better) {
    static const RE2& rate =
        *new RE2(R"((?i)(?:bus|alg)_?bw|bandwidth|gbps|gb/s|gbit|tok(?:ens)?[_/]|samples|throughput|tflops|mfu|img)");
    static const RE2& time =
        *new RE2(R"((?i)(?:^|_)(?:time|latency|duration|step_?time|seconds|sec|ms|us)(?:$|[_(\[/])|s/(?:it|step)|_s$)");
    *more_is_better = RE2::PartialMatch(Piece(name), rate);
    return *more_is_better || RE2::PartialMatch(Piece(name), time);
  }

  // "trial nodes(8)   busbw_gbps", "hosts,bandwidth_gbps": the value's column counted from the end, because lists of nodes may
  // hold blanks.
  bool TrialHead(const TextLine& line) {
    static const RE2& nodes = *new RE2(R"((?i)(?:^|[\s|,#])(?:node|host)(?:s|list|names?|_a|1|\d)?\b)");
    if (!RE2::PartialMatch(Piece(line.text), nodes) || Nodes(line.text)) return false;
    std::vector<std::string_view> cells = Cells(line.text);
    if (cells.size() == 1) {
      comma_ = true;
      cells.clear();
      for (const absl::string_view cell : absl::StrSplit(Absl(line.text), ',')) cells.push_back({cell.data(), cell.size()});
    } else {
      comma_ = false;
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      bool more = true;
      if (Contains(cells[i], "=")) return false;
      if (cells.size() > 40 || !ValueName(cells[i], &more)) continue;
      value_column_ = static_cast<int>(cells.size() - 1 - i);
      more_is_better_ = more;
      unit_ = std::string(cells[i].substr(0, 40));
      idle_ = 0;
      return true;
    }
    return false;
  }

  bool TrialRow(const TextLine& line) {
    if (value_column_ < 0) return false;
    std::vector<std::string_view> cells = Cells(line.text);
    if (comma_ && cells.size() == 1) {
      cells.clear();
      for (const absl::string_view cell : absl::StrSplit(Absl(line.text), ',')) cells.push_back({cell.data(), cell.size()});
    }
    if (cells.size() < 2 || cells.size() <= static_cast<size_t>(value_column_)) {
      if (line.text.find_first_not_of("-=+| \t") == line.text.npos) return true;
      value_column_ = -1;
      return false;
    }
    model::NodeTrial trial;
    const size_t at = cells.size() - 1 - value_column_;
    std::string_view number = cells[at];
    while (!number.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(number.back()))) number.remove_suffix(1);
    if (!absl::SimpleAtod(Absl(number), &trial.value) || trial.value <= 0) {
      value_column_ = -1;
      return false;
    }
    for (size_t i = 0; i < at; ++i) {
      if (const auto nodes = Nodes(cells[i])) trial.nodes.insert(trial.nodes.end(), nodes->begin(), nodes->end());
    }
    Keep(std::move(trial), line);
    return true;
  }

  // "nodes=n1,n2 busbw=45.1": every line is a trial by itself.
  void KeyValues(const TextLine& line) {
    static const RE2& list = *new RE2(R"((?i)\b(?:nodes?|hosts?|nodelist)\s?[=:]\s?([A-Za-z][\w.,\[\]+-]*\d[\w.,\[\]+-]*))");
    static const RE2& value =
        *new RE2(R"((?i)\b(\w*busbw\w*|\w*bandwidth\w*|algbw|step_?time\w*|tok(?:ens)?/s|samples/s)\s?[=:]\s?(\d+(?:\.\d+)?))");
    std::string names;
    model::NodeTrial trial;
    if (!RE2::PartialMatch(Piece(line.text), list, &names) ||
        !RE2::PartialMatch(Piece(line.text), value, &trial.unit, &trial.value))
      return;
    const auto nodes = Nodes(names);
    if (!nodes) return;
    trial.nodes = *nodes;
    ValueName(trial.unit, &trial.more_is_better);
    const std::string unit = trial.unit;
    Keep(std::move(trial), line);
  }

  void Keep(model::NodeTrial trial, const TextLine& line) {
    if (trial.nodes.empty() || Speed().trials.size() >= kMostTrials) return;
    if (trial.unit.empty()) {
      trial.unit = unit_;
      trial.more_is_better = more_is_better_;
    }
    std::sort(trial.nodes.begin(), trial.nodes.end());
    trial.nodes.erase(std::unique(trial.nodes.begin(), trial.nodes.end()), trial.nodes.end());
    trial.where = line.where;
    trial.quote = QuoteLine(line.text);
    Speed().trials.push_back(std::move(trial));
  }

  const FileContext& context_;
  size_t places_ = 0;
  int table_ = 0, tables_ = 0;
  std::string operation_;
  int value_column_ = -1;
  bool comma_ = false, more_is_better_ = true;
  std::string unit_;
  int idle_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "benchmarks",
    {R"(^#\s+(?:size\s+count\s+type|Rank\s+\d+.*Pid)|^# nThread \d)",
     R"((?i)\brank ?#?\d+\s*(?:=>|->|=|:|is|on|at|runs on|\|)\s*(?:[A-Za-z][\w.-]*)?[\s,:/]*gpu ?#?\d)",
     R"((?i)gpu ?#?\d{1,3}\s*(?:=>|->|=|:|is)\s*rank ?#?\d)",
     R"((?i)\b(?:node|host)(?:s|list|names?|_a|1)?\b.*(?:bw|bandwidth|gbps|gb/s|tok|samples|throughput|time|latency))",
     R"(_perf\b)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Bench>(context); }});

}  // namespace
}  // namespace ringscope::ingest
