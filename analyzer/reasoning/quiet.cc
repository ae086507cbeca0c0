#include "analyzer/reasoning/quiet.h"

#include <algorithm>

#include "analyzer/model/safe_math.h"

namespace ringscope::reasoning {

int64_t LastSign(const model::Process& process) {
  const trace::Trace& trace = process.trace;
  return std::max(
      {trace.written_ns(), trace.liveness().heartbeat_ns(), trace.liveness().last_callback_ns()});
}

bool Stuck(const model::Job& job, const model::Communicator&, const model::Member& member,
           const model::Op& op) {
  if (!member.has_record()) return false;
  if (member.finalized_open) return true;
  const model::Process& process = job.processes[member.process];
  const trace::Trace& trace = process.trace;
  int64_t last = std::max({op.raw.entered_ns(), op.raw.returned_ns(), op.raw.enqueued_ns(),
                           op.raw.started_ns(), op.raw.finished_ns()});
  if (member.raw != nullptr) {
    for (const trace::StallFinding& stall : trace.stalls()) {
      if (stall.communicator() == member.raw->row() && stall.resolved_ns() == 0) return true;
    }
    // A large transfer is one operation for long, but its steps move.
    last = std::max(last, member.raw->last_progress_ns());
    for (const trace::Edge& edge : trace.edges()) {
      if (!edge.foreign() && edge.communicator() == member.raw->row())
        last = std::max(last, edge.changed_ns());
    }
  }
  return static_cast<double>(model::SatSub(LastSign(process), last)) >=
         trace.settings().stall_seconds() * 1e9;
}

}  // namespace ringscope::reasoning
