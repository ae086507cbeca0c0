// Step times that programs log: sentences ("step 60 rank 11 fwd+bwd 1.92 s, reduce wait 0.01 s ; other ranks …"), tables with a
// head, and per-rank lists under a heading (Megatron's timers, straggler reports).
//
// There is no standard. What decides: a line must name a step, or a rank, or stand in such a table, and its times must be named
// by words of a step's parts (step_words.h); everything else is left alone.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <re2/re2.h>

#include <memory>
#include <string>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/gpu_snapshots.h"
#include "analyzer/readers/step_words.h"

namespace ringscope::ingest {
namespace {

using model::StepTime;
constexpr size_t kMostSteps = 200000;  // of one file
constexpr double kLongest = 86400;     // a step of more than a day is another number

struct Token {
  enum class Kind : uint8_t { kWord, kNumber, kMark } kind = Kind::kWord;
  std::string_view text;  // of a number: without its unit
  double value = 0;
  std::string_view unit;  // glued to the number
  bool whole = false;     // digits only
};

bool WordChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '+' || c == '/' || c == '-';
}

std::vector<Token> Split(std::string_view text) {
  std::vector<Token> tokens;
  size_t i = 0;
  const auto digit = [&](size_t at) { return at < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[at])); };
  while (i < text.size() && tokens.size() < 400) {
    const char c = text[i];
    Token token;
    if (digit(i)) {
      size_t end = i;
      while (digit(end)) ++end;
      token.whole = true;
      if (end < text.size() && text[end] == '.' && digit(end + 1)) {
        token.whole = false;
        for (++end; digit(end);) ++end;
      }
      token.kind = Token::Kind::kNumber;
      token.text = text.substr(i, end - i);
      if (!absl::SimpleAtod(Absl(token.text), &token.value)) token.value = -1;
      size_t unit = end;
      const bool letter = end < text.size() && absl::ascii_isalpha(static_cast<unsigned char>(text[end]));
      while (letter && unit < text.size() && (absl::ascii_isalpha(static_cast<unsigned char>(text[unit])) || text[unit] == '/'))
        ++unit;
      token.unit = text.substr(end, unit - end);
      i = unit;
    } else if (absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_') {
      size_t end = i;
      while (end < text.size() && WordChar(text[end])) ++end;
      // "rank3" is "rank" and "3".
      size_t letters = end;
      while (letters > i && digit(letters - 1)) --letters;
      const std::string_view stem = text.substr(i, letters - i);
      if (letters < end && (IsRankWord(stem) || IsStepWord(stem))) end = letters;
      token.text = text.substr(i, end - i);
      i = end;
    } else {
      token.kind = Token::Kind::kMark;
      token.text = text.substr(i, text.substr(i, 2) == ".." ? 2 : 1);
      i += token.text.size();
      if (c == ' ' || c == '\t') continue;
    }
    tokens.push_back(token);
  }
  return tokens;
}

class Steps : public LineReader {
 public:
  explicit Steps(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (line.text.size() > 2000 || line.nccl != TextLine::Nccl::kNone) return false;
    if (Listed(line) || Row(line)) return true;
    if (Head(line)) return true;
    if (Iteration(line)) return true;
    Sentence(line);
    return false;
  }

 private:
  void Keep(StepTime time, const TextLine& line) {
    if (time.part == StepTime::Part::kOther || time.seconds < 0 || time.seconds > kLongest) return;
    auto& steps = context_.evidence->hardware.speed.steps;
    if (kept_ >= kMostSteps) {
      if (kept_++ == kMostSteps) context_.Note("more than 200000 step times in one file; the rest was left out");
      return;
    }
    ++kept_;
    time.where = line.where;
    time.by = line.by;
    time.quote = QuoteLine(line.quote.empty() ? line.text : line.quote);
    steps.push_back(std::move(time));
  }

  // Megatron-LM: "iteration    40112/   90000 | consumed samples: 10 | elapsed time per iteration (ms): 5120.7 | …"
  bool Iteration(const TextLine& line) {
    static const RE2& form =
        *new RE2(R"(\biteration\s+(\d{1,12})\s*/\s*\d+\s*\|.*\belapsed time per iteration \((ms|s)\):\s*(\d+(?:\.\d+)?))");
    StepTime time;
    std::string unit;
    if (!RE2::PartialMatch(re2::StringPiece(line.text.data(), line.text.size()), form, &time.step, &unit, &time.seconds))
      return false;
    time.seconds *= UnitSeconds(unit);
    time.part = StepTime::Part::kTotal;
    Keep(std::move(time), line);
    return true;
  }

