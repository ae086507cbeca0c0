// Operations of each member in program order: full ones as they are, older ones out of their
// columns.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
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

// The part of an operation that its signature tells.
trace::Operation ShapeOf(const trace::Signature& s) {
  trace::Operation shape;
  shape.set_p2p(s.p2p());
  shape.set_func(s.func());
  shape.set_datatype(s.datatype());
  shape.set_count(s.count());
  shape.set_root(s.root());
  shape.set_algo(s.algo());
  shape.set_proto(s.proto());
  shape.set_channels(s.channels());
  shape.set_peer(s.peer());
  shape.set_stream(s.stream());
  shape.set_graph_captured(s.graph_captured());
  shape.set_from_api(s.from_api());
  shape.set_tail_tasks(s.tail_tasks());
  shape.set_grouped(s.grouped());
  shape.set_copy_engine(s.copy_engine());
  shape.set_reduction(s.reduction());
  shape.set_thread(s.thread());
  return shape;
}

void ExpandColumns(const trace::OperationColumns& columns, History* m) {
  m->shapes.reserve(static_cast<size_t>(columns.signatures_size()));
  for (const trace::Signature& s : columns.signatures()) m->shapes.push_back(ShapeOf(s));
  int64_t position[2] = {0, 0};
  int64_t entered = 0;
  int run = -1;  // of equal generations
  const int n = columns.signature_size();
  for (int i = 0; i < n; ++i) {
    const uint32_t which = columns.signature(i);
    if (which >= m->shapes.size()) continue;
    const trace::Operation& shape = m->shapes[which];
    int64_t& at = position[shape.p2p() ? 1 : 0];
    at = SatAdd(at, At(columns.position_delta(), i));
    entered = SatAdd(entered, At(columns.entered_delta_ns(), i));
    while (run + 1 < columns.generation_from_size() &&
           columns.generation_from(run + 1) <= static_cast<uint32_t>(i))
      ++run;
    const uint32_t generation = run >= 0 ? At(columns.generation(), run) : 0;
    // Sums of damaged differences: within the range that CutToRange() leaves.
    const auto cut = [](int64_t ns) { return std::clamp<int64_t>(ns, 0, int64_t{1} << 58); };
    OpRecord::Times times;
    times.entered = cut(entered);
    if (const uint64_t d = At(columns.returned_after_ns(), i); d != 0)
      times.returned = cut(SatAdd(entered, SatCast(d)));
    if (const int64_t d = At(columns.enqueued_after_ns(), i); d != 0)
      times.enqueued = cut(SatAdd(entered, d));
    if (const int64_t d = At(columns.started_after_ns(), i); d != 0) {
      times.started = cut(SatAdd(entered, d));
      if (const uint64_t t = At(columns.duration_ns(), i); t != 0)
        times.finished = cut(SatAdd(times.started, SatCast(t)));
    }
    if (const uint64_t d = At(columns.gpu_duration_ns(), i); d != 0) times.gpu = cut(SatCast(d));
    m->ops.emplace_back(OpRecord(shape, static_cast<uint64_t>(at), At(columns.row(), i), At(columns.group(), i), generation, times),
                        /*in_full=*/false);
  }
}

// What is not seen is not "no": a launch that NCCL does not report (docs/nccl.md: Broadcast
// since 2.29, symmetric kernels, copy engines), completion that was not asked for, an operation
// that the recorder itself considers over.
void SetTruth(const trace::Communicator& comm, bool later_enqueued, Op* op) {
  const OpRecord& raw = op->raw;
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

void ExpandMember(History history, Member* m) {
  m->shapes = std::move(history.shapes);
  m->ops = std::move(history.ops);
  for (const trace::Operation& full : m->raw->operations()) m->ops.emplace_back(OpRecord(full), /*in_full=*/true);
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
  m->by_position.reserve(m->ops.size());
  for (size_t i = 0; i < m->ops.size(); ++i) {
    if (!m->ops[i].p2p() && m->ops[i].position() != 0)
      m->by_position.push_back(static_cast<uint32_t>(i));
  }
  const auto lower = [m](uint32_t a, uint32_t b) { return m->ops[a].position() < m->ops[b].position(); };
  if (!std::is_sorted(m->by_position.begin(), m->by_position.end(), lower))
    std::stable_sort(m->by_position.begin(), m->by_position.end(), lower);
  if (!m->by_position.empty()) {
    m->first_kept = m->ops[m->by_position.front()].position();
    m->collectives = std::max(m->collectives, m->ops[m->by_position.back()].position());
  }
}

void TakeHistories(trace::Trace* trace, std::vector<History>* histories) {
  if (!histories->empty()) return;
  histories->resize(static_cast<size_t>(trace->communicators_size()));
  for (int i = 0; i < trace->communicators_size(); ++i) {
    trace::Communicator& c = *trace->mutable_communicators(i);
    History& history = (*histories)[static_cast<size_t>(i)];
    // Room for the operations in full, which follow when the record has found its place.
    history.ops.reserve(static_cast<size_t>(c.older().signature_size() + c.operations_size()));
    ExpandColumns(c.older(), &history);
    delete c.release_older();
  }
}

}  // namespace

void TakeHistories(Record* record) { TakeHistories(&record->trace, &record->histories); }

void ExpandOperations(Job* job, Notes*) {
  std::unordered_map<const trace::Communicator*, Member*> members;
  for (Communicator& c : job->communicators) {
    for (Member& m : c.members) {
      if (m.raw != nullptr) members[m.raw] = &m;
    }
  }
  for (Process& p : job->processes) {
    TakeHistories(&p.trace, &p.histories);
    for (int i = 0; i < p.trace.communicators_size(); ++i) {
      const auto found = members.find(&p.trace.communicators(i));
      if (found != members.end()) ExpandMember(std::move(p.histories[static_cast<size_t>(i)]), found->second);
    }
    p.histories.clear();
    p.histories.shrink_to_fit();
  }
}

}  // namespace ringscope::model
