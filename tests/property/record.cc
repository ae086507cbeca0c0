// Processes, clocks, life signs: everything of a record but its communicators and edges.
#include "tests/property/record.h"

#include <algorithm>
#include <utility>

namespace ringscope::property {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }
constexpr double kHeartbeat = 0.5;

// Not all processes of a job begin at once, nor do their records.
double Created(const World& w, int rank) {
  return -1.0 - 0.001 * static_cast<double>((w.seed >> 3 ^ static_cast<uint64_t>(rank)) % 100);
}

double LastEvent(const RankRun& run, double cut) {
  double last = 0;
  for (const OpRun& op : run.ops) {
    for (double t : {op.entered, op.enqueued, op.started, op.finished}) {
      if (t != kNever && t <= cut) last = std::max(last, t);
    }
  }
  return last;
}

trace::Sibling::State SeenAs(const RankRun& run, const RecordPlan& plan, double when) {
  if (run.host == HostState::kKilled && run.gone < when) return trace::Sibling::GONE;
  if (run.host == HostState::kFrozen && run.gone < when) return trace::Sibling::FROZEN;
  if (plan.clean && plan.written < when) return trace::Sibling::EXITED;
  return trace::Sibling::ALIVE;
}

void WriteProcess(const World& w, int rank, int attempt, trace::Process* p) {
  const int host = w.host_of[Index(rank)];
  p->set_host(HostName(host));
  p->set_boot_id("b007" + std::to_string(w.seed % 100000) + "-" + std::to_string(host));
  p->set_pid(2000 + rank * 7 + attempt * 10000);
  p->set_start_ticks(static_cast<uint64_t>(100000 + rank + attempt * 50000));
  p->set_job_id("job" + std::to_string(w.seed % 10000));
  p->set_restart_count(static_cast<uint32_t>(attempt));
  p->set_rank(rank);
  int local = 0;
  for (int r = 0; r < rank; ++r) local += w.SameHost(r, rank) ? 1 : 0;
  p->set_local_rank(local);
  p->set_world_size(w.ranks);
  p->set_nonce(static_cast<uint32_t>(
      (w.seed + static_cast<uint64_t>(rank) * 37 + static_cast<uint64_t>(attempt) * 5) & 0x3fff));
  p->set_command_line("python train.py");
  static const char* const kVersions[] = {"",       "2.23.4", "2.24.3", "2.26.6",
                                          "2.27.7", "2.28.9", "2.30.7"};
  trace::Library* nccl = p->add_libraries();
  nccl->set_name("nccl");
  nccl->set_version(kVersions[w.recording.api]);
  nccl->set_profiler_api(static_cast<uint32_t>(w.recording.api));
}

void WriteHead(const World& w, const Played& played, const std::vector<RecordPlan>& plans, int rank,
               const HostClock& clock, const std::vector<HostClock>& clocks, trace::Trace* t) {
  const RecordPlan& plan = plans[Index(rank)];
  const RankRun& run = played.ranks[Index(rank)];
  WriteProcess(w, rank, w.recording.earlier_attempt ? 1 : 0, t->mutable_process());
  t->set_reason(plan.reason);
  t->set_written_ns(clock.Mono(plan.written));
  t->set_sequence(plan.flight_file ? 0 : 1);
  trace::Clock* c = t->mutable_clock();
  c->set_monotonic_ns(clock.Mono(plan.written));
  c->set_realtime_ns(clock.Real(plan.written));
  c->set_error_ns(50);
  c->set_source("tsc");
  c->set_first_monotonic_ns(clock.Mono(Created(w, rank)));
  c->set_first_realtime_ns(clock.Real(Created(w, rank)));
  trace::Settings* s = t->mutable_settings();
  s->set_stall_seconds(w.recording.stall_seconds);
  s->set_first_stall_seconds(5 * w.recording.stall_seconds);
  s->set_event_mask(w.recording.api >= 5 ? 0xf5f : w.recording.api >= 3 ? 0x5f : 0x1f);
  s->set_heartbeat_seconds(kHeartbeat);
  trace::Liveness* l = t->mutable_liveness();
  l->set_heartbeat_ns(clock.Mono(plan.written));
  l->set_heartbeat_realtime_ns(clock.Real(plan.written));
  l->set_heartbeats(static_cast<uint64_t>((plan.written - Created(w, rank)) / kHeartbeat));
  l->set_last_callback_ns(clock.Mono(LastEvent(run, std::min(plan.cut, plan.written))));
  if (plan.clean) {
    l->set_clean(true);
    l->set_exiting(true);
    l->set_unloaded(true);
  }
  if (plan.reason == trace::REASON_WAKE) l->set_woken_by_rank(-1);
  // While something is stuck the recorder looks at its neighbours.
  if (plan.written < played.last + w.recording.stall_seconds * 0.5) return;
  for (int other = 0; other < w.ranks; ++other) {
    if (other == rank || !w.SameHost(other, rank)) continue;
    trace::Trace seen;
    WriteProcess(w, other, w.recording.earlier_attempt ? 1 : 0, seen.mutable_process());
    const RankRun& its = played.ranks[Index(other)];
    trace::Sibling* sibling = t->add_siblings();
    sibling->set_pid(seen.process().pid());
    sibling->set_rank(other);
    sibling->set_nonce(seen.process().nonce());
    sibling->set_start_ticks_low(static_cast<uint32_t>(seen.process().start_ticks()));
    const auto state = SeenAs(its, plans[Index(other)], plan.written);
    sibling->set_state(state);
    if (state == trace::Sibling::FROZEN) sibling->set_process_state("T");
    if (state == trace::Sibling::ALIVE) sibling->set_process_state("S");
    const double begun = std::max(played.last + w.recording.stall_seconds * 0.5,
                                  its.gone == kNever ? 0 : its.gone + 2);
    sibling->set_since_ns(clock.Mono(std::min(begun, plan.written)));
    sibling->set_checked_ns(clock.Mono(plan.written - 0.01));
    const double beat = its.gone != kNever ? its.gone - 0.2 : plan.written - 0.2;
    sibling->set_heartbeat_realtime_ns(clocks[Index(w.host_of[Index(other)])].Real(beat));
  }
}

