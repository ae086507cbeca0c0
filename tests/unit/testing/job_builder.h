// A job written down for a test: ranks, communicators, operations with cursors, edges with states.
//
//   JobBuilder b(4);                        // ranks 0-3, two a host with b.RanksPerHost(2); clocks
//   at 1,000 s CommRef w = b.Comm("world", {0, 1, 2, 3}); for (int r : {0, 1, 3}) b.Coll(w, r,
//   7).Running(); b.Finish(w, 2, 6);                      // rank 2 finished operations 1-6 and is
//   elsewhere b.EdgeOf(w, 0, 1).Send(0, 12, SEND_WAIT, 8, 4); model::Job job = b.Build(); //
//   through model::BuildJob, as the tool does
//
// Everything goes through trace records, so a test also covers what the record can carry. Times are
// in seconds of the job, which begins at 0; the records are written at `now` (default 100). Edit
// the records themselves with Record(rank).
#ifndef RINGSCOPE_TESTS_UNIT_TESTING_JOB_BUILDER_H_
#define RINGSCOPE_TESTS_UNIT_TESTING_JOB_BUILDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/model/model.h"
#include "proto/trace.pb.h"

namespace ringscope::testing {

// Index of a communicator that Comm() made.
using CommRef = int;

inline constexpr int64_t kEpochNs = int64_t{1800000000} * 1000000000;  // CLOCK_REALTIME of second 0
inline constexpr int64_t kBootNs = int64_t{5000} * 1000000000;  // CLOCK_MONOTONIC of second 0

class OpBuilder {
 public:
  OpBuilder(trace::Communicator* comm, trace::Operation* op, double at)
      : comm_(comm), op_(op), at_(at) {}
  trace::Operation& raw() { return *op_; }

  // Cursors. Each implies those before it. Times: `at` of the operation, plus 1 ms a step.
  OpBuilder& Entered() { return Set(1); }  // inside the API call
  OpBuilder& Returned() {
    return Set(2);
  }  // call returned, nothing in the stream yet (group not ended)
  OpBuilder& Enqueued() { return Set(3); }  // in the stream; not started on the GPU
  OpBuilder& Running() { return Set(4); }   // started on the GPU, not finished
  OpBuilder& Finished() { return Set(5); }

  OpBuilder& Func(trace::Func f) { return op_->set_func(f), *this; }
  OpBuilder& Type(trace::DataType t) { return op_->set_datatype(t), *this; }
  OpBuilder& Count(uint64_t n) { return op_->set_count(n), *this; }
  OpBuilder& Root(int r) { return op_->set_root(r), *this; }
  OpBuilder& Peer(int r) { return op_->set_peer(r), *this; }
  OpBuilder& Stream(uint64_t s) { return op_->set_stream(s), *this; }
  OpBuilder& Group(uint32_t g) { return op_->set_group(g), op_->set_grouped(g != 0), *this; }
  OpBuilder& Thread(uint32_t t) { return op_->set_thread(t), *this; }
  OpBuilder& Kernels(uint32_t channels, uint32_t started, uint32_t stopped) {
    op_->set_channels(channels);
    op_->set_kernels_started(started);
    op_->set_kernels_stopped(stopped);
    return *this;
  }
  // Kernel from `start` to `end` (seconds of the job), for durations.
  OpBuilder& Kernel(double start, double end) {
    Finished();
    op_->set_started_ns(Ns(start));
    op_->set_finished_ns(Ns(end));
    op_->set_gpu_started_ns(Ns(start));
    op_->set_gpu_finished_ns(Ns(end));
    return *this;
  }

  static int64_t Ns(double seconds) { return kBootNs + static_cast<int64_t>(seconds * 1e9); }

