#include "analyzer/reasoning/ras_view.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr int kMostRanks = 1 << 20;  // no communicator is larger

// Only ranks that the communicator can have.
bool Plausible(const model::RasCommunicator& c) {
  const int size = c.size > 0 ? c.size : kMostRanks;
  const auto fits = [&](const model::RasRank& r) { return r.rank < size; };
  const auto all = [&](const std::vector<model::RasShare>& shares) {
    return std::all_of(shares.begin(), shares.end(),
                       [&](const model::RasShare& s) { return s.ranks <= size && std::all_of(s.named.begin(), s.named.end(), fits); });
  };
  return c.missing <= size && std::all_of(c.missing_ranks.begin(), c.missing_ranks.end(), fits) && all(c.statuses) &&
         std::all_of(c.counts.begin(), c.counts.end(), [&](const model::RasCounts& counts) { return all(counts.shares); });
}

// The table's size of a communicator, where the answer has the table.
int SizeOf(const model::RasSnapshot& snapshot, const model::RasCommunicator& c) {
  if (c.size >= 0) return c.size;
  for (const model::RasGroup& g : snapshot.groups) {
    if (g.number == c.group) return g.ranks_per_communicator;
  }
  // Alone in the table, its own head was not pasted.
  if (c.group < 0 && snapshot.groups.size() == 1) return snapshot.groups[0].ranks_per_communicator;
  return -1;
}

// ... or as many ranks as its own lines tell of.
int SizeTold(const model::RasSnapshot& snapshot, const model::RasCommunicator& c) {
  int size = SizeOf(snapshot, c);
  if (size >= 0) return size;
  for (const model::RasCounts& counts : c.counts) {
    int ranks = 0;
    for (const model::RasShare& share : counts.shares) ranks += std::clamp(share.ranks, 0, kMostRanks);
    size = std::max(size, ranks + c.missing);
  }
  return size;
}

const model::RasCounts* CountsOf(const model::RasCommunicator& c, const std::string& function) {
  for (const model::RasCounts& counts : c.counts) {
    if (counts.function == function && !counts.shares.empty()) return &counts;
  }
  return nullptr;
}

bool SameShares(const model::RasCounts& a, const model::RasCounts& b) {
  std::multiset<std::pair<uint64_t, int>> x, y;
  for (const model::RasShare& s : a.shares) x.insert({s.count, s.ranks});
  for (const model::RasShare& s : b.shares) y.insert({s.count, s.ranks});
  return x == y;
}

// Counts never go down: whoever has the larger ones is the later.
bool Earlier(const RasSight& a, const RasSight& b) {
  int sign = 0;
  for (const model::RasCounts& counts : a.communicator->counts) {
    const model::RasCounts* other = CountsOf(*b.communicator, counts.function);
    if (other == nullptr || counts.shares.empty()) continue;
    if (FrontCount(counts) != FrontCount(*other))
      sign = FrontCount(counts) < FrontCount(*other) ? 1 : -1;
    else if (RearCount(counts) != RearCount(*other))
      sign = RearCount(counts) < RearCount(*other) ? 1 : -1;
    if (sign != 0) return sign > 0;
  }
  return false;
}

RasMotion MotionOf(const RasSight& a, const RasSight& b) {
  bool compared = false, all_same = true, front = false, rear = false;
  for (const model::RasCounts& before : a.communicator->counts) {
    const model::RasCounts* after = CountsOf(*b.communicator, before.function);
    if (after == nullptr || before.shares.empty()) continue;
    compared = true;
    all_same &= SameShares(before, *after);
    front |= FrontCount(*after) > FrontCount(before);
    rear |= RearCount(*after) > RearCount(before);
  }
  if (!compared) return RasMotion::kOnce;
  return rear ? RasMotion::kAdvancing : front ? RasMotion::kLagging : all_same ? RasMotion::kUnchanged : RasMotion::kAdvancing;
}

}  // namespace

uint64_t FrontCount(const model::RasCounts& counts) {
  uint64_t most = 0;
  for (const model::RasShare& s : counts.shares) most = std::max(most, s.count);
  return most;
}

uint64_t RearCount(const model::RasCounts& counts) {
  uint64_t least = counts.shares.empty() ? 0 : UINT64_MAX;
  for (const model::RasShare& s : counts.shares) least = std::min(least, s.count);
  return least;
}

