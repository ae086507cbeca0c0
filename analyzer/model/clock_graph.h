// Differences of clocks out of bounds between pairs: shortest paths.
#ifndef RINGSCOPE_ANALYZER_MODEL_CLOCK_GRAPH_H_
#define RINGSCOPE_ANALYZER_MODEL_CLOCK_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ringscope::model {

// "value(a) - value(b) <= bound", for the offsets of two clocks or the (unknown) moment of an operation.
struct Bound {
  int a = 0, b = 0;
  int64_t bound_ns = 0;
};
struct Interval {
  std::optional<int64_t> low, high;
};
// Bounds of value(i) - value(reference) that follow from all bounds together. nullopt: they contradict each other. Only what is tied
// to the reference is wanted, so it is two runs of Bellman and Ford's method and not all pairs; operations stand between the clocks
// as nodes of their own, so the cost is linear in the operations' members, and paths are a few steps long.
std::optional<std::vector<Interval>> Solve(int nodes, const std::vector<Bound>& bounds, int reference);

// A cycle whose bounds add up to less than nothing: its nodes, and by how much.
struct Contradiction {
  std::vector<int> nodes;
  int64_t by_ns = 0;
};
std::optional<Contradiction> FindContradiction(int nodes, const std::vector<Bound>& bounds);

// Takes out operations (nodes from `clocks` on) until the rest agree: the newest stay, and of the others those that do not contradict
// them; but one that all others contradict is the odd one, however new. `ages` by node.
struct Settled {
  std::vector<int> dropped;                  // operations
  std::vector<Contradiction> contradictions; // that were met
  std::vector<int> odd_clocks;               // without any one of these there is no contradiction at all
};
Settled DropContradictions(int clocks, int nodes, const std::vector<int64_t>& ages, std::vector<Bound>* bounds);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CLOCK_GRAPH_H_
