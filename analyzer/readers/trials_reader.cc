// Small tables of what was tried, as people write them beside a report:
//   7+8 ranks: hang 3/3            | 2.28.9 | with graphs | hangs |           NCCL_NVLS_ENABLE=0 -> works
// Only where a file is such a note (short, several variants, good and bad ones): a log also has lines with a colon and "failed".
#include <absl/strings/ascii.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMostTrials = 64;
constexpr uint32_t kLongestNote = 200;  // lines
constexpr size_t kLongestLine = 200;

bool Matches(std::string_view text, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::string_view(" \t*-|>#").find(text.front()) != text.npos) {
    if (text.starts_with("--")) break;  // "--enforce-eager" is an option, not a list's dash
    text.remove_prefix(1);
  }
  while (!text.empty() && std::string_view(" \t|:=>-").find(text.back()) != text.npos) text.remove_suffix(1);
  return text;
}

// Good, bad, or no outcome at all. What is said to be gone or absent is good: "no hang", "does not hang any more".
enum class Word { kNone, kGood, kBad };
Word OutcomeOf(std::string_view result) {
  static const RE2& negated = *new RE2(
      R"((?i)\b(no|not|never|without|0|zero|doesn'?t|does not|did not|didn'?t)\b[\w ]{0,12}\b(hangs?|hung|hanging|)"
      R"(deadlocks?|fail\w*|crash\w*|errors?|stall\w*|timeouts?|reproduc\w*|issues?|problems?)\b|\bgone\b)");
  static const RE2& bad = *new RE2(
      R"((?i)\b(hangs?|hung|hanging|deadlock\w*|dead|dies|died|fails?|failed|failure|failing|crash\w*|stuck|stalls?|)"
      R"(stalled|times? out|timed out|timeouts?|broken|breaks|errors?|segfaults?|wrong results?|nan|aborts?|aborted|)"
      R"(unusable|doesn'?t work|does not work|not working|wedge[sd]?|wedged|nok|bad)\b|✗|❌)");
  static const RE2& good = *new RE2(
      R"((?i)\b(ok|okay|works?|working|worked|fine|pass\w*|succe\w+|good|completes?|completed|runs|ran|stable|healthy|)"
      R"(clean|finished|finishes)\b|✓|✅|👍)");
  if (Matches(result, negated)) return Word::kGood;
  if (Matches(result, bad)) return Word::kBad;
  return Matches(result, good) ? Word::kGood : Word::kNone;
}

// "5 of 5", "3/3", "7/7 trials": the first that is no date or version.
void Counts(const std::string& result, Word word, model::Trial* trial) {
  static const RE2& fraction = *new RE2(R"((?:^|[^\d./])(\d{1,6}) ?(?:/|of|out of) ?(\d{1,6})(?:[^\d./]|$))");
  int count = 0, runs = 0;
  if (!RE2::PartialMatch(result, fraction, &count, &runs) || runs <= 0 || count > runs) return;
  trial->runs = runs;
  trial->bad_runs = word == Word::kGood ? runs - count : count;
}

class Trials : public LineReader {
 public:
  explicit Trials(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    last_ = line.where.line;
    // What a program printed is no note.
    if (line.nccl != TextLine::Nccl::kNone || line.time.known() || line.by.pid >= 0 || line.by.rank != context_.info().rank) {
      ++others_;
      return false;
    }
    if (line.text.size() > kLongestLine || trials_.size() >= kMostTrials) return false;
    if (line.text.find('|') == line.text.npos) {
      counts_failures_ = false;
    } else if (Header(line.text)) {
      counts_failures_ = true;
      return true;
    }
    model::Trial trial;
    if (counts_failures_ ? !Row(line.text, &trial) : !Split(line.text, &trial)) return counts_failures_;
    trial.text = std::string(Trim(line.text));
    trial.where = line.where;
    trials_.push_back(std::move(trial));
    return counts_failures_;
  }

  void End() override {
    size_t bad = 0;
    for (const model::Trial& t : trials_) bad += t.bad();
    if (trials_.size() < 2 || bad == 0 || bad == trials_.size()) return;
    if (last_ > kLongestNote || others_ > trials_.size()) return;
    auto& all = context_.evidence->trials;
    all.insert(all.end(), std::make_move_iterator(trials_.begin()), std::make_move_iterator(trials_.end()));
  }

