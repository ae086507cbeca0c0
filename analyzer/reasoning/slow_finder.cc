// Persistent stragglers, told without synchronised clocks (docs/localisation.md, Stragglers).
//
// In an all-to-all dependent collective everyone ends almost together, so the time spent in the
// kernel tells who came late: the straggler has the shortest kernel, the others' long kernels are
// waiting. Never rank by time spent in NCCL: the fast ranks have the most of it.
//
// The kernels say who. Where its time goes is asked of the host's clock, independently: from the
// rank's previous completion to its next call (host: data loading, garbage collection, Python), or
// from the enqueued call to the start of the kernel (GPU: compute before it on the stream). Where
// neither accounts for the lateness, the rank may be late because it waited in another
// communicator; it is named, without saying which side, only if it was in no other.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/finders.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/samples.h"
#include "analyzer/reasoning/thresholds.h"
#include "analyzer/reasoning/timeline.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Member;
using model::Op;

bool AllToAllDependent(trace::Func func) {
  return func == trace::ALL_REDUCE || func == trace::ALL_GATHER || func == trace::REDUCE_SCATTER ||
         func == trace::ALL_TO_ALL;
}

// One collective as all members with a record saw it, in nanoseconds; index = n-th such member.
struct Instance {
  uint64_t position = 0;
  std::vector<int64_t> kernel;  // GPU timer if every member has it, else host
  std::vector<int64_t> host;    // host's view of the same, comparable with the gaps
  std::vector<int64_t> entry;   // from free to the call; -1 unknown; once asked for (FillGaps)
  std::vector<int64_t> start;   // from enqueued and free to the start of the kernel; likewise
  std::vector<uint32_t> row;
  bool gpu_timer = false;
};

struct Sampled {
  std::vector<const Member*> members;
  std::vector<Instance> instances;
};

bool Read(const std::vector<const Member*>& members, uint64_t position, Instance* instance) {
  instance->position = position;
  instance->gpu_timer = true;
  std::vector<const Op*> ops;
  for (const Member* m : members) {
    const Op* op = m->Collective(position);
    if (op == nullptr || !Finished(*op) || !AllToAllDependent(op->raw.func()) ||
        HostDuration(*op) == 0)
      return false;
    instance->gpu_timer &= GpuDuration(*op) > 0;
    ops.push_back(op);
  }
  instance->kernel.reserve(ops.size());
  instance->host.reserve(ops.size());
  instance->row.reserve(ops.size());
  for (const Op* op : ops) {
    instance->kernel.push_back(instance->gpu_timer ? GpuDuration(*op) : HostDuration(*op));
    instance->host.push_back(HostDuration(*op));
    instance->row.push_back(op->raw.row());
  }
  return true;
}

// What each member did before the kernel: only asked when somebody is late.
void FillGaps(const Timelines& timelines, Sampled* sampled) {
  for (Instance& instance : sampled->instances) {
    for (const Member* m : sampled->members) {
      const model::OpRecord& raw = m->Collective(instance.position)->raw;
      const Timeline& timeline = timelines.at(KeyOf(*m));
      const int64_t free = timeline.FreeSince(raw.entered_ns());
      // Of what it may have waited for before, in other communicators, the record does not hold everything.
      const bool forgotten = raw.entered_ns() <= timeline.horizon();
      const int64_t ready = std::max({free, raw.enqueued_ns(), raw.entered_ns()});
      instance.entry.push_back(free == 0 || raw.entered_ns() == 0 || forgotten
                                   ? -1
                                   : std::max<int64_t>(0, model::SatSub(raw.entered_ns(), free)));
      instance.start.push_back(forgotten ? -1 : std::max<int64_t>(0, model::SatSub(raw.started_ns(), ready)));
    }
  }
}

// The newest instances that all members with a record kept and finished. Operations of one group
// count once: they share a kernel.
Sampled Sample(const Communicator& c) {
  Sampled sampled;
  uint64_t oldest = thresholds::kWarmupOperations + 1, newest = UINT64_MAX;
  for (const Member& m : c.members) {
    if (!m.has_record()) continue;
    if (m.first_kept == 0) return {};
    sampled.members.push_back(&m);
    oldest = std::max(oldest, m.first_kept);
    newest = std::min(newest, m.collectives);
  }
  if (sampled.members.size() < 2 || newest < oldest) return {};
  const Member& any = *sampled.members.front();
  std::pair<uint32_t, uint32_t> group{0, 0};
  // Positions far apart in a damaged record are bounded by what the member really holds.
  uint64_t budget = any.ops.size();
  for (uint64_t p = newest;
       p >= oldest && budget > 0 && sampled.instances.size() < thresholds::kStragglerWindow;
       --p, --budget) {
    Instance instance;
    if (!Read(sampled.members, p, &instance)) continue;
    const Op* op = any.Collective(p);
    const std::pair<uint32_t, uint32_t> now{op->raw.thread(),
                                            op->raw.grouped() ? op->raw.group() : 0};
    if (now.second != 0 && now == group) continue;
    group = now;
    sampled.instances.push_back(std::move(instance));
  }
  return sampled;
}

