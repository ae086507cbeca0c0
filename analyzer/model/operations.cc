// Operations of each member in program order: full ones as they are, older ones out of their
// columns.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyzer/model/build.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

// Entry i of a column; a column may be shorter than the others in a damaged record.
template <typename Column>
auto At(const Column& column, int i) -> decltype(column.Get(0) + 0) {
  return i < column.size() ? column.Get(i) : 0;
}

void ExpandColumns(const trace::OperationColumns& columns, std::vector<Op>* ops) {
  int64_t position[2] = {0, 0};
  int64_t entered = 0;
  int run = -1;  // of equal generations
  const int n = columns.signature_size();
  for (int i = 0; i < n; ++i) {
    const uint32_t which = columns.signature(i);
    if (which >= static_cast<uint32_t>(columns.signatures_size())) continue;
    const trace::Signature& s = columns.signatures(static_cast<int>(which));
    int64_t& at = position[s.p2p() ? 1 : 0];
    at = SatAdd(at, At(columns.position_delta(), i));
    entered = SatAdd(entered, At(columns.entered_delta_ns(), i));
    Op op;
    op.full = false;
    trace::Operation& raw = op.raw;
    raw.set_row(At(columns.row(), i));
    while (run + 1 < columns.generation_from_size() &&
           columns.generation_from(run + 1) <= static_cast<uint32_t>(i))
      ++run;
    if (run >= 0) raw.set_generation(At(columns.generation(), run));
    raw.set_position(static_cast<uint64_t>(at));
    raw.set_p2p(s.p2p());
    raw.set_func(s.func());
    raw.set_datatype(s.datatype());
    raw.set_count(s.count());
    raw.set_root(s.root());
    raw.set_algo(s.algo());
    raw.set_proto(s.proto());
    raw.set_channels(s.channels());
    raw.set_peer(s.peer());
    raw.set_stream(s.stream());
    raw.set_graph_captured(s.graph_captured());
    raw.set_from_api(s.from_api());
    raw.set_tail_tasks(s.tail_tasks());
    raw.set_grouped(s.grouped());
    raw.set_copy_engine(s.copy_engine());
    raw.set_thread(s.thread());
    raw.set_group(At(columns.group(), i));
    // Sums of damaged differences: within the range that CutToRange() leaves.
    const auto cut = [](int64_t ns) { return std::clamp<int64_t>(ns, 0, int64_t{1} << 58); };
    raw.set_entered_ns(cut(entered));
    if (const uint64_t d = At(columns.returned_after_ns(), i); d != 0)
      raw.set_returned_ns(cut(SatAdd(entered, SatCast(d))));
    if (const int64_t d = At(columns.enqueued_after_ns(), i); d != 0)
      raw.set_enqueued_ns(cut(SatAdd(entered, d)));
    if (const int64_t d = At(columns.started_after_ns(), i); d != 0) {
      raw.set_started_ns(cut(SatAdd(entered, d)));
      if (const uint64_t t = At(columns.duration_ns(), i); t != 0)
        raw.set_finished_ns(cut(SatAdd(raw.started_ns(), SatCast(t))));
    }
    if (const uint64_t d = At(columns.gpu_duration_ns(), i); d != 0)
      raw.set_gpu_finished_ns(cut(SatCast(d)));
    ops->push_back(std::move(op));
  }
}

// What is not seen is not "no": a launch that NCCL does not report (docs/nccl.md: Broadcast
// since 2.29, symmetric kernels, copy engines), completion that was not asked for, an operation
// that the recorder itself considers over.
void SetTruth(const trace::Communicator& comm, bool later_enqueued, Op* op) {
  const trace::Operation& raw = op->raw;
  const bool over = !op->full || !raw.unfinished();
  const auto seen = [](bool yes, bool hidden) {
    return yes ? Truth::kYes : hidden ? Truth::kUnknown : Truth::kNo;
  };
  op->entered = Truth::kYes;
  op->returned = seen(raw.returned_ns() != 0, !raw.from_api() || over);
  const bool launch_hidden =
      raw.enqueued_ns() == 0 && (over || later_enqueued || raw.copy_engine());
  op->enqueued = seen(raw.enqueued_ns() != 0, launch_hidden);
  const bool gpu_hidden = !comm.completion_visible() || raw.copy_engine() || launch_hidden;
  const bool started = raw.started_ns() != 0 || raw.kernels_started() > 0 || raw.finished_ns() != 0;
  op->started = seen(started, gpu_hidden || over);
  op->finished = seen(raw.finished_ns() != 0, gpu_hidden || over);
  // Work that runs was enqueued, whichever of the two facts reached us first.
  if (started) op->enqueued = Truth::kYes;
}

int64_t When(const Op& op) {
  return op.raw.entered_ns() != 0 ? op.raw.entered_ns() : op.raw.enqueued_ns();
}

void ExpandMember(Member* m) {
  ExpandColumns(m->raw->older(), &m->ops);
  for (const auto& raw : m->raw->operations()) {
    m->ops.emplace_back();
    m->ops.back().raw = raw;
  }
  const auto before = [](const Op& a, const Op& b) {
    return std::make_tuple(When(a), a.p2p(), a.position()) <
           std::make_tuple(When(b), b.p2p(), b.position());
  };
  if (!std::is_sorted(m->ops.begin(), m->ops.end(), before))
    std::stable_sort(m->ops.begin(), m->ops.end(), before);
  bool later_enqueued = false;
  for (size_t i = m->ops.size(); i-- > 0;) {
    SetTruth(*m->raw, later_enqueued, &m->ops[i]);
    later_enqueued |= m->ops[i].raw.enqueued_ns() != 0;
  }
  for (size_t i = 0; i < m->ops.size(); ++i) {
    if (!m->ops[i].p2p() && m->ops[i].position() != 0)
      m->by_position.push_back(static_cast<uint32_t>(i));
  }
  std::stable_sort(m->by_position.begin(), m->by_position.end(), [m](uint32_t a, uint32_t b) {
    return m->ops[a].position() < m->ops[b].position();
  });
  if (!m->by_position.empty()) {
    m->first_kept = m->ops[m->by_position.front()].position();
    m->collectives = std::max(m->collectives, m->ops[m->by_position.back()].position());
  }
}

}  // namespace

void ExpandOperations(Job* job, Notes*) {
  for (Communicator& c : job->communicators) {
    for (Member& m : c.members) {
      if (m.raw != nullptr) ExpandMember(&m);
    }
  }
}

}  // namespace ringscope::model
