// The answer to `ulimit -l` and its like, on the line after the command or beside it, as Setting "ulimit -l" in its own unit
// (KiB for -l); and the long forms of `ulimit -a` and /proc/PID/limits.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

class Ulimit : public LineReader {
 public:
  explicit Ulimit(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& beside = *new RE2(R"((ulimit -[lnu])["']?\s*[:=]?\s+(\d+|unlimited)\s*$)");
    static const RE2& command = *new RE2(R"((ulimit -[lnu])\b)");
    static const RE2& answer = *new RE2(R"(^\s*(?:\S+:\s+)?(\d+|unlimited)\s*$)");
    static const RE2& all =
        *new RE2(R"((?:max locked memory|open files|max user processes)\s+\((?:kbytes, )?(-[lnu])\)\s+(\d+|unlimited))");
    static const RE2& proc = *new RE2(R"(^Max (locked memory|open files|processes)\s+(\d+|unlimited)\s)");
    const re2::StringPiece text(line.text.data(), line.text.size());
    std::string name, value;
    const bool wanted = !asked_.empty() && RE2::FullMatch(text, answer, &value);
    if (wanted) Put(asked_, value, line);
    asked_.clear();
    if (wanted) return false;
    if (RE2::PartialMatch(text, beside, &name, &value)) {
      Put(name, value, line);
    } else if (RE2::PartialMatch(text, all, &name, &value)) {
      Put("ulimit " + name, value, line);
    } else if (RE2::PartialMatch(text, proc, &name, &value)) {
      if (name == "locked memory" && value != "unlimited" && value.size() < 19) value = std::to_string(std::stoll(value) / 1024);
      Put(name == "locked memory" ? "ulimit -l" : name == "open files" ? "ulimit -n" : "ulimit -u", value, line);
    } else if (RE2::PartialMatch(text, command, &name)) {
      asked_ = name;
      return true;
    }
    return false;
  }

 private:
  void Put(const std::string& name, const std::string& value, const TextLine& line) {
    if (++kept_ <= 4096) context_.evidence->settings.push_back({name, value, line.where, line.by});
  }

  const FileContext& context_;
  std::string asked_;
  size_t kept_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "ulimit",
    {R"(\bulimit -[lnu]\b)", R"((?:max locked memory|open files|max user processes)\s+\()",
     R"(^Max (?:locked memory|open files|processes)\s)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Ulimit>(context); }});

}  // namespace
}  // namespace ringscope::ingest
