#include "analyzer/reasoning/wait_graph_progress.h"

#include <algorithm>

#include "analyzer/model/job_time.h"
#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/quiet.h"

namespace ringscope::reasoning {

using graph::Progress;
using graph::Stage;
using model::Truth;

bool Incomplete(const model::EdgeSide& side) {
  return side.open && side.raw != nullptr && !side.raw->current_stopped() &&
         side.raw->done() < side.raw->n_steps();
}

namespace {

bool GpuFilled(const model::EdgeSide& sender) {
  if (sender.raw == nullptr || sender.position == 0) return false;
  const trace::Edge& e = *sender.raw;
  if (e.transmitted() > 0 || e.done() > 0) return true;
  return std::any_of(e.slots().begin(), e.slots().end(), [](int state) {
    return state == trace::SEND_PEER_WAIT || state == trace::SEND_WAIT;
  });
}

}  // namespace

OpenEdges::OpenEdges(const model::Job& job) {
  for (const model::Edge& edge : job.edges) {
    if (edge.sender && Incomplete(*edge.sender) && edge.sender->position != 0) {
      bits_[{edge.communicator, edge.from, edge.p2p, edge.sender->position}] |= 1;
    }
    if (edge.sender && GpuFilled(*edge.sender)) {
      bits_[{edge.communicator, edge.from, edge.p2p, edge.sender->position}] |= 4;
    }
    if (edge.receiver && edge.receiver->raw != nullptr && edge.receiver->position != 0 &&
        edge.receiver->raw->done() > 0) {
      bits_[{edge.communicator, edge.to, edge.p2p, edge.receiver->position}] |= 8;
    }
    if (edge.receiver && Incomplete(*edge.receiver) && edge.receiver->position != 0) {
      bits_[{edge.communicator, edge.to, edge.p2p, edge.receiver->position}] |= 2;
    }
  }
}

bool OpenEdges::Has(int communicator, int member, bool p2p, uint64_t position, int bit) const {
  const auto it = bits_.find({communicator, member, p2p, position});
  return it != bits_.end() && (it->second & bit) != 0;
}
bool OpenEdges::Receiving(int communicator, int member, bool p2p, uint64_t position) const {
  return Has(communicator, member, p2p, position, 2);
}
bool OpenEdges::Sending(int communicator, int member, bool p2p, uint64_t position) const {
  return Has(communicator, member, p2p, position, 1);
}
bool OpenEdges::Ran(int communicator, int member, bool p2p, uint64_t position) const {
  return Has(communicator, member, p2p, position, 4);
}
bool OpenEdges::Touched(int communicator, int member, bool p2p, uint64_t position) const {
  return Has(communicator, member, p2p, position, 4 | 8);
}

bool KernelsVisible(const model::Communicator& communicator) {
  return std::any_of(
      communicator.members.begin(), communicator.members.end(), [](const model::Member& m) {
        if (m.raw != nullptr && m.raw->from_dump()) return true;  // PyTorch's own events always come
        return std::any_of(m.ops.begin(), m.ops.end(),
                           [](const model::Op& op) { return op.started == Truth::kYes; });
      });
}

Progress ProgressOf(const model::Op& op, bool kernels_visible, bool receiving, bool sending,
                    bool ran) {
  Progress p{Stage::kEntered, Stage::kFinished};
  if (op.enqueued == Truth::kYes) p.at_least = Stage::kEnqueued;
  if (op.started == Truth::kYes || (ran && !kernels_visible)) p.at_least = Stage::kStarted;
  if (op.finished == Truth::kYes) p.at_least = Stage::kFinished;
  if (op.enqueued == Truth::kNo) {
    p.at_most = Stage::kEntered;
  } else if (!kernels_visible) {
    p.at_most = Stage::kFinished;
  } else if (op.started == Truth::kNo) {
    p.at_most = Stage::kEnqueued;
  } else if (op.finished == Truth::kNo) {
    p.at_most = Stage::kStarted;
  }
  // Data that has not come in cannot have been consumed, whatever a kernel event of the same group
  // says (NCCL attributes the kernels of grouped messages loosely). A send may be over for the GPU
  // while the network still works on it, so it counts only where the GPU's end is not visible.
  if ((receiving || (sending && (op.finished == Truth::kUnknown || !kernels_visible))) &&
      p.at_most == Stage::kFinished) {
    p.at_most = Stage::kStarted;
  }
  // Not known, not open in the recorder's eyes, and no data of it moves: over.
  if (p.at_most == Stage::kFinished && !op.raw.unfinished()) p.at_least = Stage::kFinished;
  // A contradiction in a damaged record: the later fact stands.
  p.at_least = std::min(p.at_least, p.at_most);
  return p;
}

Progress InStartedGroup(const Progress& p, bool receiving) {
  if (!p.Before(Stage::kStarted) || !p.Reached(Stage::kEnqueued)) return p;
  return {Stage::kStarted, receiving ? Stage::kStarted : Stage::kFinished};
}

Standstill::Standstill(const model::Job& job) : job_(job) {
  for (const model::Communicator& c : job.communicators) {
    for (const model::Member& m : c.members) {
      if (m.raw == nullptr) continue;
      int64_t last = m.raw->last_progress_ns();
      for (const model::Op& op : m.ops) {
        if (op.raw.stream() == 0 && !op.raw.from_api()) continue;
        int64_t& at = stream_progress_[{m.process, op.raw.stream()}];
        at = std::max({at, op.raw.started_ns(), op.raw.finished_ns()});
        if (op.started == Truth::kYes && op.finished == Truth::kNo) at = std::max(at, last);
      }
    }
  }
}

// Some member that lives saw the collective move less than the stall time before its record ends. Records of one moment are seconds
// apart: one of before the move looks like a standstill, and beside one of after it like lost data.
bool Standstill::Moves(const model::Communicator& c, uint64_t position) const {
  const auto [memo, fresh] = moves_.try_emplace({c.index, position}, false);
  if (!fresh) return memo->second;
  model::JobTime newest;
  for (const model::Member& m : c.members) {
    if (!m.has_record()) continue;
    const model::JobTime sign = model::LastSignOf(job_.processes[static_cast<size_t>(m.process)]);
    if (!newest.known() || model::SatSub(sign.ns, sign.error_ns) > model::SatSub(newest.ns, newest.error_ns)) newest = sign;
  }
  for (const model::Member& m : c.members) {
    if (!m.has_record() || m.finalized_open || m.raw == nullptr) continue;
    const model::Process& process = job_.processes[static_cast<size_t>(m.process)];
    const double stall = process.trace.settings().stall_seconds() * 1e9;
    const bool lives = process.life == model::Life::kRunning || process.life == model::Life::kUnknown ||
                       process.life == model::Life::kExited;  // who ended in order had moved until then
    if (!lives || static_cast<double>(model::AfterAtLeast(model::LastSignOf(process), newest)) > stall) continue;
    // Later operations that move say the same: kernels of one communicator run one after the other.
    int64_t last = m.collectives > position ? m.raw->last_progress_ns() : 0;
    if (const model::Op* op = m.Collective(position)) last = std::max({last, op->raw.started_ns(), op->raw.finished_ns()});
    for (const trace::Edge& e : process.trace.edges()) {
      if (!e.foreign() && !e.p2p() && e.communicator() == m.raw->row() && e.current_position() >= position &&
          (e.current_position() > position || e.transmitted() > 0 || e.done() > 0))
        last = std::max(last, e.changed_ns());
    }
    if (last != 0 && static_cast<double>(LastSign(process) - last) < stall) return memo->second = true;
  }
  return false;
}

bool Standstill::Of(const model::Communicator& communicator, const model::Member& member,
                    const model::Op& op, const Progress& progress) const {
  if (!Stuck(job_, communicator, member, op)) return false;
  if (!member.finalized_open && !op.p2p() && Moves(communicator, op.position())) return false;
  if (member.finalized_open || member.raw == nullptr) return true;
  const model::Process& process = job_.processes[member.process];
  for (const trace::StallFinding& stall : process.trace.stalls()) {
    if (stall.communicator() == member.raw->row() && stall.resolved_ns() == 0) return true;
  }
  const trace::Settings& settings = process.trace.settings();
  const int64_t now = LastSign(process);
  // Lazy connections and library loading: the first operation of a communicator is given more time.
  const bool first = communicator.completion_visible && member.raw->completed() == 0 &&
                     std::none_of(member.ops.begin(), member.ops.end(),
                                  [](const model::Op& o) { return o.finished == Truth::kYes; });
  const double patience = first ? std::max(settings.stall_seconds(), settings.first_stall_seconds())
                                : settings.stall_seconds();
  if (first && static_cast<double>(now - op.raw.entered_ns()) < patience * 1e9) return false;
  // What waits in a queue that moves does not stand still.
  if (progress.at_least < Stage::kStarted) {
    const auto it = stream_progress_.find({member.process, op.raw.stream()});
    if (it != stream_progress_.end() && static_cast<double>(now - it->second) < patience * 1e9)
      return false;
  }
  return true;
}

}  // namespace ringscope::reasoning
