// The finders that are called directly by tests. Programs use Diagnose() (finder.h), which runs all
// that are registered.
#ifndef RINGSCOPE_ANALYZER_REASONING_FINDERS_H_
#define RINGSCOPE_ANALYZER_REASONING_FINDERS_H_

#include <vector>

#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {

std::vector<Candidate> FindMismatches(const model::Job& job);  // mismatch_finder.cc
std::vector<Candidate> FindUnmatched(const model::Job& job);   // message_count_finder.cc
std::vector<Candidate> FindStragglers(const model::Job& job);  // slow_finder.cc
std::vector<Candidate> FindSlowEdges(const model::Job& job);   // slow_edge_finder.cc
std::vector<Candidate> FindFallbacks(const model::Job& job);   // fallback_finder.cc
std::vector<Candidate> FindPast(const model::Job& job);        // past_finder.cc

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_FINDERS_H_
