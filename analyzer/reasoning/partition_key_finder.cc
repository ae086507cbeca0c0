// InfiniBand partitions: two limited members, or keys of different partitions at the index that NCCL uses, cannot exchange
// anything.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

constexpr uint32_t kFullMember = 0x8000;

std::vector<Candidate> FindPartitionKeys(const model::Job& job) {
  const auto completions = Completions(job);
  const auto refused = EventsOf(job, {"nccl-ibv-modify-qp"});
  const Completion* error = FirstError(completions);
  if ((error == nullptr || error->status != kRetryExceeded) && refused.empty()) return {};
  if (error != nullptr && WorkedBefore(job, *error->event).has_value()) return {};
  const model::Setting* setting = SettingOf(job, "NCCL_IB_PKEY");
  int index = 0;
  if (setting != nullptr && !absl::SimpleAtoi(setting->value, &index)) index = 0;

  std::vector<const model::PartitionKey*> used;
  bool known = false;  // the table was shown, whether or not it holds the index
  for (const model::PartitionKey& k : job.evidence.network.partition_keys) {
    const auto& adapters = job.evidence.network.adapters;
    const bool mine = adapters.empty() || std::any_of(adapters.begin(), adapters.end(),
                                                      [&](const model::AdapterUse& a) { return a.device == k.device; });
    if (!mine) continue;
    known = true;
    if (k.index == index) used.push_back(&k);
  }
  const bool absent = known && used.empty();
  const bool limited = !used.empty() && std::all_of(used.begin(), used.end(),
                                                    [](const model::PartitionKey* k) { return (k->key & kFullMember) == 0; });
  const bool differ = std::any_of(used.begin(), used.end(), [&](const model::PartitionKey* k) {
    return (k->key | kFullMember) != (used.front()->key | kFullMember);
  });
  if (!absent && !limited && !differ) return {};
  Candidate c = Say(Kind::misconfigured, Confidence::probable, Layer::kConfiguration,
                    absl::StrCat("Partition keys (P_Key) do not fit: index ", index,
                                 absent   ? ", which NCCL uses, is empty"
                                 : differ ? " belongs to different partitions"
                                          : " is a limited member, and two of these cannot talk to each other"),
                    "NET-03", "nccl-ib-completion");
  c.stops_job = true;
  c.state = error != nullptr ? State::crashed : State::init_failure;
  for (size_t i = 0; i < used.size() && i < 4; ++i)
    Cite(job, used[i]->where,
         absl::StrFormat("%s %s:%d pkey %d: 0x%04x", used[i]->by.host, used[i]->device, used[i]->port, used[i]->index,
                         used[i]->key),
         &c.finding);
  if (absent)
    Cite(job, job.evidence.network.partition_keys.front().where,
         absl::StrCat("the table of partition keys has no index ", index), &c.finding);
  CiteSettings(job, "NCCL_IB_PKEY", 2, &c.finding);
  CiteCompletions(job, completions, 3, &c.finding);
  CiteAll(job, refused, 2, &c.finding);
  std::vector<const model::Event*> reporters = refused;
  for (const Completion& e : completions) reporters.push_back(e.event);
  OnlyReported(reporters, &c.finding);
  c.finding.set_refuted_by("ib_write_bw between the hosts works with the same --pkey_index");
  SetNext(
      "Set NCCL_IB_PKEY to the index of a partition in which both hosts are full members (0x8000 is set), or have the subnet "
      "manager make them so.",
      "grep . /sys/class/infiniband/*/ports/1/pkeys/* | grep -v 0x0000; ib_write_bw --pkey_index=<index> <other host>",
      &c.finding);
  return {c};
}

const Register kRegister("partition_key", FindPartitionKeys);

}  // namespace
}  // namespace ringscope::reasoning
