#include "analyzer/reasoning/wait_graph_input.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/quiet.h"
#include "analyzer/reasoning/thresholds.h"
#include "analyzer/reasoning/wait_graph_edges.h"
#include "analyzer/reasoning/wait_graph_messages.h"
#include "analyzer/reasoning/wait_graph_progress.h"

namespace ringscope::reasoning {
namespace {

using graph::Host;
using graph::Progress;
using graph::Stage;
using model::Communicator;
using model::Job;
using model::Life;
using model::Member;
using model::Op;

// Operations of one group have no order among themselves; those of the group before come first.
// More links than this add nothing: any one of them that is unfinished holds the next group.
constexpr size_t kOrderLinks = 16;

struct Listed {
  int member;
  const Op* op;
  Progress progress;
  bool stuck;
};

class InputBuilder {
 public:
  InputBuilder(const Job& job, WaitInput* out)
      : job_(job), out_(*out), open_edges_(job), standstill_(job) {}

  void Run() {
    NumberRanks();
    for (const Communicator& c : job_.communicators) {
      AddCommunicator(c, false);
      AddCommunicator(c, true);
    }
    AddHosts();
    OrderWaits();
    for (size_t i = 0; i < out_.comms.size(); ++i) {
      if (out_.comms[i].p2p)
        AddMessages(job_, rank_of_[out_.comms[i].communicator], static_cast<int>(i), &out_);
    }
    AddOrder();
    AddEdges();
    HideQueues();
  }

 private:
  // ---- ranks
  void NumberRanks() {
    std::map<std::tuple<int, int, int, int>, int>
        known;  // with record?, job rank, else communicator and rank
    rank_of_.resize(job_.communicators.size());
    for (const Communicator& c : job_.communicators) {
      std::vector<bool> used;
      for (const Member& m : c.members) {
        const bool record = m.has_record();
        auto key = m.job_rank >= 0
                       ? std::make_tuple(record ? m.process + 1 : 0, m.job_rank, -1, -1)
                       : std::make_tuple(record ? m.process + 1 : 0, -1, c.index, m.rank);
        auto [it, fresh] = known.try_emplace(key, static_cast<int>(out_.ranks.size()));
        if (!fresh && static_cast<size_t>(it->second) < used.size() && used[it->second]) {
          // Two members of one communicator with the same job rank: a broken launcher; they stay
          // two ranks.
          key = std::make_tuple(record ? m.process + 1 : 0, -1, c.index, m.rank);
          std::tie(it, fresh) = known.try_emplace(key, static_cast<int>(out_.ranks.size()));
        }
        const int rank = it->second;
        if (fresh) {
          out_.ranks.push_back({m.job_rank, m.process, c.index, m.rank});
          out_.graph.ranks.emplace_back();
          std::string host = record ? job_.processes[m.process].host : "";
          out_.graph.hosts.push_back(std::move(host));
        }
        if (used.size() <= static_cast<size_t>(rank)) used.resize(rank + 1, false);
        used[rank] = true;
        rank_of_[c.index].push_back(rank);
      }
    }
  }

  // ---- communicators
  static bool NeedsEverybody(const Op& op) {
    const trace::Func func = op.raw.func();
    return func == trace::ALL_REDUCE || func == trace::ALL_GATHER || func == trace::REDUCE_SCATTER;
  }
  // A member whose record goes on for the stall time after this call, or ends for good, has not made it.
  bool SomebodyAbsent(const Communicator& c, const Member& m, const Op& op) const {
    const model::Process& own = job_.processes[m.process];
    const model::JobTime called = model::ToJobTime(own, op.raw.enqueued_ns());
    const auto stall = static_cast<int64_t>(std::clamp(own.trace.settings().stall_seconds(), 0.0, 86400.0) * 1e9);
    return std::any_of(c.members.begin(), c.members.end(), [&](const Member& other) {
      if (!other.has_record() || other.collectives >= op.position()) return false;
      if (other.raw != nullptr && other.raw->collectives() >= op.position()) return false;
      const model::Process& its = job_.processes[other.process];
      const bool ended = its.life == Life::kGone || its.life == Life::kFrozen || its.life == Life::kGoneOrFrozen;
      return ended || model::AfterAtLeast(called, model::LastSignOf(its)) >= stall;
    });
  }