 private:
  OpBuilder& Set(int stage) {
    const auto at = [this](int step) { return Ns(at_) + step * 1000000; };
    const bool visible = comm_->completion_visible();
    op_->set_entered_ns(at(0));
    op_->set_returned_ns(stage >= 2 ? at(1) : 0);
    op_->set_enqueued_ns(stage >= 3 ? at(2) : 0);
    const uint32_t channels = op_->channels() == 0 ? 2 : op_->channels();
    op_->set_channels(stage >= 3 ? channels : 0);
    op_->set_kernels_started(stage >= 4 && visible ? channels : 0);
    op_->set_kernels_stopped(stage >= 5 && visible ? channels : 0);
    op_->set_started_ns(stage >= 4 && visible ? at(3) : 0);
    op_->set_finished_ns(stage >= 5 && visible ? at(4) : 0);
    op_->set_unfinished(stage < 5);
    return *this;
  }
  trace::Communicator* comm_;
  trace::Operation* op_;
  double at_;
};

// The two sides of one edge of a communicator on one channel.
class EdgeBuilder {
 public:
  using Add = trace::Edge* (*)(void*, int rank, int peer, bool send);

  EdgeBuilder(void* builder, Add add, int from, int to, uint32_t channel)
      : builder_(builder), add_(add), from_(from), to_(to), channel_(channel) {}

  // What the sender's proxy shows of the operation at `position`: `done` of `n_steps` steps, the
  // oldest open one in `state` (STEP_FREE: none open), `posted` and `transmitted` steps (default:
  // as many as are done, plus the open one posted).
  EdgeBuilder& Send(uint64_t position, uint32_t n_steps, trace::StepState state, uint32_t done,
                    int posted = -1, int transmitted = -1) {
    return Side(from_, to_, true, position, n_steps, state, done, posted, transmitted);
  }
  EdgeBuilder& Recv(uint64_t position, uint32_t n_steps, trace::StepState state, uint32_t done,
                    int posted = -1, int transmitted = -1) {
    return Side(to_, from_, false, position, n_steps, state, done, posted, transmitted);
  }
  EdgeBuilder& P2p() { return p2p_ = true, *this; }       // before Send / Recv
  EdgeBuilder& Waited(int64_t a, int64_t b, int64_t c) {  // of the side added last, ns
    last_->clear_wait_ns();
    for (int64_t w : {a, b, c}) last_->add_wait_ns(w);
    return *this;
  }
  EdgeBuilder& ChangedAt(double seconds) {
    return last_->set_changed_ns(OpBuilder::Ns(seconds)), *this;
  }
  trace::Edge& last() { return *last_; }