 private:
  // "| Configuration | Hangs / total runs |": the rows below give numbers only.
  static bool Header(std::string_view text) {
    static const RE2& header = *new RE2(
        R"((?i)\|[^|]*\b(?:hangs?|hung|fail\w*|crash\w*|deadlocks?|bad)\b[^|]*(?:/|of)[^|]*\b(?:total|runs?|boots?|)"
        R"(trials?|tries|attempts)\b[^|]*\|?\s*$)");
    return text.find('|') != text.npos && Matches(text, header);
  }
  static bool Row(std::string_view text, model::Trial* trial) {
    static const RE2& row = *new RE2(R"(^\|?\s*([^|]{2,120}?)\s*\|[*\s]*(\d{1,6}) ?/ ?(\d{1,6}|dozens|many)\b)");
    std::string variant, runs;
    int bad = 0;
    if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), row, &variant, &bad, &runs)) return false;
    trial->variant = std::string(Trim(variant));
    trial->result = std::to_string(bad) + " of " + runs + " bad";
    trial->runs = runs.find_first_not_of("0123456789") == runs.npos ? std::stoi(runs) : 24;
    trial->bad_runs = std::min(bad, trial->runs);
    trial->outcome = bad > 0 ? model::Trial::Outcome::kBad : model::Trial::Outcome::kGood;
    return true;
  }
  static bool Split(std::string_view text, model::Trial* trial) {
    text = Trim(text);
    // "file.py:12: error", "RuntimeError: …" name no variant.
    static const RE2& program =
        *new RE2(R"((?:Error|Exception|Warning|WARN|ERROR|INFO|DEBUG)\b|\.(?:py|cc|cpp|cu|h):\d+|^\[|^File )");
    static const RE2& pass =
        *new RE2(R"(^(?:with |using |running )(.{2,80}?),? (it )?(hangs?|works?|fails?|crashes|passes|runs|deadlocks)\b)");
    for (const std::string_view separator : {"->", "=>", "\xe2\x86\x92", " | ", ": ", "\t", " - "}) {
      const size_t at = text.rfind(separator);
      if (at == text.npos || at == 0) continue;
      const std::string_view variant = Trim(text.substr(0, at)), result = Trim(text.substr(at + separator.size()));
      const Word word = OutcomeOf(result);
      if (word == Word::kNone || variant.size() < 2 || variant.size() > 120 || result.size() > 120 || Matches(variant, program))
        continue;
      trial->variant = std::string(variant);
      trial->result = std::string(result);
      trial->outcome = word == Word::kBad ? model::Trial::Outcome::kBad : model::Trial::Outcome::kGood;
      Counts(trial->result, word, trial);
      return true;
    }
    std::string variant;
    if (RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pass, &variant)) {
      const std::string_view result = text.substr(text.find(variant) + variant.size());
      if (const Word word = OutcomeOf(result); word != Word::kNone) {
        trial->variant = variant;
        trial->result = std::string(Trim(result));
        trial->outcome = word == Word::kBad ? model::Trial::Outcome::kBad : model::Trial::Outcome::kGood;
        return true;
      }
    }
    return false;
  }

  const FileContext& context_;
  std::vector<model::Trial> trials_;
  bool counts_failures_ = false;  // inside a table whose last column counts failures
  uint32_t last_ = 0;
  size_t others_ = 0;  // matching lines that a program wrote
};

const RegisterReader kRegister(LineReaderType{
    "notes on what was tried",
    {
        R"((?i)(?:: |->|=>|→|\||\t| - |^with |^using |^running ).{0,100}\b(?:ok|okay|works?|wedge[sd]?|worked|fine|)"
        R"(pass(?:es|ed)?|success\w*|stable|completed?s?|hangs?|hung|deadlock\w*|dead|died?s?|fail(?:s|ed|ure)?|)"
        R"(crash(?:es|ed)?|stuck|stall(?:s|ed)?|time[ds]? ?out|broken|clean|runs|gone)\b)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Trials>(context); }});

}  // namespace
}  // namespace ringscope::ingest
