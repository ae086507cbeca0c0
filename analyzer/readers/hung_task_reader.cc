// "INFO: task python:4242 blocked for more than 120 seconds." (kernel/hung_task.c) and the stack that the kernel prints below it:
// the functions tell whether the task waits for storage or for the GPU driver.
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"

namespace ringscope::ingest {
namespace {

using model::HungTask;

constexpr size_t kMostTasks = 512;
constexpr size_t kMostFrames = 32;
constexpr int kMostLines = 60;  // between the message and the end of its stack

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class HungTaskReader : public LineReader {
 public:
  explicit HungTaskReader(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& start =
        *new RE2(R"(INFO: task (.{1,32}?):(\d{1,9}) (?:is )?blocked (?:in I/O wait )?for more than (\d{1,6}) seconds)");
    static const RE2& frame = *new RE2(R"(^\s*(?:\[<[0-9a-fA-F]+>\]\s*)?(?:\? )?([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+)");
    HungTask task;
    if (RE2::PartialMatch(Piece(line.text), start, &task.process, &task.pid, &task.seconds)) {
      task.where = line.where;
      task.time = line.time;
      task.by.host = line.by.host;
      task.by.pid = task.pid;
      task.quote = std::string(line.text.substr(0, 200));
      for (std::string* text : {&task.quote, &task.process}) {
        for (char& c : *text) {
          if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
        }
      }
      auto& tasks = context_.evidence->kernel.hung_tasks;
      const auto [known, fresh] = known_.try_emplace({line.by.host, task.pid}, tasks.size());
      lines_ = 0;
      if (!fresh) {
        ++tasks[known->second].repeats;
        if (task.seconds > tasks[known->second].seconds) tasks[known->second].seconds = task.seconds;
        open_ = -1;
        return false;
      }
      if (known_.size() > kMostTasks) {
        known_.erase(known);
        open_ = -1;
        return false;
      }
      open_ = static_cast<int64_t>(tasks.size());
      tasks.push_back(std::move(task));
      return true;
    }
    if (open_ < 0 || ++lines_ > kMostLines) return false;
    HungTask& current = context_.evidence->kernel.hung_tasks[open_];
    std::string function;
    if (current.frames.size() < kMostFrames && RE2::PartialMatch(Piece(line.text), frame, &function))
      current.frames.push_back(function);
    if (line.text.find("</TASK>") != line.text.npos) {
      open_ = -1;
      return false;
    }
    return true;
  }

 private:
  const FileContext& context_;
  std::map<std::pair<std::string, int64_t>, size_t> known_;
  int64_t open_ = -1;  // index of the task whose stack is being read
  int lines_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "hung task",
    {R"(INFO: task .{1,32}:\d+ .*blocked .*for more than \d+ seconds)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<HungTaskReader>(context); }});

}  // namespace
}  // namespace ringscope::ingest
