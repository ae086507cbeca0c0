// Communicators and operations of a record, as each version of the profiler table lets the recorder
// see them.
#include <algorithm>
#include <map>

#include "recorder/flight/chain.h"
#include "tests/property/operation_steps.h"
#include "tests/property/record.h"

namespace ringscope::property {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }
constexpr size_t kNewestInFull = 32;

uint64_t TypeBytes(trace::DataType type) { return type == trace::FLOAT64 ? 8 : 4; }

// The signature chain (recorder/flight/chain.h); a group counts once the next one begins.
class Chain {
 public:
  void Add(uint64_t group, trace::Func func, trace::DataType type, uint64_t count) {
    if (open_ > 0 && group != group_) Close();
    group_ = group;
    if ((flight::kChainMoves >> func & 1) != 0) count *= TypeBytes(type), type = trace::INT8;
    sum_ += flight::ChainOf(static_cast<flight::Func>(func), static_cast<flight::DataType>(type),
                            count, 0);
    ++open_;
  }
  void WriteTo(trace::Communicator* to) const {
    to->set_chain_position(position_);
    to->set_signature(hash_);
    for (const uint32_t shift : flight::kChainShift) {
      const uint64_t newest = position_ >> shift;
      for (uint64_t o = newest; o != 0 && o + 2 > newest; --o) {
        const auto at = kept_.find(o << shift);
        if (at == kept_.end()) continue;
        trace::Checkpoint* c = to->add_checkpoints();
        c->set_position(o << shift);
        c->set_hash(at->second);
      }
    }
  }

 private:
  void Close() {
    hash_ = flight::ChainFold(hash_, sum_);
    const uint64_t before = position_;
    position_ += open_;
    for (uint64_t m = before / 64 + 1; m <= position_ / 64; ++m) {
      kept_[m * 64] = flight::ChainMix(hash_ ^ position_) & 0xffffffffffff;
    }
    sum_ = open_ = 0;
  }
  uint64_t hash_ = 0, position_ = 0, sum_ = 0, open_ = 0, group_ = 0;
  std::map<uint64_t, uint64_t> kept_;
};

struct Sight {
  const World& w;
  const Comm& comm;
  int self;
  const RecordPlan& plan;
  const HostClock& clock;
  double now() const { return std::min(plan.cut, plan.written); }
  int64_t At(double t) const { return t <= now() ? clock.Mono(t) : 0; }
};

// Connections of this rank that the operation uses.
uint32_t ProxyOps(const Sight& s, const OpRun& op) {
  const auto& ranks = s.comm.ranks;
  const int job = ranks[Index(s.self)];
  if (op.call.p2p()) return s.w.SameHost(job, ranks[Index(op.call.peer)]) ? 0 : 1;
  uint32_t n = 0;
  for (const auto& ring : s.comm.rings) {
    const auto at = static_cast<size_t>(std::find(ring.begin(), ring.end(), s.self) - ring.begin());
    n += s.w.SameHost(job, ranks[Index(ring[(at + 1) % ring.size()])]) ? 0 : 1;
    n += s.w.SameHost(job, ranks[Index(ring[(at + ring.size() - 1) % ring.size()])]) ? 0 : 1;
  }
  return n;
}

