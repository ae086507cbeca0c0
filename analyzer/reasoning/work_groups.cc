#include "analyzer/reasoning/work_groups.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>

#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

// Operations whose element counts must agree on all ranks. (Gathers, scatters and all-to-alls may differ; messages have two ends.)
bool SizesMustAgree(const std::string& op) {
  static constexpr std::array<const char*, 9> kOps = {
      "ALLREDUCE",      "BROADCAST",          "REDUCE", "ALLGATHER_BASE", "_ALLGATHER_BASE", "ALLGATHER", "_REDUCE_SCATTER_BASE",
      "REDUCE_SCATTER", "ALLREDUCE_COALESCED"};
  return std::any_of(kOps.begin(), kOps.end(), [&](const char* known) { return op == known; });
}
bool Message(const std::string& op) { return op == "SEND" || op == "RECV" || op == "RECVANYSOURCE" || op == "COALESCED"; }

std::string SizeText(const model::WorkTimeout& t) {
  if (t.numel_in) return absl::StrCat(*t.numel_in, " elements");
  return t.shape.empty() ? "" : absl::StrCat("shape ", t.shape);
}

}  // namespace

Divergence Compare(const GroupWork& group) {
  Divergence found;
  // The lowest number at which at least two ranks stand.
  std::map<int64_t, std::set<int>> at;
  for (const auto& [rank, work] : group.ranks) {
    if (rank >= 0 && work.timeout != nullptr && work.timeout->seq && !Message(work.timeout->op)) at[*work.timeout->seq].insert(rank);
  }
  for (const auto& [seq, ranks] : at) {
    if (ranks.size() < 2) continue;
    std::map<std::string, std::set<int>> ops, sizes;
    for (const int rank : ranks) {
      const model::WorkTimeout& t = *group.ranks.at(rank).timeout;
      ops[t.op].insert(rank);
      const std::string size = SizeText(t);
      if (!size.empty() && SizesMustAgree(t.op)) sizes[absl::StrCat(t.op, " of ", size)].insert(rank);
    }
    if (ops.size() > 1) return {false, false, seq, ops};
    if (sizes.size() > 1) return {true, false, seq, sizes};
  }
  // Different numbers and different operations: one program has one collective more than the other.
  if (at.size() >= 2 && group.group.known() && at.rbegin()->first - at.begin()->first <= 8) {
    std::map<std::string, std::set<int>> ops;
    std::set<std::string> names;
    for (const auto& [seq, ranks] : at) {
      for (const int rank : ranks) {
        const std::string& op = group.ranks.at(rank).timeout->op;
        names.insert(op);
        ops[absl::StrCat(op, " (work ", seq, ")")].insert(rank);
      }
    }
    if (names.size() >= 2) return {false, true, at.begin()->first, ops};
  }
  return found;
}

std::set<int> GroupWork::TimedOut() const {
  std::set<int> out;
  for (const auto& [rank, work] : ranks) {
    if (work.timeout != nullptr || (work.cursor != nullptr && work.cursor->failed)) out.insert(rank);
  }
  return out;
}

int64_t GroupWork::Oldest() const {
  int64_t oldest = -1;
  const auto lower = [&](int64_t seq) { oldest = oldest < 0 ? seq : std::min(oldest, seq); };
  for (const auto& [rank, work] : ranks) {
    if (work.timeout != nullptr && work.timeout->seq) {
      lower(*work.timeout->seq);
    } else if (work.cursor != nullptr && work.cursor->failed) {
      lower(*work.cursor->failed);
    }
  }
  return oldest;
}

int GroupWork::Members() const {
  uint64_t members = 0;
  for (const auto& [rank, work] : ranks) {
    if (work.timeout == nullptr || !work.timeout->numel_in || !work.timeout->numel_out) continue;
    const bool gather = work.timeout->op == "_ALLGATHER_BASE" || work.timeout->op == "ALLGATHER_BASE";
    if (!gather && work.timeout->op != "_REDUCE_SCATTER_BASE") continue;
    const uint64_t small = gather ? *work.timeout->numel_in : *work.timeout->numel_out;
    const uint64_t large = gather ? *work.timeout->numel_out : *work.timeout->numel_in;
    if (small == 0 || large % small != 0 || large / small < 2 || large / small > (1 << 20)) continue;
    if (members != 0 && members != large / small) return 0;  // the ranks disagree
    members = large / small;
  }
  return static_cast<int>(members);
}

std::string GroupWork::Label() const {
  if (!group.known() || group.spans_job()) return "";
  return absl::StrCat("process group ", group.Key(), group.desc.empty() ? "" : absl::StrCat(" (", group.desc, ")"));
}