  void AddCommunicator(const Communicator& c, bool p2p) {
    std::vector<Listed> listed;
    uint64_t first_open = std::numeric_limits<uint64_t>::max();
    bool open = false;
    const bool visible = KernelsVisible(c);
    for (const Member& m : c.members) {
      if (!m.has_record()) continue;
      const size_t begin = listed.size();
      size_t last_running = begin;
      for (const Op& op : m.ops) {
        if (op.p2p() != p2p || op.position() == 0) continue;
        Progress progress =
            ProgressOf(op, visible, open_edges_.Receiving(c.index, m.rank, p2p, op.position()),
                       open_edges_.Sending(c.index, m.rank, p2p, op.position()),
                       open_edges_.Ran(c.index, m.rank, p2p, op.position()));
        // What needs everybody is not over while somebody has not come, though nothing shows it where kernels are not visible.
        if (!visible && !p2p && op.finished != model::Truth::kYes && op.enqueued == model::Truth::kYes && NeedsEverybody(op) &&
            SomebodyAbsent(c, m, op)) {
          progress = {progress.at_least == Stage::kStarted ? Stage::kStarted : Stage::kEnqueued, Stage::kStarted};
        }
        if (progress.Reached(Stage::kFinished)) {
          if (!p2p) last_running = listed.size();
          continue;
        }
        listed.push_back({m.rank, &op, progress, false});
        if (!p2p && progress.Reached(Stage::kStarted)) last_running = listed.size() - 1;
      }
      if (p2p) {
        std::set<std::pair<uint32_t, uint32_t>> started;  // thread, group
        for (const Op& op : m.ops) {
          if (op.p2p() && op.raw.group() != 0 && op.started == model::Truth::kYes) {
            started.insert({op.raw.thread(), op.raw.group()});
          }
        }
        for (size_t i = begin; i < listed.size(); ++i) {
          const model::OpRecord& raw = listed[i].op->raw;
          if (raw.group() == 0 || started.count({raw.thread(), raw.group()}) == 0) continue;
          listed[i].progress = InStartedGroup(
              listed[i].progress,
              open_edges_.Receiving(c.index, m.rank, true, listed[i].op->position()));
        }
      }
      // Collectives of a communicator run one after the other: what is only not known to be over is
      // over when a later one runs.
      for (size_t i = begin; i < last_running && i < listed.size(); ++i) {
        if (!listed[i].progress.Before(Stage::kFinished))
          listed[i].progress.at_least = Stage::kFinished;
      }
      for (size_t i = begin; i < listed.size(); ++i) {
        if (!listed[i].progress.Before(Stage::kFinished)) continue;
        open = true;
        if (!p2p) first_open = std::min(first_open, listed[i].op->position());
        listed[i].stuck = standstill_.Of(c, m, *listed[i].op, listed[i].progress);
      }
    }
    if (!open) return;
    out_.open = true;
    const int index = static_cast<int>(out_.comms.size());
    comm_of_[{c.index, p2p}] = index;
    CommInfo info;
    info.communicator = c.index;
    info.p2p = p2p;
    graph::Comm comm;
    comm.name = c.Label();
    comm.ranks = rank_of_[c.index];
    comm.p2p = p2p;
    for (const Member& m : c.members) {
      comm.entered.push_back(m.raw == nullptr ? 0
                             : p2p            ? m.raw->p2ps()
                                              : std::max(m.collectives, m.raw->collectives()));
    }
    out_.graph.comms.push_back(std::move(comm));
    for (const Listed& l : listed) {
      if (l.progress.Reached(Stage::kFinished)) continue;
      // Of what is not known to be over only what lies in the stretch that stands still is of
      // interest.
      if (!l.progress.Before(Stage::kFinished) && !p2p && l.op->position() < first_open) continue;
      AddOp(c, index, l, &info);
    }
    out_.hung |= info.hung;
    out_.comms.push_back(info);
  }

