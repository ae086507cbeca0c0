#include "analyzer/model/build.h"

#include <algorithm>
#include <utility>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include "analyzer/model/ranks_text.h"

namespace ringscope::model {

void Notes::AddFor(const Process& process, const std::string& sentence) {
  auto& [ranks, others] = by_sentence_[sentence];
  if (process.job_rank >= 0) {
    ranks.push_back(process.job_rank);
  } else {
    others.push_back(absl::StrCat(process.host.empty() ? "?" : process.host, " pid ", process.trace.process().pid()));
  }
}

std::vector<std::string> Notes::Take() {
  std::vector<std::string> out = std::move(general_);
  for (auto& [sentence, who] : by_sentence_) {
    auto& [ranks, others] = who;
    std::vector<std::string> parts;
    if (!ranks.empty()) parts.push_back(RanksText(ranks));
    if (!others.empty()) {
      constexpr size_t kNamed = 4;
      const size_t named = std::min(others.size(), kNamed);
      std::string list = absl::StrJoin(others.begin(), others.begin() + static_cast<int64_t>(named), ", ");
      if (others.size() > named) absl::StrAppend(&list, " and ", others.size() - named, " more processes");
      parts.push_back(std::move(list));
    }
    out.push_back(absl::StrCat(absl::StrJoin(parts, ", "), ": ", sentence));
  }
  by_sentence_.clear();
  general_.clear();
  return out;
}

void CollectBlindSpots(const Job& job, Notes* notes) {
  for (const Process& p : job.processes) {
    for (const auto& sentence : p.trace.not_seen()) notes->AddFor(p, sentence);
    std::vector<std::string> lost;
    for (const auto& counter : p.trace.counters()) {
      if (counter.loss()) lost.push_back(counter.name());
    }
    if (!lost.empty()) {
      notes->AddFor(p, absl::StrCat("not everything was recorded (counters ", absl::StrJoin(lost, ", "),
                                    "; `ringscope show` has the numbers)"));
    }
    if (p.torn) notes->AddFor(p, "part of the record is missing or damaged");
    bool hidden = false;
    for (const auto& comm : p.trace.communicators()) {
      hidden |= !comm.completion_visible() && comm.n_ranks() > 1 && (comm.launched() > 0 || comm.collectives() > 0);
    }
    if (hidden) notes->AddFor(p, "completion on the GPU was not visible: started and finished are unknown");
  }
  if (!job.missing_job_ranks.empty()) {
    notes->Add(absl::StrCat("no record of ", RanksText(job.missing_job_ranks), " of ", job.world_size));
  }
}

std::vector<std::map<uint32_t, RowRef>> IndexRows(const Job& job) {
  std::vector<std::map<uint32_t, RowRef>> rows(job.processes.size());
  for (const Communicator& comm : job.communicators) {
    for (const Member& m : comm.members) {
      if (m.raw == nullptr) continue;
      rows[static_cast<size_t>(m.process)][m.raw->row()] = {comm.index, m.rank};
    }
  }
  return rows;
}

Job BuildJob(std::vector<Record> records) {
  Job job;
  Notes notes;
  for (const Record& r : records) job.inputs.push_back(r.source);
  std::sort(job.inputs.begin(), job.inputs.end());
  job.processes = JoinRecords(std::move(records), &notes);
  JoinCommunicators(&job, &notes);
  AssignJobRanks(&job, &notes);
  ExpandOperations(&job, &notes);
  JoinEdges(&job, &notes);
  JudgeLife(&job);
  CollectBlindSpots(job, &notes);
  job.not_seen = notes.Take();
  return job;
}

}  // namespace ringscope::model
