// Processes that do not answer NCCL's RAS: INCOMPLETE (no answer in time), DEAD (unreachable for 60 s and given up).
//
// RAS knows no more than that: an ended, killed or frozen process and a node that is cut off look alike.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/ras_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr size_t kMostNamed = 8;

struct Silent {
  std::string node;
  int64_t pid = -1;
  int gpu = -1;
  std::set<int> ranks;  // of the job
  std::vector<model::Where> missing, dead;
};

struct Seen {
  std::map<std::pair<std::string, int64_t>, Silent> processes;
  std::set<int> ranks_alone;  // missing ranks whose process RAS could not name
  std::vector<model::Where> ranks_where;
  int most_silent = 0, processes_total = -1;
  bool init = false;
  std::vector<const model::RasSnapshot*> snapshots;  // with anything missing
};

Silent& Of(Seen* seen, int64_t pid, const std::string& node) {
  Silent& s = seen->processes[{node, pid}];
  s.node = node, s.pid = pid;
  return s;
}

void TakeSnapshot(const model::RasSnapshot& snapshot, Seen* seen) {
  for (const model::RasProcess& p : snapshot.missing) {
    Silent& s = Of(seen, p.pid, p.node);
    s.missing.push_back(p.where);
    if (p.gpus.size() == 1) s.gpu = p.gpus[0];
  }
  for (const model::RasProcess& p : snapshot.dead) {
    Silent& s = Of(seen, p.pid, p.node);
    s.dead.push_back(p.where);
    if (p.gpus.size() == 1) s.gpu = p.gpus[0];
  }
  int answered = 0;
  for (const model::RasCommunicator& c : snapshot.communicators) {
    for (const model::RasShare& share : c.statuses) answered = std::max(answered, share.ranks);
  }
  seen->most_silent = std::max({seen->most_silent, snapshot.missing_processes + snapshot.dead_processes});
  seen->processes_total = std::max({seen->processes_total, snapshot.processes});
  for (const model::RasGroup& g : snapshot.groups) seen->init |= g.status == "INIT" && g.errors.find("INCOMPLETE") != g.errors.npos;
  if (snapshot.missing_processes + snapshot.dead_processes > 0) seen->snapshots.push_back(&snapshot);
}

void TakeRanks(const model::Job& job, const RasRanks& ranks, Seen* seen) {
  for (const RasHistory& h : RasHistories(job)) {
    for (const RasSight& sight : h.sights) {
      const auto& missing = sight.communicator->missing_ranks;
      // 2.24 and 2.25 print the rank without its process: one of each belong together.
      const auto& silent = sight.snapshot->dead.empty() ? sight.snapshot->missing : sight.snapshot->dead;
      for (const model::RasRank& r : missing) {
        const int rank = ranks.Of(h, r);
        if (r.pid >= 0) {
          Silent& s = Of(seen, r.pid, r.node);
          if (s.gpu < 0) s.gpu = r.cuda_device;
          if (rank >= 0) s.ranks.insert(rank);
          (r.dead ? s.dead : s.missing).push_back(r.where);
        } else if (missing.size() == 1 && silent.size() == 1 && silent[0].gpus.size() == 1 && rank >= 0) {
          Of(seen, silent[0].pid, silent[0].node).ranks.insert(rank);
          seen->ranks_where.push_back(r.where);
        } else if (rank >= 0) {
          seen->ranks_alone.insert(rank);
          seen->ranks_where.push_back(r.where);
        }
      }
      if (h.size > 0 && ranks.Spans(h) && seen->processes_total < 0) seen->processes_total = h.size;
    }
  }
  for (auto& [key, s] : seen->processes) {
    if (!s.ranks.empty()) continue;
    if (const int rank = ranks.OfProcess(s.pid, s.node, s.gpu); rank >= 0) s.ranks.insert(rank);
  }
}

std::string Text(const Silent& s) {
  std::string text = absl::StrCat("process ", s.pid, s.node.empty() ? "" : absl::StrCat(" on ", s.node));
  if (s.gpu >= 0) absl::StrAppend(&text, ", GPU ", s.gpu);
  if (!s.ranks.empty()) text = absl::StrCat(RanksText(s.ranks), " (", text, ")");
  return text;
}