  void AddOp(const Communicator& c, int comm, const Listed& l, CommInfo* info) {
    const Member& m = c.members[l.member];
    graph::Participation p;
    p.comm = comm;
    p.rank = rank_of_[c.index][l.member];
    p.position = l.op->position();
    p.progress = l.progress;
    p.stuck = l.stuck;
    switch (l.op->raw.algo()) {
      case trace::RING:
        p.pattern = Pattern::kRing;
        break;
      case trace::TREE:
        p.pattern = Pattern::kTree;
        break;
      default:
        break;
    }
    p.chain = l.op->raw.func() == trace::BROADCAST || l.op->raw.func() == trace::REDUCE;
    if (l.op->raw.group() != 0 && l.op->p2p()) p.group = l.op->raw.group();
    out_.graph.ops.push_back(std::move(p));
    out_.ops.push_back({c.index, l.member, l.op});
    if (!l.stuck) return;
    info->hung = true;
    const model::Process& process = job_.processes[m.process];
    info->wait.Begin(model::ToJobTime(process, l.op->raw.entered_ns() != 0 ? l.op->raw.entered_ns() : l.op->raw.enqueued_ns()));
    info->wait.End(model::ToJobTime(process, m.finalized_open && m.raw ? m.raw->finalized_ns() : LastSign(process)));
  }

  // ---- hosts
  // Whether the process was there for most of the wait; kUnknown where the clocks do not tell.
  model::Truth LivedThrough(const RankInfo& rank, const WaitSpan& wait) const {
    return wait.known() ? wait.Past(model::LastSignOf(job_.processes[rank.process]), thresholds::kLivedThrough) : model::Truth::kYes;
  }

  // Which communicators surely began to stand still before which. (Sure precedence is transitive, so whoever is surely later has
  // more of them before it.)
  void OrderWaits() {
    constexpr size_t kMostCompared = 4096;
    for (CommInfo& info : out_.comms) {
      for (size_t i = 0; i < out_.comms.size() && i < kMostCompared; ++i)
        info.began += out_.comms[i].wait.Before(info.wait);
    }
  }

