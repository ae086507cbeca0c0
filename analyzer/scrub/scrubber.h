// Takes names, addresses and secrets out of lines. Learn from everything first, then replace:
//
//   Scrubber scrubber(&masks);
//   for each line of each file: scrubber.Learn(line);
//   scrubber.Learned();
//   for each line of each file: out = scrubber.Line(line);
//
// Numbers of ranks, devices, processes and operations, bus ids, hashes of communicators, interfaces, versions and times stay.
#ifndef RINGSCOPE_ANALYZER_SCRUB_SCRUBBER_H_
#define RINGSCOPE_ANALYZER_SCRUB_SCRUBBER_H_

#include <absl/container/flat_hash_map.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/scrub/learn.h"
#include "analyzer/scrub/masks.h"
#include "analyzer/scrub/secret_shapes.h"

namespace ringscope::scrub {

class Scrubber {
 public:
  // `masks` must outlive it.
  explicit Scrubber(Masks* masks) : masks_(masks), learner_(&names_) {}

  void Learn(std::string_view line);
  Learner& learner() { return learner_; }
  // The user's own words: masked wherever they stand, inside words too.
  void Also(std::string_view word);
  void Learned();

  // A line (no newline in it). Key blocks may swallow lines: *drop. Lines of one text in order.
  std::string Line(std::string_view line, KeyBlock* block, bool* drop);
  // A text without key blocks across lines: a field of a message, a sentence. May hold newlines.
  std::string Text(std::string_view text);
  // A variable of an environment: its name says what the value is.
  std::string Value(std::string_view name, std::string_view value);
  // A file's own name, or a relative path.
  std::string FileName(std::string_view name);
  // The same with a number for the whole name, the rank and the ending aside.
  std::string OpaqueName(std::string_view name);

  Masks& masks() { return *masks_; }

 private:
  std::string Replaced(std::string_view line);    // everything but secrets with names
  std::string Names(std::string_view run) const;  // learned names in a run of letters, digits and "-_."
  std::string NamesOfPath(std::string_view component) const;
  size_t NodeList(std::string_view text, size_t at, std::string* mask);
  size_t Serial(std::string_view text, size_t at, std::string* mask);
  size_t JobNumber(std::string_view text, size_t at, std::string* mask);
  std::string Secrets(std::string_view line);

  struct Known {
    Kind kind;
    std::string mask;
  };
  Masks* masks_;
  LearnedNames names_;
  Learner learner_;
  absl::flat_hash_map<std::string, Known> known_;
  std::vector<std::string> odd_secrets_, words_;  // looked for as they are, longest first
  size_t longest_ = 0;                            // of known_
};

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_SCRUBBER_H_
