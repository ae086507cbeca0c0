#include "analyzer/model/clock_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

// A path may go around all nodes; real ones pass two or three clocks. What still moves after so many rounds goes around a cycle, or
// comes from a record that was made to be slow.
constexpr int kMostRounds = 512;
// Attempts to bring operations back, after which the rest stays out. Odd operations need a few each; all those of before a clock
// jumped fail one by one.
constexpr int kMostAttempts = 200;

// Shortest paths from `from` along "a <= b + bound" (or against it). False: a cycle of negative length.
bool Relax(int nodes, const std::vector<Bound>& bounds, int from, bool forward, std::vector<std::optional<int64_t>>* best) {
  best->assign(static_cast<size_t>(nodes), std::nullopt);
  (*best)[static_cast<size_t>(from)] = 0;
  const int rounds = std::min(nodes, kMostRounds) + 1;
  for (int round = 0; round < rounds; ++round) {
    bool moved = false;
    for (const Bound& bound : bounds) {
      const std::optional<int64_t>& at = (*best)[static_cast<size_t>(forward ? bound.b : bound.a)];
      std::optional<int64_t>& to = (*best)[static_cast<size_t>(forward ? bound.a : bound.b)];
      if (!at) continue;
      const int64_t reached = SatAdd(*at, bound.bound_ns);
      if (to && *to <= reached) continue;
      to = reached;
      moved = true;
    }
    if (!moved) return true;
    if (*(*best)[static_cast<size_t>(from)] < 0) return false;
  }
  return false;
}

// A cycle among "who was last moved by whom"; it is one of negative length.
std::vector<int> CycleOf(const std::vector<int>& by, const std::vector<Bound>& bounds) {
  std::vector<int> seen(by.size(), -1);
  for (size_t start = 0; start < by.size(); ++start) {
    int at = static_cast<int>(start);
    while (at >= 0 && seen[static_cast<size_t>(at)] < 0) {
      seen[static_cast<size_t>(at)] = static_cast<int>(start);
      const int bound = by[static_cast<size_t>(at)];
      at = bound < 0 ? -1 : bounds[static_cast<size_t>(bound)].b;
    }
    if (at < 0 || seen[static_cast<size_t>(at)] != static_cast<int>(start)) continue;
    std::vector<int> cycle;  // bounds
    int node = at;
    do {
      const int bound = by[static_cast<size_t>(node)];
      cycle.push_back(bound);
      node = bounds[static_cast<size_t>(bound)].b;
    } while (node != at);
    return cycle;
  }
  return {};
}

std::vector<Bound> Without(const std::vector<Bound>& bounds, const std::vector<bool>& out) {
  std::vector<Bound> kept;
  for (const Bound& b : bounds) {
    if (!out[static_cast<size_t>(b.a)] && !out[static_cast<size_t>(b.b)]) kept.push_back(b);
  }
  return kept;
}

// Of the clocks that are in all contradictions those without which all agree.
std::vector<int> OddClocks(int clocks, int nodes, const std::vector<Bound>& bounds, const std::vector<Contradiction>& found) {
  std::set<int> in_all;
  for (size_t i = 0; i < found.size(); ++i) {
    std::set<int> here;
    for (const int node : found[i].nodes) {
      if (node < clocks && (i == 0 || in_all.count(node) > 0)) here.insert(node);
    }
    in_all = std::move(here);
  }
  std::vector<int> odd;
  for (const int clock : in_all) {
    std::vector<bool> out(static_cast<size_t>(nodes), false);
    out[static_cast<size_t>(clock)] = true;
    if (!FindContradiction(nodes, Without(bounds, out))) odd.push_back(clock);
  }
  return odd;
}