void WriteOp(const Sight& s, const OpRun& op, uint32_t row, uint32_t plan_group,
             trace::Operation* o) {
  const Recording& how = s.w.recording;
  o->set_row(row);
  o->set_generation(1);
  o->set_position(op.position);
  o->set_p2p(op.call.p2p());
  o->set_func(op.call.func);
  o->set_datatype(op.call.type);
  o->set_count(op.call.count);
  if (!how.api_events() && op.call.func == trace::ALL_GATHER) {  // the launch event tells bytes
    o->set_datatype(trace::INT8);
    o->set_count(op.call.count * TypeBytes(op.call.type));
  }
  o->set_root(op.call.p2p() ? -1 : 0);
  o->set_peer(op.call.peer);
  if (how.api_events()) {
    o->set_entered_ns(s.At(op.entered));
    o->set_returned_ns(s.At(op.returned));
    o->set_stream(0x7f0000000000u + static_cast<uint64_t>(op.stream) * 0x1000);
    o->set_group(static_cast<uint32_t>(op.group));
    o->set_grouped(op.grouped);
    o->set_from_api(true);
  } else {
    o->set_entered_ns(s.At(op.enqueued));
    o->set_returned_ns(s.At(op.enqueued));
    o->set_group(plan_group);
  }
  o->set_enqueued_ns(s.At(op.enqueued));
  const bool launched = op.enqueued <= s.now();
  const bool started = op.started <= s.now(), finished = op.finished <= s.now();
  const auto channels = op.call.p2p() ? 1u : static_cast<uint32_t>(s.comm.channels());
  if (launched && how.api >= 4 && !(how.api == 4 && op.call.p2p())) o->set_channels(channels);
  if (launched && !op.call.p2p()) {
    o->set_algo(s.comm.tree ? trace::TREE : trace::RING);
    o->set_proto(s.comm.slices == 2 ? trace::SIMPLE : trace::LL);
  }
  if (how.completion_visible()) {
    // The proxy thread polls: a little late.
    o->set_started_ns(started ? s.clock.Mono(std::min(op.started + 4e-6, s.now())) : 0);
    o->set_kernels_started(started ? channels : 0);
    o->set_finished_ns(finished ? s.clock.Mono(std::min(op.finished + 6e-6, s.now())) : 0);
    o->set_kernels_stopped(finished ? channels : 0);
    if (how.api >= 4) {
      const int64_t zero =
          1700000000 +
          977 * s.comm.ranks[Index(s.self)];  // every GPU counts from some other moment
      o->set_gpu_started_ns(started ? zero * 1000000000 + static_cast<int64_t>(op.started * 1e9)
                                    : 0);
      o->set_gpu_finished_ns(finished ? zero * 1000000000 + static_cast<int64_t>(op.finished * 1e9)
                                      : 0);
    }
  }
  const uint32_t proxies = launched ? ProxyOps(s, op) : 0;
  o->set_proxy_ops_started(proxies);
  o->set_proxy_ops_stopped(finished ? proxies : 0);
  o->set_unfinished(how.completion_visible() ? !finished
                                             : !launched || o->proxy_ops_stopped() != proxies);
}

void WriteOlder(const std::vector<trace::Operation>& ops, trace::OperationColumns* out) {
  std::map<std::string, uint32_t> known;
  uint64_t position[2] = {0, 0};
  int64_t entered = 0;
  for (const trace::Operation& op : ops) {
    trace::Signature s;
    s.set_p2p(op.p2p());
    s.set_func(op.func());
    s.set_datatype(op.datatype());
    s.set_count(op.count());
    s.set_root(op.root());
    s.set_algo(op.algo());
    s.set_proto(op.proto());
    s.set_channels(op.channels());
    s.set_peer(op.peer());
    s.set_stream(op.stream());
    s.set_from_api(op.from_api());
    s.set_grouped(op.grouped());
    const auto [at, fresh] =
        known.emplace(s.SerializeAsString(), static_cast<uint32_t>(known.size()));
    if (fresh) *out->add_signatures() = s;
    out->add_signature(at->second);
    uint64_t& last = position[op.p2p() ? 1 : 0];
    out->add_position_delta(static_cast<int64_t>(op.position() - last));
    last = op.position();
    out->add_entered_delta_ns(op.entered_ns() - entered);
    entered = op.entered_ns();
    const auto after = [&](int64_t t) { return t == 0 ? 0 : t - op.entered_ns(); };
    out->add_returned_after_ns(static_cast<uint64_t>(after(op.returned_ns())));
    out->add_enqueued_after_ns(after(op.enqueued_ns()));
    out->add_started_after_ns(after(op.started_ns()));
    out->add_duration_ns(
        static_cast<uint64_t>(op.finished_ns() == 0 ? 0 : op.finished_ns() - op.started_ns()));
    out->add_gpu_duration_ns(static_cast<uint64_t>(
        op.gpu_finished_ns() == 0 ? 0 : op.gpu_finished_ns() - op.gpu_started_ns()));
    out->add_group(op.group());
    out->add_row(op.row());
  }
  if (!ops.empty()) {
    out->add_generation_from(0);
    out->add_generation(1);
  }
}

}  // namespace

