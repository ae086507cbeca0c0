// Several jobs, attempts and runs among the inputs: never joined, one chosen, the others named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/model/run_label.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope {
namespace {

using model::BuildJob;
using model::Record;
using model::RunLabel;
using model::RunNamedBy;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using ::testing::SizeIs;

// Two ranks of one run that ended at second `end`; pids from `pid` on, a communicator of its own.
std::vector<Record> Attempt(const std::string& job, uint32_t restart, double end, int pid,
                            uint64_t comm = 0x77) {
  JobBuilder b(2, end);
  b.Comm("world", {0, 1}, comm);
  auto records = b.Records();
  for (Record& r : records) {
    auto& p = *r.trace.mutable_process();
    p.set_job_id(job);
    p.set_restart_count(restart);
    p.set_pid(pid++);
    for (auto& [name, value] : *p.mutable_environment()) value = name;
  }
  return records;
}

std::vector<Record> All(std::initializer_list<std::vector<Record>> runs) {
  std::vector<Record> all;
  for (const auto& run : runs) all.insert(all.end(), run.begin(), run.end());
  return all;
}

std::vector<int> Pids(const model::Job& job) {
  std::vector<int> pids;
  for (const auto& p : job.processes) pids.push_back(p.trace.process().pid());
  return pids;
}

// torchelastic starts the same job again: same id, same directory of flight files.
TEST(Runs, ARestartedJobIsAboutItsNewestAttempt) {
  const auto records = All({Attempt("t", 0, 60, 100), Attempt("t", 1, 100, 200, 0x78)});
  const model::Job job = BuildJob(records);
  EXPECT_THAT(Pids(job), ElementsAre(200, 201));
  EXPECT_EQ(job.name, "t, attempt 1");
  EXPECT_THAT(job.left_out, ElementsAre("t, attempt 0 (--incarnation=t.0)"));
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("t, attempt 0: 2 processes); --incarnation=t.0")));
}

TEST(Runs, EachAttemptCanBeChosen) {
  const auto records = All({Attempt("t", 0, 60, 100), Attempt("t", 1, 100, 200, 0x78),
                            Attempt("other job", 0, 90, 300, 0x79)});
  EXPECT_THAT(Pids(BuildJob(records, "t.0")), ElementsAre(100, 101));
  EXPECT_THAT(Pids(BuildJob(records, "t.1")), ElementsAre(200, 201));
  EXPECT_THAT(Pids(BuildJob(records, "other_job.0")), ElementsAre(300, 301));
}

TEST(Runs, WhatIsNotThereIsNotReplacedByAnother) {
  const model::Job job =
      BuildJob(All({Attempt("t", 0, 60, 100), Attempt("t", 1, 100, 200)}), "t.2");
  EXPECT_THAT(job.processes, IsEmpty());
  EXPECT_THAT(job.left_out, SizeIs(2));
}

TEST(Runs, TheDirectoryThatIsGivenNamesTheRun) {
  const auto records =
      All({Attempt("t", 0, 60, 100), Attempt("t", 1, 100, 200), Attempt("", 0, 90, 300)});
  EXPECT_EQ(RunNamedBy({"/scratch/traces/t.0", "/dev/shm/ringscope-0"}, records), "t.0");
  EXPECT_EQ(RunNamedBy({"traces/t.1//"}, records), "t.1");
  EXPECT_EQ(RunNamedBy({"nojob.0"}, records), "nojob.0");
  EXPECT_EQ(RunNamedBy({"traces"}, records), "");
  EXPECT_EQ(RunNamedBy({"t.7", ""}, records), "");
  EXPECT_EQ(RunNamedBy({"a/t.0", "a/t.1"}, records), "") << "two are none: the newest";
}

TEST(Runs, LabelsAreTheNamesOfTheDirectories) {
  EXPECT_EQ(RunLabel("", 0), "nojob.0");
  EXPECT_EQ(RunLabel("a b/c-d.e", 3), "a_b_c_d.e.3");
  EXPECT_EQ(RunLabel("..", 0), "_..0");
  EXPECT_EQ(RunLabel(std::string(100, 'x'), 1), std::string(64, 'x') + ".1");
}

// Two runs at once by one user, none with a job id.
TEST(Runs, WithoutJobIdsRunsAtOneTimeAreToldApartByTheirCommunicators) {
  const auto records = All({Attempt("", 0, 99, 100, 0x77), Attempt("", 0, 100, 200, 0x78)});
  const model::Job job = BuildJob(records);
  EXPECT_THAT(Pids(job), ElementsAre(200, 201));
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("another run without a job id were left out")));
}

TEST(Runs, WithoutJobIdsWhatCanBeOneJobStaysOne) {
  // Ranks 2 and 3 have a communicator of their own and no rank in common with the others.
  JobBuilder b(4);
  b.Comm("a", {0, 1});
  b.Comm("b", {2, 3});
  EXPECT_THAT(b.Build().processes, SizeIs(4));
  // A process without a communicator proves nothing.
  JobBuilder c(3);
  c.Comm("a", {0, 1});
  EXPECT_THAT(c.Build().processes, SizeIs(3));
}

// ---- several records of one process

TEST(Runs, TheNewestRecordOfAProcessWinsWhateverItsReason) {
  JobBuilder b(1);
  b.Comm("world", {0});
  const Record base = b.Records()[0];
  std::vector<Record> records;
  const std::pair<trace::WriteReason, int64_t> traces[] = {{trace::REASON_WAKE, 30},
                                                           {trace::REASON_QUIET, 50},
                                                           {trace::REASON_MARKER, 10},
                                                           {trace::REASON_STALL, 40}};
  for (const auto& [reason, second] : traces) {
    Record r = base;
    r.from_flight_file = false;
    r.trace.set_reason(reason);
    r.trace.set_written_ns(testing::kBootNs + second * 1000000000);
    r.trace.set_sequence(static_cast<uint32_t>(second));
    records.push_back(r);
  }
  const model::Job job = BuildJob(records);
  ASSERT_THAT(job.processes, SizeIs(1));
  EXPECT_EQ(job.processes[0].trace.reason(), trace::REASON_QUIET);
  EXPECT_THAT(job.processes[0].earlier, SizeIs(3));
}

}  // namespace
}  // namespace ringscope
