// Who said what: ranks and hosts for speakers that told only part of it.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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

template <typename Visit>
void EachWorldRank(const Evidence& evidence, Visit visit) {
  const int world = WorldSize(evidence);
  for (const LogRank& r : evidence.log_ranks) {
    if (!r.split && r.n_ranks == world && r.rank >= 0) visit(r);
  }
}

}  // namespace

void ResolveSpeakers(Evidence* evidence) {
  RankIndex<std::tuple<std::string, int64_t, int>> by_process_device;
  RankIndex<std::pair<std::string, int64_t>> by_process;
  EachWorldRank(*evidence, [&](const LogRank& r) {
    if (r.by.pid < 0) return;
    by_process_device.Add({r.by.host, r.by.pid, r.cuda_device}, r.rank);
    by_process.Add({r.by.host, r.by.pid}, r.rank);
  });
  const auto resolve = [&](Speaker* by) {
    if (by->rank >= 0 || by->pid < 0) return;
    if (by->device >= 0) by->rank = by_process_device.Find({by->host, by->pid, by->device});
    if (by->rank < 0) by->rank = by_process.Find({by->host, by->pid});
  };
  for (Event& e : evidence->events) resolve(&e.by);
  for (Setting& s : evidence->settings) resolve(&s.by);
  for (Version& v : evidence->versions) resolve(&v.by);
  for (TransportLine& t : evidence->plan.transports) resolve(&t.by);
  for (LogRank& r : evidence->log_ranks) resolve(&r.by);
  WorkFacts& work = evidence->work;
  for (WorkTimeout& t : work.timeouts) resolve(&t.by);
  for (WorkCursor& c : work.cursors) resolve(&c.by);
  for (Exception& e : work.exceptions) resolve(&e.by);
  for (ProcessEnd& e : work.ends) {
    resolve(&e.by);
    if (e.ranks.empty() && e.by.rank >= 0) e.ranks = {e.by.rank};
  }
  for (HostWork& h : work.host_work) resolve(&h.by);
}

int RankOfGpu(const Evidence& evidence, std::string_view host, BusId bus_id) {
  std::set<std::string> hosts;
  EachWorldRank(evidence, [&](const LogRank& r) { hosts.insert(r.by.host); });
  int found = -1;
  bool several = false;
  EachWorldRank(evidence, [&](const LogRank& r) {
    if (r.bus_id != bus_id || (!host.empty() && hosts.size() > 1 && r.by.host != host)) return;
    several |= found >= 0 && found != r.rank;
    found = r.rank;
  });
  return several ? -1 : found;
}

int RankOfDevice(const Evidence& evidence, std::string_view host, int device) {
  std::set<std::string> hosts;
  EachWorldRank(evidence, [&](const LogRank& r) { hosts.insert(r.by.host); });
  int found = -1;
  bool several = false;
  EachWorldRank(evidence, [&](const LogRank& r) {
    const int index = r.nvml_device >= 0 ? r.nvml_device : r.cuda_device;
    if (index != device || (!host.empty() && hosts.size() > 1 && r.by.host != host)) return;
    several |= found >= 0 && found != r.rank;
    found = r.rank;
  });
  return several ? -1 : found;
}

}  // namespace ringscope::model