  void AddHosts() {
    std::vector<WaitSpan> wait(out_.ranks.size());
    for (const CommInfo& info : out_.comms) {
      if (!info.hung) continue;
      for (int r : rank_of_[info.communicator]) wait[r].Join(info.wait);
    }
    FindCalls();
    std::vector<char> pending(out_.ranks.size(), 0), inside(out_.ranks.size(), 0);
    std::vector<char> aborted(out_.ranks.size(), 0);
    for (const CommInfo& info : out_.comms) {
      const Communicator& c = job_.communicators[info.communicator];
      for (size_t i = 0; i < c.members.size(); ++i) {
        if (c.members[i].finalized_open) aborted[rank_of_[c.index][i]] = 1;
      }
    }
    for (size_t i = 0; i < out_.graph.ops.size(); ++i) {
      const graph::Participation& op = out_.graph.ops[i];
      if (!op.stuck || !op.progress.Before(Stage::kFinished)) continue;
      if (op.progress.Reached(Stage::kEnqueued)) pending[op.rank] = 1;
      if (op.progress.Before(Stage::kEnqueued)) inside[op.rank] = 1;
    }
    for (size_t r = 0; r < out_.ranks.size(); ++r) {
      const RankInfo& rank = out_.ranks[r];
      graph::Rank& g = out_.graph.ranks[r];
      if (rank.process < 0) {
        g.host = Host::kNoRecord;
        continue;
      }
      // Where clocks do not tell: a death or a freeze that is seen counts; an end in order, which others may have had before it, and
      // a record that merely ends do not.
      const model::Truth lived = LivedThrough(rank, wait[r]);
      const bool through = lived == model::Truth::kYes;
      switch (job_.processes[rank.process].life) {
        case Life::kFrozen:
          g.host = through ? Host::kSync : Host::kFrozen;
          break;
        case Life::kGone:
          g.host = through ? Host::kSync : Host::kDead;
          break;
        case Life::kGoneOrFrozen:
          g.host = through ? Host::kSync : Host::kLost;
          break;
        // Who aborts and leaves reacts to something; who finalized its communicators may well live
        // on without them.
        case Life::kExited:
          g.host = lived != model::Truth::kNo || aborted[r] || OnlyFinalized(job_.processes[rank.process])
                       ? Host::kSync
                       : Host::kExited;
          break;
        case Life::kUnknown:
          g.host = lived != model::Truth::kNo ? Host::kSync : Host::kNoRecord;
          break;
        case Life::kRunning:
          g.host = Host::kSync;
          break;
      }
      if (g.host == Host::kSync && lived == model::Truth::kNo && GaveUpAtOnce(static_cast<int>(r), wait[r].MostLength())) {
        g.host = Host::kDead;
        out_.ranks[r].inferred = true;
      }
      if (g.host != Host::kSync) continue;
      if (inside[r] || in_call_[r]) {
        g.host = Host::kApi;
      } else if (!pending[r]) {
        g.host = Host::kUser;
      }
    }
    for (graph::Participation& op : out_.graph.ops) {
      if (out_.graph.ranks[op.rank].host == Host::kNoRecord) op.stuck = false;
    }
  }

  static bool OnlyFinalized(const model::Process& p) {
    return !p.trace.liveness().exiting() && p.trace.reason() != trace::REASON_EXIT;
  }

  // Others aborted long before the stall time, so an error told them, not their patience; and this
  // process was silent from before their wait and left no clean end, while they ended in order.
  bool GaveUpAtOnce(int rank, int64_t waited) const {
    const model::Process& p = job_.processes[out_.ranks[rank].process];
    const trace::Liveness& live = p.trace.liveness();
    if (!p.from_flight_file || live.clean() || live.exiting() || live.lock_held()) return false;
    if (static_cast<double>(waited) >= p.trace.settings().stall_seconds() * 1e9) return false;
    bool others = false;
    for (const CommInfo& info : out_.comms) {
      const Communicator& c = job_.communicators[info.communicator];
      for (size_t i = 0; i < c.members.size(); ++i) {
        const Member& m = c.members[i];
        if (rank_of_[c.index][i] == rank || !m.has_record()) continue;
        if (!m.finalized_open || job_.processes[m.process].life != Life::kExited) return false;
        others = true;
      }
    }
    return others;
  }

  // Ranks inside a call for the stall time. What is called may be another communicator's, or none
  // that is known.
  void FindCalls() {
    std::map<std::pair<int, uint32_t>, int> rank_of_row;  // process, communicator row
    std::map<int, std::vector<int>> of_process;
    for (size_t r = 0; r < out_.ranks.size(); ++r) {
      of_process[out_.ranks[r].process].push_back(static_cast<int>(r));
    }
    for (const Communicator& c : job_.communicators) {
      for (const Member& m : c.members) {
        if (m.raw != nullptr) rank_of_row[{m.process, m.raw->row()}] = rank_of_[c.index][m.rank];
      }
    }
    in_call_.assign(out_.ranks.size(), 0);
    for (const model::Process& p : job_.processes) {
      for (const trace::CallInFlight& call : p.trace.calls()) {
        if (call.call() == trace::CallInFlight::NONE || call.since_ns() == 0) continue;
        const double since = static_cast<double>(LastSign(p) - call.since_ns());
        if (since < p.trace.settings().stall_seconds() * 1e9) continue;
        if (call.communicator() != 0) {
          const auto it = rank_of_row.find({p.index, call.communicator() - 1});
          if (it != rank_of_row.end()) in_call_[it->second] = 1;
        } else if (const auto& ranks = of_process[p.index]; ranks.size() == 1) {
          in_call_[ranks[0]] = 1;
        }
      }
    }
  }