 private:
  EdgeBuilder& Side(int rank, int peer, bool send, uint64_t position, uint32_t n_steps,
                    trace::StepState state, uint32_t done, int posted, int transmitted) {
    trace::Edge& e = *add_(builder_, rank, peer, send);
    const bool over = done >= n_steps;
    e.set_channel(channel_);
    e.set_p2p(p2p_);
    e.set_ops_started(static_cast<uint32_t>(position == 0 ? 1 : position));
    e.set_ops_stopped(e.ops_started() - (over ? 0 : 1));
    e.set_has_current(true);
    e.set_current_stopped(over);
    e.set_current_position(position);
    e.set_current_position_p2p(p2p_);
    e.set_n_steps(n_steps);
    e.set_full_steps(n_steps);
    e.set_done(done);
    const uint32_t open = state == trace::STEP_FREE ? 0 : 1;
    e.set_posted(posted >= 0 ? static_cast<uint32_t>(posted) : done + open);
    e.set_transmitted(transmitted >= 0 ? static_cast<uint32_t>(transmitted) : done);
    e.set_state(state);
    e.set_oldest_step(done);
    for (uint32_t s = 0; s < 8; ++s) e.add_slots(open && s == done % 8 ? state : trace::STEP_FREE);
    e.set_steps_total(done);
    e.set_changed_ns(OpBuilder::Ns(10));
    last_ = &e;
    return *this;
  }
  void* builder_;
  Add add_;
  int from_, to_;
  uint32_t channel_;
  bool p2p_ = false;
  trace::Edge* last_ = nullptr;
};

class JobBuilder {
 public:
  // `ranks` processes of one rank each, all on host "host0"; records are flight files whose
  // heartbeat is fresh at `now`.
  explicit JobBuilder(int ranks, double now = 100) {
    for (int r = 0; r < ranks; ++r) {
      records_.emplace_back();
      trace::Trace& t = records_.back().trace;
      records_.back().source = "rank" + std::to_string(r) + ".flight";
      records_.back().from_flight_file = true;
      t.set_reason(trace::REASON_FLIGHT_FILE);
      t.set_sequence(1);
      trace::Process& p = *t.mutable_process();
      p.set_pid(1000 + r);
      p.set_start_ticks(static_cast<uint64_t>(77000 + r));
      p.set_rank(r);
      p.set_local_rank(r);
      p.set_world_size(ranks);
      p.set_nonce(static_cast<uint32_t>(100 + r));
      t.mutable_clock()->set_monotonic_ns(kBootNs);
      t.mutable_clock()->set_realtime_ns(kEpochNs);
      t.mutable_clock()->set_first_monotonic_ns(kBootNs);
      t.mutable_clock()->set_first_realtime_ns(kEpochNs);
      t.mutable_settings()->set_stall_seconds(60);
      t.mutable_settings()->set_first_stall_seconds(300);
      t.mutable_settings()->set_heartbeat_seconds(0.5);
      LastSeen(r, now);
    }
    RanksPerHost(ranks);
  }

  JobBuilder& RanksPerHost(int n) {
    for (size_t r = 0; r < records_.size(); ++r) {
      const std::string number = std::to_string(r / static_cast<size_t>(n > 0 ? n : 1));
      records_[r].trace.mutable_process()->set_host("host" + number);
      records_[r].trace.mutable_process()->set_boot_id("boot-" + number);
    }
    return *this;
  }

  // Heartbeat and record of the process end at `seconds`.
  JobBuilder& LastSeen(int rank, double seconds) {
    trace::Trace& t = Record(rank);
    const int64_t ns = OpBuilder::Ns(seconds);
    t.set_written_ns(ns);
    t.mutable_liveness()->set_heartbeat_ns(ns);
    t.mutable_liveness()->set_heartbeat_realtime_ns(ns - kBootNs + kEpochNs);
    t.mutable_liveness()->set_heartbeats(seconds > 0 ? static_cast<uint64_t>(seconds * 2) : 0);
    return *this;
  }
  // The rank's record is a trace, written for `reason` at `seconds`.
  JobBuilder& Trace(int rank, trace::WriteReason reason, double seconds) {
    records_[static_cast<size_t>(rank)].from_flight_file = false;
    records_[static_cast<size_t>(rank)].source = "rank" + std::to_string(rank) + ".trace";
    Record(rank).set_reason(reason);
    return LastSeen(rank, seconds);
  }
  JobBuilder& Drop(int rank) { return dropped_.insert(rank), *this; }  // no record of this rank
  JobBuilder& Clean(int rank) {                                        // ended in order
    Record(rank).mutable_liveness()->set_clean(true);
    Record(rank).mutable_liveness()->set_exiting(true);
    return *this;
  }
  // `observer` saw `rank`'s lock and heartbeat at `seconds`.
  JobBuilder& Saw(int observer, int rank, trace::Sibling::State state, double seconds,
                  const std::string& letter = "") {
    trace::Sibling& s = *Record(observer).add_siblings();
    const trace::Trace& seen = Record(rank);
    s.set_pid(seen.process().pid());
    s.set_rank(rank);
    s.set_nonce(seen.process().nonce());
    s.set_start_ticks_low(static_cast<uint32_t>(seen.process().start_ticks()));
    s.set_state(state);
    s.set_process_state(letter);
    s.set_since_ns(OpBuilder::Ns(seconds));
    s.set_checked_ns(OpBuilder::Ns(seconds));
    s.set_heartbeat_realtime_ns(seen.liveness().heartbeat_realtime_ns());
    return *this;
  }