std::vector<GroupWork> GroupsOf(const model::Job& job) {
  std::map<std::string, GroupWork> groups;
  const auto at = [&](const model::WorkGroup& group) -> GroupWork& {
    GroupWork& found = groups[group.spans_job() ? "0" : group.Key()];
    if (!found.group.known()) found.group = group;
    return found;
  };
  const auto& work = job.evidence.work;
  // A timeout whose own cursor line is missing is of the one group in which others stand at the same number.
  std::map<int64_t, std::set<std::string>> groups_at;
  std::map<std::string, const model::WorkGroup*> by_key;
  for (const model::WorkTimeout& t : work.timeouts) {
    if (!t.group.known() || !t.seq) continue;
    const std::string key = t.group.spans_job() ? "0" : t.group.Key();
    groups_at[*t.seq].insert(key);
    by_key.emplace(key, &t.group);
  }
  const auto group_of = [&](const model::WorkTimeout& t) -> const model::WorkGroup& {
    if (t.group.known() || !t.seq) return t.group;
    const auto it = groups_at.find(*t.seq);
    return it != groups_at.end() && it->second.size() == 1 ? *by_key[*it->second.begin()] : t.group;
  };
  for (const model::WorkTimeout& t : work.timeouts) {
    RankWork& rank = at(group_of(t)).ranks[t.by.rank];
    if (rank.timeout == nullptr || (t.seq && rank.timeout->seq && *t.seq < *rank.timeout->seq)) rank.timeout = &t;
  }
  for (const model::WorkCursor& c : work.cursors) {
    RankWork& rank = at(c.group).ranks[c.by.rank];
    // The watchdog's own line about the work that failed says more than a dump that somebody asked for.
    if (rank.cursor == nullptr || (c.failed && !rank.cursor->failed)) rank.cursor = &c;
  }
  std::vector<GroupWork> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

Vote CountVotes(const std::map<std::string, std::set<int>>& camps) {
  Vote vote;
  size_t most = 0, second = 0;
  const std::set<int>* largest = nullptr;
  for (const auto& [what, ranks] : camps) {
    if (ranks.size() > most) {
      second = most;
      most = ranks.size();
      largest = &ranks;
    } else {
      second = std::max(second, ranks.size());
    }
  }
  if (camps.size() < 2) return vote;
  vote.tie = most == second;
  if (vote.tie) return vote;
  for (const auto& [what, ranks] : camps) {
    if (&ranks != largest) vote.odd.insert(ranks.begin(), ranks.end());
  }
  // Many camps: nobody is in a clear minority.
  if (vote.odd.size() >= most) {
    vote.odd.clear();
    vote.tie = true;
  }
  return vote;
}

int WorldOf(const model::Job& job) {
  int world = job.world_size;
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.split) world = std::max(world, r.n_ranks);
  }
  return std::clamp(world, 0, 1 << 20);
}

FewerBatches FewerBatchesIn(const model::Job& job) {
  using Kind = model::HostWork::Kind;
  std::map<int, const model::HostWork*> newest;
  for (const model::HostWork& h : job.evidence.work.host_work) {
    if (h.by.rank < 0 || !h.done || h.total || (h.kind != Kind::kIterations && h.kind != Kind::kEvaluate)) continue;
    const model::HostWork*& kept = newest[h.by.rank];
    if (kept == nullptr || *h.done >= *kept->done) kept = &h;
  }
  FewerBatches found;
  for (const auto& [rank, h] : newest) {
    if (h->over && (found.fewer == nullptr || *h->done < *found.fewer->done)) found.fewer = h;
    if (found.more == nullptr || *h->done > *found.more->done) found.more = h;
  }
  if (found.fewer == nullptr || found.more == nullptr || *found.more->done <= *found.fewer->done) return {};
  return found;
}

namespace {
void CiteOf(const model::Job& job, model::Where where, const std::string& text, int rank, Finding* finding) {
  for (const Evidence& e : finding->evidence()) {
    if (e.text() == text && e.line() == where.line) return;
  }
  Cite(job, where, text, finding);
  if (rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(rank);
}
}  // namespace

void CiteTimeout(const model::Job& job, const model::WorkTimeout& t, Finding* finding) {
  CiteOf(job, t.where, t.text, t.by.rank, finding);
}
void CiteCursor(const model::Job& job, const model::WorkCursor& c, Finding* finding) {
  CiteOf(job, c.where, c.text, c.by.rank, finding);
}
void CiteHostWork(const model::Job& job, const model::HostWork& h, Finding* finding) {
  CiteOf(job, h.where, h.text, h.by.rank, finding);
}

}  // namespace ringscope::reasoning
