#include "tests/property/operation_steps.h"

#include <algorithm>

namespace ringscope::property {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

}  // namespace

StepRules RulesOf(const World& w, const Comm& comm, trace::Func func) {
  StepRules r;
  r.slices = comm.slices;
  r.depth = comm.slices == 2 ? 4 : 8;  // NCCL_STEPS buffers, a slice of Simple takes two
  const int rounds = func == trace::ALL_REDUCE ? 2 * (comm.n() - 1) : comm.n() - 1;
  r.steps = rounds * r.slices;
  r.socket_buffer = w.recording.socket ? 8 : 0;
  return r;
}

StepRules MessageRules(const World& w, uint64_t count) {
  StepRules r;
  r.slices = 1;
  r.depth = kMessageDepth;
  r.steps = MessageSteps(count);
  r.socket_buffer = w.recording.socket ? 40 : 0;
  return r;
}

std::vector<StepLink> LinksOf(const World& w, int c, uint64_t position, int channel) {
  const Comm& comm = w.comms[Index(c)];
  const auto& ring = comm.rings[Index(channel)];
  std::vector<StepLink> links;
  for (size_t i = 0; i < ring.size(); ++i) {
    const int a = comm.ranks[Index(ring[i])], b = comm.ranks[Index(ring[(i + 1) % ring.size()])];
    StepLink link;
    link.network = !w.SameHost(a, b);
    for (const Fault& f : w.faults) {
      if (f.comm != c || f.position == 0 || position < f.position || f.from != a || f.to != b)
        continue;
      if (f.channel >= 0 && f.channel != channel) continue;
      const int works = position == f.position ? f.step : 0;
      if (f.kind == FaultKind::kWire) link.wire = works;
      if (f.kind == FaultKind::kControl) link.credit = works;
      if (f.kind == FaultKind::kFlush) link.flush = works;
    }
    links.push_back(link);
  }
  return links;
}

void LimitMembers(const World& w, const Played& played, int c, uint64_t position,
                  std::vector<StepMember>* members) {
  const Comm& comm = w.comms[Index(c)];
  for (int i = 0; i < comm.n(); ++i) {
    StepMember& m = (*members)[Index(i)];
    const int r = comm.ranks[Index(i)];
    for (const Fault& f : w.faults) {
      if (f.kind == FaultKind::kGpuMid && f.comm == c && f.position == position && f.rank == r)
        m.limit = f.step;
      if (f.kind == FaultKind::kGpuBefore && f.comm == c && f.position == position && f.rank == r)
        m.running = false;
    }
    // A process that has gone in the midst of it: somewhere.
    if (played.ranks[Index(r)].gone != kNever)
      m.limit = std::min(m.limit, static_cast<int>((w.seed >> 7) % 3) * comm.slices);
  }
}

std::vector<bool> FinishersOf(const World& w, const Played& played, int c, uint64_t position,
                              trace::Func func, int channel, std::vector<StepMember> members) {
  const Comm& comm = w.comms[Index(c)];
  std::vector<bool> finishes(Index(comm.n()), false);
  for (const Fault& f : w.faults) {
    if (f.kind != FaultKind::kSize || f.comm != c || f.position != position) continue;
    for (int i = 0; i < comm.n(); ++i) finishes[Index(i)] = comm.ranks[Index(i)] != f.rank;
    return finishes;
  }
  LimitMembers(w, played, c, position, &members);
  if (comm.tree) return finishes;
  const auto& ring = comm.rings[Index(channel)];
  std::vector<StepMember> in_ring;
  for (int i : ring) in_ring.push_back(members[Index(i)]);
  const StepResult steps =
      PlayRing(RulesOf(w, comm, func), in_ring, LinksOf(w, c, position, channel));
  for (size_t i = 0; i < ring.size(); ++i)
    finishes[Index(ring[i])] = steps.Complete(static_cast<int>(i));
  return finishes;
}

}  // namespace ringscope::property
