// Records to processes: one Process a process, its newest state in front.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/model/build.h"
#include "analyzer/model/ranks_text.h"
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

std::string JobName(const trace::Process& p) {
  return absl::StrCat(p.job_id().empty() ? "without a job id" : p.job_id(), ", attempt ",
                      p.restart_count());
}

// Keeps the newest (job, attempt) of those that lie in the inputs.
void KeepOneJob(std::vector<Process>* processes, Notes* notes) {
  std::map<std::pair<std::string, uint32_t>, std::pair<int64_t, int>>
      groups;  // newest sign, processes
  const auto key = [](const Process& p) {
    return std::make_pair(p.trace.process().job_id(), p.trace.process().restart_count());
  };
  for (const Process& p : *processes) {
    if (!p.trace.has_process()) continue;  // its identity is lost; its communicators may still join
    auto& [newest, count] = groups[key(p)];
    newest = std::max(newest, p.last_sign_ns);
    ++count;
  }
  if (groups.size() <= 1) return;
  auto keep = groups.begin();
  for (auto it = groups.begin(); it != groups.end(); ++it) {
    if (it->second.first >= keep->second.first) keep = it;
  }
  for (const auto& [group, what] : groups) {
    if (group == keep->first) continue;
    trace::Process name;
    name.set_job_id(group.first);
    name.set_restart_count(group.second);
    notes->Add(absl::StrCat("records of another job or attempt were left out (", JobName(name),
                            ": ", what.second,
                            " processes); give its directory alone to look at it"));
  }
  std::erase_if(*processes,
                [&](const Process& p) { return p.trace.has_process() && key(p) != keep->first; });
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

std::vector<Process> JoinRecords(std::vector<Record> records, Notes* notes) {
  using Key = std::tuple<std::string, int32_t, uint64_t, uint32_t, int>;
  std::map<Key, std::vector<Record>> groups;
  int nameless = 0;
  for (Record& r : records) {
    if (CutToRange(&r.trace))
      notes->Add(absl::StrCat(r.source, ": holds times that cannot be; the record is damaged"));
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
  KeepOneJob(&processes, notes);
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
