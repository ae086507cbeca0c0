// torchelastic (torchrun): the table of failures at the end of a run, and its agent's lines while the run ends.
//
// "Root Cause (first observed failure)" is the process whose end the agent saw first; the agent polls, so it is a hint.
#include <re2/re2.h>

#include <memory>
#include <string>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/torch_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 14;
constexpr int kMostLines = 4000;

void SetStatus(int64_t exit_code, model::ProcessEnd* end) {
  if (exit_code < 0 && exit_code >= -64) {
    end->signal = static_cast<int>(-exit_code);
  } else if (exit_code >= 0 && exit_code < 256) {
    end->exit_code = static_cast<int>(exit_code);
  }
}

class Elastic : public LineReader {
 public:
  explicit Elastic(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& failed = *new RE2(R"(failed \(exitcode: (-?\d{1,9})\) local_rank: (\d{1,6}) \(pid: (\d{1,10})\))");
    static const RE2& closing = *new RE2(R"(Sending process (\d{1,10}) closing signal (SIG\w{1,10}))");
    int64_t code = 0;
    model::ProcessEnd end;
    if (RE2::PartialMatch(Piece(line.text), failed, &code, &end.by.local_rank, &end.by.pid)) {
      SetStatus(code, &end);
      end.first = true;
      Add(std::move(end), line);
      return in_table_;
    }
    if (RE2::PartialMatch(Piece(line.text), closing, &end.by.pid, &end.reason)) {
      end.stopped_by_us = true;
      end.signal = end.reason == "SIGKILL" ? 9 : 15;
      Add(std::move(end), line);
      return in_table_;
    }
    return Table(line);
  }

  void End() override { Finish(); }

 private:
  bool Table(const TextLine& line) {
    if (Contains(line.text, "ChildFailedError") || Contains(line.text, "Failures:") || Contains(line.text, "Root Cause (first")) {
      Finish();
      root_ = Contains(line.text, "Root Cause (first");
      in_table_ = true;
      left_ = kMostLines;
      return true;
    }
    if (!in_table_) return false;
    if (--left_ <= 0) return in_table_ = false;
    static const RE2& entry = *new RE2(R"(^\s*\[\d{1,6}\]:\s*$)");
    static const RE2& field = *new RE2(R"(^\s*(time|host|rank|exitcode|error_file|traceback)\s*: (.*?)\s*$)");
    std::string name, value;
    if (RE2::PartialMatch(Piece(line.text), entry)) {
      Finish();
      return true;
    }
    if (!RE2::PartialMatch(Piece(line.text), field, &name, &value)) {
      const bool rule = Contains(line.text, "======");
      if (rule && root_ && open_) {
        Finish();
        return in_table_ = false;
      }
      return true;
    }
    if (!open_) {
      open_ = true;
      row_ = {};
      where_ = line.where;
      by_ = line.by;
    }
    if (name == "host") row_.by.host = value.substr(0, 200);
    int64_t n = 0;
    if (name == "rank") {
      static const RE2& ranks = *new RE2(R"(^(\d{1,7}) \(local_rank: (\d{1,6})\))");
      int rank = 0;
      if (RE2::PartialMatch(value, ranks, &rank, &row_.by.local_rank)) {
        row_.ranks = {rank};
        row_.by.rank = rank;
      }
    } else if (name == "exitcode") {
      static const RE2& code = *new RE2(R"(^(-?\d{1,9})\s*\(pid: (\d{1,10})\))");
      if (RE2::PartialMatch(value, code, &n, &row_.by.pid)) SetStatus(n, &row_);
    } else if (name == "traceback" && value.starts_with("Signal ")) {
      row_.reason = QuoteOf(value);
    }
    if (name != "time" && name != "error_file" && !(name == "traceback" && row_.reason.empty()))
      text_ += std::string(text_.empty() ? "" : ", ") + name + ": " + value.substr(0, 120);
    return true;
  }

  void Finish() {
    if (open_) {
      row_.first = root_;
      row_.source = "torchelastic";
      row_.text = QuoteOf((root_ ? "Root Cause (first observed failure): " : "Failures: ") + text_);
      row_.where = where_;
      if (facts().ends.size() < kMost && (row_.signal != 0 || row_.exit_code >= 0)) facts().ends.push_back(row_);
    }
    open_ = false;
    text_.clear();
  }

  void Add(model::ProcessEnd end, const TextLine& line) {
    end.source = "torchelastic";
    end.text = QuoteOf(line.quote);
    end.where = line.where;
    end.time = line.time;
    end.by.host = line.by.host;
    if (facts().ends.size() < kMost) facts().ends.push_back(std::move(end));
  }

  model::WorkFacts& facts() { return context_.evidence->work; }
  const FileContext& context_;
  bool in_table_ = false, root_ = false, open_ = false;
  int left_ = 0;
  model::ProcessEnd row_;
  model::Where where_;
  model::Speaker by_;
  std::string text_;
};

const RegisterReader kRegister(LineReaderType{
    "torchelastic",
    {R"(failed \(exitcode: -?\d+\) local_rank: \d)", R"(Sending process \d+ closing signal)",
     R"(elastic\.multiprocessing\.errors\.ChildFailedError)", R"(Root Cause \(first observed failure\))"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Elastic>(context); }});

}  // namespace
}  // namespace ringscope::ingest
