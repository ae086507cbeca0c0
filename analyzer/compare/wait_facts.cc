// What the steps of each network edge waited for: own GPU, peer, wire.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <map>

#include "analyzer/compare/compare.h"
#include "analyzer/compare/op_words.h"

namespace ringscope::compare {
namespace {

constexpr uint64_t kSteps = 100;     // fewer say nothing
constexpr double kFloorNs = 20'000;  // a step; below that latency and polling decide

struct Load {
  double wire = 0, all = 0;
  uint64_t steps = 0;
  int process = -1;
};

std::vector<Fact> Facts(const model::Job& job) {
  std::map<std::pair<int, int>, Load> loads;
  for (const model::Edge& e : job.edges) {
    if (!e.sender || e.sender->raw->wait_ns_size() < 3) continue;
    const auto& members = job.communicators[static_cast<size_t>(e.communicator)].members;
    const int from = members[static_cast<size_t>(e.from)].job_rank, to = members[static_cast<size_t>(e.to)].job_rank;
    if (from < 0 || to < 0) continue;
    Load& load = loads[{from, to}];
    const auto wait = [&](int i) { return std::max(0.0, static_cast<double>(e.sender->raw->wait_ns(i))); };
    load.wire += wait(2);
    load.all += wait(0) + wait(1) + wait(2);
    load.steps += e.sender->raw->steps_total();
    load.process = e.sender->process;
  }
  std::vector<Fact> facts;
  for (const auto& [edge, load] : loads) {
    if (load.steps < kSteps || load.all <= 0) continue;
    const double step = load.wire / static_cast<double>(load.steps);
    Fact f;
    f.name = "wire time of a step";
    f.subject = EdgeSubject(edge.first, edge.second);
    f.number = std::max(step, kFloorNs);
    f.value = absl::StrFormat("%s (%.0f %% of its sends' time)", TimeText(step), 100 * load.wire / load.all);
    f.source = RecordSource(job.processes[static_cast<size_t>(load.process)]);
    f.weight = Change::can_explain;
    f.explains = "Sends wait longer for the network on this edge: link, adapter, path or congestion.";
    f.confirm = "Port counters at both ends before and after a run; ib_write_bw or iperf3 between the two hosts.";
    facts.push_back(std::move(f));
  }
  return facts;
}

const RegisterFacts kRegister({Change::wait, "waits of network edges", "give its traces or flight files", Facts,
                               /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