std::vector<RasHistory> RasHistories(const model::Job& job) {
  std::map<std::string, RasHistory> by_hash;
  std::vector<RasHistory> nameless;
  for (const model::RasSnapshot& snapshot : job.evidence.ras.snapshots) {
    for (const model::RasCommunicator& c : snapshot.communicators) {
      if (!Plausible(c)) continue;
      RasHistory* history = nullptr;
      if (c.hash.empty()) {
        nameless.emplace_back();
        history = &nameless.back();
      } else {
        history = &by_hash[c.hash];
        history->hash = c.hash;
      }
      history->size = std::max(history->size, SizeOf(snapshot, c));
      history->sights.push_back({&snapshot, &c});
    }
  }
  // Without its hash a communicator is the only one that there is.
  if (by_hash.size() == 1) {
    for (RasHistory& h : nameless) {
      auto& sights = by_hash.begin()->second.sights;
      sights.insert(sights.end(), h.sights.begin(), h.sights.end());
    }
    nameless.clear();
  } else if (by_hash.empty() && nameless.size() > 1) {
    for (size_t i = 1; i < nameless.size(); ++i) {
      nameless[0].sights.insert(nameless[0].sights.end(), nameless[i].sights.begin(), nameless[i].sights.end());
      nameless[0].size = std::max(nameless[0].size, nameless[i].size);
    }
    nameless.resize(1);
  }
  std::vector<RasHistory> histories;
  for (auto& [hash, history] : by_hash) histories.push_back(std::move(history));
  for (RasHistory& history : nameless) histories.push_back(std::move(history));
  for (RasHistory& h : histories) {
    std::stable_sort(h.sights.begin(), h.sights.end(), Earlier);
    if (h.size < 0) {
      for (const RasSight& s : h.sights) h.size = std::max(h.size, SizeTold(*s.snapshot, *s.communicator));
    }
    h.said_unchanged = h.last().snapshot->said_unchanged.known();
    if (h.sights.size() < 2) continue;
    const RasSight &a = h.sights[h.sights.size() - 2], &b = h.last();
    if (a.snapshot == b.snapshot) continue;
    h.motion = MotionOf(a, b);
    if (a.snapshot->time.known() && b.snapshot->time.known() && a.snapshot->time.clock == b.snapshot->time.clock) {
      const auto [first, second] = std::minmax(a.snapshot->time.ns, b.snapshot->time.ns);
      h.apart_s = static_cast<int64_t>((static_cast<uint64_t>(second) - static_cast<uint64_t>(first)) / 1000000000);
    }
  }
  std::stable_sort(histories.begin(), histories.end(), [](const RasHistory& a, const RasHistory& b) { return a.size > b.size; });
  return histories;
}

RasRanks::RasRanks(const model::Job& job) {
  int gpus = -1, of_size = 0;
  for (const model::RasSnapshot& s : job.evidence.ras.snapshots) {
    gpus = std::max(gpus, s.gpus);
    for (const model::RasGroup& g : s.groups) world_ = std::max(world_, g.ranks_per_communicator);
    for (const model::RasCommunicator& c : s.communicators) world_ = std::max(world_, c.size);
  }
  for (const model::RasSnapshot& s : job.evidence.ras.snapshots) {
    int here = 0;
    for (const model::RasGroup& g : s.groups) here += g.ranks_per_communicator == world_ ? g.communicators : 0;
    if (s.groups.empty()) {
      std::set<int64_t> pids;
      for (const model::RasCommunicator& c : s.communicators) {
        if (c.size != world_) continue;
        ++here;
        for (const model::RasShare& share : c.statuses) {
          for (const model::RasRank& r : share.named) pids.insert(r.pid);
        }
      }
      gpus = std::max(gpus, static_cast<int>(pids.size()));
    }
    of_size = std::max(of_size, here);
  }
  several_ = of_size > 1 && gpus > world_;
  if (world_ < 0) {
    std::map<int, std::set<std::string>> hashes;
    for (const model::RasSnapshot& s : job.evidence.ras.snapshots) {
      for (const model::RasCommunicator& c : s.communicators) hashes[SizeTold(s, c)].insert(c.hash);
    }
    if (!hashes.empty()) {
      world_ = hashes.rbegin()->first;
      several_ = hashes.rbegin()->second.size() > 1;
    }
  }
  for (const model::RasSnapshot& s : job.evidence.ras.snapshots) {
    for (const model::RasCommunicator& c : s.communicators) {
      if (several_ || SizeTold(s, c) != world_) continue;
      for (const model::RasShare& share : c.statuses) {
        for (const model::RasRank& r : share.named) Add(r.pid, r.node, r.cuda_device, r.rank);
      }
      for (const model::RasRank& r : c.missing_ranks) Add(r.pid, r.node, r.cuda_device, r.rank);
      // Text: the outliers of a communicator that spans the job.
      for (const model::RasCounts& counts : c.counts) {
        for (const model::RasShare& share : counts.shares) {
          for (const model::RasRank& r : share.named) Add(r.pid, r.node, r.cuda_device, r.rank);
        }
      }
    }
  }
  int log_world = 0;
  for (const model::LogRank& r : job.evidence.log_ranks) log_world = std::max(log_world, r.split ? 0 : r.n_ranks);
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (r.split || r.n_ranks != log_world || r.rank < 0 || r.by.pid < 0) continue;
    const auto put = [&](auto& map, auto key) {
      const auto [it, fresh] = map.emplace(std::move(key), r.rank);
      if (!fresh && it->second != r.rank) it->second = -1;
    };
    put(log_by_gpu_, std::make_pair(r.by.pid, r.cuda_device));
    put(log_by_process_, r.by.pid);
  }
}

