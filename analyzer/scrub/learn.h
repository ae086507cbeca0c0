// Names of hosts, users, jobs, and secrets, from the places where programs print them.
#ifndef RINGSCOPE_ANALYZER_SCRUB_LEARN_H_
#define RINGSCOPE_ANALYZER_SCRUB_LEARN_H_

#include <set>
#include <string>
#include <string_view>

#include "analyzer/ingest/text_line.h"

namespace ringscope::scrub {

// "node-2" before "node-10".
struct Natural {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};
using NameSet = std::set<std::string, Natural>;

struct LearnedNames {
  NameSet hosts;    // without what follows the first dot
  NameSet domains;  // what followed it
  NameSet users, jobs, job_numbers;
  NameSet secrets;  // values behind names of secrets, long enough to be looked for elsewhere
};

class Learner {
 public:
  explicit Learner(LearnedNames* names) : names_(names) {}
  // A line without escapes (escapes.h).
  void Line(std::string_view line);
  // A name from a field that holds nothing else. A host may have a domain behind it.
  void Host(std::string_view name, bool strict = true);
  void User(std::string_view name, bool strict = true);
  void Job(std::string_view name);

 private:
  void Pattern(int index, std::string_view line);
  LearnedNames* names_;
  ingest::LineCleaner cleaner_;
};

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_LEARN_H_
