// Who said what: ranks and hosts for speakers that told only part of it.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "analyzer/model/evidence.h"

namespace ringscope::model {
namespace {

// Index of a rank by some key; two different ranks under one key make it say nothing.
template <typename Key>
class RankIndex {
 public:
  void Add(const Key& key, int rank) {
    const auto [it, fresh] = ranks_.emplace(key, rank);
    if (!fresh && it->second != rank) it->second = -1;
  }
  int Find(const Key& key) const {
    const auto it = ranks_.find(key);
    return it == ranks_.end() ? -1 : it->second;
  }

 private:
  std::map<Key, int> ranks_;
};

int WorldSize(const Evidence& evidence) {
  int world = 0;
  for (const LogRank& r : evidence.log_ranks) {
    if (!r.split) world = std::max(world, r.n_ranks);
  }
  return world;
}

// Ranks that are job ranks. A process may make several communicators of the job's size (one of them in another order): the
// first is the one its framework numbers ranks by. Notes count too; `visit` gets them last, so that a log's own word is first.
template <typename Visit>
void EachWorldRank(const Evidence& evidence, Visit visit) {
  const int world = WorldSize(evidence);
  std::set<std::tuple<std::string, int64_t, int>> seen;  // host, process, device
  for (const LogRank& r : evidence.log_ranks) {
    if (r.noted || r.split || r.n_ranks != world || r.rank < 0) continue;
    // Lines without NCCL's prefix name no process; all of them count, contradictions show.
    if (r.by.pid >= 0 && !seen.insert({r.by.host, r.by.pid, r.cuda_device}).second) continue;
    visit(r);
  }
  for (const LogRank& r : evidence.log_ranks) {
    if (r.noted && r.rank >= 0 && (world == 0 || r.rank < world)) visit(r);
  }
}

template <typename Visit>
void EachSpeaker(Evidence* evidence, Visit visit) {
  for (Event& e : evidence->events) visit(&e.by, e.where);
  for (Setting& s : evidence->settings) visit(&s.by, s.where);
  for (Version& v : evidence->versions) visit(&v.by, v.where);
  for (TransportLine& t : evidence->plan.transports) visit(&t.by, t.where);
  WorkFacts& work = evidence->work;
  for (WorkTimeout& t : work.timeouts) visit(&t.by, t.where);
  for (WorkCursor& c : work.cursors) visit(&c.by, c.where);
  for (Exception& e : work.exceptions) visit(&e.by, e.where);
  for (HostWork& h : work.host_work) visit(&h.by, h.where);
  for (XidFact& x : evidence->kernel.xids) visit(&x.by, x.where);
  for (StackProcess& p : evidence->stacks.processes) visit(&p.by, p.where);
  for (HungTask& t : evidence->kernel.hung_tasks) visit(&t.by, t.where);
  for (CallHistory& c : evidence->calls.histories) {
    if (!c.calls.empty()) visit(&c.by, c.calls.front().where);
  }
  for (LogRank& r : evidence->log_ranks)
    visit(&r.by, r.started.known() ? r.started : r.completed.known() ? r.completed : r.ended);
}

// Launchers number tasks; where one task holds many ranks (srun -l with one task a node, mpirun with a process of several
// GPUs) the number is no rank. Such numbers are taken back.
std::set<int> TaskNumbers(const Evidence& evidence) {
  std::map<int, std::set<int>> ranks_of;
  EachWorldRank(evidence, [&](const LogRank& r) {
    if (!r.noted && r.by.rank >= 0) ranks_of[r.by.rank].insert(r.rank);
  });
  std::set<int> tasks;
  for (const auto& [number, ranks] : ranks_of) {
    if (ranks.size() > 1) tasks.insert(number);
  }
  return tasks;
}

// One process that drives several GPUs, on the only host that the logs know, and no init line at all: the ranks are the devices
// (ncclCommInitAll, one process of several threads).
class LoneProcess {
 public:
  explicit LoneProcess(const Evidence& evidence) {
    if (WorldSize(evidence) > 0) return;
    std::set<int> devices;
    for (const Event& e : evidence.events) {
      if (e.by.device < 0 || e.by.pid < 0) continue;
      if (pid_ >= 0 && (e.by.pid != pid_ || e.by.host != host_)) return;
      pid_ = e.by.pid;
      host_ = e.by.host;
      devices.insert(e.by.device);
    }
    holds_ = devices.size() > 1;
  }
  int RankOf(const Speaker& by) const { return holds_ && by.pid == pid_ && by.host == host_ ? by.device : -1; }