bool RasRanks::Spans(const RasHistory& history) const {
  return !several_ && (world_ < 0 || history.size < 0 || history.size == world_);
}

void RasRanks::Add(int64_t pid, const std::string& node, int gpu, int rank) {
  if (pid < 0 || rank < 0) return;
  const auto put = [&](auto& map, auto key) {
    const auto [it, fresh] = map.emplace(std::move(key), rank);
    if (!fresh && it->second != rank) it->second = -1;
  };
  put(by_gpu_, std::make_tuple(pid, node, gpu));
  put(by_process_, std::make_pair(pid, node));
}

int RasRanks::OfProcess(int64_t pid, const std::string& node, int gpu) const {
  if (pid < 0) return -1;
  const auto find = [](const auto& map, const auto& key) {
    const auto it = map.find(key);
    return it == map.end() ? -2 : it->second;
  };
  int rank = gpu >= 0 ? find(by_gpu_, std::make_tuple(pid, node, gpu)) : find(by_process_, std::make_pair(pid, node));
  // RAS prints addresses, logs print names: the process id must do.
  if (rank == -2) rank = gpu >= 0 ? find(log_by_gpu_, std::make_pair(pid, gpu)) : -2;
  if (rank == -2) rank = find(log_by_process_, pid);
  // A stack knows no node, RAS does.
  if (rank == -2 && node.empty()) {
    for (auto it = by_process_.lower_bound({pid, ""}); it != by_process_.end() && it->first.first == pid; ++it)
      rank = rank == -2 || rank == it->second ? it->second : -1;
  }
  return std::max(rank, -1);
}

int RasRanks::Of(const RasHistory& history, const model::RasRank& rank) const {
  if (Spans(history)) return rank.rank;
  return OfProcess(rank.pid, rank.node, rank.cuda_device);
}

std::set<int> RasRanksBehind(const model::Job& job) {
  std::set<int> behind;
  if (job.evidence.ras.snapshots.empty()) return behind;
  const RasRanks ranks(job);
  for (const RasHistory& h : RasHistories(job)) {
    if (h.motion == RasMotion::kAdvancing) continue;
    for (const model::RasCounts& counts : h.last().communicator->counts) {
      int front = 0, rear = 0;
      for (const model::RasShare& s : counts.shares) (s.count == FrontCount(counts) ? front : rear) += s.ranks;
      if (rear > front) continue;
      for (const model::RasShare& s : counts.shares) {
        if (s.count == FrontCount(counts)) continue;
        for (const model::RasRank& r : s.named) {
          if (const int rank = ranks.Of(h, r); rank >= 0) behind.insert(rank);
        }
      }
    }
  }
  return behind;
}

std::string RasProcessText(const model::RasRank& rank) {
  if (rank.pid < 0) return "its process is not known to RAS";
  std::string text = absl::StrCat("process ", rank.pid);
  if (!rank.node.empty()) absl::StrAppend(&text, " on ", rank.node);
  if (rank.cuda_device >= 0) absl::StrAppend(&text, ", GPU ", rank.cuda_device);
  return text;
}

std::vector<HangReport> HangReports(const model::Job& job) {
  std::vector<HangReport> reports;
  const model::WorkFacts& work = job.evidence.work;
  for (const model::WorkTimeout& t : work.timeouts) reports.push_back({t.where, t.text, t.by.rank});
  for (const model::WorkCursor& c : work.cursors) {
    if (c.failed) reports.push_back({c.where, c.text, c.by.rank});
  }
  for (const model::Event* event : EventsOf(job, {"torch-watchdog-stuck", "gloo-timeout", "vllm-rpc-timeout", "sglang-watchdog"}))
    reports.push_back({event->where, event->text, event->by.rank});
  // Dumps are written when an operation has timed out, and this one was open in them.
  for (const model::AnalyzerReport& r : job.evidence.flight_recorder.reports) {
    if (r.state == "completed" || r.problem == model::AnalyzerReport::Problem::kUntold) continue;
    for (const auto& [where, text] : r.lines) {
      if (Contains(text, "ranks: {") || Contains(text, "Culprit")) reports.push_back({where, text, -1});
    }
  }
  return reports;
}

void CiteReports(const model::Job& job, const std::vector<HangReport>& reports, size_t most, Finding* finding) {
  for (size_t i = 0; i < reports.size() && i < most; ++i) {
    Cite(job, reports[i].where, reports[i].text, finding);
    if (reports[i].rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(reports[i].rank);
  }
}

}  // namespace ringscope::reasoning
