#include "analyzer/model/clock_bounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

// Its times are those of its kernels, and they wait for the others'.
bool Timed(const Op& op) {
  return op.raw.entered_ns() != 0 && !op.raw.graph_captured() && !op.raw.copy_engine() && op.raw.count() != 0;
}
bool Done(const Op& op) { return Timed(op) && op.finished == Truth::kYes && op.raw.finished_ns() != 0; }

const Op* FirstDone(const Member& m) {
  const auto found = std::find_if(m.ops.begin(), m.ops.end(), Done);
  return found == m.ops.end() ? nullptr : &*found;
}
const Op* LastDone(const Member& m) {
  const auto found = std::find_if(m.ops.rbegin(), m.ops.rend(), Done);
  return found == m.ops.rend() ? nullptr : &*found;
}

// Who must have entered before whom may leave.
enum class Meets { kAll, kRootFirst, kRootLast, kNo };
Meets MeetsOf(trace::Func func) {
  switch (func) {
    case trace::ALL_REDUCE:
    case trace::ALL_GATHER:
    case trace::REDUCE_SCATTER:
    case trace::ALL_TO_ALL:
      return Meets::kAll;
    case trace::BROADCAST:
    case trace::SCATTER:
      return Meets::kRootFirst;
    case trace::REDUCE:
    case trace::GATHER:
      return Meets::kRootLast;
    default:
      return Meets::kNo;
  }
}

class Builder {
 public:
  Builder(const Job& job, const GpuClocks& gpus, int clocks, const std::vector<int>& clock_of, bool newest, size_t instances)
      : job_(job), gpus_(gpus), clock_of_(clock_of), newest_(newest), instances_(instances) {
    out_.nodes = clocks;
    out_.at_ns.assign(static_cast<size_t>(clocks), 0);
    out_.age_ns.assign(static_cast<size_t>(clocks), 0);
    FindReferences();
    for (const MessageCount& count : job.messages) messages_[count.communicator].push_back(&count);
  }

  ClockBounds Take() {
    for (const Communicator& c : job_.communicators) {
      std::set<int> here;
      for (const Member& m : c.members) {
        if (ClockOf(m) >= 0) here.insert(ClockOf(m));
      }
      if (here.size() < 2) continue;
      Collectives(c);
      Messages(c);
    }
    return std::move(out_);
  }

 private:
  int ClockOf(const Member& m) const { return m.has_record() ? clock_of_[static_cast<size_t>(m.process)] : -1; }

  // The newest (oldest) completion on each clock: bounds are as good as new there.
  void FindReferences() {
    for (const Communicator& c : job_.communicators) {
      for (const Member& m : c.members) {
        const int clock = ClockOf(m);
        if (clock < 0) continue;
        int64_t& at = out_.at_ns[static_cast<size_t>(clock)];
        const Op* op = newest_ ? LastDone(m) : FirstDone(m);
        if (op != nullptr && (at == 0 || (op->raw.finished_ns() > at) == newest_)) at = op->raw.finished_ns();
      }
    }
  }
  int64_t AgeOf(int clock, int64_t at) const {
    const int64_t reference = out_.at_ns[static_cast<size_t>(clock)];
    return std::max(SatSub(reference, at), SatSub(at, reference));
  }
  int64_t Aged(int clock, int64_t at) const {
    return static_cast<int64_t>(static_cast<double>(AgeOf(clock, at)) * kDriftPpm * 1e-6);
  }

  // When the host, or better its GPU, was surely in it; and when it surely was out of it again.
  int64_t Came(const Communicator& c, const Member& m, const Op& op) const {
    const GpuClock* gpu = op.full && op.raw.gpu_started_ns() != 0 ? gpus_.Of(c, m) : nullptr;
    return gpu == nullptr ? op.raw.entered_ns() : std::max(op.raw.entered_ns(), gpu->HostEarliest(op.raw.gpu_started_ns()));
  }
  int64_t Left(const Communicator& c, const Member& m, const Op& op) const {
    const GpuClock* gpu = op.full && op.raw.gpu_started_ns() != 0 && op.raw.gpu_finished_ns() != 0 ? gpus_.Of(c, m) : nullptr;
    return gpu == nullptr ? op.raw.finished_ns() : std::min(op.raw.finished_ns(), gpu->HostLatest(op.raw.gpu_finished_ns()));
  }