  // "step 60 rank 11 fwd+bwd 1.92 s, reduce wait 0.01 s ; other ranks fwd+bwd 0.42 s"
  void Sentence(const TextLine& line) {
    const std::vector<Token> tokens = Split(line.text);
    StepTime subject;
    subject.step = -1;
    if (line.by.rank >= 0) {
      subject.scope = StepTime::Scope::kRank;
      subject.rank = line.by.rank;
    }
    std::vector<StepTime> found;
    std::string name, last_name;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const Token& t = tokens[i];
      const Token* next = i + 1 < tokens.size() ? &tokens[i + 1] : nullptr;
      if (t.kind == Token::Kind::kMark) {
        if (t.text == ";" || t.text == "|" || t.text == "," || t.text == "(" || t.text == ")") name.clear();
        continue;
      }
      if (t.kind == Token::Kind::kWord) {
        size_t at = i + 1;  // over ":", "=", "[", "#"
        while (at < tokens.size() && tokens[at].kind == Token::Kind::kMark && tokens[at].text != "," && tokens[at].text != ";" &&
               at < i + 3)
          ++at;
        const Token* number = at < tokens.size() && tokens[at].kind == Token::Kind::kNumber ? &tokens[at] : nullptr;
        if (number != nullptr && number->whole && number->unit.empty() && IsStepWord(t.text) && subject.step < 0 &&
            !TimeUnitAfter(tokens, at)) {
          subject.step = static_cast<int64_t>(number->value);
          name.clear();
          i = at;
          // "12/5000"
          if (i + 2 < tokens.size() && tokens[i + 1].text == "/" && tokens[i + 2].kind == Token::Kind::kNumber) i += 2;
          continue;
        }
        if (number != nullptr && number->whole && number->unit.empty() && IsRankWord(t.text)) {
          Subject(tokens, at, &subject, &i);
          name.clear();
          continue;
        }
        if (Others(tokens, i, &subject)) {
          name.clear();
          if (next != nullptr && next->kind == Token::Kind::kWord && IsRankWord(next->text)) ++i;
          continue;
        }
        if (!name.empty()) name += ' ';
        name += std::string(t.text);
        if (name.size() > 60) name.erase(0, name.size() - 60);
        continue;
      }
      // A number: with a unit it is a measurement.
      double unit = UnitSeconds(t.unit);
      size_t skip = 0;
      double least = t.value;
      if (unit == 0 && t.unit.empty()) {
        size_t at = i + 1;
        // "0.41-0.43 s"
        if (at + 1 < tokens.size() && (tokens[at].text == "-" || tokens[at].text == "..") &&
            tokens[at + 1].kind == Token::Kind::kNumber) {
          unit = UnitSeconds(tokens[at + 1].unit);
          at += 2;
        }
        if (unit == 0 && at < tokens.size() && tokens[at].kind == Token::Kind::kWord) {
          unit = UnitSeconds(tokens[at].text);
          if (unit > 0) ++at;
        }
        if (unit > 0) skip = at - i - 1;
      }
      if (unit == 0) unit = UnitInName(name, t);
      if (unit > 0) {
        StepTime time = subject;
        time.name = name.empty() ? last_name : name;
        time.part = time.name.empty() ? StepTime::Part::kTotal : PartOf(time.name);
        time.seconds = least * unit;
        if (!time.name.empty()) last_name = time.name;
        found.push_back(std::move(time));
      }
      name.clear();
      i += skip;
    }
    // PyTorch's examples: "Epoch: [1][100/5005]  Time 8.719 (0.361)  Data 8.597 (0.230)".
    static const RE2& of_epoch = *new RE2(R"(\[\s*(\d{1,15})/\s*\d+\])");
    if (subject.step < 0 && !found.empty())
      RE2::PartialMatch(re2::StringPiece(line.text.data(), line.text.size()), of_epoch, &subject.step);
    for (StepTime& time : found) {
      if (time.step < 0) time.step = subject.step;
      if (time.step < 0) continue;
      Keep(std::move(time), line);
    }
  }

  static bool TimeUnitAfter(const std::vector<Token>& tokens, size_t number) {
    return number + 1 < tokens.size() && tokens[number + 1].kind == Token::Kind::kWord &&
           UnitSeconds(tokens[number + 1].text) > 0;
  }

  // Number without a unit whose name holds one or says time: "step_time=0.52", "data_time_ms: 12".
  static double UnitInName(const std::string& name, const Token& number) {
    if (number.whole || name.empty()) return 0;
    const std::string low = absl::AsciiStrToLower(name);
    if (low.ends_with("_ms") || low.ends_with(" ms")) return 1e-3;
    if (low.ends_with("_s") || low.ends_with("_sec")) return 1;
    if (low == "time" || low == "data" || low.ends_with("_time") || low.ends_with(" time")) return 1;
    return 0;
  }

  // "rank 11", "rank 0..15", "ranks 0-7".
  static void Subject(const std::vector<Token>& tokens, size_t at, StepTime* subject, size_t* i) {
    subject->scope = StepTime::Scope::kRank;
    subject->rank = tokens[at].value < 1e7 ? static_cast<int>(tokens[at].value) : -1;
    *i = at;
    if (at + 2 < tokens.size() && (tokens[at + 1].text == ".." || tokens[at + 1].text == "-") &&
        tokens[at + 2].kind == Token::Kind::kNumber && tokens[at + 2].whole && tokens[at + 2].value < 1e7) {
      subject->scope = StepTime::Scope::kAll;
      subject->first = subject->rank;
      subject->last = static_cast<int>(tokens[at + 2].value);
      subject->rank = -1;
      *i = at + 2;
    }
  }

  static bool Others(const std::vector<Token>& tokens, size_t i, StepTime* subject) {
    const std::string word = absl::AsciiStrToLower(Absl(tokens[i].text));
    const bool rest = word == "rest" || word == "others" || word == "peers";
    const bool other =
        word == "other" && i + 1 < tokens.size() && tokens[i + 1].kind == Token::Kind::kWord && IsRankWord(tokens[i + 1].text);
    if (!rest && !other) return false;
    subject->scope = StepTime::Scope::kOthers;
    subject->rank = -1;
    return true;
  }

  // ---- "    rank  3: 123.4" under "forward-compute:"
  bool Listed(const TextLine& line) {
    static const RE2& report = *new RE2(R"((?i)straggler report at step (\d+)|times? across ranks \((ms|s)\))");
    static const RE2& entry = *new RE2(R"((?i)^\s*rank\s+(\d{1,6})\s*:\s*(\d+(?:\.\d+)?)\s*(ms|s)?\s*$)");
    static const RE2& heading = *new RE2(R"(^\s*([A-Za-z][\w -]{1,40}):\s*$)");
    const re2::StringPiece text(line.text.data(), line.text.size());
    std::string a, b;
    if (RE2::PartialMatch(text, report, &a, &b)) {
      int64_t step = 0;
      list_step_ = !a.empty() && absl::SimpleAtoi(a, &step) ? step : list_step_ + 1;
      list_unit_ = b == "s" ? 1 : 1e-3;
      list_open_ = true;
      list_name_.clear();
      return true;
    }
    StepTime time;
    double value = 0;
    std::string unit;
    if (RE2::FullMatch(text, entry, &time.rank, &value, &unit)) {
      if (!list_open_) return false;
      time.scope = StepTime::Scope::kRank;
      time.step = list_step_;
      time.name = list_name_;
      time.part = PartOf(list_name_);
      time.seconds = value * (unit.empty() ? list_unit_ : UnitSeconds(unit));
      Keep(std::move(time), line);
      return true;
    }
    if (!list_open_) return false;
    if (RE2::FullMatch(text, heading, &a)) {
      list_name_ = a;
      return true;
    }
    if (line.text.find_first_not_of(" \t") == line.text.npos || Contains(line.text, "Min:")) return true;
    list_open_ = Contains(line.text, "Straggler") || Contains(line.text, "straggler") || Contains(line.text, "Timings");
    return list_open_;
  }

  // ---- tables
  struct Column {
    enum class Role : uint8_t { kOther, kStep, kRank, kPart, kOfRank } role = Role::kOther;
    int rank = -1;
    std::string name;
    StepTime::Part part = StepTime::Part::kOther;
    double unit = 1;
  };

  static std::vector<std::string_view> Cells(std::string_view text) {
    std::vector<std::string_view> cells;
    size_t i = 0;
    const auto gap = [](char c) { return c == ' ' || c == '\t' || c == ',' || c == '|'; };
    while (i < text.size()) {
      while (i < text.size() && gap(text[i])) ++i;
      const size_t start = i;
      while (i < text.size() && !gap(text[i])) ++i;
      if (i > start) cells.push_back(text.substr(start, i - start));
    }
    return cells;
  }

  bool Head(const TextLine& line) {
    static const RE2& of_rank = *new RE2(R"((?i)^(?:rank|r|worker|w)_?(\d{1,6})(?:_?\(?(s|ms)\)?)?$)");
    static const RE2& unit = *new RE2(R"((?i)(?:_|\(|\[)(ms|s|sec|us)(?:\)|\])?$)");
    std::vector<Column> columns;
    int parts = 0, keys = 0;
    for (std::string_view cell : Cells(line.text)) {
      if (cell == "#") continue;
      if (columns.size() >= 4096) return false;
      Column column;
      column.name = std::string(cell.substr(0, 60));
      std::string suffix;
      const re2::StringPiece piece(cell.data(), cell.size());
      if (RE2::PartialMatch(piece, unit, &suffix)) column.unit = UnitSeconds(suffix);
      // A head has no values.
      if (absl::ascii_isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '=' || cell.back() == '.') return false;
      if (IsStepWord(cell)) {
        column.role = Column::Role::kStep;
        ++keys;
      } else if (IsRankWord(cell)) {
        column.role = Column::Role::kRank;
        ++keys;
      } else if (RE2::FullMatch(piece, of_rank, &column.rank, &suffix)) {
        column.role = Column::Role::kOfRank;
        column.part = StepTime::Part::kTotal;
        if (!suffix.empty()) column.unit = UnitSeconds(suffix);
        ++parts;
      } else if (column.part = PartOf(cell); column.part != StepTime::Part::kOther) {
        column.role = Column::Role::kPart;
        ++parts;
      }
      columns.push_back(std::move(column));
    }
    if (columns.size() < 2 || parts == 0 || keys == 0) return false;
    columns_ = std::move(columns);
    rows_ = 0;
    return true;
  }

  bool Row(const TextLine& line) {
    if (columns_.empty()) return false;
    // A rule under the head.
    if (rows_ == 0 && line.text.find_first_not_of("-=+| \t") == line.text.npos) return true;
    const std::vector<std::string_view> cells = Cells(line.text);
    if (cells.size() != columns_.size()) {
      columns_.clear();
      return false;
    }
    StepTime row;
    std::vector<std::pair<const Column*, double>> values;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::vector<Token> tokens = Split(cells[i]);
      if (columns_[i].role == Column::Role::kOther) continue;
      if (tokens.empty() || tokens[0].kind != Token::Kind::kNumber) {
        columns_.clear();
        return false;
      }
      const double unit = UnitSeconds(tokens[0].unit);
      switch (columns_[i].role) {
        case Column::Role::kStep:
          row.step = static_cast<int64_t>(tokens[0].value);
          break;
        case Column::Role::kRank:
          row.scope = StepTime::Scope::kRank;
          row.rank = tokens[0].value < 1e7 ? static_cast<int>(tokens[0].value) : -1;
          break;
        default:
          values.emplace_back(&columns_[i], tokens[0].value * (unit > 0 ? unit : columns_[i].unit));
      }
    }
    if (row.step < 0) row.step = 0;  // one row a rank: an average over steps
    for (const auto& [column, value] : values) {
      StepTime time = row;
      time.name = column->name;
      time.part = column->part;
      time.seconds = value;
      if (column->role == Column::Role::kOfRank) {
        time.scope = StepTime::Scope::kRank;
        time.rank = column->rank;
      } else if (time.scope != StepTime::Scope::kRank && line.by.rank >= 0) {
        time.scope = StepTime::Scope::kRank;
        time.rank = line.by.rank;
      }
      Keep(std::move(time), line);
    }
    ++rows_;
    return true;
  }

  const FileContext& context_;
  size_t kept_ = 0;
  bool list_open_ = false;
  int64_t list_step_ = -1;
  double list_unit_ = 1e-3;
  std::string list_name_;
  std::vector<Column> columns_;
  size_t rows_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "step times",
    {R"((?i)\b(?:global_?step|train_step|step|iter(?:ation)?|it|batch)\b[\s:=#\["']{0,3}\d+.*\d(?: ?)(?:m?s|secs?|seconds|ms/step)\b)",
     R"((?i)\b(?:step|iter(?:ation)?)\b[\s:=#\["']{0,3}\d+.*\b(?:\w*time|data)\b[\s:="']{0,3}\d+\.\d)",
     R"((?i)\[\d+/\d+\].*\btime\b[\s:=]{0,3}\d+\.\d+)",
     R"((?i)^\W*(?:step|iter(?:ation)?|rank|worker)\b[\s,|]+.*(?:time|_s\b|_ms\b|\(s\)|\(ms\)|data|input|fwd|forward|compute|)"
     R"(\b(?:rank|r)_?\d))",
     R"(\belapsed time per iteration \(m?s\):)", R"((?i)times? across ranks \(m?s\)|straggler report at step \d)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Steps>(context); }});

}  // namespace
}  // namespace ringscope::ingest
