// Shared by the readers of tools' output: whose output it is, and numbers as tools write them.
#ifndef RINGSCOPE_ANALYZER_READERS_TOOL_TEXT_H_
#define RINGSCOPE_ANALYZER_READERS_TOOL_TEXT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/text_line.h"

namespace ringscope::ingest {

// Output of one tool on several hosts stands in one file in three ways: each line behind its host ("node7: …", pdsh), each
// host's output under a heading ("==== node7 ====", "### node7 (before)"), or behind a prompt ("root@node7:~# ibstat").
class HostOfOutput {
 public:
  // To be added to a reader's triggers, so that it sees headings and prompts.
  static const std::vector<std::string>& Triggers();
  // Takes headings and prompts: true when the line is nothing else.
  bool Heading(const TextLine& line);
  // Whose output it is by the last heading or prompt, else by the line's wrapper or the file's name.
  model::Speaker Whose(const TextLine& line) const;
  // The line without "node7: " (a name that may be a host's), and whose it is. A tool whose own lines begin like that ("docker0: …")
  // looks at the whole line first.
  std::string_view Strip(const TextLine& line, model::Speaker* by);

 private:
  std::string host_;
};

std::string LowerText(std::string_view text);
// Digits at the start, commas and dots of thousands left out: "1,234" -> 1234.
std::optional<uint64_t> LeadingNumber(std::string_view text);
// "8192", "64M", "125.7G", "32Gi", "100kB": bytes with `unit` for a bare number.
std::optional<uint64_t> SizeOf(std::string_view text, uint64_t unit);
// Words between spaces and tabs.
std::vector<std::string_view> Words(std::string_view text);
// Without spaces at both ends.
std::string_view Trim(std::string_view text);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_TOOL_TEXT_H_
