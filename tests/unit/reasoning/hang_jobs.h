// Hanging jobs, written down as their records would be, one for each situation that was recorded
// with real NCCL or that docs/localisation.md describes. Ranks are those of the communicator "world";
// `as` maps them to job ranks, so that a job can be had with its ranks renamed.
#ifndef RINGSCOPE_TESTS_UNIT_REASONING_HANG_JOBS_H_
#define RINGSCOPE_TESTS_UNIT_REASONING_HANG_JOBS_H_

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/diagnosis.pb.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::testing {

using As = std::vector<int>;

struct HangCase {
  std::string name;
  int ranks;
  std::function<void(JobBuilder&, const As&)> build;
  Kind::Value kind;
  std::set<int> who = {};  // ranks of the world
  std::set<std::pair<int, int>> edges = {};
  std::set<std::string> hosts = {};
};

inline As Same(int ranks) {
  As as;
  for (int r = 0; r < ranks; ++r) as.push_back(r);
  return as;
}

// One side of a ring edge: {done, posted, moved, state}; of 12 steps.
struct Step {
  uint32_t done;
  int posted;
  int moved;
  trace::StepState state;
};
inline void RingEdge(JobBuilder& b, CommRef w, int from, int to, uint64_t position,
                     const Step& send, const Step& recv, uint32_t channels = 2) {
  for (uint32_t ch = 0; ch < channels; ++ch) {
    auto edge = b.EdgeOf(w, from, to, ch);
    edge.Send(position, 12, send.state, send.done, send.posted, send.moved);
    edge.ChangedAt(static_cast<double>(position) + 0.01);
    edge.Recv(position, 12, recv.state, recv.done, recv.posted, recv.moved);
    edge.ChangedAt(static_cast<double>(position) + 0.01);
  }
}
inline Step Owes(uint32_t done) {
  return {done, static_cast<int>(done) + 4, static_cast<int>(done), trace::SEND_GPU_WAIT};
}
inline Step OnWire(uint32_t done) {
  return {done, static_cast<int>(done) + 4, static_cast<int>(done) + 4, trace::SEND_WAIT};
}
inline Step Waits(uint32_t done) {
  return {done, static_cast<int>(done) + 4, static_cast<int>(done), trace::RECV_WAIT};
}
inline Step Full(uint32_t done) {
  return {done, static_cast<int>(done) + 4, static_cast<int>(done) + 4, trace::RECV_GPU_WAIT};
}
inline Step NotBegun() { return {12, 12, 12, trace::STEP_FREE}; }

inline CommRef World(JobBuilder& b, const As& as, uint64_t finished) {
  b.RanksPerHost(1);
  const CommRef w = b.Comm("world", as);
  b.Finish(w, finished);
  return w;
}
inline void RunAll(JobBuilder& b, CommRef w, int ranks, uint64_t position, std::set<int> but = {}) {
  for (int r = 0; r < ranks; ++r) {
    if (but.count(r) == 0) b.Coll(w, r, position).Running();
  }
}
// All ranks aborted the communicator and ended in order.
inline void AbortAll(JobBuilder& b, CommRef w, int ranks, double at, std::set<int> but = {}) {
  for (int r = 0; r < ranks; ++r) {
    if (but.count(r)) continue;
    b.Raw(w, r).set_finalized_ns(OpBuilder::Ns(at));
    b.LastSeen(b.JobRank(w, r), at + 0.1).Clean(b.JobRank(w, r));
  }
}

inline void SkipJob(JobBuilder& b, const As& as) {
  const CommRef w = World(b, as, 10);
  RunAll(b, w, 4, 11, {2});
  RingEdge(b, w, 0, 1, 11, Owes(4), Waits(4));
  for (uint32_t ch : {0u, 1u}) {
    auto out = b.EdgeOf(w, 1, 2, ch);
    out.Send(11, 12, trace::SEND_GPU_WAIT, 6, 10, 6);
    out.Recv(10, 12, trace::STEP_FREE, 12, 12, 12);
    auto in = b.EdgeOf(w, 2, 3, ch);
    in.Send(10, 12, trace::STEP_FREE, 12, 12, 12);
    in.Recv(11, 12, trace::RECV_WAIT, 0, 4, 0);
  }
  RingEdge(b, w, 3, 0, 11, Owes(2), Waits(2));
}

inline void CycleJob(JobBuilder& b, const As& as) {
  b.RanksPerHost(1);
  const CommRef x = b.Comm("a", as), y = b.Comm("b", as);
  b.Finish(x, 6).Finish(y, 6);
  for (int r = 0; r < 4; ++r) {
    const bool odd = r == 2;
    b.Coll(odd ? y : x, r, 7, 20).Running();
    b.Coll(odd ? x : y, r, 7, 20.5).Enqueued();
  }
}

inline void NestedJob(JobBuilder& b, const As& as) {
  b.RanksPerHost(1);
  const CommRef w = b.Comm("world", as);
  (void)w;
  const CommRef t0 = b.Comm("tp", {as[0], as[1]}), t1 = b.Comm("tp", {as[2], as[3]});
  const CommRef d0 = b.Comm("dp", {as[0], as[2]}), d1 = b.Comm("dp", {as[1], as[3]});
  for (CommRef c : {t0, t1, d0, d1}) b.Finish(c, 5);
  for (int r : {0, 1}) b.Coll(t0, r, 6, 20).Finished();
  b.Coll(t1, 0, 6, 20).Running();
  b.Coll(d0, 0, 6, 21).Running();
  b.Coll(d0, 1, 6, 21).Enqueued();  // behind tp on rank 2's stream
  b.Coll(d1, 0, 6, 21).Running();
}

inline void PipelineJob(JobBuilder& b, const As& as) {
  const CommRef w = World(b, as, 0);
  const auto message = [&](int rank, uint64_t position, bool send, int peer, double at) {
    return b.P2p(w, rank, position, send, peer, at);
  };
  for (uint64_t k = 1; k <= 6; ++k) {
    const double at = static_cast<double>(k);
    message(0, k, true, 1, at).Finished();
    message(1, 2 * k - 1, false, 0, at).Finished();
    auto send = message(1, 2 * k, true, 2, at + 0.5);
    k < 6 ? send.Finished() : send.Running();
    if (k < 6) message(2, 2 * k - 1, false, 1, at).Finished();
    message(2, k < 6 ? 2 * k : 11, true, 3, at + 0.5).Finished();
    message(3, k, false, 2, at).Finished();
  }
  b.Messages(w, 0, 1, true, 6)
      .Messages(w, 1, 0, false, 6)
      .Messages(w, 1, 2, true, 6)
      .Messages(w, 2, 1, false, 5);
  b.Messages(w, 2, 3, true, 6).Messages(w, 3, 2, false, 6);
  for (int r : {0, 2, 3}) b.Coll(w, r, 1, 10).Running();
  b.EdgeOf(w, 1, 2, 1).P2p().Send(12, 123, trace::SEND_WAIT, 40, 48, 48);
}

inline void AllToAllJob(JobBuilder& b, const As& as) {
  const CommRef w = World(b, as, 0);
  for (int r = 0; r < 4; ++r) {
    for (uint64_t round = 1; round <= (r == 3 ? 2u : 3u); ++round) {
      uint64_t position = (round - 1) * 6;
      for (int other = 0; other < 4; ++other) {
        if (other == r) continue;
        for (bool send : {true, false}) {
          auto op = b.P2p(w, r, ++position, send, other, static_cast<double>(round));
          op.Group(static_cast<uint32_t>(round));
          round == 3 && !send && other == 3 ? op.Running() : op.Finished();
        }
      }
    }
    for (int other = 0; other < 4; ++other) {
      if (other == r) continue;
      b.Messages(w, r, other, true, r == 3 ? 2 : 3).Messages(w, r, other, false, r == 3 ? 2 : 3);
    }
  }
}

inline void SendFirstJob(JobBuilder& b, const As& as) {
  const CommRef w = World(b, as, 0);
  for (int r : {0, 1}) {
    b.P2p(w, r, 1, true, 1 - r).Finished();
    b.P2p(w, r, 2, false, 1 - r).Finished();
    b.P2p(w, r, 3, true, 1 - r).Running();
    b.Messages(w, r, 1 - r, true, 2).Messages(w, r, 1 - r, false, 1);
  }
}

// Two hosts of four; ring over two visible edges, everything inside a host without steps.
inline void TwoHostsJob(JobBuilder& b, const As& as) {
  b.RanksPerHost(1);
  for (int r = 0; r < 8; ++r) {
    trace::Process& p = *b.Record(as[static_cast<size_t>(r)]).mutable_process();
    p.set_host(r < 4 ? "hostA" : "hostB");
    p.set_boot_id(r < 4 ? "bootA" : "bootB");
  }
  const CommRef w = b.Comm("world", as);
  b.Finish(w, 10);
  RunAll(b, w, 8, 11);
  RingEdge(b, w, 5, 0, 11, Owes(11), Full(5), 1);
  RingEdge(b, w, 1, 4, 11, Owes(5), Waits(5), 1);
}

inline const std::vector<HangCase>& HangCases() {
  static const auto& cases = *new std::vector<HangCase>{
      {"rank 2 skips the collective", 4, SkipJob, Kind::missing_rank, {2}},
      {"no network steps, rank 2 skips",
       4,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(4);
         const CommRef w = b.Comm("world", as);
         b.Finish(w, 5);
         RunAll(b, w, 4, 6, {2});
       },
       Kind::missing_rank,
       {2}},
      {"the others are 50 operations ahead",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11, {2});
         for (int r : {0, 1, 3}) {
           for (uint64_t k = 12; k <= 60; ++k) b.Coll(w, r, k, 11.5).Enqueued();
         }
       },
       Kind::missing_rank,
       {2}},
      {"completion hidden, rank 2 skips, edges tell that the others stand",
       4,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(1);
         const CommRef w = b.Comm("world", as, 0, false);
         b.Finish(w, 10);
         for (int r : {0, 1, 3}) b.Coll(w, r, 11).Enqueued();
         b.EdgeOf(w, 3, 0)
             .Send(11, 12, trace::SEND_GPU_WAIT, 2, 6, 2)
             .Recv(11, 12, trace::RECV_WAIT, 2, 6, 2);
         b.EdgeOf(w, 0, 1)
             .Send(11, 12, trace::SEND_GPU_WAIT, 4, 8, 4)
             .Recv(11, 12, trace::RECV_WAIT, 4, 8, 4);
       },
       Kind::missing_rank,
       {2}},
      {"skip, then all abort",
       4,
       [](JobBuilder& b, const As& as) {
         SkipJob(b, as);
         AbortAll(b, 0, 4, 31);
       },
       Kind::missing_rank,
       {2}},
      {"GPU of rank 3 does not start the kernel",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11, {3});
         b.Coll(w, 3, 11).Enqueued();
         RingEdge(b, w, 0, 1, 11, Owes(2), Waits(2));
         RingEdge(b, w, 1, 2, 11, Owes(4), Waits(4));
         RingEdge(b, w, 2, 3, 11, Owes(6), Full(0));
         RingEdge(b, w, 3, 0, 11, Owes(0), Waits(0));
       },
       Kind::gpu_stalled,
       {3}},
      {"GPU of rank 3 stops in mid-kernel",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(5), Waits(5));
         RingEdge(b, w, 1, 2, 11, Owes(7), Waits(7));
         RingEdge(b, w, 2, 3, 11, Owes(8), Full(1));
         RingEdge(b, w, 3, 0, 11, Owes(3), Waits(3));
       },
       Kind::gpu_stalled,
       {3}},
      {"GPU stops in mid-kernel, then abort whose kernels release buffers",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(5), Waits(5), 1);
         RingEdge(b, w, 1, 2, 11, Owes(7), Waits(7), 1);
         RingEdge(b, w, 2, 3, 11, Owes(8), Full(1), 1);
         RingEdge(b, w, 3, 0, 11, Owes(3), Waits(3), 1);
         // The abort at second 15 moves one step of rank 0's send on another channel.
         b.EdgeOf(w, 0, 1, 1)
             .Send(11, 12, trace::SEND_WAIT, 5, 9, 6)
             .ChangedAt(15)
             .Recv(11, 12, trace::RECV_WAIT, 5, 9, 5)
             .ChangedAt(11.01);
         AbortAll(b, w, 4, 15.5);
       },
       Kind::gpu_stalled,
       {3}},
      {"a GPU of host A stops, ranks of a host see each other without steps",
       8,
       TwoHostsJob,
       Kind::gpu_stalled,
       {},
       {},
       {"hostA"}},
      {"packets 1 -> 2 vanish, small sends complete into the socket buffer",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(6), Waits(6));
         RingEdge(b, w, 1, 2, 11, Owes(8), Waits(0));
         RingEdge(b, w, 2, 3, 11, Owes(2), Waits(2));
         RingEdge(b, w, 3, 0, 11, Owes(4), Waits(4));
       },
       Kind::edge_stalled,
       {},
       {{1, 2}}},
      {"packets 1 -> 2 vanish, large sends stay on the wire",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(6), Full(2));
         RingEdge(b, w, 1, 2, 11, OnWire(0), Waits(0));
         RingEdge(b, w, 2, 3, 11, Owes(2), Waits(2));
         RingEdge(b, w, 3, 0, 11, Owes(4), Waits(4));
       },
       Kind::edge_stalled,
       {},
       {{1, 2}}},
      {"clear-to-send of 1 -> 2 does not arrive",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, {2, 6, 2, trace::SEND_PEER_WAIT}, Full(0));
         RingEdge(b, w, 1, 2, 11, {0, 4, 0, trace::SEND_PEER_WAIT}, Waits(0));
         RingEdge(b, w, 2, 3, 11, Owes(2), Waits(2));
         RingEdge(b, w, 3, 0, 11, Owes(4), Waits(4));
       },
       Kind::edge_stalled,
       {},
       {{2, 1}}},
      {"rank 1's network interface fails, all abort",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(9), Waits(4));
         RingEdge(b, w, 1, 2, 11, OnWire(2), Waits(3));
         RingEdge(b, w, 2, 3, 11, Owes(5), Waits(5));
         RingEdge(b, w, 3, 0, 11, Owes(7), Waits(7));
         AbortAll(b, w, 4, 20);
       },
       Kind::edge_stalled,
       {1},
       {{0, 1}, {1, 2}}},
      {"tree: the way up 2 -> 0 does not move",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         for (int r = 0; r < 4; ++r) b.Coll(w, r, 11).Running().raw().set_algo(trace::TREE);
         RingEdge(b, w, 3, 1, 11, {2, 6, 2, trace::SEND_PEER_WAIT}, Full(0));
         RingEdge(b, w, 1, 0, 11, {2, 6, 2, trace::SEND_PEER_WAIT}, Full(0));
         RingEdge(b, w, 2, 0, 11, OnWire(0), Waits(0));
         RingEdge(b, w, 0, 1, 11, Owes(0), Waits(0));
         RingEdge(b, w, 0, 2, 11, Owes(0), Waits(0));
         RingEdge(b, w, 1, 3, 11, Owes(0), Waits(0));
       },
       Kind::edge_stalled,
       {},
       {{2, 0}}},
      {"communicators in opposite order, rank 2 is odd",
       4,
       CycleJob,
       Kind::communicator_cycle,
       {2}},
      {"tensor x data parallel, rank 3 skips in its tensor group",
       4,
       NestedJob,
       Kind::missing_rank,
       {3}},
      {"pipeline, rank 2 leaves out a receive and goes on",
       4,
       PipelineJob,
       Kind::p2p_unmatched,
       {2},
       {{1, 2}}},
      {"what waits on another stream for an event behind a running operation accuses no GPU",
       4,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(1);
         const CommRef w = b.Comm("world", as);
         const CommRef p0 = b.Comm("tp", {as[0], as[1]}), p1 = b.Comm("tp", {as[2], as[3]});
         for (CommRef c : {w, p0, p1}) b.Finish(c, 5);
         b.Coll(p0, 0, 6, 20).Stream(0x100).Running();  // rank 1 does not come
         b.Coll(w, 0, 6, 20.1).Stream(0x200).Enqueued();
         for (int r : {0, 1}) b.Coll(p1, r, 6, 20).Stream(0x100).Finished();
         for (int r : {2, 3}) b.Coll(w, r, 6, 20.1).Stream(0x200).Running();
       },
       Kind::missing_rank,
       {1}},
      {"completion hidden, no network: what needs everybody is not over while rank 2 has not come",
       4,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(4);
         const CommRef w = b.Comm("world", as, 0, false);
         b.Finish(w, 10);
         for (int r : {0, 1, 3}) b.Coll(w, r, 11).Enqueued().raw().set_unfinished(false);
       },
       Kind::missing_rank,
       {2}},
      {"all but rank 0 have finished, nothing is on its way to it",
       4,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(1);
         const CommRef w = b.Comm("world", as);
         b.Finish(w, 10);
         for (int r : {1, 2, 3}) b.Coll(w, r, 11).Finished();
         b.Coll(w, 0, 11).Running();
         const Step over{12, 12, 12, trace::STEP_FREE};
         RingEdge(b, w, 0, 1, 11, over, over);
         RingEdge(b, w, 1, 2, 11, over, over);
         RingEdge(b, w, 2, 3, 11, over, over);
         RingEdge(b, w, 3, 0, 11, over, {9, 12, 12, trace::RECV_GPU_WAIT});
       },
       Kind::gpu_stalled,
       {0}},
      {"all but two of host A have finished",
       8,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(1);
         for (int r = 0; r < 8; ++r) {
           trace::Process& p = *b.Record(as[static_cast<size_t>(r)]).mutable_process();
           p.set_host(r < 4 ? "hostA" : "hostB");
           p.set_boot_id(r < 4 ? "bootA" : "bootB");
         }
         const CommRef w = b.Comm("world", as);
         b.Finish(w, 10);
         for (int r : {0, 3, 4, 5, 6, 7}) b.Coll(w, r, 11).Finished();
         for (int r : {1, 2}) b.Coll(w, r, 11).Running();
       },
       Kind::gpu_stalled,
       {},
       {},
       {"hostA"}},
      {"table v2 counts steps: the GPU of rank 1 does not take what has arrived",
       2,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(1);
         const CommRef w = b.Comm("world", as, 0, false);
         b.Finish(w, 10);
         for (int r : {0, 1}) {
           b.Coll(w, r, 11).Enqueued();
           b.Raw(w, r).set_profiler_api(2);
           trace::Library& nccl = *b.Record(as[static_cast<size_t>(r)]).mutable_process()->add_libraries();
           nccl.set_name("nccl");
           nccl.set_version("2.24.3");
         }
         RingEdge(b, w, 0, 1, 11, Owes(2), {0, 4, 2, trace::RECV_GPU_WAIT}, 1);
         trace::Trace& taker = b.Record(as[1]);
         trace::Edge& edge = *taker.mutable_edges(taker.edges_size() - 1);
         for (int s = 0; s < 4; ++s) edge.set_slots(s, s < 2 ? trace::RECV_GPU_WAIT : trace::RECV_WAIT);
         RingEdge(b, w, 1, 0, 11, Owes(0), Waits(0), 1);
       },
       Kind::gpu_stalled,
       {1}},
      {"all-to-all without rank 3", 4, AllToAllJob, Kind::missing_rank, {3}},
      {"rank 1 is stopped before the call, its last send unfinished",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 9);
         for (int r : {0, 1, 3}) b.Coll(w, r, 10).Finished();
         b.Coll(w, 2, 10).Running();
         for (int r : {0, 3}) b.Coll(w, r, 11).Running();
         RingEdge(b, w, 1, 2, 10, {11, 12, 12, trace::SEND_WAIT}, {11, 12, 11, trace::RECV_WAIT},
                  1);
         RingEdge(b, w, 0, 1, 11, Owes(4), {0, 0, 0, trace::STEP_FREE}, 1);
         b.LastSeen(as[1], 11).Saw(as[0], as[1], trace::Sibling::FROZEN, 40, "T");
         for (int r : {0, 2, 3})
           b.Record(as[static_cast<size_t>(r)]).mutable_process()->set_boot_id("one");
         b.Record(as[1]).mutable_process()->set_boot_id("one");
       },
       Kind::process_stopped,
       {1}},
      {"rank 1 is killed before the call",
       4,
       [](JobBuilder& b, const As& as) {
         SkipJob(b, {as[0], as[1], as[2], as[3]});
         b.LastSeen(as[2], 11);
         for (int r = 0; r < 4; ++r)
           b.Record(as[static_cast<size_t>(r)]).mutable_process()->set_boot_id("one");
         b.Saw(as[0], as[2], trace::Sibling::GONE, 40);
       },
       Kind::process_exited,
       {2}},
      {"rank 3 ended its program before the others",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11, {3});
         b.Trace(as[3], trace::REASON_EXIT, 12).Clean(as[3]);
       },
       Kind::process_exited,
       {3}},
      {"rank 1 dies in the middle of the operation",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(6), Full(2), 1);
         RingEdge(b, w, 1, 2, 11, OnWire(0), Waits(0), 1);
         b.LastSeen(as[1], 11.1);
         for (int r = 0; r < 4; ++r)
           b.Record(as[static_cast<size_t>(r)]).mutable_process()->set_boot_id("one");
         b.Saw(as[0], as[1], trace::Sibling::GONE, 40);
       },
       Kind::process_exited,
       {1}},
      {"rank 1 is stopped in the middle of the operation",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(6), Full(2), 1);
         RingEdge(b, w, 1, 2, 11, OnWire(0), Waits(0), 1);
         b.LastSeen(as[1], 11.1);
         for (int r = 0; r < 4; ++r)
           b.Record(as[static_cast<size_t>(r)]).mutable_process()->set_boot_id("one");
         b.Saw(as[0], as[1], trace::Sibling::FROZEN, 40, "T");
       },
       Kind::process_stopped,
       {1}},
      {"rank 1 is killed in the middle, an error tells the others, who abort at once",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11);
         RingEdge(b, w, 0, 1, 11, Owes(6), Full(2), 1);
         RingEdge(b, w, 1, 2, 11, OnWire(0), Waits(0), 1);
         AbortAll(b, w, 4, 12, {1});
         b.LastSeen(as[1], 11.1);
       },
       Kind::process_exited,
       {1}},
      {"rank 1 aborts its communicator before the call and lives on",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         RunAll(b, w, 4, 11, {1});
         b.Raw(w, 1).set_finalized_ns(OpBuilder::Ns(12));
         b.Trace(as[1], trace::REASON_FINALIZE, 12);
         b.Record(as[1]).mutable_liveness()->set_clean(true);
         b.Record(as[1]).mutable_liveness()->set_unloaded(true);
       },
       Kind::missing_rank,
       {1}},
      {"pipeline, rank 2 sleeps before its receive",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 0);
         for (uint64_t k = 1; k <= 6; ++k) {
           const double at = static_cast<double>(k);
           b.P2p(w, 0, k, true, 1, at).Finished();
           b.P2p(w, 1, 2 * k - 1, false, 0, at).Finished();
           auto send = b.P2p(w, 1, 2 * k, true, 2, at + 0.5);
           k < 6 ? send.Finished() : send.Running();
           if (k < 6) b.P2p(w, 2, 2 * k - 1, false, 1, at).Finished();
           if (k < 6) b.P2p(w, 2, 2 * k, true, 3, at + 0.5).Finished();
           auto recv = b.P2p(w, 3, k, false, 2, at);
           k < 6 ? recv.Finished() : recv.Running();
         }
         b.Coll(w, 0, 1, 10).Running();
         b.Messages(w, 0, 1, true, 6)
             .Messages(w, 1, 0, false, 6)
             .Messages(w, 1, 2, true, 6)
             .Messages(w, 2, 1, false, 5);
         b.Messages(w, 2, 3, true, 5).Messages(w, 3, 2, false, 6);
       },
       Kind::missing_rank,
       {2}},
      {"all-to-all left out by rank 3, which goes on to the next collective",
       4,
       [](JobBuilder& b, const As& as) {
         AllToAllJob(b, as);
         b.Coll(0, 3, 1, 4).Running();
         for (int r : {0, 1, 2}) b.Coll(0, r, 1, 4).Enqueued();
       },
       Kind::p2p_unmatched,
       {3},
       {{3, 0}, {3, 1}, {3, 2}}},
      {"tree: GPU of rank 3 stops, leaf of one tree and root of the other",
       4,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 10);
         for (int r = 0; r < 4; ++r) b.Coll(w, r, 11).Running().raw().set_algo(trace::TREE);
         const auto pair = [&](int child, int parent, uint32_t ch, bool delivered) {
           const auto side = [&](EdgeBuilder e, const Step& s, const Step& r) {
             e.Send(11, 12, s.state, s.done, s.posted, s.moved)
                 .Recv(11, 12, r.state, r.done, r.posted, r.moved);
           };
           side(b.EdgeOf(w, child, parent, ch), delivered ? Owes(4) : Owes(0),
                delivered ? Full(0) : Waits(0));
           side(b.EdgeOf(w, parent, child, ch), Owes(0), Waits(0));
         };
         pair(2, 0, 0, false), pair(1, 2, 0, true), pair(3, 2, 0, false);
         pair(1, 3, 1, true), pair(0, 1, 1, true), pair(2, 1, 1, true);
       },
       Kind::gpu_stalled,
       {3}},
      {"all-to-all of eight, most messages in shared rows, edge 1 -> 2 does not move",
       8,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 3);
         for (int r = 0; r < 8; ++r) {
           auto row = b.P2p(w, r, 1, true, -1, 5);
           r == 1 || r == 2 ? row.Group(1).Running() : row.Group(1).Finished();
           row.raw().set_tail_tasks(14);
           for (int other = 0; other < 8; ++other) {
             if (other != r) b.Messages(w, r, other, true, 1).Messages(w, r, other, false, 1);
           }
         }
         auto edge = b.EdgeOf(w, 1, 2, 3);
         edge.P2p().Send(1, 12, trace::SEND_WAIT, 4, 8, 8).Recv(1, 12, trace::RECV_WAIT, 4, 8, 4);
       },
       Kind::edge_stalled,
       {},
       {{1, 2}}},
      {"two communicators, two ranks, opposite order", 2,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(1);
         const CommRef x = b.Comm("a", as), y = b.Comm("b", as);
         b.Finish(x, 6).Finish(y, 6);
         for (int r : {0, 1}) {
           b.Coll(r == 1 ? y : x, r, 7, 20).Running();
           b.Coll(r == 1 ? x : y, r, 7, 20.5).Enqueued();
         }
       },
       Kind::communicator_cycle},
      {"one host, GPU of rank 2 does not start the kernel",
       4,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(4);
         const CommRef w = b.Comm("world", as);
         b.Finish(w, 5);
         RunAll(b, w, 4, 6, {2});
         b.Coll(w, 2, 6).Enqueued();
       },
       Kind::gpu_stalled,
       {2}},
      {"rank 1 is inside the call",
       2,
       [](JobBuilder& b, const As& as) {
         const CommRef w = World(b, as, 29);
         b.Coll(w, 0, 30).Running();
         b.Coll(w, 1, 30).Entered();
         b.InCall(as[1], trace::CallInFlight::KERNEL_LAUNCH, 30, w, 30);
       },
       Kind::host_blocked,
       {1}},
      {"first use: connections wait for rank 3",
       4,
       [](JobBuilder& b, const As& as) {
         b.RanksPerHost(1);
         const CommRef w = b.Comm("world", as);
         for (int r : {0, 1, 2}) b.Coll(w, r, 1).Entered();
         for (int r = 0; r < 4; ++r) b.LastSeen(as[static_cast<size_t>(r)], 500);
       },
       Kind::missing_rank,
       {3}},
  };
  return cases;
}

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_REASONING_HANG_JOBS_H_