  // Ranks with operations that neither kernel events nor network edges tell anything of, in a communicator beside others.
  void HideQueues() {
    std::set<std::tuple<int, int, bool>> on_network;
    for (const model::Edge& edge : job_.edges) {
      on_network.insert({edge.communicator, edge.from, edge.p2p});
      on_network.insert({edge.communicator, edge.to, edge.p2p});
    }
    for (const Communicator& c : job_.communicators) {
      if (c.n_ranks < 2 || KernelsVisible(c)) continue;
      for (const Member& m : c.members) {
        const bool hidden = std::any_of(m.ops.begin(), m.ops.end(), [&](const Op& op) {
          return op.enqueued == model::Truth::kYes && op.finished == model::Truth::kUnknown &&
                 on_network.count({c.index, m.rank, op.p2p()}) == 0;
        });
        if (hidden) out_.graph.ranks[rank_of_[c.index][m.rank]].queue_hidden = true;
      }
    }
  }

  // ---- order What the GPU runs before what: on one stream, and within one communicator whatever
  // the stream (NCCL orders those).
  void AddOrder() {
    std::map<int, std::vector<int>> of_rank;
    for (size_t i = 0; i < out_.graph.ops.size(); ++i)
      of_rank[out_.graph.ops[i].rank].push_back(static_cast<int>(i));
    for (auto& [rank, indices] : of_rank) {
      std::stable_sort(indices.begin(), indices.end(),
                       [this](int a, int b) { return EnteredNs(a) < EnteredNs(b); });
      struct Queue {
        uint64_t group = 0;
        std::vector<int> current, before;
      };
      std::map<std::pair<bool, uint64_t>, Queue> queues;  // stream?, else communicator
      uint64_t lone = uint64_t{1} << 40;
      for (int i : indices) {
        const model::OpRecord& raw = out_.ops[i].op->raw;
        const uint64_t group =
            raw.group() != 0 ? raw.group() | static_cast<uint64_t>(raw.thread()) << 41 : ++lone;
        const auto enter = [&](bool stream, uint64_t key) {
          Queue& queue = queues[{stream, key}];
          if (queue.group != group) {
            queue.before = std::move(queue.current);
            queue.current.clear();
            queue.group = group;
          }
          if (queue.current.size() < kOrderLinks) queue.current.push_back(i);
          auto& after = out_.graph.ops[i].after;
          for (int b : queue.before) {
            if (std::find(after.begin(), after.end(), b) == after.end()) after.push_back(b);
          }
          // Of the same group what runs holds up what does not, in whatever order NCCL put them.
          for (int b : queue.current) {
            const Progress& sibling = out_.graph.ops[b].progress;
            if (b == i || !sibling.Reached(Stage::kStarted) || !sibling.Before(Stage::kFinished))
              continue;
            if (std::find(after.begin(), after.end(), b) == after.end()) after.push_back(b);
          }
        };
        enter(false, static_cast<uint64_t>(out_.ops[i].communicator));
        // 0 is the default stream where the API told, else it is not known.
        if (raw.stream() != 0 || raw.from_api()) enter(true, raw.stream());
        AddLikelyOrder(i, indices);
      }
    }
  }
  // What does not start while an older operation of another communicator runs on the same GPU may well be behind it; that GPU is
  // not to be accused. Below profiler API v5 no stream is told. Where it is told and is another one, that proves nothing either:
  // frameworks give each communicator a stream and let it wait, by events, for the computation, which waited for the older one.
  void AddLikelyOrder(int i, const std::vector<int>& oldest_first) {
    graph::Participation& op = out_.graph.ops[i];
    if (op.progress.Reached(Stage::kStarted)) return;
    for (int b : oldest_first) {
      if (b == i) break;
      const Progress& older = out_.graph.ops[b].progress;
      if (out_.ops[b].communicator == out_.ops[i].communicator || !older.Reached(Stage::kStarted) ||
          !older.Before(Stage::kFinished) || std::find(op.after.begin(), op.after.end(), b) != op.after.end()) {
        continue;
      }
      op.after.push_back(b);
      if (op.after.size() >= kOrderLinks) break;
    }
    // Without kernel events: a collective whose connections the GPU has not touched, behind one that
    // runs, has not begun. (Its neighbours may have filled its receives.)
    const OpOrigin& origin = out_.ops[i];
    if (!op.after.empty() && !origin.op->p2p() && op.progress.Reached(Stage::kEnqueued) &&
        op.progress.at_most == Stage::kStarted &&
        !KernelsVisible(job_.communicators[origin.communicator]) &&
        !open_edges_.Touched(origin.communicator, origin.member, false, op.position)) {
      op.progress.at_most = Stage::kEnqueued;
    }
  }
  int64_t EnteredNs(int i) const {
    const model::OpRecord& raw = out_.ops[i].op->raw;
    return raw.entered_ns() != 0 ? raw.entered_ns() : raw.enqueued_ns();
  }

