// Python's tracebacks, and lines that are an exception's last line alone.
//
// Tracebacks of several ranks may alternate line by line when a launcher tags them: one is kept open for each speaker. Launchers put
// levels ("ERROR "), table keys ("  traceback : ") and bars of exception groups ("  | ") before the lines; what decides whether a
// line is the exception's own is that it stands further left than the frames.
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/torch_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMostExceptions = 4096;  // in one file
constexpr size_t kMostFrames = 12;        // of one traceback: the innermost are kept
constexpr size_t kMostMore = 6;
constexpr int kMostLines = 4000;    // of one traceback, before it is given up
constexpr size_t kMostOpen = 4096;  // speakers

using Key = std::tuple<int, int, int64_t, std::string>;
Key KeyOf(const model::Speaker& by) { return {by.rank, by.local_rank, by.pid, by.host}; }

struct Open {
  model::Exception exception;
  bool in_frames = false;   // "Traceback" was seen, the exception's own line was not
  bool in_message = false;  // lines after it may belong to its message
  size_t frame_indent = 0;  // of the first frame
  int lines = 0;
  bool chained = false;  // the next traceback follows from the last exception
};

size_t Indent(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && (text[n] == ' ' || text[n] == '\t')) ++n;
  return n;
}

// "ERROR   File …" -> "  File …", "   | TypeError" -> "TypeError".
std::string_view WithoutLevel(std::string_view text) {
  static const RE2& level = *new RE2(R"(^(?:ERROR|CRITICAL|WARNING|INFO|E)(?:[: ]|$)|^[ +]*\| )");
  re2::StringPiece rest(text.data(), text.size());
  RE2::Consume(&rest, level);
  return {rest.data(), rest.size()};
}

class Tracebacks : public LineReader {
 public:
  explicit Tracebacks(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (line.nccl != TextLine::Nccl::kNone) return Waiting();
    const std::string_view text = WithoutLevel(line.text);
    static const RE2& of_process = *new RE2(R"(^\s*-- Process (\d{1,6}) terminated with the following error)");
    static const RE2& table_rank = *new RE2(R"(^\s*rank\s+: (\d{1,7}) \(local_rank: \d+\))");
    int named = -1;
    if (RE2::PartialMatch(Piece(text), of_process, &named) || RE2::PartialMatch(Piece(text), table_rank, &named)) {
      told_rank_ = named;
      return Waiting();
    }
    if (Uncaught(line, text)) return Waiting();
    if (Contains(text, "Traceback (most recent call last)")) {
      Begin(line, text);
      return Waiting();
    }
    auto it = open_.find(KeyOf(line.by));
    // Some loggers tag the first line of a message only: what follows without any tag belongs to the traceback that began last.
    if (it == open_.end() && KeyOf(line.by) == KeyOf({})) it = open_.find(last_begun_);
    Open* open = it == open_.end() ? nullptr : &it->second;
    if (open != nullptr && open->in_frames) {
      Inside(line, text, open);
    } else if (Chain(text)) {
      if (open != nullptr) open->chained = true;
    } else if (open != nullptr && open->in_message && Continue(line, text, open)) {
      // kept with the message
    } else {
      Alone(line, text);
    }
    return Waiting();
  }

 private:
  bool Waiting() const { return waiting_ > 0; }
  void Wait(Open* open, bool frames, bool message) {
    waiting_ -= open->in_frames || open->in_message ? 1 : 0;
    open->in_frames = frames;
    open->in_message = message;
    waiting_ += frames || message ? 1 : 0;
  }

  static bool Chain(std::string_view text) {
    return Contains(text, "During handling of the above exception") ||
           Contains(text, "was the direct cause of the following exception");
  }

  void Begin(const TextLine& line, std::string_view text) {
    if (open_.size() >= kMostOpen) open_.clear(), waiting_ = 0;
    // A terminal's "^C" or a progress bar may stand before the tag.
    model::Speaker by = line.by;
    static const RE2& tag = *new RE2(R"(\[rank(\d{1,6})\]: ?Traceback)");
    int tagged = -1;
    if (by.rank < 0 && RE2::PartialMatch(Piece(text), tag, &tagged)) by.rank = tagged;
    last_begun_ = KeyOf(by);
    Open& open = open_[last_begun_];
    open.exception = {};
    open.exception.chained_before = open.chained;
    open.chained = false;
    open.exception.start = line.where;
    open.exception.by = by;
    open.exception.time = line.time;
    // Inside torchelastic's table, and behind mp.spawn's heading, the traceback is of the process that was just named.
    if (told_rank_ >= 0 && open.exception.by.rank < 0) open.exception.by.rank = told_rank_;
    if (!Contains(text, "traceback :")) told_rank_ = -1;
    open.frame_indent = 0;
    open.lines = 0;
    Wait(&open, true, false);
  }

