// Processes that ended before they had called anything: no all-clear, and no accusation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/reasoning/finder.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::HasSubstr;
using testing::JobBuilder;

// Four ranks of one communicator that ended by exit().
model::Job Ended(bool called, bool destroyed = false) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; called && r < 4; ++r) b.Coll(w, r, 1).Finished();
  model::Job job = b.Build();
  for (model::Process& p : job.processes) {
    p.life = model::Life::kExited;
    p.trace.mutable_liveness()->set_exiting(true);
  }
  for (model::Communicator& comm : job.communicators) {
    for (model::Member& m : comm.members) {
      if (m.raw != nullptr && destroyed) const_cast<trace::Communicator*>(m.raw)->set_finalized_ns(1);
    }
  }
  return job;
}

void ExpectUnknown(const Diagnosis& d, const std::string& words) {
  EXPECT_EQ(d.state(), State::unknown);
  ASSERT_GT(d.findings_size(), 0);
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_EQ(d.findings(0).who().ranks_size(), 0) << "nobody is accused";
  EXPECT_THAT(d.findings(0).title(), HasSubstr(words));
  EXPECT_FALSE(d.findings(0).next().text().empty());
}

TEST(EarlyEnd, AUsageErrorOfAllRanksIsNoAllClear) {
  ExpectUnknown(Diagnose(Ended(false)), "No operation was ever called: 4 of 4 processes ended with exit()");
  model::Job job = Ended(false);
  job.processes[3].life = model::Life::kRunning;
  ExpectUnknown(Diagnose(job), "3 of 4 processes (ranks 0-2) ended with exit()");
}

TEST(EarlyEnd, WhoDestroyedItsCommunicatorsOrWorkedIsLeftAlone) {
  EXPECT_EQ(Diagnose(Ended(false, /*destroyed=*/true)).state(), State::healthy);
  EXPECT_EQ(Diagnose(Ended(true)).state(), State::healthy);
  model::Job job = Ended(false);
  for (int r = 1; r < 4; ++r) job.processes[r].life = model::Life::kRunning;
  const Diagnosis d = Diagnose(job);
  for (const Finding& f : d.findings()) EXPECT_EQ(f.title().find("ever called"), std::string::npos) << "one of four";
}

TEST(EarlyEnd, GoneWithoutACall) {
  model::Job job = Ended(false);
  for (model::Process& p : job.processes) p.life = model::Life::kGone;
  ExpectUnknown(Diagnose(job), "no clean end");
  for (model::Process& p : job.processes) p.life = model::Life::kRunning;
  EXPECT_EQ(Diagnose(job).state(), State::healthy) << "it has just begun";
  for (model::Process& p : job.processes) p.trace.mutable_liveness()->set_lock_known(true);
  ExpectUnknown(Diagnose(job), "no clean end");
  for (model::Process& p : job.processes) p.trace.mutable_liveness()->set_lock_held(true);
  EXPECT_EQ(Diagnose(job).state(), State::healthy) << "they live";
}

}  // namespace
}  // namespace ringscope::reasoning