  // ---- edges
  void AddEdges() {
    std::map<int, std::map<uint64_t, bool>> positions;
    for (const graph::Participation& op : out_.graph.ops) {
      if (op.stuck && op.progress.Before(Stage::kFinished) && !out_.comms[op.comm].p2p) {
        positions[out_.comms[op.comm].communicator][op.position] = true;
      }
    }
    std::map<int, std::vector<int>> ranks_of_process;
    for (size_t r = 0; r < out_.ranks.size(); ++r)
      ranks_of_process[out_.ranks[r].process].push_back(static_cast<int>(r));
    EdgeSources sources;
    sources.rank_of = [this](int communicator, int member) {
      return rank_of_[communicator][member];
    };
    sources.driver_of = [&](const model::Edge& edge, const model::EdgeSide& side) {
      const int owner = rank_of_[edge.communicator][side.raw->send() ? edge.from : edge.to];
      if (out_.ranks[owner].process == side.process) return owner;
      const auto it = ranks_of_process.find(side.process);
      return it == ranks_of_process.end() ? -1 : it->second.front();
    };
    sources.stale = [&](const model::EdgeSide& side) {
      const auto it = ranks_of_process.find(side.process);
      return it != ranks_of_process.end() &&
             out_.graph.ranks[it->second.front()].host == Host::kNoRecord;
    };
    sources.comm_of = [this](int communicator, bool p2p) {
      const auto it = comm_of_.find({communicator, p2p});
      return it == comm_of_.end() ? -1 : it->second;
    };
    sources.only_position = [&](int communicator) -> uint64_t {
      const auto it = positions.find(communicator);
      return it == positions.end() || it->second.empty() ? 0 : it->second.begin()->first;
    };
    for (auto& [view, edge] : MakeEdgeViews(job_, sources)) {
      out_.graph.edges.push_back(std::move(view));
      out_.edges.push_back(edge);
    }
  }

  const Job& job_;
  WaitInput& out_;
  const OpenEdges open_edges_;
  const Standstill standstill_;
  std::vector<char> in_call_;              // beside out_.ranks
  std::vector<std::vector<int>> rank_of_;  // communicator, member -> rank of the graph
  std::map<std::pair<int, bool>, int> comm_of_;
};

}  // namespace

const Member* WaitInput::MemberOf(const Job& job, int rank) const {
  const RankInfo& info = ranks[rank];
  if (info.communicator < 0) return nullptr;
  return &job.communicators[info.communicator].members[info.member];
}

WaitInput BuildWaitInput(const Job& job) {
  WaitInput input;
  InputBuilder(job, &input).Run();
  return input;
}

}  // namespace ringscope::reasoning
