#include "analyzer/reasoning/young.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/quiet.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

// Nanoseconds since anything of this operation, or of its communicator, moved.
int64_t Waited(const model::Process& process, const model::Member& member, const model::Op& op) {
  int64_t last = std::max({op.raw.entered_ns(), op.raw.returned_ns(), op.raw.enqueued_ns(),
                           op.raw.started_ns(), member.raw->last_progress_ns()});
  for (const trace::Edge& edge : process.trace.edges()) {
    if (!edge.foreign() && edge.communicator() == member.raw->row())
      last = std::max(last, edge.changed_ns());
  }
  return model::SatSub(LastSign(process), last);
}

}  // namespace

std::string YoungWaits(const model::Job& job) {
  std::set<int> waiting;  // processes
  int64_t longest = 0;
  double stall_seconds = 0;
  for (const model::Communicator& c : job.communicators) {
    for (const model::Member& m : c.members) {
      if (!m.has_record() || m.raw == nullptr || m.finalized) continue;
      const model::Process& process = job.processes[m.process];
      if (process.trace.liveness().exiting()) continue;
      for (const model::Op& op : m.ops) {
        if (!op.raw.unfinished()) continue;
        const int64_t waited = Waited(process, m, op);
        if (static_cast<double>(waited) < thresholds::kYoungSeconds * 1e9) continue;
        waiting.insert(m.process);
        longest = std::max(longest, waited);
        stall_seconds = std::max(stall_seconds, process.trace.settings().stall_seconds());
      }
    }
  }
  if (waiting.empty()) return "";
  return absl::StrFormat(
      "Operations of %d process%s have been open without progress for up to %.0f s, less than the "
      "stall time of %g s: if they still are, ask again.",
      waiting.size(), waiting.size() == 1 ? "" : "es", static_cast<double>(longest) / 1e9,
      stall_seconds);
}

}  // namespace ringscope::reasoning
