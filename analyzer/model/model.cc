#include "analyzer/model/model.h"

#include "analyzer/model/roles.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {

int64_t Process::ToRealtime(int64_t monotonic_ns) const {
  if (monotonic_ns == 0) return 0;
  if (time.clock >= 0) return SatAdd(time.job_ns, SatSub(monotonic_ns, time.at_ns));
  return SatAdd(monotonic_ns, SatSub(trace.clock().realtime_ns(), trace.clock().monotonic_ns()));
}

const Op* Member::Collective(uint64_t position) const {
  // Mostly nothing is missing between the oldest and the newest.
  if (position >= first_kept && position - first_kept < by_position.size()) {
    const Op& there = ops[by_position[position - first_kept]];
    if (there.position() == position) return &there;
  }
  const auto at =
      std::lower_bound(by_position.begin(), by_position.end(), position,
                       [this](uint32_t i, uint64_t p) { return ops[i].position() < p; });
  if (at == by_position.end() || ops[*at].position() != position) return nullptr;
  return &ops[*at];
}

std::string Communicator::SizeText() const {
  return absl::StrCat(size_known ? "" : "at least ", n_ranks);
}

std::string Communicator::Label() const {
  // NCCL prints the id unpadded ("commId 0x%lx"): its first digits find the lines in a log.
  std::string shown = absl::StrFormat("0x%x", id).substr(0, 10);
  if (instance > 0) absl::StrAppend(&shown, "#", instance + 1);
  if (!name.empty()) return absl::StrCat(name, " (", shown, ")");
  const bool told = role_inferred && role != Role::kWorld && role != Role::kUnknown;
  return told ? absl::StrCat(RoleText(role), " group ", shown) : shown;
}

std::string Job::HostOf(int job_rank) const {
  if (job_rank < 0) return "";
  for (const Process& p : processes) {
    if (p.job_rank == job_rank) return p.host;
  }
  for (const Communicator& c : communicators) {
    for (const Member& m : c.members) {
      if (m.job_rank == job_rank && m.has_record())
        return processes[static_cast<size_t>(m.process)].host;
    }
  }
  return "";
}

}  // namespace ringscope::model