void WriteCommunicators(const World& w, const Played& played, int rank, const RecordPlan& plan,
                        const HostClock& clock, trace::Trace* out) {
  const Recording& how = w.recording;
  for (size_t i = 0; i < w.comms.size(); ++i) {
    const Comm& comm = w.comms[i];
    const int self = comm.RankOf(rank);
    if (self < 0) continue;
    const Sight s = {w, comm, self, plan, clock};
    trace::Communicator* c = out->add_communicators();
    c->set_row(RowOf(w, rank, static_cast<int>(i)));
    c->set_ordinal(c->row());
    c->set_profiler_api(static_cast<uint32_t>(how.api));
    c->set_api_events(how.api_events());
    c->set_completion_visible(how.completion_visible());
    c->set_created_ns(clock.Mono(-0.9 + 0.01 * static_cast<double>(i)));
    c->set_generation(1);
    Chain chain;
    std::vector<trace::Operation> ops;
    uint64_t known = 0, launched = 0, completed = 0, gathers = 0;
    double progress = 0;
    for (const OpRun& op : played.ranks[Index(rank)].ops) {
      if (op.call.comm != static_cast<int>(i)) continue;
      // Without API events an operation is known from its launch on.
      if ((how.api_events() ? op.entered : op.enqueued) > s.now()) continue;
      ++known;
      gathers += op.call.func == trace::ALL_GATHER || op.call.func == trace::REDUCE_SCATTER ? 1 : 0;
      launched += op.enqueued <= s.now() ? 1 : 0;
      completed += how.completion_visible() && op.finished <= s.now() ? 1 : 0;
      for (double t : {op.started, op.finished}) {
        if (t <= s.now()) progress = std::max(progress, t);
      }
      if (op.call.p2p()) {
        c->set_p2ps(op.position);
      } else {
        c->set_collectives(op.position);
        chain.Add(static_cast<uint64_t>(op.group), op.call.func, op.call.type, op.call.count);
      }
      ops.emplace_back();
      WriteOp(s, op, static_cast<uint32_t>(c->row() * 256 + known % 256),
              static_cast<uint32_t>(op.group), &ops.back());
    }
    // Below v4 a communicator's identity comes with its first operation.
    const bool identified = how.api >= 4 || known > 0;
    c->set_comm_id(identified ? comm.id : 0);
    c->set_rank(identified ? static_cast<uint32_t>(self) : 0xffffffffu);
    if (how.api >= 4 || (how.api <= 2 && gathers > 0))
      c->set_n_ranks(static_cast<uint32_t>(comm.n()));
    if (how.api >= 4) {
      c->set_name(comm.name);
      std::vector<int> hosts;
      for (int r : comm.ranks) hosts.push_back(w.host_of[Index(r)]);
      std::sort(hosts.begin(), hosts.end());
      c->set_n_nodes(
          static_cast<uint32_t>(std::unique(hosts.begin(), hosts.end()) - hosts.begin()));
    }
    c->set_launched(launched);
    c->set_completed(completed);
    c->set_last_progress_ns(how.completion_visible() || comm.over_network ? s.At(progress) : 0);
    c->set_has_steps(comm.over_network && known > 0);
    if (plan.clean) c->set_finalized_ns(clock.Mono(plan.written - 0.005));
    chain.WriteTo(c);
    // A ring of rows: the newest so many, but nothing that is open is overwritten.
    size_t drop = ops.size() > Index(how.kept) ? ops.size() - Index(how.kept) : 0;
    std::vector<trace::Operation> older;
    for (size_t k = 0; k < ops.size(); ++k) {
      if (ops[k].unfinished()) {
        *c->add_operations() = ops[k];
      } else if (k < drop) {
        continue;
      } else if (k + kNewestInFull >= ops.size()) {
        *c->add_operations() = ops[k];
      } else {
        older.push_back(ops[k]);
      }
    }
    if (!older.empty()) WriteOlder(older, c->mutable_older());
  }
}

}  // namespace ringscope::property