void WriteCalls(const World& w, const Played& played, int rank, const RecordPlan& plan,
                const HostClock& clock, trace::Trace* t) {
  const RankRun& run = played.ranks[Index(rank)];
  if (!w.recording.api_events() || run.ops.empty()) return;
  const OpRun& op = run.ops.back();
  const double now = std::min(plan.cut, plan.written);
  if (op.entered > now || op.enqueued <= now) return;  // outside of NCCL
  trace::CallInFlight* call = t->add_calls();
  call->set_tid(3000 + rank);
  call->set_call(trace::CallInFlight::GROUP_END);
  call->set_since_ns(clock.Mono(op.entered));
  call->set_communicator(RowOf(w, rank, op.call.comm) + 1);
  call->set_position(op.position);
  call->set_group_depth(1);
}

void WriteStall(const World& w, int rank, const RecordPlan& plan, const HostClock& clock,
                double last, trace::Trace* t) {
  // A flight file holds what was noticed before its process was killed.
  const bool noticed = plan.reason == trace::REASON_STALL ||
                       (plan.flight_file && plan.written > last + w.recording.stall_seconds);
  if (!noticed) return;
  for (const trace::Communicator& c : t->communicators()) {
    for (const trace::Operation& op : c.operations()) {
      if (!op.unfinished()) continue;
      trace::StallFinding* stall = t->add_stalls();
      stall->set_communicator(c.row());
      stall->set_position(op.position());
      stall->set_p2p(op.p2p());
      stall->set_since_ns(clock.Mono(last));
      stall->set_noticed_ns(clock.Mono(last + w.recording.stall_seconds));
      break;
    }
  }
  (void)rank;
  if (t->stalls().empty() && !plan.flight_file) t->set_reason(trace::REASON_WAKE);
}

// The job's first attempt, which ended early: a process each that was killed.
void AddEarlierAttempt(const World& w, const std::vector<HostClock>& clocks,
                       std::vector<model::Record>* out) {
  for (int r = 0; r < w.ranks; r += 1 + w.ranks / 16) {
    model::Record record;
    trace::Trace* t = &record.trace;
    const HostClock& clock = clocks[Index(w.host_of[Index(r)])];
    WriteProcess(w, r, 0, t->mutable_process());
    t->set_reason(trace::REASON_FLIGHT_FILE);
    record.from_flight_file = true;
    record.source = "earlier-rank" + std::to_string(r) + ".flight";
    const double end = -30 - 0.01 * r;
    t->set_written_ns(clock.Mono(end));
    t->mutable_clock()->set_monotonic_ns(clock.Mono(end));
    t->mutable_clock()->set_realtime_ns(clock.Real(end));
    t->mutable_clock()->set_first_monotonic_ns(clock.Mono(end - 100));
    t->mutable_clock()->set_first_realtime_ns(clock.Real(end - 100));
    t->mutable_settings()->set_stall_seconds(w.recording.stall_seconds);
    t->mutable_settings()->set_heartbeat_seconds(kHeartbeat);
    t->mutable_liveness()->set_heartbeat_ns(clock.Mono(end));
    t->mutable_liveness()->set_heartbeat_realtime_ns(clock.Real(end));
    t->mutable_liveness()->set_heartbeats(200);
    out->push_back(std::move(record));
  }
}

}  // namespace

std::string HostName(int host) { return "node" + std::to_string(host); }

uint32_t RowOf(const World& w, int rank, int comm) {
  uint32_t row = 0;
  for (int c = 0; c < comm; ++c) row += w.comms[Index(c)].RankOf(rank) >= 0 ? 1 : 0;
  return row;
}

