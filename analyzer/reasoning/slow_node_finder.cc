// Benchmarks on groups of nodes: the node that every slow group has and no fast one. Where the links of that node show why,
// nvlink_lanes_finder says so and takes this as its second witness.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include "analyzer/reasoning/node_trials.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindSlowNode(const model::Job& job) {
  const auto slow = NodesThatSlow(job);
  if (!slow) return {};
  Candidate c = Say(Kind::rank_slow, Confidence::probable, Layer::kHost,
                    absl::StrFormat("%s: every trial with %s is slower than every trial without (%g against %g or better): %s",
                                    absl::StrJoin(slow->nodes, ", "), slow->nodes.size() == 1 ? "this node" : "these nodes",
                                    slow->best_with, slow->worst_without,
                                    slow->nodes.size() == 1 ? "the reason is on that node" : "the trials do not tell them apart"),
                    "");
  c.order = Class::kPlan;
  c.state = State::slow;
  Finding& f = c.finding;
  for (const std::string& node : slow->nodes) f.mutable_who()->add_hosts(node);
  for (size_t i = 0; i < slow->with.size() && i < 3; ++i) Cite(job, slow->with[i]->where, slow->with[i]->quote, &f);
  for (size_t i = 0; i < slow->without.size() && i < 2; ++i) Cite(job, slow->without[i]->where, slow->without[i]->quote, &f);
  f.set_refuted_by("a trial with that node at full speed, or a slow one without it");
  SetNext("That node's links, clocks and ports beside a fast node's.",
          "nvidia-smi nvlink -s; nvidia-smi nvlink -e; nvidia-smi -q -d PERFORMANCE,CLOCK; ibstat; lspci -vv | grep LnkSta", &f);
  return {c};
}

const Register kRegister("slow node", FindSlowNode);

}  // namespace
}  // namespace ringscope::reasoning