  // Communicator of these job ranks, in the order of their ranks in it. `id` 0: one of its own.
  CommRef Comm(const std::string& name, const std::vector<int>& job_ranks, uint64_t id = 0,
               bool completion_visible = true) {
    const CommRef ref = static_cast<CommRef>(comms_.size());
    comms_.push_back({job_ranks, {}});
    for (size_t i = 0; i < job_ranks.size(); ++i) {
      trace::Trace& t = Record(job_ranks[i]);
      trace::Communicator& c = *t.add_communicators();
      c.set_row(static_cast<uint32_t>(t.communicators_size() - 1));
      c.set_ordinal(c.row());
      c.set_comm_id(id != 0 ? id : 0x1000000000000000u + static_cast<uint64_t>(ref));
      c.set_rank(static_cast<uint32_t>(i));
      c.set_n_ranks(static_cast<uint32_t>(job_ranks.size()));
      c.set_name(name);
      c.set_profiler_api(6);
      c.set_api_events(true);
      c.set_completion_visible(completion_visible);
      c.set_created_ns(OpBuilder::Ns(0.001 * (ref + 1)));
      comms_.back().rows.push_back(t.communicators_size() - 1);
    }
    return ref;
  }

  // Collective number `position` as `rank` (in the communicator) has it: all-reduce of 1,024
  // floats, entered at second `position` unless said otherwise; set the cursor on what is returned.
  OpBuilder Coll(CommRef comm, int rank, uint64_t position,
                 std::optional<double> at = std::nullopt) {
    trace::Communicator& c = Raw(comm, rank);
    if (position > c.collectives()) c.set_collectives(position);
    OpBuilder op = AddOp(&c, position, at.value_or(static_cast<double>(position)));
    op.Func(trace::ALL_REDUCE).Count(1024).Root(-1).Peer(-1).Entered();
    return op;
  }
  // Send (or receive) number `position` of that rank to (from) `peer`.
  OpBuilder P2p(CommRef comm, int rank, uint64_t position, bool send, int peer,
                std::optional<double> at = std::nullopt) {
    trace::Communicator& c = Raw(comm, rank);
    if (position > c.p2ps()) c.set_p2ps(position);
    OpBuilder op = AddOp(&c, position, at.value_or(static_cast<double>(position)));
    op.raw().set_p2p(true);
    op.Func(send ? trace::SEND : trace::RECV).Count(1024).Root(-1).Peer(peer).Entered();
    return op;
  }
  // Collectives first..last finished.
  JobBuilder& Finish(CommRef comm, int rank, uint64_t last, uint64_t first = 1) {
    for (uint64_t k = first; k <= last; ++k) Coll(comm, rank, k).Finished();
    return *this;
  }
  JobBuilder& Finish(CommRef comm, uint64_t last) {
    for (size_t r = 0; r < comms_[static_cast<size_t>(comm)].ranks.size(); ++r)
      Finish(comm, static_cast<int>(r), last);
    return *this;
  }

