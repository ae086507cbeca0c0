#include "analyzer/model/build.h"

#include "analyzer/model/clocks.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/roles.h"

namespace ringscope::model {

namespace {

// Takes the numbers out of a sentence: "7 rows" becomes "\x01 rows" and {7}.
std::string Shape(const std::string& sentence, std::vector<uint64_t>* numbers) {
  std::string shape;
  for (size_t i = 0; i < sentence.size();) {
    const bool digit = sentence[i] >= '0' && sentence[i] <= '9';
    const bool begins =
        digit && (i == 0 || absl::ascii_isspace(static_cast<unsigned char>(sentence[i - 1])));
    uint64_t value = 0;
    size_t end = i;
    while (begins && end < sentence.size() && sentence[end] >= '0' && sentence[end] <= '9' &&
           end - i < 18) {
      value = value * 10 + static_cast<uint64_t>(sentence[end++] - '0');
    }
    if (end == i) {
      shape += sentence[i++];
      continue;
    }
    shape += '\x01';
    numbers->push_back(value);
    i = end;
  }
  return shape;
}

}  // namespace

void Notes::AddFor(const Process& process, const std::string& sentence) {
  std::vector<uint64_t> numbers;
  Group& group = by_shape_[Shape(sentence, &numbers)];
  if (group.low.empty()) group.low = group.high = numbers;
  for (size_t i = 0; i < numbers.size(); ++i) {
    group.low[i] = std::min(group.low[i], numbers[i]);
    group.high[i] = std::max(group.high[i], numbers[i]);
  }
  if (process.job_rank >= 0) {
    group.ranks.push_back(process.job_rank);
  } else {
    group.others.push_back(absl::StrCat(process.host.empty() ? "?" : process.host, " pid ",
                                        process.trace.process().pid()));
  }
}

std::string Notes::Group::Who() const {
  std::vector<std::string> parts;
  if (!ranks.empty()) parts.push_back(RanksText(ranks));
  if (!others.empty()) {
    constexpr size_t kNamed = 4;
    const size_t named = std::min(others.size(), kNamed);
    std::string list =
        absl::StrJoin(others.begin(), others.begin() + static_cast<int64_t>(named), ", ");
    if (others.size() > named)
      absl::StrAppend(&list, " and ", others.size() - named, " more processes");
    parts.push_back(std::move(list));
  }
  return absl::StrJoin(parts, ", ");
}

std::vector<std::string> Notes::Take() {
  std::vector<std::string> out = std::move(general_);
  for (const auto& [shape, group] : by_shape_) {
    std::string sentence = group.Who() + ": ";
    size_t number = 0;
    for (char c : shape) {
      if (c != '\x01' || number >= group.low.size()) {
        sentence += c;
        continue;
      }
      absl::StrAppend(&sentence, group.low[number]);
      if (group.high[number] != group.low[number])
        absl::StrAppend(&sentence, "-", group.high[number]);
      ++number;
    }
    out.push_back(std::move(sentence));
  }
  by_shape_.clear();
  general_.clear();
  return out;
}

void CollectBlindSpots(const Job& job, Notes* notes) {
  for (const Process& p : job.processes) {
    bool hidden_said = false;
    for (const auto& sentence : p.trace.not_seen()) {
      // The relay cannot tell whose operations it carries; JoinEdges() said where the owners'
      // records do not tell either.
      if (absl::StrContains(sentence, "(PXN)")) continue;
      hidden_said |= absl::StrContains(sentence, "on the GPU");
      notes->AddFor(p, sentence);
    }
    std::vector<std::string> lost;
    for (const auto& counter : p.trace.counters()) {
      if (counter.loss()) lost.push_back(counter.name());
    }
    if (!lost.empty()) {
      notes->AddFor(
          p, absl::StrCat("not everything was recorded (counters ", absl::StrJoin(lost, ", "),
                          "; `ringscope show` has the numbers)"));
    }
    if (p.torn) notes->AddFor(p, "part of the record is missing or damaged");
    bool hidden = false;
    for (const auto& comm : p.trace.communicators()) {
      hidden |= !comm.completion_visible() && comm.n_ranks() != 1 &&
                (comm.launched() > 0 || comm.collectives() > 0);
    }
    if (hidden && !hidden_said)
      notes->AddFor(p, "completion on the GPU was not visible: started and finished are unknown");
  }
  for (const Communicator& c : job.communicators) {
    size_t api = 0, launch = 0;
    for (const Member& m : c.members) {
      if (m.raw == nullptr || m.raw->collectives() == 0) continue;
      ++(m.raw->api_events() ? api : launch);
    }
    if (api > 0 && launch > 0) {
      notes->Add(absl::StrCat(
          "communicator ", c.Label(), ": ", launch, launch == 1 ? " rank counts" : " ranks count",
          " what was launched and ", api,
          " what was called (different profiler tables): their arguments are not comparable"));
    }
  }
  if (!job.missing_job_ranks.empty()) {
    notes->Add(
        absl::StrCat("no record of ", RanksText(job.missing_job_ranks), " of ", job.world_size));
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

Job BuildJob(std::vector<Record> records, const std::string& incarnation) {
  Job job;
  Notes notes;
  for (const Record& r : records) job.inputs.push_back(r.source);
  std::sort(job.inputs.begin(), job.inputs.end());
  SettleDumps(&records, &notes);
  job.processes = JoinRecords(std::move(records), incarnation, &notes, &job.name, &job.left_out);
  JoinCommunicators(&job, &notes);
  AssignJobRanks(&job, &notes);
  ExpandOperations(&job, &notes);
  SettleStarts(&job);
  JoinEdges(&job, &notes);
  AlignClocks(&job, &notes);
  JudgeLife(&job);
  AssignRoles(&job);
  CollectBlindSpots(job, &notes);
  job.not_seen = notes.Take();
  return job;
}

}  // namespace ringscope::model