std::vector<RecordPlan> PlanRecords(const World& w, const Played& played) {
  Random random(w.seed ^ 0x9ec07d);
  std::vector<RecordPlan> plans;
  const Recording& how = w.recording;
  const double killed_at = played.last + how.stall_seconds + random.Between(5, 600);
  for (int r = 0; r < w.ranks; ++r) {
    const RankRun& run = played.ranks[Index(r)];
    RecordPlan plan;
    plan.exists = !how.lost[Index(r)];
    const bool gone = run.gone != kNever;
    if (gone) {
      plan.exists = plan.exists && how.dead_record;
      plan.flight_file = true;
      plan.cut = run.gone;
      plan.written = run.gone - random.Between(0, kHeartbeat);
      plan.written = std::max(plan.written, LastEvent(run, run.gone));
    } else if (run.host == HostState::kExited || (run.host == HostState::kDone)) {
      plan.reason = trace::REASON_EXIT;
      plan.clean = true;
      plan.written = run.host_time + random.Between(0.01, 0.4);
    } else {
      plan.flight_file = how.flight_files;
      plan.written = how.flight_files ? killed_at + random.Between(0, 0.4)
                                      : played.last + how.stall_seconds + random.Between(0.2, 3);
      plan.reason = run.host == HostState::kStuck && random.Chance(0.5) ? trace::REASON_QUIET
                                                                        : trace::REASON_STALL;
    }
    if (how.snapshot != kNever && !played.hangs) {
      const double when = how.snapshot * played.last + random.Between(0, 3);
      if (when < plan.written && !gone) {
        plan.flight_file = false;
        plan.reason = trace::REASON_REQUEST;
        plan.clean = false;
        plan.cut = plan.written = when;
      }
    }
    if (plan.flight_file) plan.reason = trace::REASON_FLIGHT_FILE;
    plans.push_back(plan);
  }
  return plans;
}

Recorded Record(const World& w, const Played& played, double apart_seconds) {
  Random random(w.seed ^ 0xc10c);
  std::vector<HostClock> clocks;
  // Half of the jobs run on hosts whose clocks nobody keeps in step.
  const double usual = random.Chance(0.5) ? 0.002 : 5, most = apart_seconds < 0 ? usual : apart_seconds;
  for (int h = 0; h < w.hosts; ++h) {
    clocks.push_back(
        {random.Spread(1e3, 1e7), random.Between(-50e-6, 50e-6), random.Between(-most, most)});
  }
  Recorded out;
  out.plans = PlanRecords(w, played);
  std::vector<model::Record> all(Index(w.ranks));
  std::vector<trace::Trace*> traces;
  for (int r = 0; r < w.ranks; ++r) traces.push_back(&all[Index(r)].trace);
  for (int r = 0; r < w.ranks; ++r) {
    const RecordPlan& plan = out.plans[Index(r)];
    const HostClock& clock = clocks[Index(w.host_of[Index(r)])];
    if (!plan.exists) continue;
    WriteHead(w, played, out.plans, r, clock, clocks, traces[Index(r)]);
    WriteCommunicators(w, played, r, plan, clock, traces[Index(r)]);
    WriteCalls(w, played, r, plan, clock, traces[Index(r)]);
  }
  WriteEdges(w, played, out.plans, clocks, traces);
  for (int r = 0; r < w.ranks; ++r) {
    const RecordPlan& plan = out.plans[Index(r)];
    if (!plan.exists) continue;
    model::Record& record = all[Index(r)];
    WriteStall(w, r, plan, clocks[Index(w.host_of[Index(r)])],
               LastEvent(played.ranks[Index(r)], plan.cut), &record.trace);
    record.from_flight_file = plan.flight_file;
    record.source = "rank" + std::to_string(r) + (plan.flight_file ? ".flight" : ".trace");
    out.records.push_back(std::move(record));
  }
  if (w.recording.earlier_attempt) AddEarlierAttempt(w, clocks, &out.records);
  return out;
}

void MakeRecording(Random* random, World* w) {
  Recording& r = w->recording;
  static const std::vector<int> kApis = {6, 6, 6, 5, 5, 4, 4, 3, 2};
  r.api = random->Pick(kApis);
  r.socket = random->Chance(0.4);
  static const std::vector<int> kKept = {256, 256, 64, 16};
  r.kept = random->Pick(kKept);
  static const std::vector<double> kStall = {60, 60, 60, 20, 300};
  r.stall_seconds = random->Pick(kStall);
  r.flight_files = random->Chance(0.15);
  r.earlier_attempt = random->Chance(0.1);
  r.dead_record = random->Chance(0.75);
  if (random->Chance(0.5)) r.snapshot = random->Between(0.3, 0.98);
  r.lost.assign(static_cast<size_t>(w->ranks), false);
  if (random->Chance(0.2)) {
    const double share = random->Between(0.02, 0.2);
    for (size_t i = 0; i < r.lost.size(); ++i) r.lost[i] = random->Chance(share);
  }
}

}  // namespace ringscope::property