  EdgeBuilder EdgeOf(CommRef comm, int from, int to, uint32_t channel = 0) {
    current_comm_ = comm;
    return EdgeBuilder(this, &JobBuilder::AddEdge, from, to, channel);
  }
  // `rank` launched `n` messages to (send) or from `peer`.
  JobBuilder& Messages(CommRef comm, int rank, int peer, bool send, uint64_t n) {
    current_comm_ = comm;
    trace::Edge& e = *AddEdge(this, rank, peer, send);
    e.set_channel(255);
    e.set_message_count(true);
    e.set_p2p(true);
    e.set_steps_total(n);
    return *this;
  }
  // The job rank is inside a call since `seconds`.
  JobBuilder& InCall(int job_rank, trace::CallInFlight::Call call, double seconds,
                     CommRef comm = -1, uint64_t position = 0) {
    trace::CallInFlight& c = *Record(job_rank).add_calls();
    c.set_row(static_cast<uint32_t>(Record(job_rank).calls_size() - 1));
    c.set_tid(2000 + job_rank);
    c.set_call(call);
    c.set_since_ns(OpBuilder::Ns(seconds));
    if (comm >= 0) c.set_communicator(Raw(comm, RankIn(comm, job_rank)).row() + 1);
    c.set_position(position);
    return *this;
  }
  // A stall that the job rank's recorder noticed at `noticed`, without progress since `since`.
  JobBuilder& Stalled(CommRef comm, int rank, uint64_t position, double since, double noticed,
                      double resolved = 0) {
    trace::StallFinding& s = *Record(JobRank(comm, rank)).add_stalls();
    s.set_communicator(Raw(comm, rank).row());
    s.set_position(position);
    s.set_since_ns(OpBuilder::Ns(since));
    s.set_noticed_ns(OpBuilder::Ns(noticed));
    if (resolved > 0) s.set_resolved_ns(OpBuilder::Ns(resolved));
    return *this;
  }

  trace::Trace& Record(int job_rank) { return records_[static_cast<size_t>(job_rank)].trace; }
  trace::Communicator& Raw(CommRef comm, int rank) {
    const CommInfo& info = comms_[static_cast<size_t>(comm)];
    return *Record(info.ranks[static_cast<size_t>(rank)])
                .mutable_communicators(info.rows[static_cast<size_t>(rank)]);
  }
  int JobRank(CommRef comm, int rank) const {
    return comms_[static_cast<size_t>(comm)].ranks[static_cast<size_t>(rank)];
  }
  int RankIn(CommRef comm, int job_rank) const {
    const auto& ranks = comms_[static_cast<size_t>(comm)].ranks;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == job_rank) return static_cast<int>(i);
    }
    return -1;
  }

  // The records as ingest would hand them over; Build() joins them.
  std::vector<model::Record> Records() const {
    std::vector<model::Record> out;
    for (size_t r = 0; r < records_.size(); ++r) {
      if (dropped_.count(static_cast<int>(r)) == 0) out.push_back(records_[r]);
    }
    return out;
  }
  model::Job Build() const { return model::BuildJob(Records()); }

 private:
  struct CommInfo {
    std::vector<int> ranks;
    std::vector<int> rows;  // index in that record's communicators
  };

  OpBuilder AddOp(trace::Communicator* c, uint64_t position, double at) {
    trace::Operation& op = *c->add_operations();
    op.set_row(
        static_cast<uint32_t>(c->row() * 256 + static_cast<uint32_t>(c->operations_size()) - 1));
    op.set_position(position);
    op.set_datatype(trace::FLOAT32);
    op.set_stream(0x7f0000000000u);
    op.set_from_api(true);
    op.set_algo(trace::RING);
    op.set_proto(trace::SIMPLE);
    return OpBuilder(c, &op, at);
  }
  static trace::Edge* AddEdge(void* self, int rank, int peer, bool send) {
    auto& b = *static_cast<JobBuilder*>(self);
    trace::Trace& t = b.Record(b.JobRank(b.current_comm_, rank));
    trace::Edge& e = *t.add_edges();
    e.set_row(static_cast<uint32_t>(t.edges_size() - 1));
    e.set_communicator(b.Raw(b.current_comm_, rank).row());
    e.set_rank(static_cast<uint32_t>(rank));
    e.set_peer(static_cast<uint32_t>(peer));
    e.set_send(send);
    return &e;
  }

  CommRef current_comm_ = 0;
  std::vector<model::Record> records_;
  std::vector<CommInfo> comms_;
  std::set<int> dropped_;
};

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_TESTING_JOB_BUILDER_H_
