// What stands still and where the waiting ends, computed once for the finders that read it.
#ifndef RINGSCOPE_ANALYZER_REASONING_STALL_FINDER_H_
#define RINGSCOPE_ANALYZER_REASONING_STALL_FINDER_H_

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/wait_graph.h"
#include "analyzer/reasoning/wait_graph_input.h"

namespace ringscope::reasoning {

// Roots of one kind that bite at one place.
struct RootGroup {
  graph::End cls;
  std::vector<const graph::Root*> roots;
  int comm = -1;  // communicator of the graph in which the roots are waited for; -1 none
  uint64_t position = 0;
  std::vector<int> nodes;  // of all roots
  std::set<int> waiting;   // ranks of the graph that have something stuck which leads here (the
                           // roots' own included)
};

class StallAnalysis {
 public:
  explicit StallAnalysis(const model::Job& job);
  StallAnalysis(const StallAnalysis&) = delete;

  const model::Job& job;
  WaitInput input;
  graph::Result result;
  std::vector<RootGroup> groups;

  const graph::Node& NodeAt(int n) const { return result.nodes[n]; }
  // Ranks of the graph in words and as members; `comm` gives the member of that communicator where
  // there is one.
  std::string RankName(int rank) const;
  std::set<int> JobRanks(const std::set<int>& ranks) const;
  const model::Member* MemberIn(int comm, int rank) const;
  const model::Process* ProcessOf(int rank) const;
  const model::Communicator& CommunicatorOf(int comm) const;
  // Every member of the communicator has an undamaged record of the time that matters.
  bool AllSeen(int comm) const;
  // Members whose record is missing, in words; empty when all are seen.
  std::string MissingMembers(int comm) const;
  int MembersSeen(int comm) const;

  // Fills who.communicators, collateral, evidence of the way from the waiting ranks to the group,
  // and where it bites.
  void Describe(const RootGroup& group, Candidate* candidate) const;
  // Row of the edge table that an index of Node::edges names, as evidence.
  void AddEdgeEvidence(const graph::Node& node, Finding* finding) const;
  uint32_t RowOf(const graph::Node& op) const;     // table entry of the operation; 0 unknown
  std::string OpName(const graph::Node& op) const;  // "AllReduce #6 of 0x30961f08"

 private:
  void Group();
  void Place(const graph::Root& root, int* comm, uint64_t* position) const;
  void FindWaiting(RootGroup* group) const;
  std::string Hop(int node, int next) const;
  int IndexOf(const graph::Node& op) const;  // in input.ops; -1 not listed
  bool Entered(const graph::Node& op) const;

  std::vector<std::vector<int>> reverse_;
  absl::flat_hash_map<std::tuple<int, int, uint64_t>, int> op_index_;
};

std::vector<Candidate> FindStalls(const model::Job& job);
std::vector<Candidate> FindLiveness(const model::Job& job);  // liveness_finder.cc

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_STALL_FINDER_H_