 private:
  bool holds_ = false;
  int64_t pid_ = -1;
  std::string host_;
};

int RankWhere(const Evidence& evidence, std::string_view host, bool (*is)(const LogRank&, uint64_t), uint64_t what) {
  std::set<std::string> hosts;
  EachWorldRank(evidence, [&](const LogRank& r) {
    if (!r.by.host.empty()) hosts.insert(r.by.host);
  });
  int found = -1;
  bool several = false, noted = false;
  EachWorldRank(evidence, [&](const LogRank& r) {
    if (!is(r, what) || (!host.empty() && hosts.size() > 1 && !SameHost(r.by.host, host))) return;
    if (r.noted && !noted && found >= 0) return;  // the log itself knew
    noted |= r.noted;
    several |= found >= 0 && found != r.rank;
    found = r.rank;
  });
  return several ? -1 : found;
}

}  // namespace

bool SameHost(std::string_view a, std::string_view b) {
  if (a == b) return true;
  // NCCL cuts a name at its first dot, others do not. Addresses have no such short form.
  const auto address = [](std::string_view name) { return name.find_first_not_of("0123456789.:") == name.npos; };
  return !a.empty() && !b.empty() && !address(a) && !address(b) && a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

void ResolveSpeakers(Evidence* evidence) {
  const std::set<int> tasks = TaskNumbers(*evidence);
  if (!tasks.empty()) {
    EachSpeaker(evidence, [&](Speaker* by, Where) {
      if (tasks.count(by->rank) > 0) by->rank = -1;
    });
  }
  // A wrapper's number on an init line is the job's own: what NCCL calls rank may be another order.
  RankIndex<std::tuple<std::string, int64_t, int>> by_process_device;
  RankIndex<std::pair<std::string, int64_t>> by_process, by_local_rank;
  std::set<std::pair<std::string, int64_t>> told;
  EachWorldRank(*evidence, [&](const LogRank& r) {
    const int rank = !r.noted && r.by.rank >= 0 ? r.by.rank : r.rank;
    if (!r.by.host.empty() && r.by.local_rank >= 0) by_local_rank.Add({r.by.host, r.by.local_rank}, rank);
    if (r.by.pid < 0) return;
    if (r.noted && told.count({r.by.host, r.by.pid}) > 0) return;
    if (!r.noted) told.insert({r.by.host, r.by.pid});
    by_process_device.Add({r.by.host, r.by.pid, r.cuda_device}, rank);
    by_process.Add({r.by.host, r.by.pid}, rank);
  });
  // Launchers number the ranks of a host in a row: two local ranks that are told say what the others are. Hosts that are not named
  // and mixed contradict each other.
  std::map<std::string, std::map<int, std::set<int>>> rows;  // host -> rank minus local rank -> local ranks
  EachSpeaker(evidence, [&](Speaker* by, Where) {
    if (by->rank >= 0 && by->local_rank >= 0) rows[by->host][by->rank - by->local_rank].insert(by->local_rank);
  });
  const auto in_row = [&](const Speaker& by) {
    const auto found = rows.find(by.host);
    if (by.local_rank < 0 || found == rows.end() || found->second.size() != 1) return -1;
    const auto& [offset, locals] = *found->second.begin();
    return locals.size() > 1 && offset >= 0 ? offset + by.local_rank : -1;
  };
  const LoneProcess lone(*evidence);
  const auto resolve = [&](Speaker* by, Where) {
    if (by->rank >= 0) return;
    if (by->pid >= 0 && by->device >= 0) by->rank = by_process_device.Find({by->host, by->pid, by->device});
    if (by->rank < 0 && by->pid >= 0) by->rank = by_process.Find({by->host, by->pid});
    if (by->rank < 0 && by->local_rank >= 0 && !by->host.empty()) by->rank = by_local_rank.Find({by->host, by->local_rank});
    if (by->rank < 0) by->rank = lone.RankOf(*by);
    if (by->rank < 0) by->rank = in_row(*by);
  };
  EachSpeaker(evidence, resolve);
  // Ends are told by somebody else: the process is known by host and number, never by the file.
  for (ProcessEnd& e : evidence->work.ends) {
    resolve(&e.by, e.where);
    if (e.ranks.empty() && e.by.rank >= 0) e.ranks = {e.by.rank};
  }

  // A file in which one process speaks, and only for one rank, speaks for that rank throughout.
  std::map<int32_t, std::set<int>> ranks_in;
  std::map<int32_t, std::set<std::pair<std::string, int64_t>>> processes_in;
  EachSpeaker(evidence, [&](Speaker* by, Where where) {
    if (!where.known()) return;
    if (by->rank >= 0) ranks_in[where.file].insert(by->rank);
    if (by->pid >= 0) processes_in[where.file].insert({by->host, by->pid});
  });
  EachSpeaker(evidence, [&](Speaker* by, Where where) {
    if (by->rank >= 0 || !where.known() || processes_in[where.file].size() != 1 || ranks_in[where.file].size() != 1) return;
    by->rank = *ranks_in[where.file].begin();
  });
}

int RankOfGpu(const Evidence& evidence, std::string_view host, BusId bus_id) {
  // The function is 0 for every GPU; some tools leave it out, some write it.
  return RankWhere(
      evidence, host, [](const LogRank& r, uint64_t bus) { return r.bus_id && (*r.bus_id & ~0xfull) == (bus & ~0xfull); },
      bus_id);
}

int RankOfDevice(const Evidence& evidence, std::string_view host, int device) {
  return RankWhere(
      evidence, host,
      [](const LogRank& r, uint64_t index) {
        return static_cast<uint64_t>(r.nvml_device >= 0 ? r.nvml_device : r.cuda_device) == index;
      },
      static_cast<uint64_t>(device));
}

}  // namespace ringscope::model
