// Stacks of Python processes: py-spy dump (also --native, --locals) and Python's own faulthandler.
#include <re2/re2.h>

#include <memory>
#include <string>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/stack_lines.h"

namespace ringscope::ingest {
namespace {

// Lines that are no frames, before a thread's list counts as ended.
constexpr int kMostOther = 3;

template <typename... Args>
bool Full(std::string_view text, const RE2& re, Args... args) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), re, args...);
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

int Line(const std::string& digits) { return digits.empty() || digits.size() > 8 ? -1 : std::stoi(digits); }
int64_t Id(const std::string& text) {
  if (text.size() > 2 && text[1] == 'x') return text.size() > 18 ? -1 : static_cast<int64_t>(std::stoull(text.substr(2), nullptr, 16));
  return text.empty() || text.size() > 18 ? -1 : std::stoll(text);
}

class PySpy : public LineReader {
 public:
  explicit PySpy(const FileContext& context) : builder_(context, "py-spy") {}
  bool Line(const TextLine& line) override {
    static const RE2& process = *new RE2(R"(Process (\d{1,9}): (.*))");
    // "Thread 4410 (active+gil): "MainThread"", "Thread 0x7F1A2B3C4D5E (idle)".
    static const RE2& thread =
        *new RE2(R"re(Thread (0x[0-9A-Fa-f]{1,16}|\d{1,18}) \((active\+gil|idle\+gil|active|idle)[^)]*\)(?:: "(.*)")?)re");
        // "step (train.py:88)", "cuStreamSynchronize (libcuda.so.535.54.03)", "0x7f3a (libnccl.so.2)".
        static const RE2& python = *new RE2(R"((.+?) \(([^()]+?):(\d+)\))");
    static const RE2& native = *new RE2(R"((.+) \(([^()]*?\.so[^()/]*|\[?vdso\]?|[\w.+-]+)\))");
    const std::string_view text = Trim(line.text);
    if (text.empty()) return builder_.Open(line);
    std::string a, b, c;
    if (Full(text, process, &a, &b)) {
      builder_.Process(line, Id(a), b);
      other_ = 0;
      return true;
    }
    if (Full(text, thread, &a, &b, &c)) {
      model::StackThread* t = builder_.Thread(line);
      if (t == nullptr) return false;
      t->tid = Id(a);
      t->state = b;
      t->name = c.substr(0, 80);
      for (char& ch : t->name) ch = ch < 0x20 ? '?' : ch;
      t->main = c == "MainThread";
      other_ = 0;
      return true;
    }
    StackHeading heading;
    if (TakeStackHeading(text, &heading)) {
      builder_.Heading(line, heading);
      return true;
    }
    if (!builder_.Open(line)) return false;
    model::StackFrame frame;
    frame.text = std::string(text);
    if (Full(text, python, &frame.function, &frame.file, &a)) {
      frame.line = ringscope::ingest::Line(a);
      // --native prints C and C++ frames with their source, where it is known.
      frame.python = Contains(frame.file, ".py") || frame.file[0] == '<' || !Contains(frame.file, ".");
      other_ = 0;
      return builder_.Frame(line, std::move(frame));
    }
    if (Full(text, native, &frame.function, &frame.module)) {
      other_ = 0;
      return builder_.Frame(line, std::move(frame));
    }
    // "Arguments:", "Locals:" and their values lie between the frames.
    if (text.starts_with("Arguments:") || text.starts_with("Locals:") || text.starts_with("Python v")) return true;
    if (Contains(text, ": ") && line.text.size() > text.size()) return true;
    if (++other_ <= kMostOther) return true;
    builder_.Close(line);
    return false;
  }

 private:
  StackBuilder builder_;
  int other_ = 0;
};

class FaultHandler : public LineReader {
 public:
  explicit FaultHandler(const FileContext& context) : builder_(context, "faulthandler") {}
  bool Line(const TextLine& line) override {
    static const RE2& fatal = *new RE2(R"((?:Fatal Python error: (.+)|Timeout \((.+)\)!))");
    static const RE2& thread = *new RE2(R"((Current thread|Thread) (0x[0-9A-Fa-f]{1,16})(?: \[(.*)\])? \(most recent call first\):)");
    static const RE2& frame_shape = *new RE2(R"re(File "([^"]*)", line (\d+|\?\?\?) in (.+))re");
    const std::string_view text = Trim(line.text);
    if (text.empty()) return builder_.Open(line);
    std::string a, b, c;
    if (Full(text, fatal, &a, &b)) {
      builder_.Fatal(line, a);
      dump_open_ = true;
      return true;
    }
    if (Full(text, thread, &a, &b, &c)) {
      model::StackThread* t = builder_.Thread(line);
      if (t == nullptr) return false;
      t->tid = Id(b);
      t->current = a == "Current thread";
      t->name = c.substr(0, 80);
      for (char& ch : t->name) ch = ch < 0x20 ? '?' : ch;
      return true;
    }
    if (StackHeading heading; TakeStackHeading(text, &heading)) {
      builder_.Heading(line, heading);
      return true;
    }
    if (!builder_.Open(line)) return dump_open_ && std::exchange(dump_open_, false);
    model::StackFrame frame;
    frame.text = std::string(text);
    if (Full(text, frame_shape, &frame.file, &a, &frame.function)) {
      frame.line = a == "???" ? -1 : ringscope::ingest::Line(a);
      frame.python = true;
      // faulthandler lists the main thread last, and only its stack begins at the module.
      if (frame.function == "<module>") {
        if (model::StackProcess* process = builder_.Current(line)) process->threads.back().main = true;
      }
      return builder_.Frame(line, std::move(frame));
    }
    if (text == "..." || text == "<no Python frame>") return true;
    // "Extension modules: numpy.core…" ends it.
    builder_.Close(line);
    return false;
  }

 private:
  StackBuilder builder_;
  bool dump_open_ = false;
};

const RegisterReader kPySpy(LineReaderType{
    "py-spy stacks",
    {R"(^\s*Process \d+: )", R"(Thread (?:0x[0-9A-Fa-f]+|\d+) \((?:active|idle)[^)]*\))", kStackHeadingTrigger},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<PySpy>(context); }});
const RegisterReader kFaultHandler(LineReaderType{
    "Python faulthandler stacks",
    {R"(^\s*(?:Fatal Python error: |Timeout \(.*\)!))", R"(hread 0x[0-9A-Fa-f]+(?: \[.*\])? \(most recent call first\):)",
     kStackHeadingTrigger},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<FaultHandler>(context); }});

}  // namespace
}  // namespace ringscope::ingest
