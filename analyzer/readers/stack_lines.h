// Shared by the readers of call stacks: whose stack it is, and putting processes, threads and frames together.
#ifndef RINGSCOPE_ANALYZER_READERS_STACK_LINES_H_
#define RINGSCOPE_ANALYZER_READERS_STACK_LINES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {

// "=== rank 3 ===", "rank 3 (pid 4711):", "== pid 99 ==": what people and scripts write above a stack.
struct StackHeading {
  int rank = -1;
  int64_t pid = -1;
};
bool TakeStackHeading(std::string_view text, StackHeading* heading);
// For LineReaderType::triggers of every reader that wants to see headings.
inline constexpr char kStackHeadingTrigger[] = R"((?i)^[\s=#*>\[-]*(?:rank[ _:=#-]*\d+|pid[ :=]*\d+)[\s\w:=#*\])(,-]{0,40}$)";

// Puts a reader's lines together. Lines of several ranks may alternate in one file: each speaker has its own place.
class StackBuilder {
 public:
  StackBuilder(const FileContext& context, std::string tool) : context_(context), tool_(std::move(tool)) {}

  void Heading(const TextLine& line, const StackHeading& heading);
  // The next thread belongs to this process.
  void Process(const TextLine& line, int64_t pid, std::string command);
  void Fatal(const TextLine& line, std::string what);
  // A thread begins. `again` says that it cannot belong to the process of the thread before (a second dump).
  model::StackThread* Thread(const TextLine& line);
  // False when no thread is open there.
  bool Frame(const TextLine& line, model::StackFrame frame);
  bool Open(const TextLine& line) const;
  void Close(const TextLine& line);
  model::StackProcess* Current(const TextLine& line);

 private:
  struct Place {
    int process = -1;
    bool open = false;  // a thread takes frames
    int64_t pid = -1;
    int rank = -1;
    std::string command, fatal;
  };
  using Key = std::pair<int, int64_t>;
  static Key KeyOf(const TextLine& line) { return {line.by.rank, line.by.pid}; }

  const FileContext& context_;
  std::string tool_;
  std::map<Key, Place> places_;
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_STACK_LINES_H_