// How late each member is, instance by instance, against the members that wait.
struct Lateness {
  std::vector<std::vector<int64_t>> kernel, host;  // [member][instance]
  std::vector<size_t> late;                        // [member]: in how many instances clearly so
  int64_t noise_ns = 0;  // of the waiting members' kernels among each other
};

Lateness Measure(const Sampled& sampled) {
  const size_t n = sampled.members.size();
  Lateness lateness;
  lateness.kernel.resize(n);
  lateness.host.resize(n);
  lateness.late.resize(n);
  std::vector<int64_t> spread;
  for (const Instance& instance : sampled.instances) {
    // Whoever waits is in the upper half while at most half of the ranks are late.
    const int64_t waits = UpperMedian(instance.kernel), waits_host = UpperMedian(instance.host);
    for (size_t i = 0; i < n; ++i) {
      lateness.kernel[i].push_back(waits - instance.kernel[i]);
      lateness.host[i].push_back(waits_host - instance.host[i]);
      if (instance.kernel[i] >= waits) spread.push_back(instance.kernel[i] - waits);
    }
  }
  lateness.noise_ns =
      static_cast<int64_t>(thresholds::kMadToSigma * static_cast<double>(Median(spread)));
  for (size_t k = 0; k < sampled.instances.size(); ++k) {
    const double share = thresholds::kLateShareOfKernel *
                         static_cast<double>(UpperMedian(sampled.instances[k].kernel));
    const double needed =
        std::max({share, thresholds::kLateMads * static_cast<double>(lateness.noise_ns),
                  static_cast<double>(thresholds::kLateFloorNs)});
    for (size_t i = 0; i < n; ++i)
      lateness.late[i] += static_cast<double>(lateness.kernel[i][k]) > needed;
  }
  return lateness;
}

std::vector<int64_t> Column(const Sampled& sampled, std::vector<int64_t> Instance::*field,
                            size_t member) {
  std::vector<int64_t> values;
  for (const Instance& instance : sampled.instances) {
    if ((instance.*field)[member] >= 0) values.push_back((instance.*field)[member]);
  }
  return values;
}

// How much more of this the late member has than the members that are not late; medians.
int64_t Excess(const Sampled& sampled, std::vector<int64_t> Instance::*field, size_t member,
               const std::set<size_t>& late) {
  std::vector<int64_t> others;
  for (size_t i = 0; i < sampled.members.size(); ++i) {
    const std::vector<int64_t> values = Column(sampled, field, i);
    if (!late.count(i) && !values.empty()) others.push_back(Median(values));
  }
  const std::vector<int64_t> own = Column(sampled, field, member);
  if (own.size() < thresholds::kStragglerInstances / 2 || others.empty()) return 0;
  return Median(own) - Median(others);
}

// A job with pipeline traffic has ranks that are late by design (bubbles), so its stragglers are
// less certain.
bool HasPipeline(const Job& job) {
  return std::any_of(job.messages.begin(), job.messages.end(),
                     [](const model::MessageCount& count) {
                       return count.from != count.to &&
                              (count.sent.value_or(0) > 0 || count.received.value_or(0) > 0);
                     });
}

// The rank and another member of the communicator send each other messages, in whatever communicator. Stages of a pipeline are
// done at different times by design (the first one computes last on the way back), and so are experts: their GPUs are not slow.
bool TakesTurns(const Job& job, const Communicator& c, const Member& member) {
  const auto is_member = [&](const Communicator& in, int rank) {
    if (static_cast<size_t>(rank) >= in.members.size()) return false;
    const int job_rank = in.members[static_cast<size_t>(rank)].job_rank;
    return job_rank >= 0 && job_rank != member.job_rank &&
           std::any_of(c.members.begin(), c.members.end(), [&](const Member& m) { return m.job_rank == job_rank; });
  };
  return std::any_of(job.messages.begin(), job.messages.end(), [&](const model::MessageCount& count) {
    const Communicator& in = job.communicators[static_cast<size_t>(count.communicator)];
    const auto self = [&](int rank) {
      return static_cast<size_t>(rank) < in.members.size() &&
             in.members[static_cast<size_t>(rank)].job_rank == member.job_rank;
    };
    return (self(count.from) && is_member(in, count.to)) || (self(count.to) && is_member(in, count.from));
  });
}