  void Inside(const TextLine& line, std::string_view text, Open* open) {
    static const RE2& frame = *new RE2(R"re(^\s*File "([^"]{1,400})", line (\d{1,8})(?:, in (.{1,200}?))?\s*$)re");
    if (++open->lines > kMostLines) return Wait(open, false, false);
    model::Exception& e = open->exception;
    model::Exception::Frame f;
    if (RE2::PartialMatch(Piece(text), frame, &f.file, &f.line, &f.function)) {
      if (e.frames.empty()) open->frame_indent = Indent(text);
      if (e.frames.size() >= kMostFrames) e.frames.erase(e.frames.begin());
      e.frames.push_back(std::move(f));
      return;
    }
    const size_t indent = Indent(text);
    if (indent == text.size()) return;
    // Two ranks write without tags: a second heading was seen as Begin(); frames of both then stand mixed, the last line decides.
    if (!e.frames.empty() && indent >= open->frame_indent) {
      if (e.frames.back().code.empty() && text.find_first_not_of("^~ |\t") != text.npos)
        e.frames.back().code = QuoteOf(text.substr(0, 200));
      return;
    }
    static const RE2& own = *new RE2(R"(^\s*((?:[A-Za-z_]\w*\.){0,12}[A-Za-z_]\w*)(?:: ?(.*))?$)");
    std::string type, message;
    if (!RE2::PartialMatch(Piece(text), own, &type, &message) || !LooksLikeType(type)) {
      // Something else was written in between.
      return;
    }
    Keep(line, std::move(type), message, open);
  }

  // What ends a process from C++: "watchdog thread terminated with exception: …" of torch, "what():  …" of the runtime behind
  // "terminate called". Told without a traceback.
  bool Uncaught(const TextLine& line, std::string_view text) {
    static const RE2& watchdog = *new RE2(R"(watchdog thread terminated with exception: (.*)$)");
    static const RE2& what = *new RE2(R"(^\s*what\(\):\s+(.*)$)");
    static const RE2& terminate = *new RE2(R"(terminate called after throwing an instance of '([\w:]{1,100})')");
    std::string message;
    if (RE2::PartialMatch(Piece(text), terminate, &cpp_type_)) return true;
    const bool of_watchdog = RE2::PartialMatch(Piece(text), watchdog, &message);
    if (!of_watchdog && !RE2::PartialMatch(Piece(text), what, &message)) return false;
    auto& all = context_.evidence->work.exceptions;
    if (message.empty() || all.size() >= kMostExceptions) return true;
    model::Exception e;
    e.type = of_watchdog || cpp_type_.empty() ? "c10::Error" : cpp_type_;
    e.message = QuoteOf(message);
    e.where = line.where;
    e.by = line.by;
    e.time = line.time;
    all.push_back(std::move(e));
    return true;
  }

  static bool LooksLikeType(std::string_view type) {
    const size_t dot = type.rfind('.');
    const std::string_view last = dot == type.npos ? type : type.substr(dot + 1);
    return !last.empty() && last[0] >= 'A' && last[0] <= 'Z' && last.size() < 80;
  }

  void Keep(const TextLine& line, std::string type, std::string_view message, Open* open) {
    model::Exception e = std::move(open->exception);
    e.type = std::move(type);
    e.message = QuoteOf(message);
    e.where = line.where;
    if (line.time.known()) e.time = line.time;
    open->exception = {};
    // NCCL's own words stand on the lines behind: "ncclSystemError: …", "Last error:", and the error.
    Wait(open, false,
         e.message.empty() || e.message.back() == ':' || Contains(e.message, "NCCL error") || Contains(e.message, "failed to pass"));
    open->lines = 0;
    auto& all = context_.evidence->work.exceptions;
    if (all.size() < kMostExceptions) {
      all.push_back(std::move(e));
    } else {
      Wait(open, false, false);
    }
  }

  // True when the line belongs to the message of this speaker's last exception.
  bool Continue(const TextLine& line, std::string_view text, Open* open) {
    auto& all = context_.evidence->work.exceptions;
    model::Exception* last = nullptr;
    for (size_t i = all.size(), looked = 0; i-- > 0 && last == nullptr && looked < 64; ++looked) {
      if (all[i].where.file == line.where.file && (KeyOf(all[i].by) == KeyOf(line.by) || KeyOf(line.by) == KeyOf({}))) last = &all[i];
    }
    const bool log = text.empty() || (text[0] == '[' && !text.starts_with("[/") && !text.starts_with("[.")) ||
                     Contains(text, "Exception raised from") || Contains(text, "NCCL INFO");
    if (last == nullptr || log || last->more.size() >= kMostMore || last->where.line + 8 < line.where.line) {
      Wait(open, false, false);
      return false;
    }
    last->more.push_back(QuoteOf(text));
    return true;
  }

  void Alone(const TextLine& line, std::string_view text) {
    static const RE2& own = *new RE2(R"(^\s*(?:[Ee]xception: |Caught: )?((?:[A-Za-z_]\w*\.){0,12}[A-Z]\w{0,60}(?:Error|Exception|)"
                                     R"(Interrupt|Expired|Failure)): ?(.*)$)");
    std::string type, message;
    if (!RE2::PartialMatch(Piece(text), own, &type, &message)) return;
    if (open_.size() >= kMostOpen) open_.clear(), waiting_ = 0;
    Open& open = open_[KeyOf(line.by)];
    open.exception = {};
    open.exception.by = line.by;
    open.exception.time = line.time;
    open.exception.chained_before = open.chained;
    open.chained = false;
    Keep(line, std::move(type), message, &open);
  }

  const FileContext& context_;
  std::map<Key, Open> open_;
  Key last_begun_ = KeyOf({});
  std::string cpp_type_;  // of the last "terminate called"
  int waiting_ = 0;       // speakers with something open
  int told_rank_ = -1;    // named by a heading just above
};

const RegisterReader kRegister(LineReaderType{
    "Python traceback",
    {R"(Traceback \(most recent call last\))", R"(watchdog thread terminated with exception: )", R"(^\s*what\(\):\s+\S)",
     R"(terminate called after throwing an instance)", R"((?:^|[\s.])[A-Z]\w*(?:Error|Exception|Expired): ?\S)",
     R"(^(?:[a-z_]\w*\.)+[A-Z]\w*(?:Error|Exception|Interrupt):\s*$)", R"(-- Process \d+ terminated with the following error)",
     R"(^\s*rank\s+: \d+ \(local_rank: \d+\))", R"(During handling of the above exception|was the direct cause of the following)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Tracebacks>(context); }});

}  // namespace
}  // namespace ringscope::ingest
