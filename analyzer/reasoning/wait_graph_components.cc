#include "analyzer/reasoning/wait_graph_components.h"

#include <algorithm>
#include <cstddef>

namespace ringscope::reasoning::graph {

// Tarjan's algorithm with its own stack of (node, next edge).
std::vector<std::vector<int>> SinkComponents(const std::vector<std::vector<int>>& next) {
  const int n = static_cast<int>(next.size());
  std::vector<int> order(n, -1), low(n, 0), component(n, -1), stack;
  std::vector<std::pair<int, size_t>> frames;
  std::vector<std::vector<int>> components;
  int counter = 0;
  for (int start = 0; start < n; ++start) {
    if (order[start] >= 0) continue;
    frames.push_back({start, 0});
    while (!frames.empty()) {
      auto& [v, edge] = frames.back();
      if (edge == 0) {
        order[v] = low[v] = counter++;
        stack.push_back(v);
      }
      bool down = false;
      while (edge < next[v].size()) {
        const int w = next[v][edge++];
        if (order[w] < 0) {
          frames.push_back({w, 0});
          down = true;
          break;
        }
        if (component[w] < 0) low[v] = std::min(low[v], order[w]);
      }
      if (down) continue;
      const int done = v;
      if (low[done] == order[done]) {
        components.emplace_back();
        int w = -1;
        do {
          w = stack.back();
          stack.pop_back();
          component[w] = static_cast<int>(components.size()) - 1;
          components.back().push_back(w);
        } while (w != done);
      }
      frames.pop_back();
      if (!frames.empty()) low[frames.back().first] = std::min(low[frames.back().first], low[done]);
    }
  }
  std::vector<std::vector<int>> sinks;
  for (size_t c = 0; c < components.size(); ++c) {
    const bool leaves = std::any_of(components[c].begin(), components[c].end(), [&](int v) {
      return std::any_of(next[v].begin(), next[v].end(),
                         [&](int w) { return component[w] != static_cast<int>(c); });
    });
    if (!leaves) sinks.push_back(std::move(components[c]));
  }
  return sinks;
}

}  // namespace ringscope::reasoning::graph
