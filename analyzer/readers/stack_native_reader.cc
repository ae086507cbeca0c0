// Native stacks: gdb ("thread apply all bt"), pstack, eu-stack, and the kernel's (/proc/PID/stack).
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/stack_lines.h"

namespace ringscope::ingest {
namespace {

constexpr int kMostOther = 3;  // gdb folds long frames over several lines

template <typename... Args>
bool Full(std::string_view text, const RE2& re, Args... args) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), re, args...);
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}
int64_t Id(const std::string& digits) { return digits.empty() || digits.size() > 18 ? -1 : std::stoll(digits); }

// The name without its arguments: "foo (x=1)", "foo(int, char*)", "ns::bar<a (b)>::operator() (this=0x1)".
std::string NameOf(std::string_view text) {
  size_t depth = 0, i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' && i > 0 && text[i - 1] != '<') ++depth;
    if (c == '>' && depth > 0) --depth;
    if (c != '(' || depth > 0 || i == 0) continue;
    if (text.substr(0, i).ends_with("operator")) {
      ++i;
      continue;
    }
    break;
  }
  return std::string(Trim(text.substr(0, i)));
}

// Takes what stands behind the name apart: "at misc/strongstream.cc:270", "from /lib64/libcuda.so.1", "- /usr/lib/libc.so.6".
void PlaceOf(std::string_view text, model::StackFrame* frame) {
  static const RE2& at = *new RE2(R"(.* at ([^ ]+?):(\d{1,8})$)");
  static const RE2& from = *new RE2(R"(.* (?:from|-) (?:[^ ]*/)?([^ /]+)$)");
  std::string file, line;
  if (Full(text, at, &file, &line)) {
    frame->file = file;
    frame->line = std::stoi(line);
  } else if (Full(text, from, &file)) {
    frame->module = file;
  }
}

class Native : public LineReader {
 public:
  explicit Native(const FileContext& context) : builder_(context, "native") {}
  bool Line(const TextLine& line) override {
    static const RE2& thread = *new RE2(
        R"re(Thread (\d{1,6}) \((?:Thread 0x[0-9a-f]+ )?\(?(?:LWP|process) (\d{1,9})\)?(?: "([^"]*)")?\)?(?: \(.*\))?:?.*)re");
    static const RE2& tid = *new RE2(R"(TID (\d{1,9}):?)");
    static const RE2& pid = *new RE2(R"(PID (\d{1,9})(?: - .*)?:?|Attaching to process (\d{1,9})|(\d{1,9}): +(/?\w[^ ]*)(?: .*)?)");
    static const RE2& frame_shape = *new RE2(R"(#(\d{1,5})\s+(?:0x[0-9a-f]+ (?:in )?)?(.+))");
    static const RE2& kernel = *new RE2(R"(\[<(?:0|[0-9a-f]{8,16})>\] (\w[\w.]*)(?:\+0x[0-9a-f]+/0x[0-9a-f]+)?(?: \[(\w+)\])?)");
    const std::string_view text = Trim(line.text);
    if (text.empty()) return builder_.Open(line);
    std::string a, b, c, d;
    if (Full(text, thread, &a, &b, &c)) {
      model::StackThread* t = builder_.Thread(line);
      if (t == nullptr) return false;
      t->tid = Id(b);
      t->name = c;
      for (char& ch : t->name) ch = ch < 0x20 ? '?' : ch;
      // gdb numbers threads from the first, which is the process's own.
      t->main = a == "1";
      next_ = 0;
      return true;
    }
    if (Full(text, tid, &a)) {
      model::StackThread* t = builder_.Thread(line);
      if (t == nullptr) return false;
      t->tid = Id(a);
      const model::StackProcess* process = builder_.Current(line);
      // eu-stack begins with the process's own thread.
      t->main = process->threads.size() == 1;
      next_ = 0;
      return true;
    }
    if (text[0] != '#' && text[0] != '[' && Full(text, pid, &a, &b, &c, &d)) {
      builder_.Process(line, Id(!a.empty() ? a : !b.empty() ? b : c), d);
      return true;
    }
    model::StackFrame frame;
    if (Full(text, frame_shape, &a, &b)) {
      // PyTorch's own stacks read "#0 all_reduce from /…/distributed_c10d.py:2501".
      if (Contains(text, ".py:")) return false;
      const int64_t number = Id(a);
      if (number == 0 && (next_ != 0 || !builder_.Open(line))) {
        // A bare "bt".
        if (builder_.Thread(line) == nullptr) return false;
        builder_.Current(line)->threads.back().main = builder_.Current(line)->threads.size() == 1;
      } else if (!builder_.Open(line)) {
        return false;
      }
      next_ = number + 1;
      frame.text = std::string(text);
      frame.function = NameOf(b);
      if (const size_t end = frame.function.find(" - /"); end != frame.function.npos) frame.function.resize(end);
      PlaceOf(text, &frame);
      other_ = 0;
      return builder_.Frame(line, std::move(frame));
    }
    if (Full(text, kernel, &frame.function, &frame.module)) {
      if (!builder_.Open(line) || !in_kernel_) {
        model::StackThread* t = builder_.Thread(line);
        if (t == nullptr) return false;
        t->main = true;
        t->state = "kernel";
      }
      in_kernel_ = true;
      frame.text = std::string(text);
      return builder_.Frame(line, std::move(frame));
    }
    in_kernel_ = false;
    if (StackHeading heading; TakeStackHeading(text, &heading)) {
      builder_.Heading(line, heading);
      return true;
    }
    if (!builder_.Open(line)) return false;
    // eu-stack -s: the source below the frame; gdb: the rest of a long frame.
    if (++other_ <= kMostOther) return true;
    builder_.Close(line);
    return false;
  }

 private:
  StackBuilder builder_;
  int64_t next_ = 0;
  int other_ = 0;
  bool in_kernel_ = false;
};

const RegisterReader kRegister(LineReaderType{
    "native stacks",
    {R"(^\s*Thread \d+ \((?:Thread 0x|\(?LWP |\(?process ))", R"(^\s*TID \d+:)", R"(^\s*PID \d+ - )",
     R"(^\s*Attaching to process \d+)", R"(^\s*\d+: +/\S)", R"(^\s*#0\s+(?:0x[0-9a-f]{6,} |\w[\w:@<>~, ]* \(.*\) (?:at|from) | ))",
     R"(^\s*\[<(?:0|[0-9a-f]{8,16})>\] \w)", kStackHeadingTrigger},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Native>(context); }});

}  // namespace
}  // namespace ringscope::ingest
