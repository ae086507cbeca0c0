// What all findings of a stall share: the words for places and ranks, confidence, commands.
#ifndef RINGSCOPE_ANALYZER_REASONING_STALL_FINDER_WORDS_H_
#define RINGSCOPE_ANALYZER_REASONING_STALL_FINDER_WORDS_H_

#include <set>
#include <string>

#include "analyzer/reasoning/stall_finder.h"

namespace ringscope::reasoning {

class StallWords {
 public:
  explicit StallWords(const StallAnalysis& analysis) : a_(analysis), job_(analysis.job) {}

 protected:
  // Kind, class and confidence: cursors of all members are one complete line of evidence; without
  // some of them it is a hint (docs/localisation.md, Ranking and confidence).
  Candidate Start(const RootGroup& group, Kind::Value kind, Confidence::Value confidence) const;
  // "AllReduce #11 of communicator world".
  std::string Place(const RootGroup& group) const;
  std::set<int> RanksOf(const RootGroup& group) const;
  // "rank 3", "ranks 1 and 3".
  std::string NamesText(const std::set<int>& ranks) const;
  // "ssh host1 py-spy dump --pid 17" for the ranks.
  std::string StackCommand(const std::set<int>& ranks) const;
  // Too many of a communicator to say that it is they who are wrong.
  bool TooMany(const RootGroup& group, size_t named) const;
  void AddMissingNote(const RootGroup& group, Finding* f) const;
  static void SetNext(Finding* f, std::string text, std::string command);
  static void AddNote(Finding* f, std::string text);

  const StallAnalysis& a_;
  const model::Job& job_;
};

// One finding for one group of ends, by what kind of end it is.
Candidate DescribeMissing(const StallAnalysis& a, const RootGroup& group);  // stall_finder_ranks.cc
Candidate DescribeInApi(const StallAnalysis& a, const RootGroup& group);
Candidate DescribeNoRecord(const StallAnalysis& a, const RootGroup& group);
Candidate DescribeGpu(const StallAnalysis& a, const RootGroup& group);  // stall_finder_gpu.cc
Candidate DescribeInsideNode(const StallAnalysis& a, const RootGroup& group);
Candidate DescribeAmbiguous(const StallAnalysis& a, const RootGroup& group);
Candidate DescribeEdges(const StallAnalysis& a, const RootGroup& group);  // stall_finder_edges.cc
Candidate DescribeUnequal(const StallAnalysis& a, const RootGroup& group);
Candidate DescribeContradiction(const StallAnalysis& a, int comm);
Candidate DescribeUnmatched(const StallAnalysis& a,
                            const RootGroup& group);  // stall_finder_deadlock.cc
Candidate DescribeCycle(const StallAnalysis& a, const RootGroup& group);

// The records are dumps of PyTorch's flight recorder; the second: and no time in them tells for how long anything stood still.
bool OfDumps(const StallAnalysis& a);
bool TimeAssumed(const StallAnalysis& a);
// Ends that say where inside a running operation data stands still: of these only one kind can be
// true at a time.
bool InsideOperation(graph::End end);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_STALL_FINDER_WORDS_H_
