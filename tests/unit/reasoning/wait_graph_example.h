// Reads testdata/wait-graph-examples.json: the worked examples of docs/localisation.md as input of
// the graph.
#ifndef RINGSCOPE_TESTS_UNIT_REASONING_WAIT_GRAPH_EXAMPLE_H_
#define RINGSCOPE_TESTS_UNIT_REASONING_WAIT_GRAPH_EXAMPLE_H_

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzer/reasoning/wait_graph.h"

namespace ringscope::testing {

inline nlohmann::json ReadExamples() {
  std::ifstream in(RINGSCOPE_SOURCE_DIR "/tests/unit/reasoning/testdata/wait-graph-examples.json");
  return nlohmann::json::parse(in);
}

inline nlohmann::json Example(const std::string& id) {
  for (const auto& example : ReadExamples()) {
    if (example["id"] == id) return example;
  }
  return nullptr;
}

inline trace::StepState StateOf(const std::string& name) {
  static const std::map<std::string, trace::StepState> kStates = {
      {"SendGPUWait", trace::SEND_GPU_WAIT},
      {"SendPeerWait", trace::SEND_PEER_WAIT},
      {"SendWait", trace::SEND_WAIT},
      {"RecvWait", trace::RECV_WAIT},
      {"RecvFlushWait", trace::RECV_FLUSH_WAIT},
      {"RecvGPUWait", trace::RECV_GPU_WAIT}};
  return kStates.at(name);
}

inline reasoning::graph::Input ToInput(const nlohmann::json& x) {
  using namespace reasoning;  // NOLINT: a test
  using graph::Host;
  using graph::Stage;
  graph::Input in;
  int most = 0;
  for (const auto& [id, rank] : x["ranks"].items()) most = std::max(most, std::stoi(id));
  in.ranks.resize(most + 1);
  for (const auto& [id, rank] : x["ranks"].items()) {
    const int r = std::stoi(id);
    const std::string host = rank["host"];
    const std::string kind = host.substr(0, host.find(':'));
    graph::Rank& out = in.ranks[r];
    if (kind == "dead") out.host = Host::kDead;
    if (kind == "exited") out.host = Host::kExited;
    if (kind == "user") out.host = Host::kUser;
    if (kind == "api") out.host = Host::kApi;
    if (kind == "silent") out.host = Host::kNoRecord;
    if (kind == "store" || kind == "api-connect")
      out.waits_for = {std::stoi(host.substr(host.find(':') + 1))};
    if (rank.contains("async")) {
      const auto& e = rank["async"];
      in.errors.push_back({r, e["peer"], e.value("wc", 0) == 12});
    }
  }
  std::map<std::string, int> comm_of;
  for (const auto& [name, comm] : x["comms"].items()) {
    comm_of[name] = static_cast<int>(in.comms.size());
    graph::Comm c;
    c.name = name;
    c.p2p = comm["algo"] == "p2p";
    for (int r : comm["ranks"]) {
      c.ranks.push_back(r);
      const auto& cur = x["ranks"][std::to_string(r)]["cur"];
      c.entered.push_back(cur.contains(name) ? cur[name][0].get<uint64_t>() : 0);
    }
    in.comms.push_back(std::move(c));
  }
  std::map<std::tuple<int, std::string, uint64_t>, int> index;
  for (const auto& [id, rank] : x["ranks"].items()) {
    const int r = std::stoi(id);
    for (const auto& [name, cur] : rank["cur"].items()) {
      const uint64_t a = cur[0], q = cur[1], s = cur[2], f = cur[3];
      const bool p2p = x["comms"][name]["algo"] == "p2p";
      const nlohmann::json list = p2p ? x["p2p"][name][id] : nlohmann::json::array();
      const uint64_t last = std::max<uint64_t>(a, list.size());
      std::map<std::pair<int, bool>, uint64_t> numbers;
      for (uint64_t k = p2p ? 1 : f + 1; k <= last; ++k) {
        graph::Participation op;
        op.comm = comm_of[name];
        op.rank = r;
        op.position = k;
        const Stage stage = k <= f   ? Stage::kFinished
                            : k <= s ? Stage::kStarted
                            : k <= q ? Stage::kEnqueued
                            : k <= a ? Stage::kEntered
                                     : Stage::kNotEntered;
        op.progress = {stage, stage};
        const std::string algo = x["comms"][name]["algo"];
        op.pattern = algo == "ring"   ? Pattern::kRing
                     : algo == "tree" ? Pattern::kTree
                                      : Pattern::kOther;
        if (p2p) {
          const bool send = list[k - 1][0] == "send";
          const int peer = list[k - 1][1];
          op.messages.push_back({send, peer, ++numbers[{peer, send}]});
          if (k <= a) in.totals.push_back({op.comm, r, peer, send, numbers[{peer, send}]});
        }
        index[{r, name, k}] = static_cast<int>(in.ops.size());
        in.ops.push_back(std::move(op));
      }
    }
    if (!rank.contains("order")) continue;
    std::vector<int> before;
    for (const auto& o : rank["order"]) {
      const auto it = index.find({r, o[0].get<std::string>(), o[1].get<uint64_t>()});
      if (it == index.end()) continue;
      in.ops[it->second].after = before;
      before.push_back(it->second);
    }
  }
  if (x.contains("nodes")) {
    in.hosts.resize(in.ranks.size());
    for (const auto& [host, ranks] : x["nodes"].items()) {
      for (int r : ranks) in.hosts[r] = host;
    }
  }
  for (const auto& e : x.value("net", nlohmann::json::array())) {
    EdgeView edge;
    edge.comm = comm_of[e["c"]];
    edge.send_position = edge.recv_position = e["k"];
    edge.from = e["src"];
    edge.to = e["dst"];
    edge.channel = e["ch"];
    edge.send = {.phase = EdgeEnd::kOpen, .state = StateOf(e["s"]), .driver = edge.from};
    edge.recv = {.phase = EdgeEnd::kOpen, .state = StateOf(e["r"]), .driver = edge.to};
    in.edges.push_back(edge);
  }
  const nlohmann::json signatures = x.value("sig", nlohmann::json::object());
  for (const auto& [name, ops] : signatures.items()) {
    for (const auto& [k, per] : ops.items()) {
      for (const auto& [r, text] : per.items()) {
        in.signatures.push_back({comm_of[name], std::stoull(k), std::stoi(r), text});
      }
    }
  }
  return in;
}

struct Verdict {
  std::string cls;  // class names of all roots, joined by "+"
  std::vector<std::string> roots;
};

inline Verdict Summarise(const reasoning::graph::Input& in,
                         const reasoning::graph::Result& result) {
  Verdict verdict;
  std::vector<std::string> classes;
  for (const auto& root : result.roots) {
    classes.push_back(reasoning::graph::Name(root.cls));
    for (int n : root.nodes) verdict.roots.push_back(reasoning::graph::Name(in, result.nodes[n]));
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  std::sort(verdict.roots.begin(), verdict.roots.end());
  for (const std::string& c : classes) verdict.cls += (verdict.cls.empty() ? "" : "+") + c;
  return verdict;
}

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_REASONING_WAIT_GRAPH_EXAMPLE_H_
