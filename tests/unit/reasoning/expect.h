// What tests ask of a finding, in one line each.
#ifndef RINGSCOPE_TESTS_UNIT_REASONING_EXPECT_H_
#define RINGSCOPE_TESTS_UNIT_REASONING_EXPECT_H_

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "analyzer/reasoning/finders.h"

namespace ringscope::reasoning {

inline std::vector<int> RanksOf(const Candidate& c) {
  return {c.finding.who().ranks().begin(), c.finding.who().ranks().end()};
}
inline std::vector<int> CollateralOf(const Candidate& c) {
  return {c.finding.collateral().ranks().begin(), c.finding.collateral().ranks().end()};
}
inline std::set<std::string> EdgesOf(const Candidate& c) {
  std::set<std::string> edges;
  for (const EdgeName& e : c.finding.who().edges())
    edges.insert(std::to_string(e.from()) + "->" + std::to_string(e.to()));
  return edges;
}
// All the words a person gets to read.
inline std::string TextOf(const Candidate& c) {
  std::string text = c.finding.title();
  for (const Evidence& e : c.finding.evidence()) text += "\n" + e.text();
  return text;
}
// Every finding must say what would refute it, what to look at next, and cite records.
inline bool IsWhole(const Candidate& c) {
  const Finding& f = c.finding;
  const bool cites = std::any_of(f.evidence().begin(), f.evidence().end(), [](const Evidence& e) {
    return e.rank() >= 0 && !e.source().empty();
  });
  return !f.title().empty() && !f.refuted_by().empty() && !f.next().text().empty() &&
         !f.next().command().empty() && cites && f.cause().id() == "not established" &&
         f.confidence() != Confidence::not_established;
}

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_TESTS_UNIT_REASONING_EXPECT_H_
