// Communicators joined over processes.
//
// NCCL's commId is the same on all ranks but not unique: successive shrinks of one parent share it,
// and before 2.24 two splits of one color did (docs/nccl.md). So the key is (commId, size), and the
// n-th communicator with that key of one rank belongs to the n-th of the others. Where ranks made
// different numbers of them (a rank that was shrunk away), creation times decide.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "analyzer/model/build.h"
#include "analyzer/model/creation_times.h"
#include "analyzer/model/instances.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

int64_t Distance(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const int64_t d = SatSub(a, b);
  return d == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max()
                                                  : std::abs(d);
}

Communicator MakeCommunicator(const Instance& from, uint64_t id, uint32_t n_ranks, int number) {
  Communicator c;
  c.id = id;
  c.instance = number;
  c.n_ranks = static_cast<int>(n_ranks);
  c.members.resize(n_ranks);
  c.completion_visible = true;
  for (uint32_t r = 0; r < n_ranks; ++r) c.members[r].rank = static_cast<int>(r);
  for (const auto& [rank, entry] : from.by_rank) {
    Member& m = c.members[rank];
    m.process = entry.process;
    m.raw = entry.raw;
    m.collectives = entry.raw->collectives();
    m.finalized = entry.raw->finalized_ns() != 0;
    for (const auto& op : entry.raw->operations())
      m.finalized_open |= m.finalized && op.unfinished();
    if (c.name.empty()) c.name = entry.raw->name();
    c.n_nodes =
        std::max<int>(c.n_nodes, static_cast<int>(std::min(entry.raw->n_nodes(), kMaxCommRanks)));
    c.completion_visible &= entry.raw->completion_visible();
  }
  return c;
}

}  // namespace

void Place(const Sequence& sequence, std::vector<Instance>* instances) {
  size_t next = 0;  // an entry never goes before the one created before it
  for (size_t i = 0; i < sequence.size(); ++i) {
    const Entry& e = sequence[i];
    const size_t after =
        sequence.size() - i - 1;  // entries that still need an instance behind this one
    size_t best = instances->size();
    for (size_t j = next; j + after < instances->size(); ++j) {
      if ((*instances)[j].by_rank.count(e.raw->rank()) > 0) continue;
      if (best == instances->size() || Distance(e.created, (*instances)[j].created) <
                                           Distance(e.created, (*instances)[best].created)) {
        best = j;
      }
    }
    if (best == instances->size()) instances->emplace_back();
    Instance& to = (*instances)[best];
    to.by_rank[e.raw->rank()] = e;
    if (to.created == 0) to.created = e.created;
    next = best + 1;
  }
}

void JoinCommunicators(Job* job, Notes* notes) {
  std::map<std::pair<uint64_t, uint32_t>, std::map<std::pair<int, uint32_t>, Sequence>> keys;
  std::vector<Entry> untold;
  const std::vector<CreationTime> times = CreationTimes(*job);
  for (const Process& p : job->processes) {
    std::vector<const trace::Communicator*> in_order;
    for (const auto& c : p.trace.communicators()) in_order.push_back(&c);
    std::stable_sort(in_order.begin(), in_order.end(),
                     [](auto* a, auto* b) { return a->ordinal() < b->ordinal(); });
    for (const auto* c : in_order) {
      const int64_t created =
          c->created_ns() == 0 ? 0 : SatAdd(c->created_ns(), times[static_cast<size_t>(p.index)].job_minus_monotonic_ns);
      // Tables v1-v3 tell neither id nor rank nor size at init.
      if (c->profiler_api() != 0 && c->profiler_api() < 4) {
        untold.push_back({p.index, c, created});
        continue;
      }
      if (c->n_ranks() == 0 || c->rank() >= c->n_ranks() || c->n_ranks() > kMaxCommRanks) {
        notes->AddFor(p, absl::StrCat("communicator in row ", c->row(), " says rank ", c->rank(),
                                      " of ", c->n_ranks(), "; it is left out"));
        continue;
      }
      keys[{c->comm_id(), c->n_ranks()}][{p.index, c->rank()}].push_back(
          {p.index, c, created});
    }
  }
  std::vector<std::pair<int64_t, Communicator>> made;
  uint64_t members = 0;
  for (const UntoldCommunicator& u : JoinUntold(*job, untold, notes)) {
    members += u.n_ranks;
    if (members > kMaxMembers) break;
    made.emplace_back(u.instance.created, MakeCommunicator(u.instance, u.id, u.n_ranks, u.number));
    made.back().second.size_known = u.size_known;
  }
  for (const auto& [key, sequences] : keys) {
    std::vector<const Sequence*> longest_first;
    for (const auto& [who, sequence] : sequences) longest_first.push_back(&sequence);
    std::stable_sort(longest_first.begin(), longest_first.end(),
                     [](auto* a, auto* b) { return a->size() > b->size(); });
    std::vector<Instance> instances;
    for (const Sequence* sequence : longest_first) Place(*sequence, &instances);
    for (size_t i = 0; i < instances.size(); ++i) {
      members += key.second;
      if (members > kMaxMembers) {
        notes->Add(
            "the records name more communicator members than can be true; the rest is left out");
        break;
      }
      made.emplace_back(instances[i].created,
                        MakeCommunicator(instances[i], key.first, key.second, static_cast<int>(i)));
    }
    if (members > kMaxMembers) break;
  }
  std::stable_sort(made.begin(), made.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [created, communicator] : made) {
    communicator.index = static_cast<int>(job->communicators.size());
    job->communicators.push_back(std::move(communicator));
  }
}

}  // namespace ringscope::model
