#include "tests/property/ring_steps.h"

#include <algorithm>

namespace ringscope::property {
namespace {

// The connection's counters for what both GPUs have done so far. Monotone in both, so that
// repeating it comes to rest.
void Flow(const StepRules& r, const StepMember& a, const StepMember& b, const StepLink& link,
          int produced, int consumed, StepCounts* c) {
  if (!link.network) {  // peer memory: what is written is there, a slot is free again when it was
                        // read
    c->send_ready = c->recv_flushed = produced;
    c->send_done = c->recv_done = consumed;
    return;
  }
  const bool driven = a.appended && !a.out_blocked;
  c->send_ready = driven ? produced : 0;
  c->recv_done = consumed;
  c->recv_posted = b.appended ? std::min(r.steps, consumed + r.depth) : 0;
  for (int before = -1; before != c->send_done;) {
    before = c->send_done;
    c->send_posted = driven ? std::min(r.steps, c->send_done + r.depth) : 0;
    const int credit = r.socket_buffer > 0 ? kEndless : std::min(c->recv_posted, link.credit);
    c->send_given = std::max(c->send_given, std::min({c->send_ready, c->send_posted, credit}));
    c->recv_arrived = std::min({c->send_given, c->recv_posted, link.wire});
    const int taken = r.socket_buffer > 0
                          ? std::min(c->send_given, c->recv_arrived + r.socket_buffer)
                          : c->recv_arrived;
    c->send_done = std::max(c->send_done, taken);
  }
  c->recv_flushed = std::min(c->recv_arrived, link.flush);
}

}  // namespace

StepResult PlayRing(const StepRules& r, const std::vector<StepMember>& members,
                    const std::vector<StepLink>& links) {
  const size_t n = members.size();
  StepResult out;
  out.links.resize(n);
  out.progress.assign(n, 0);
  out.steps = r.steps;
  out.primitives = r.steps + r.slices;
  const auto flow = [&](size_t i) {
    const size_t next = (i + 1) % n;
    Flow(r, members[i], members[next], links[i], std::min(out.progress[i], r.steps),
         std::max(0, out.progress[next] - r.slices), &out.links[i]);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < n; ++i) {
      const size_t before = (i + n - 1) % n;
      flow(before);
      flow(i);
      if (!members[i].running) continue;
      int most = std::min(out.primitives, members[i].limit);
      most = std::min(most, out.links[before].recv_flushed + r.slices);
      if (most <= r.steps || out.links[i].send_done + r.depth < r.steps) {
        most = std::min(most, out.links[i].send_done + r.depth);
      }
      if (members[i].out_blocked) most = 0;
      if (most <= out.progress[i]) continue;
      out.progress[i] = most;
      moved = true;
    }
  }
  for (size_t i = 0; i < n; ++i) flow(i);
  return out;
}

StepCounts PlayMessage(const StepRules& r, const StepMember& sender, const StepMember& receiver,
                       const StepLink& link) {
  StepCounts c;
  int produced = 0, consumed = 0;
  for (bool moved = true; moved;) {
    Flow(r, sender, receiver, link, produced, consumed, &c);
    int p = sender.running ? std::min({r.steps, sender.limit, c.send_done + r.depth}) : 0;
    int q = receiver.running ? std::min({c.recv_flushed, receiver.limit}) : 0;
    p = std::max(p, produced), q = std::max(q, consumed);
    moved = p != produced || q != consumed;
    produced = p, consumed = q;
  }
  return c;
}

}  // namespace ringscope::property