// The rank has operations in one communicator only, and sends and receives nothing: it cannot be
// late for others' sake.
bool Alone(const Job& job, const Member& member) {
  for (const Communicator& c : job.communicators) {
    for (const Member& m : c.members) {
      if (!m.has_record() || !SameRank(m, member)) continue;
      if (&m != &member && !m.ops.empty()) return false;
      if (std::any_of(m.ops.begin(), m.ops.end(), [](const Op& op) { return op.p2p(); }))
        return false;
    }
  }
  return true;
}

enum class Side { kHost, kGpu, kUnknown };

struct Straggler {
  const Communicator* communicator = nullptr;
  const Member* member = nullptr;
  Kind::Value kind = Kind::rank_slow;
  Confidence::Value confidence = Confidence::probable;
  int64_t lateness_ns = 0;  // median, GPU timer where there is one
  Finding finding;
};

Straggler Describe(const Job& job, const Communicator& c, const Sampled& sampled,
                   const Lateness& lateness, const std::set<size_t>& late, size_t i, Side side) {
  const Member& member = *sampled.members[i];
  Straggler straggler;
  straggler.communicator = &c;
  straggler.member = &member;
  straggler.kind = side == Side::kGpu ? Kind::gpu_slow : Kind::rank_slow;
  straggler.lateness_ns = Median(lateness.kernel[i]);
  const size_t n = sampled.instances.size();
  const bool timer = std::all_of(sampled.instances.begin(), sampled.instances.end(),
                                 [](const Instance& k) { return k.gpu_timer; });
  const bool complete = c.size_known && sampled.members.size() == static_cast<size_t>(c.n_ranks);
  straggler.confidence = complete && side != Side::kUnknown && !HasPipeline(job)
                             ? Confidence::established
                             : Confidence::probable;

  Finding& finding = straggler.finding;
  finding.set_kind(straggler.kind);
  finding.set_confidence(straggler.confidence);
  AddRanks({member.job_rank}, finding.mutable_who()->mutable_ranks());
  finding.mutable_who()->add_communicators(c.Label());
  const std::string name = RankText(c, member);
  finding.set_title(absl::StrCat(name,
                                 side == Side::kHost  ? " calls"
                                 : side == Side::kGpu ? " starts on the GPU"
                                                      : " comes",
                                 " about ", DurationText(straggler.lateness_ns),
                                 " after the others, in ", lateness.late[i], " of ", n,
                                 " collectives of communicator ", c.Label()));
  std::vector<int64_t> others_kernel, others_entry, others_start;
  size_t longest = 0;
  for (size_t m = 0; m < sampled.members.size(); ++m) {
    if (late.count(m)) continue;
    others_kernel.push_back(Median(Column(sampled, &Instance::kernel, m)));
    const std::vector<int64_t> entry = Column(sampled, &Instance::entry, m);
    if (!entry.empty()) others_entry.push_back(Median(entry));
    const std::vector<int64_t> start = Column(sampled, &Instance::start, m);
    if (!start.empty()) others_start.push_back(Median(start));
    if (others_kernel.back() == *std::max_element(others_kernel.begin(), others_kernel.end()))
      longest = m;
  }
  const Instance& newest = sampled.instances.front();
  const char* const clock = timer ? "GPU timer" : "host's view, no GPU timer";
  *finding.add_evidence() = MemberEvidence(
      job, member, newest.row[i],
      absl::StrCat(name, " spends ", DurationText(Median(Column(sampled, &Instance::kernel, i))),
                   " in the kernel, the others ", DurationText(Median(others_kernel)),
                   " (medians of operations ", sampled.instances.back().position, " to ",
                   newest.position, ", ", clock, "): they wait for it"));
  *finding.add_evidence() = MemberEvidence(
      job, *sampled.members[longest], newest.row[longest],
      absl::StrCat(RankText(c, *sampled.members[longest]), " is in the same kernels for ",
                   DurationText(Median(Column(sampled, &Instance::kernel, longest)))));
  const std::vector<int64_t> own_entry = Column(sampled, &Instance::entry, i);
  if (side == Side::kHost) {
    *finding.add_evidence() = MemberEvidence(
        job, member, newest.row[i],
        absl::StrCat("from its previous completion to its next call ",
                     DurationText(Median(own_entry)), " pass on its host, on the others ",
                     DurationText(others_entry.empty() ? 0 : Median(others_entry)),
                     " (each on its own clock)"));
  } else if (side == Side::kGpu) {
    *finding.add_evidence() =
        MemberEvidence(job, member, newest.row[i],
                       absl::StrCat("its calls come in time, but from enqueued to started ",
                                    DurationText(Median(Column(sampled, &Instance::start, i))),
                                    " pass, on the others ", DurationText(others_start.empty() ? 0 : Median(others_start))));
  } else {
    *finding.add_evidence() = MemberEvidence(job, member, newest.row[i],
                                             "the host's clock shows neither late calls nor late "
                                             "starts; the rank was in no other communicator");
  }
  if (!complete) {
    Evidence* note = finding.add_evidence();
    note->set_text(absl::StrCat(c.size_known ? "only " : "", sampled.members.size(), " of ",
                                c.SizeText(), " ranks of the communicator have a record"));
    note->set_rank(-1);
  }
  std::set<int> waiting;
  for (size_t m = 0; m < sampled.members.size(); ++m) {
    if (!late.count(m)) waiting.insert(sampled.members[m]->job_rank);
  }
  waiting.erase(member.job_rank);
  AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
  finding.mutable_cause()->set_id("not established");
  finding.set_refuted_by(
      "the rank has more work by design (pipeline stage, uneven batch or experts), or is not late "
      "in the same operations of "
      "another window");
  if (side != Side::kGpu) {
    finding.mutable_next()->set_text(
        "See where the rank's host time goes between two collectives: data loading, garbage "
        "collection, "
        "logging, a throttled CPU.");
    finding.mutable_next()->set_command(
        "py-spy record --pid <pid of the rank> --duration 30 -o profile.svg");
  } else {
    finding.mutable_next()->set_text(
        "Compare clocks, power and temperature of this rank's GPU with its neighbours', then its "
        "compute "
        "kernels.");
    finding.mutable_next()->set_command("nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,POWER");
  }
  return straggler;
}

