// Stacks as people write them down: "rank 0: save_checkpoint -> state_dict -> _all_gather_base",
// "rank 1: cudaStreamSynchronize after ncclSend(peer=0); ncclRecv not reached", "ranks 1-3 stuck in all_reduce (train.py:88)".
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/stack_lines.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMostLine = 500;  // a summary is a line that somebody typed
constexpr size_t kMostRanks = 256;        // of a line
constexpr size_t kMostProcesses = 1 << 16;  // of all

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

// "0", "1-3", "1, 2 and 5".
std::vector<int> RanksOf(std::string_view text) {
  std::vector<int> ranks;
  static const RE2& part = *new RE2(R"((\d{1,6})(?:\s*(?:-|to|\.\.)\s*(\d{1,6}))?)");
  re2::StringPiece rest = Piece(text);
  std::string a, b;
  while (RE2::FindAndConsume(&rest, part, &a, &b)) {
    const int first = std::stoi(a), last = b.empty() ? first : std::stoi(b);
    for (int r = first; r <= last && ranks.size() < kMostRanks; ++r) ranks.push_back(r);
    b.clear();
  }
  return ranks;
}

class Summary : public LineReader {
 public:
  explicit Summary(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& head =
        *new RE2(R"((?i)^\W*(?:global )?ranks?[ _]?((?:\d+(?:\s*(?:,|-|to|and|&|\.\.)\s*)?)+)\]?\s*(?:\(?pid[ =:]*(\d{1,9})\)?\s*)?)"
                 R"((?:(?:is|are)\s+)?(?:(?:main )?(?:thread|stack|trace)|stuck|blocked|hung|waits|waiting|sits|hangs)?)"
                 R"(\s*(?:stuck|blocked|hung|waiting)?\s*(?:in|at|on|for|inside)?\s*[:=-]*\s*(.+)$)");
    // A call chain, or a known call with a word that says where the rank stands.
    static const RE2& chain = *new RE2(R"([\w.>)]\s*(?:->|→|<-|←)\s*[\w.<(])");
    static const RE2& calls =
        *new RE2(R"(\b(?:nccl[A-Z]|cuda[A-Z]|cu[A-Z][a-z]|all_?reduce|all_?gather|reduce_?scatter|barrier|broadcast|recv|send)\w*)");
    static const RE2& stands = *new RE2(R"((?i)\b(?:after|before|not reached|never reached|stuck|blocked|waiting|hung|hangs|sits)\b)");
    if (line.text.size() > kMostLine) return false;
    std::string ranks, pid, rest;
    if (!RE2::PartialMatch(Piece(line.text), head, &ranks, &pid, &rest)) return false;
    const bool is_chain = RE2::PartialMatch(rest, chain);
    if (!is_chain && !(RE2::PartialMatch(rest, calls) && RE2::PartialMatch(Piece(line.text), stands))) return false;
    if (context_.evidence->stacks.processes.size() > kMostProcesses) return false;
    for (const int rank : RanksOf(ranks)) Take(line, rank, pid, rest, is_chain);
    return false;
  }

 private:
  void Take(const TextLine& line, int rank, const std::string& pid, const std::string& rest, bool is_chain) {
    model::StackProcess process;
    process.tool = "summary";
    process.by = line.by;
    process.by.rank = rank;
    if (!pid.empty()) process.by.pid = std::stoll(pid);
    process.where = line.where;
    model::StackThread& thread = process.threads.emplace_back();
    thread.main = true;
    thread.unordered = true;
    thread.where = line.where;
    static const RE2& arrow = *new RE2(R"(\s*(?:->|→|<-|←)\s*)");
    static const RE2& name = *new RE2(R"(([A-Za-z_][\w.:]*)(?:\([^()]*\))?(?: \(([^():]+):(\d{1,8})\))?)");
    static const RE2& not_reached = *new RE2(R"((\w+)(?:\(\))? (?:is |was )?(?:not|never) (?:reached|called|entered))");
    re2::StringPiece more(rest);
    std::string word;
    while (RE2::FindAndConsume(&more, not_reached, &word)) thread.not_reached.push_back(word);
    std::string text(rest);
    if (is_chain) {
      RE2::GlobalReplace(&text, arrow, "\n");
      text += '\n';
    }
    static const RE2& call = *new RE2(
        R"(\b((?:nccl[A-Z]|cuda[A-Z]|cu[A-Z][a-z]|all_?reduce|all_?gather|reduce_?scatter|barrier|broadcast|save|load|recv|send)\w*))"
        R"((?:\([^()]*\))?(?: \(([^():]+):(\d{1,8})\))?)");
    re2::StringPiece input(text);
    std::string function, file, number;
    while (RE2::FindAndConsume(&input, is_chain ? name : call, &function, &file, &number)) {
      if (std::find(thread.not_reached.begin(), thread.not_reached.end(), function) == thread.not_reached.end()) {
        model::StackFrame frame;
        if (const size_t dot = function.rfind('.'); is_chain && dot != function.npos && dot + 1 < function.size()) {
          frame.module = function.substr(0, dot);
          function.erase(0, dot + 1);
        }
        frame.function = function;
        frame.file = file;
        frame.line = number.empty() ? -1 : std::stoi(number);
        frame.python = true;
        frame.where = line.where;
        frame.text = line.text;
        for (char& c : frame.text) c = c < 0x20 || c == 0x7f ? '?' : c;
        thread.frames.push_back(std::move(frame));
      }
      file.clear(), number.clear();
    }
    if (!thread.frames.empty()) context_.evidence->stacks.processes.push_back(std::move(process));
  }

  const FileContext& context_;
};

const RegisterReader kRegister(LineReaderType{
    "stacks in words",
    {R"((?i)^\W*(?:global )?ranks?[ _]?\d.*(?:->|→|<-|←))",
     R"((?i)^\W*(?:global )?ranks?[ _]?\d.*\b(?:after|before|not reached|never reached|stuck|blocked|waiting|hung|hangs|sits)\b)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Summary>(context); }});

}  // namespace
}  // namespace ringscope::ingest
