// Records to processes: one Process a process, its newest state in front.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/model/build.h"
#include "analyzer/model/ranks_text.h"
#include "analyzer/model/run_label.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

int64_t LastSign(const Process& p) {
  const auto& live = p.trace.liveness();
  return std::max({live.heartbeat_realtime_ns(), p.ToRealtime(live.heartbeat_ns()),
                   p.ToRealtime(live.last_callback_ns()), p.ToRealtime(p.trace.written_ns()),
                   int64_t{0}});
}

int64_t Begin(const Process& p) { return p.trace.clock().first_realtime_ns(); }

// Newest first: a flight file goes on after the process's traces, whatever the order in which they
// were read.
bool Newer(const Record& a, const Record& b) {
  const auto key = [](const Record& r) {
    return std::make_tuple(r.from_flight_file, r.trace.written_ns(), r.trace.sequence());
  };
  return key(a) > key(b);
}

Process MakeProcess(std::vector<Record> records) {
  std::stable_sort(records.begin(), records.end(), Newer);
  Process p;
  for (size_t i = records.size(); i-- > 1;) p.earlier.push_back(std::move(records[i].trace));
  Record& newest = records.front();
  p.trace = std::move(newest.trace);
  p.histories = std::move(newest.histories);
  p.source = std::move(newest.source);
  p.from_flight_file = newest.from_flight_file;
  p.torn = newest.torn;
  p.read_realtime_ns = newest.read_realtime_ns;
  p.host = p.trace.process().host();
  p.job_rank = p.trace.has_process() ? p.trace.process().rank() : -1;
  if (p.job_rank < 0 || p.job_rank >= kMaxWorld) p.job_rank = -1;
  p.last_sign_ns = LastSign(p);
  p.end_ns = p.last_sign_ns;
  return p;
}

using JobKey = std::pair<std::string, uint32_t>;  // job id, attempt

JobKey KeyOf(const Process& p) {
  return {p.trace.process().job_id(), p.trace.process().restart_count()};
}
std::string JobName(const JobKey& key) {
  return absl::StrCat(key.first.empty() ? "without a job id" : key.first, ", attempt ", key.second);
}

// Communicator ids are 64-bit hashes of a random id: two jobs do not share one. A process that does
// share one belongs to that job whatever its record says its job is; a single damaged record must
// not pass for a job of its own.
std::map<JobKey, JobKey> SameJobs(const std::vector<Process>& processes,
                                  const std::map<JobKey, int>& sizes) {
  std::map<JobKey, JobKey> leader;
  for (const auto& [key, size] : sizes) leader[key] = key;
  const auto find = [&](JobKey key) {
    while (leader[key] != key) key = leader[key];
    return key;
  };
  std::map<std::pair<uint64_t, uint32_t>, std::map<JobKey, std::set<uint32_t>>> holders;
  for (const Process& p : processes) {
    if (!p.trace.has_process()) continue;
    for (const auto& c : p.trace.communicators()) {
      // Below profiler API v4 sizes are not told, or by some ranks only.
      const bool untold = c.profiler_api() != 0 && c.profiler_api() < 4;
      if (c.comm_id() != 0 && (c.n_ranks() > 1 || untold)) {
        holders[{c.comm_id(), untold ? 0 : c.n_ranks()}][KeyOf(p)].insert(c.rank());
      }
    }
  }
  for (const auto& [id, jobs] : holders) {
    for (auto it = jobs.begin(); it != jobs.end(); ++it) {
      const auto& [first, ranks] = *jobs.begin();
      // The same rank twice: two runs after all (a job replayed, an id that repeats).
      const bool twice = std::any_of(it->second.begin(), it->second.end(),
                                     [&](uint32_t r) { return ranks.count(r) > 0; });
      JobKey a = find(first), b = find(it->first);
      if (twice || a == b) continue;
      if (sizes.at(a) < sizes.at(b)) std::swap(a, b);
      leader[b] = a;  // the larger one names the job
    }
  }
  for (auto& [key, to] : leader) to = find(key);
  return leader;
}

// Groups come in order of job id and attempt. Hosts' clocks may be seconds apart: attempts of one job that ended so close to each other
// are told by their count.
using Group = std::pair<const JobKey, std::pair<int64_t, int>>;  // newest sign, processes
bool NewerRun(const Group& later, const Group& than) {
  constexpr int64_t kClocksApart = 10'000'000'000;
  const int64_t after = SatSub(later.second.first, than.second.first);
  return later.first.first == than.first.first ? after > -kClocksApart : after >= 0;
}

