#include "analyzer/reasoning/checks.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

std::multimap<Kind::Value, CheckFn>& All() {
  static auto* const all = new std::multimap<Kind::Value, CheckFn>();
  return *all;
}

std::vector<const model::Member*> Named(const model::Communicator& c, const Finding& finding) {
  std::set<int> ranks(finding.who().ranks().begin(), finding.who().ranks().end());
  for (const EdgeName& e : finding.who().edges()) ranks.insert({e.from(), e.to()});
  std::vector<const model::Member*> named;
  for (const model::Member& m : c.members) {
    if (m.job_rank >= 0 && ranks.count(m.job_rank)) named.push_back(&m);
  }
  return named;
}

Check Made(Check::Outcome outcome, std::string expects, std::string seen, std::string source) {
  Check check;
  check.set_outcome(outcome);
  check.set_expects(std::move(expects));
  check.set_seen(std::move(seen));
  check.set_source(std::move(source));
  return check;
}

Confidence::Value Lower(Confidence::Value confidence) {
  return confidence == Confidence::established ? Confidence::probable : std::min(confidence, Confidence::possible);
}

}  // namespace

RegisterChecks::RegisterChecks(std::initializer_list<Kind::Value> kinds, CheckFn check) {
  for (Kind::Value kind : kinds) All().emplace(kind, check);
}

bool CheckedPlace::Names(const model::Member& m) const { return std::find(who.begin(), who.end(), &m) != who.end(); }

Check Holds(std::string expects, std::string seen, std::string source) {
  return Made(Check::holds, std::move(expects), std::move(seen), std::move(source));
}
Check Fails(std::string expects, std::string seen, std::string source) {
  return Made(Check::fails, std::move(expects), std::move(seen), std::move(source));
}
Check NotSeen(std::string expects, std::string collect) {
  return Made(Check::not_seen, std::move(expects), std::move(collect), "");
}

std::vector<EdgeAt> EdgesAt(const CheckedPlace& place, const model::Member& member, bool out, bool neighbour) {
  std::vector<EdgeAt> found;
  for (const model::Edge& e : place.job.edges) {
    if (e.communicator != place.communicator.index || e.p2p || (out ? e.from : e.to) != member.rank) continue;
    const bool sender = out != neighbour;  // the member's own end of an edge that leaves it is the sender
    const std::optional<model::EdgeSide>& side = sender ? e.sender : e.receiver;
    if (!side || side->raw == nullptr || side->position != place.position || side->position_p2p) continue;
    found.push_back({&e, &*side, &place.communicator.members[static_cast<size_t>(sender ? e.from : e.to)]});
  }
  return found;
}

std::string EdgeText(const CheckedPlace& place, const model::Edge& edge) {
  const auto name = [&](int rank) {
    const int job_rank = place.communicator.members[static_cast<size_t>(rank)].job_rank;
    return job_rank >= 0 ? absl::StrCat(job_rank) : absl::StrCat("(", rank, ")");
  };
  return absl::StrCat("edge ", name(edge.from), "->", name(edge.to), ", channel ", edge.channel);
}

void AddChecks(const model::Job& job, Candidate* candidate) {
  Finding& finding = candidate->finding;
  const bool about_many =
      finding.kind() == Kind::gpu_slow || finding.kind() == Kind::rank_slow || finding.kind() == Kind::edge_slow;
  if (candidate->communicator < 0 || static_cast<size_t>(candidate->communicator) >= job.communicators.size()) return;
  if ((candidate->position == 0 && !about_many)) return;
  const model::Communicator& c = job.communicators[static_cast<size_t>(candidate->communicator)];
  CheckedPlace place{job, c, candidate->position, finding, Named(c, finding)};
  if (place.who.empty()) return;
  std::vector<Check> checks;
  const auto [first, last] = All().equal_range(finding.kind());
  for (auto it = first; it != last; ++it) it->second(place, &checks);
  std::stable_sort(checks.begin(), checks.end(), [](const Check& a, const Check& b) { return a.outcome() > b.outcome(); });
  for (Check& check : checks) {
    if (check.outcome() == Check::fails) finding.set_confidence(Lower(finding.confidence()));
    *finding.add_checks() = std::move(check);
  }
}

}  // namespace ringscope::reasoning