  int Moment(const Communicator& c, uint64_t position, bool message) {
    out_.shared.push_back({c.index, position, message});
    out_.age_ns.push_back(0);
    return out_.nodes++;
  }
  void Age(int moment, int clock, int64_t at) {
    int64_t& age = out_.age_ns[static_cast<size_t>(moment)];
    age = std::max(age, AgeOf(clock, at));
  }
  // came + value(clock) <= moment
  void Before(int clock, int64_t came, int moment) {
    Age(moment, clock, came);
    out_.bounds.push_back({clock, moment, SatAdd(SatSub(0, came), Aged(clock, came))});
  }
  // moment <= left + value(clock)
  void After(int clock, int64_t left, int moment) {
    Age(moment, clock, left);
    out_.bounds.push_back({moment, clock, SatAdd(left, Aged(clock, left))});
  }

  void Collectives(const Communicator& c) {
    // Positions that every member with operations kept come first: they tie all clocks together. Where somebody fell behind, the
    // others' newer ones are better for the others.
    uint64_t first = 1, common = UINT64_MAX, last = 0, oldest = UINT64_MAX;
    for (const Member& m : c.members) {
      if (ClockOf(m) < 0 || m.first_kept == 0) continue;
      first = std::max(first, m.first_kept);
      oldest = std::min(oldest, m.first_kept);
      common = std::min(common, m.collectives);
      last = std::max(last, m.collectives);
    }
    if (last == 0) return;
    if (first <= common) Range(c, newest_ ? common : first, common - first);
    if (newest_ && last > common) Range(c, last, last - std::max(common + 1, oldest));
    if (!newest_ && oldest < first) Range(c, oldest, std::min(first - 1, last) - oldest);
  }
  // From `from` on, `further` positions back (forth) beyond it at most.
  void Range(const Communicator& c, uint64_t from, uint64_t further) {
    const uint64_t looked = std::min<uint64_t>(further, 4 * instances_ - 1) + 1;  // the newest may still run
    size_t used = 0;
    for (uint64_t i = 0; i < looked && used < instances_; ++i) used += Collective(c, newest_ ? from - i : from + i);
  }

  struct Span {
    int64_t came = 0, left = 0;  // the last to come, the first to leave; 0 none
  };
  static void Join(int64_t came, int64_t left, Span* span) {
    span->came = std::max(span->came, came);
    if (left != 0 && (span->left == 0 || left < span->left)) span->left = left;
  }

  bool Collective(const Communicator& c, uint64_t position) {
    std::map<int, Span> spans;  // by clock
    const OpRecord* call = nullptr;
    int root_clock = -1;
    Span root;
    size_t left = 0, open = 0;
    bool aborted = false;
    for (const Member& m : c.members) {
      if (ClockOf(m) < 0) continue;
      aborted |= m.finalized_open;
      const Op* op = m.Collective(position);
      if (op == nullptr) {
        ++open;
        continue;
      }
      if (!Timed(*op)) return false;
      if (call == nullptr) call = &op->raw;
      if (op->raw.func() != call->func() || op->raw.root() != call->root() || op->raw.from_api() != call->from_api() ||
          op->raw.count() != call->count() || op->raw.datatype() != call->datatype())
        return false;
      const int64_t came = Came(c, m, *op), out = Done(*op) ? Left(c, m, *op) : 0;
      ++(out != 0 ? left : open);
      Join(came, out, &spans[ClockOf(m)]);
      if (m.rank != op->raw.root()) continue;
      root_clock = ClockOf(m);
      root = {came, out};
    }
    if (call == nullptr || spans.size() < 2 || left == 0) return false;
    if (aborted && open > 0) return false;  // kernels that were given up end without waiting for anybody
    const Meets meets = MeetsOf(call->func());
    if (meets == Meets::kNo || (meets != Meets::kAll && root_clock < 0) || (meets == Meets::kRootLast && root.left == 0)) return false;
    const int moment = Moment(c, position, false);
    if (meets == Meets::kRootFirst) Before(root_clock, root.came, moment);
    if (meets == Meets::kRootLast) After(root_clock, root.left, moment);
    for (const auto& [clock, span] : spans) {
      if (meets != Meets::kRootFirst) Before(clock, span.came, moment);
      if (meets != Meets::kRootLast && span.left != 0) After(clock, span.left, moment);
    }
    return true;
  }

