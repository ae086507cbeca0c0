#include "analyzer/model/clock_bounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

bool Done(const Op& op) {
  return op.finished == Truth::kYes && op.raw.finished_ns() != 0 && op.raw.entered_ns() != 0 && !op.raw.graph_captured();
}

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
  Builder(const Job& job, int clocks, const std::vector<int>& clock_of, bool newest, size_t instances)
      : job_(job), clock_of_(clock_of), newest_(newest), instances_(instances), reference_(static_cast<size_t>(clocks), 0) {
    out_.nodes = clocks;
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
    out_.at_ns = reference_;
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
        int64_t& at = reference_[static_cast<size_t>(clock)];
        const Op* op = newest_ ? LastDone(m) : FirstDone(m);
        if (op != nullptr && (at == 0 || (op->raw.finished_ns() > at) == newest_)) at = op->raw.finished_ns();
      }
    }
  }
  int64_t Aged(int clock, int64_t at) const {
    const int64_t age = std::abs(SatSub(reference_[static_cast<size_t>(clock)], at));
    return static_cast<int64_t>(static_cast<double>(age) * kDriftPpm * 1e-6);
  }

  // entered + value(clock) <= moment
  void Before(int clock, int64_t entered, int moment) {
    out_.bounds.push_back({clock, moment, SatAdd(SatSub(0, entered), Aged(clock, entered))});
  }
  // moment <= finished + value(clock)
  void After(int clock, int64_t finished, int moment) {
    out_.bounds.push_back({moment, clock, SatAdd(finished, Aged(clock, finished))});
  }

  void Collectives(const Communicator& c) {
    // Positions that every member with a record kept.
    uint64_t first = 1, last = UINT64_MAX;
    bool any = false;
    for (const Member& m : c.members) {
      if (ClockOf(m) < 0 || m.first_kept == 0) continue;
      first = std::max(first, m.first_kept);
      last = std::min(last, m.collectives);
      any = true;
    }
    if (!any || first > last) return;
    size_t used = 0;
    const uint64_t looked = std::min<uint64_t>(last - first + 1, 4 * instances_);  // the newest may still run
    for (uint64_t i = 0; i < looked && used < instances_; ++i) used += Collective(c, newest_ ? last - i : first + i);
  }

  bool Collective(const Communicator& c, uint64_t position) {
    std::map<int, std::pair<int64_t, int64_t>> times;  // clock -> last entered, first finished
    const OpRecord* call = nullptr;
    int root_clock = -1;
    std::pair<int64_t, int64_t> root{0, 0};
    for (const Member& m : c.members) {
      if (ClockOf(m) < 0) continue;
      const Op* op = m.Collective(position);
      if (op == nullptr || !Done(*op)) return false;
      if (call == nullptr) call = &op->raw;
      if (op->raw.func() != call->func() || op->raw.root() != call->root() || op->raw.from_api() != call->from_api())
        return false;
      const auto [at, fresh] = times.try_emplace(ClockOf(m), op->raw.entered_ns(), op->raw.finished_ns());
      if (!fresh) {
        at->second.first = std::max(at->second.first, op->raw.entered_ns());
        at->second.second = std::min(at->second.second, op->raw.finished_ns());
      }
      if (m.rank == op->raw.root()) {
        root_clock = ClockOf(m);
        root = {op->raw.entered_ns(), op->raw.finished_ns()};
      }
    }
    if (call == nullptr || times.size() < 2) return false;
    const Meets meets = MeetsOf(call->func());
    if (meets == Meets::kNo || (meets != Meets::kAll && root_clock < 0)) return false;
    const int moment = out_.nodes++;
    if (meets == Meets::kRootFirst) Before(root_clock, root.first, moment);
    if (meets == Meets::kRootLast) After(root_clock, root.second, moment);
    for (const auto& [clock, time] : times) {
      if (meets != Meets::kRootFirst) Before(clock, time.first, moment);
      if (meets != Meets::kRootLast) After(clock, time.second, moment);
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
        if (!Done(*receives[back]) || sends[back]->raw.entered_ns() == 0) continue;
        const int moment = out_.nodes++;
        Before(ClockOf(from), sends[back]->raw.entered_ns(), moment);
        After(ClockOf(to), receives[back]->raw.finished_ns(), moment);
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
  const std::vector<int>& clock_of_;
  const bool newest_;
  const size_t instances_;
  std::vector<int64_t> reference_;
  std::map<int, std::vector<const MessageCount*>> messages_;  // by communicator
  ClockBounds out_;
};

}  // namespace

ClockBounds BoundsOf(const Job& job, int clocks, const std::vector<int>& clock_of, bool newest, size_t instances) {
  return Builder(job, clocks, clock_of, newest, instances).Take();
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