std::vector<Candidate> FindSilent(const model::Job& job) {
  Seen seen;
  for (const model::RasSnapshot& snapshot : job.evidence.ras.snapshots) TakeSnapshot(snapshot, &seen);
  if (job.evidence.ras.snapshots.empty()) return {};
  const RasRanks ranks(job);
  TakeRanks(job, ranks, &seen);
  if (seen.processes.empty() && seen.ranks_alone.empty() && seen.most_silent == 0) return {};

  std::set<int> who = seen.ranks_alone;
  std::set<std::string> hosts;
  std::vector<const Silent*> silent;
  bool dead = false, both = false;
  for (const auto& [key, s] : seen.processes) {
    who.insert(s.ranks.begin(), s.ranks.end());
    if (!s.node.empty()) hosts.insert(s.node);
    silent.push_back(&s);
    dead |= !s.dead.empty();
    both |= !s.dead.empty() && !s.missing.empty();
  }
  const int n = std::max(seen.most_silent, static_cast<int>(silent.size()));
  std::string names;
  for (size_t i = 0; i < silent.size() && i < kMostNamed; ++i) absl::StrAppend(&names, i == 0 ? "" : ", ", Text(*silent[i]));
  if (silent.size() > kMostNamed) absl::StrAppend(&names, " and ", silent.size() - kMostNamed, " more");
  if (names.empty()) names = who.empty() ? absl::StrCat(n, " processes") : RanksText(who);

  Candidate c;
  if (seen.processes_total > 1 && 2 * n > seen.processes_total) {
    // Whoever still answers is then the exception: the job was ending, or the node that was asked is cut off.
    c = Say(
        Kind::undetermined, Confidence::possible, Layer::kReport,
        absl::StrCat("Only ", seen.processes_total - n, " of ", seen.processes_total,
                     " processes answered NCCL's RAS: it was asked after the job had begun to end, or from a node that is cut off"),
        "");
    SetNext("The launcher's and the kernel's log: which process ended first, and how",
            "dmesg -T | grep -iE 'killed process|segfault|Xid'", &c.finding);
  } else {
    c = Say(dead ? Kind::process_exited : Kind::process_stopped,
            dead || seen.snapshots.size() > 1 ? Confidence::probable : Confidence::possible, Layer::kHost,
            absl::StrCat(names, silent.size() > 1 ? " do" : " does", " not answer NCCL's RAS",
                         both   ? " (INCOMPLETE), and then counted as DEAD"
                         : dead ? " and counts as DEAD"
                                : " (INCOMPLETE)",
                         ": ended, killed, frozen, or its node is unreachable"),
            "");
    c.order = Class::kLiveness;
    c.stops_job = true;
    c.state = seen.init ? State::init_hang : State::hang;
    AddRanks(who, c.finding.mutable_who()->mutable_ranks());
    for (const std::string& host : hosts) c.finding.mutable_who()->add_hosts(host);
    const Silent* first = silent.empty() ? nullptr : silent[0];
    const std::string node = first == nullptr ? "<host>" : ShellHost(first->node);
    const std::string pid = first == nullptr ? "<pid>" : absl::StrCat(first->pid);
    SetNext(absl::StrCat("The state of that process on its node (T stopped, D in the kernel, Z ended, or not there at all), its "
                         "kernel log, and its stack",
                         first == nullptr ? "" : absl::StrCat(": ", Text(*first))),
            absl::StrCat("ssh ", node, " 'ps -o pid,stat,wchan:32,etime,cmd -p ", pid, "; dmesg -T | tail -50'"), &c.finding);
    c.finding.set_refuted_by("a further RAS answer that has data of this process: it was only slow to answer, or ended in order");
  }
  size_t cited = 0;
  for (const Silent* s : silent) {
    if (++cited > kMostNamed) break;
    std::set<int> files;
    for (const bool as_dead : {false, true}) {
      for (const model::Where& where : as_dead ? s->dead : s->missing) {
        if (!files.insert(where.file * 2 + as_dead).second) continue;
        Cite(job, where, absl::StrCat("RAS: ", Text(*s), as_dead ? " is considered DEAD" : " is missing (INCOMPLETE)"), &c.finding);
      }
    }
  }
  for (size_t i = 0; i < seen.ranks_where.size() && i < 4; ++i)
    Cite(job, seen.ranks_where[i], absl::StrCat("RAS: missing communicator data from ", RanksText(who)), &c.finding);
  for (size_t i = 0; i < seen.snapshots.size() && i < 4; ++i) {
    const model::RasSnapshot* s = seen.snapshots[i];
    if (s->groups.size() > 64) continue;
    for (const model::RasGroup& g : s->groups) {
      if (g.errors.find("INCOMPLETE") != g.errors.npos)
        Cite(job, g.where, absl::StrCat("RAS: a communicator of ", g.ranks_per_communicator, " ranks is ", g.status, ", ", g.errors),
             &c.finding);
    }
    if (s->timeouts > 0) Cite(job, s->where, absl::StrCat("RAS: ", s->timeouts, " timeouts while it gathered data"), &c.finding);
  }
  return {c};
}

const Register kRegister("ras processes", FindSilent);

}  // namespace
}  // namespace ringscope::reasoning