// Keeps the newest (job, attempt) of those that lie in the inputs, or the one that is asked for.
void KeepOneJob(std::vector<Process>* processes, const std::string& incarnation, Notes* notes,
                std::string* name, std::vector<std::string>* left_out) {
  std::map<JobKey, int> sizes;
  for (const Process& p : *processes) {
    if (p.trace.has_process())
      ++sizes[KeyOf(p)];  // else its identity is lost; its communicators may still join
  }
  if (sizes.empty()) return;
  const std::map<JobKey, JobKey> leader = SameJobs(*processes, sizes);
  std::map<JobKey, std::pair<int64_t, int>> groups;  // newest sign, processes
  for (const Process& p : *processes) {
    if (!p.trace.has_process()) continue;
    auto& [newest, count] = groups[leader.at(KeyOf(p))];
    newest = std::max(newest, p.last_sign_ns);
    ++count;
  }
  auto keep = groups.end();
  for (auto it = groups.begin(); it != groups.end(); ++it) {
    if (!incarnation.empty() && RunLabel(it->first.first, it->first.second) != incarnation)
      continue;
    if (keep == groups.end() || NewerRun(*it, *keep)) keep = it;
  }
  if (keep != groups.end()) *name = JobName(keep->first);
  for (auto it = groups.begin(); it != groups.end(); ++it) {
    if (it == keep) continue;
    const auto& [group, what] = *it;
    const std::string flag = absl::StrCat("--incarnation=", RunLabel(group.first, group.second));
    left_out->push_back(absl::StrCat(JobName(group), " (", flag, ")"));
    notes->Add(absl::StrCat("records of another job or attempt were left out (", JobName(group),
                            ": ", what.second, what.second == 1 ? " process" : " processes", "); ",
                            flag, " looks at it"));
  }
  std::erase_if(*processes, [&](const Process& p) {
    return keep == groups.end() || (p.trace.has_process() && leader.at(KeyOf(p)) != keep->first);
  });
}

// Flight files of earlier runs stay in the flight directory. A group of processes that ended before
// another group began is left out when the later one holds one of its ranks again.
void DropEarlierRuns(std::vector<Process>* processes, Notes* notes) {
  std::vector<size_t> order(processes->size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return Begin((*processes)[a]) < Begin((*processes)[b]); });
  std::vector<std::vector<size_t>> runs;
  int64_t end = 0;
  for (size_t i : order) {
    const Process& p = (*processes)[i];
    if (runs.empty() || Begin(p) > end) runs.emplace_back();
    runs.back().push_back(i);
    end = std::max(end, p.last_sign_ns);
  }
  std::set<int> held;
  std::vector<bool> drop(processes->size(), false);
  std::vector<int> dropped;
  for (size_t r = runs.size(); r-- > 0;) {
    bool again = false;
    for (size_t i : runs[r]) again |= held.count((*processes)[i].job_rank) > 0;
    for (size_t i : runs[r]) {
      const int rank = (*processes)[i].job_rank;
      if (again) {
        drop[i] = true;
        dropped.push_back(rank);
      } else if (rank >= 0) {
        held.insert(rank);
      }
    }
  }
  if (dropped.empty()) return;
  std::erase_if(dropped, [](int rank) { return rank < 0; });
  notes->Add(absl::StrCat("records of an earlier run were left out (", RanksText(dropped),
                          "): their processes ended before those of the newest run began"));
  std::vector<Process> kept;
  for (size_t i = 0; i < processes->size(); ++i) {
    if (!drop[i]) kept.push_back(std::move((*processes)[i]));
  }
  *processes = std::move(kept);
}

// Two machines may share a name; the boot id tells them apart.
void MakeHostsUnique(std::vector<Process>* processes) {
  std::map<std::string, std::set<std::string>> boots;
  for (const Process& p : *processes) boots[p.host].insert(p.trace.process().boot_id());
  for (Process& p : *processes) {
    if (boots[p.host].size() > 1)
      absl::StrAppend(&p.host, "~", p.trace.process().boot_id().substr(0, 8));
  }
}

}  // namespace

std::vector<Process> JoinRecords(std::vector<Record> records, const std::string& incarnation,
                                 Notes* notes, std::string* name,
                                 std::vector<std::string>* left_out) {
  using Key = std::tuple<std::string, int32_t, uint64_t, uint32_t, int>;
  std::map<Key, std::vector<Record>> groups;
  int nameless = 0;
  for (Record& r : records) {
    if (CutToRange(&r.trace)) {
      r.torn = true;  // what else of it is wrong is not known
      notes->Add(absl::StrCat(r.source, ": holds times that cannot be; the record is damaged"));
    }
    const auto& p = r.trace.process();
    if (!r.trace.has_process())
      notes->Add(
          absl::StrCat(r.source, ": says not which process it is of; joined by its communicators"));
    const Key key(p.boot_id(), p.pid(), p.start_ticks(), p.nonce(),
                  r.trace.has_process() ? 0 : ++nameless);
    groups[key].push_back(std::move(r));
  }
  std::vector<Process> processes;
  for (auto& [key, group] : groups) processes.push_back(MakeProcess(std::move(group)));
  KeepOneJob(&processes, incarnation, notes, name, left_out);
  DropOtherRuns(&processes, notes);
  DropEarlierRuns(&processes, notes);
  MakeHostsUnique(&processes);
  std::stable_sort(processes.begin(), processes.end(), [](const Process& a, const Process& b) {
    const auto key = [](const Process& p) {
      return std::make_tuple(p.job_rank < 0 ? kMaxWorld : p.job_rank, p.host,
                             p.trace.process().pid());
    };
    return key(a) < key(b);
  });
  for (size_t i = 0; i < processes.size(); ++i) processes[i].index = static_cast<int>(i);
  return processes;
}

}  // namespace ringscope::model
