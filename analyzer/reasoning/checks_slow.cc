// Data for a GPU that starts late lies and waits for it, longer than for any other.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/reasoning/checks.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

// ns a received step waits for the GPU, mean over the record; -1: the member received none.
int64_t GpuWait(const CheckedPlace& place, const model::Member& m) {
  int64_t waits = 0;
  uint64_t steps = 0;
  for (const model::Edge& e : place.job.edges) {
    if (e.communicator != place.communicator.index || e.p2p || e.to != m.rank || !e.receiver ||
        e.receiver->raw->wait_ns_size() < 3)
      continue;
    waits += std::max<int64_t>(0, e.receiver->raw->wait_ns(2)) / 1024;  // sums of many steps over hours: stay clear of overflow
    steps += e.receiver->raw->steps_total();
  }
  return steps == 0 ? -1 : static_cast<int64_t>(static_cast<double>(waits) * 1024 / static_cast<double>(steps));
}

void LateGpu(const CheckedPlace& place, std::vector<Check>* checks) {
  if (place.who.size() != 1) return;
  const model::Member& late = *place.who.front();
  const int64_t own = GpuWait(place, late);
  int64_t most = -1;
  const model::Member* other = nullptr;
  for (const model::Member& m : place.communicator.members) {
    if (place.Names(m)) continue;
    if (const int64_t wait = GpuWait(place, m); wait > most) {
      most = wait;
      other = &m;
    }
  }
  if (own < 0 || other == nullptr) return;
  const std::string expects =
      absl::StrCat("data waits longer for the GPU of ", RankText(place.communicator, late), " than for any other");
  const std::string seen = absl::StrCat(DurationText(own), " a step, at most ", DurationText(most), " on others (",
                                        RankText(place.communicator, *other), ")");
  if (own > most) {
    checks->push_back(Holds(expects, seen, SourceText(place.job, late)));
  } else {
    checks->push_back(NotSeen(
        expects, absl::StrCat(seen, ": the sums since the start do not show it; look at a window (RINGSCOPE_STREAM=steps)")));
  }
}

const RegisterChecks kRegister({Kind::gpu_slow}, LateGpu);

}  // namespace
}  // namespace ringscope::reasoning