// Starts without any operation and brings them back, by halves where all at once contradict what is there.
class Adder {
 public:
  Adder(int clocks, int nodes, const std::vector<Bound>& bounds)
      : nodes_(nodes), bounds_(&bounds), out_(static_cast<size_t>(nodes), false) {
    for (int node = clocks; node < nodes; ++node) out_[static_cast<size_t>(node)] = true;
  }
  using It = std::vector<int>::const_iterator;
  void Add(It begin, It end) {
    if (begin == end || attempts_ >= kMostAttempts) return;
    ++attempts_;
    for (It i = begin; i != end; ++i) out_[static_cast<size_t>(*i)] = false;
    auto found = FindContradiction(nodes_, Without(*bounds_, out_));
    if (!found) {
      kept_.insert(kept_.end(), begin, end);
      return;
    }
    for (It i = begin; i != end; ++i) out_[static_cast<size_t>(*i)] = true;
    if (end - begin == 1) {
      contradictions_.push_back(*std::move(found));
      return;
    }
    const It middle = begin + (end - begin) / 2;
    Add(begin, middle);
    Add(middle, end);
  }
  const std::vector<int>& kept() const { return kept_; }
  const std::vector<bool>& out() const { return out_; }
  const std::vector<Contradiction>& contradictions() const { return contradictions_; }

 private:
  int nodes_;
  const std::vector<Bound>* bounds_;
  std::vector<bool> out_;
  std::vector<int> kept_;
  int attempts_ = 0;
  std::vector<Contradiction> contradictions_;
};

}  // namespace

std::optional<std::vector<Interval>> Solve(int nodes, const std::vector<Bound>& bounds, int reference) {
  std::vector<std::optional<int64_t>> above, below;
  if (!Relax(nodes, bounds, reference, true, &above) || !Relax(nodes, bounds, reference, false, &below)) return std::nullopt;
  std::vector<Interval> intervals(static_cast<size_t>(nodes));
  for (size_t i = 0; i < intervals.size(); ++i) {
    intervals[i].high = above[i];
    if (below[i]) intervals[i].low = SatSub(0, *below[i]);
    if (intervals[i].low && intervals[i].high && *intervals[i].low > *intervals[i].high) return std::nullopt;
  }
  return intervals;
}

std::optional<Contradiction> FindContradiction(int nodes, const std::vector<Bound>& bounds) {
  std::vector<int64_t> best(static_cast<size_t>(nodes), 0);
  std::vector<int> by(static_cast<size_t>(nodes), -1);  // bound that moved it last
  const int rounds = std::min(nodes, kMostRounds) + 1;
  for (int round = 0; round < rounds; ++round) {
    bool moved = false;
    for (size_t i = 0; i < bounds.size(); ++i) {
      const Bound& bound = bounds[i];
      const int64_t reached = SatAdd(best[static_cast<size_t>(bound.b)], bound.bound_ns);
      if (best[static_cast<size_t>(bound.a)] <= reached) continue;
      best[static_cast<size_t>(bound.a)] = reached;
      by[static_cast<size_t>(bound.a)] = static_cast<int>(i);
      moved = true;
    }
    if (!moved) return std::nullopt;
    const std::vector<int> cycle = CycleOf(by, bounds);
    if (cycle.empty()) continue;
    Contradiction found;
    for (const int i : cycle) {
      found.nodes.push_back(bounds[static_cast<size_t>(i)].a);
      found.by_ns = SatSub(found.by_ns, bounds[static_cast<size_t>(i)].bound_ns);
    }
    return found;
  }
  return std::nullopt;
}

Settled DropContradictions(int clocks, int nodes, const std::vector<int64_t>& ages, std::vector<Bound>* bounds) {
  Settled settled;
  if (!FindContradiction(nodes, *bounds)) return settled;
  std::vector<int> order;
  for (int node = clocks; node < nodes; ++node) order.push_back(node);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return ages[static_cast<size_t>(a)] < ages[static_cast<size_t>(b)]; });
  Adder adder(clocks, nodes, *bounds);
  adder.Add(order.begin(), order.end());
  // The newest alone against all others: it is the odd one.
  if (adder.kept().size() == 1 && order.size() > 2) {
    const int odd = adder.kept().front();
    std::erase(order, odd);
    Adder others(clocks, nodes, *bounds);
    others.Add(order.begin(), order.end());
    if (others.kept().size() > 1) adder = std::move(others);
  }
  std::vector<bool> out = adder.out();
  for (int node = clocks; node < nodes; ++node) {
    if (out[static_cast<size_t>(node)]) settled.dropped.push_back(node);
  }
  settled.contradictions = adder.contradictions();
  settled.odd_clocks = OddClocks(clocks, nodes, *bounds, settled.contradictions);
  *bounds = Without(*bounds, out);
  return settled;
}

}  // namespace ringscope::model