  // Sends and receives of each pair, counted from the end of what both counted.
  void Messages(const Communicator& c) {
    const auto counts = messages_.find(c.index);
    if (counts == messages_.end()) return;
    for (const MessageCount* counted : counts->second) {
      const MessageCount& count = *counted;
      if (count.relative || !count.sent || !count.received || *count.sent != *count.received) continue;
      const Member &from = c.members[static_cast<size_t>(count.from)], &to = c.members[static_cast<size_t>(count.to)];
      if (ClockOf(from) < 0 || ClockOf(to) < 0 || ClockOf(from) == ClockOf(to)) continue;
      const std::vector<const Op*> sends = Newest(from, trace::SEND, count.to), receives = Newest(to, trace::RECV, count.from);
      const size_t n = std::min(sends.size(), receives.size());
      size_t used = 0;
      for (size_t i = 0; i < n && used < instances_; ++i) {
        const size_t back = newest_ ? i : n - 1 - i;
        const Op &send = *sends[back], &receive = *receives[back];
        if (!Done(receive) || !Timed(send)) continue;
        if (send.raw.count() != receive.raw.count() || send.raw.datatype() != receive.raw.datatype()) continue;
        const int moment = Moment(c, receive.raw.position(), true);
        Before(ClockOf(from), Came(c, from, send), moment);
        After(ClockOf(to), Left(c, to, receive), moment);
        ++used;
      }
    }
  }
  // Newest first; empty when some of its messages share a row and cannot be counted.
  static std::vector<const Op*> Newest(const Member& m, trace::Func func, int peer) {
    std::vector<const Op*> found;
    for (size_t i = m.ops.size(); i-- > 0;) {
      const OpRecord& raw = m.ops[i].raw;
      if (!raw.p2p()) continue;
      if (raw.tail_tasks() > 0) return {};
      if (raw.func() == func && raw.peer() == peer) found.push_back(&m.ops[i]);
    }
    return found;
  }

  const Job& job_;
  const GpuClocks& gpus_;
  const std::vector<int>& clock_of_;
  const bool newest_;
  const size_t instances_;
  std::map<int, std::vector<const MessageCount*>> messages_;  // by communicator
  ClockBounds out_;
};

}  // namespace

ClockBounds BoundsOf(const Job& job, const GpuClocks& gpus, int clocks, const std::vector<int>& clock_of, bool newest,
                     size_t instances) {
  return Builder(job, gpus, clocks, clock_of, newest, instances).Take();
}

std::vector<int64_t> ApartNs(const Job& job, const std::vector<int>& clock_of, size_t clocks) {
  std::vector<std::pair<int64_t, int64_t>> span(clocks, {0, 0});
  for (const Communicator& c : job.communicators) {
    for (const Member& m : c.members) {
      const int clock = m.has_record() ? clock_of[static_cast<size_t>(m.process)] : -1;
      if (clock < 0) continue;
      const Op *begin = FirstDone(m), *end = LastDone(m);
      if (begin == nullptr) continue;
      auto& [first, last] = span[static_cast<size_t>(clock)];
      if (first == 0 || begin->raw.finished_ns() < first) first = begin->raw.finished_ns();
      last = std::max(last, end->raw.finished_ns());
    }
  }
  std::vector<int64_t> apart;
  for (const auto& [first, last] : span) apart.push_back(SatSub(last, first));
  return apart;
}

}  // namespace ringscope::model