std::vector<Straggler> InCommunicator(const Job& job, const Communicator& c,
                                      const Timelines& timelines) {
  Sampled sampled = Sample(c);
  const size_t n = sampled.instances.size();
  if (n < thresholds::kStragglerInstances) return {};
  const Lateness lateness = Measure(sampled);
  const double share =
      n >= thresholds::kLongRecord ? thresholds::kLateShareLong : thresholds::kLateShareShort;
  std::set<size_t> late;
  for (size_t i = 0; i < sampled.members.size(); ++i) {
    if (static_cast<double>(lateness.late[i]) >= share * static_cast<double>(n)) late.insert(i);
  }
  if (late.empty()) return {};
  FillGaps(timelines, &sampled);
  std::vector<Straggler> stragglers;
  for (size_t i : late) {
    const double needed =
        thresholds::kGapShareOfLateness * static_cast<double>(Median(lateness.host[i]));
    const int64_t entry = Excess(sampled, &Instance::entry, i, late),
                  start = Excess(sampled, &Instance::start, i, late);
    if (needed > 0 && static_cast<double>(entry) >= needed && entry >= start) {
      stragglers.push_back(Describe(job, c, sampled, lateness, late, i, Side::kHost));
    } else if (needed > 0 && static_cast<double>(start) >= needed) {
      if (TakesTurns(job, c, *sampled.members[i])) continue;
      stragglers.push_back(Describe(job, c, sampled, lateness, late, i, Side::kGpu));
    } else if (Alone(job, *sampled.members[i])) {
      stragglers.push_back(Describe(job, c, sampled, lateness, late, i, Side::kUnknown));
    }
  }
  return stragglers;
}

}  // namespace

// One finding a rank: the communicator in which it costs most, the others named beside.
std::vector<Candidate> FindStragglers(const model::Job& job) {
  const Timelines timelines(job);
  std::map<std::pair<RankKey, int>, Straggler> worst;
  for (const Communicator& c : job.communicators) {
    for (Straggler& found : InCommunicator(job, c, timelines)) {
      const auto key = std::make_pair(KeyOf(*found.member), static_cast<int>(found.kind));
      const auto [it, fresh] = worst.try_emplace(key, found);
      if (fresh) continue;
      if (it->second.lateness_ns < found.lateness_ns) std::swap(it->second, found);
      it->second.finding.mutable_who()->add_communicators(found.communicator->Label());
    }
  }
  std::vector<Straggler> ordered;
  for (auto& [key, straggler] : worst) ordered.push_back(std::move(straggler));
  std::stable_sort(ordered.begin(), ordered.end(), [](const Straggler& a, const Straggler& b) {
    return a.lateness_ns > b.lateness_ns;
  });
  std::vector<Candidate> candidates;
  for (Straggler& straggler : ordered) {
    Candidate candidate;
    candidate.order = Class::kSlow;
    candidate.communicator = straggler.communicator->index;
    candidate.finding = std::move(straggler.finding);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

static const Register kRegister("straggler", FindStragglers);

}  // namespace ringscope::reasoning
