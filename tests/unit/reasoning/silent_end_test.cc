// A job that was last seen outside of NCCL: no all-clear, and no accusation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/reasoning/finder.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::HasSubstr;
using testing::JobBuilder;

// Two ranks whose operations are over; last callback at 10 s, last heartbeat `quiet_s` later.
model::Job Quiet(double quiet_s, model::Life life) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  for (int r = 0; r < 2; ++r) b.Coll(w, r, 1).Finished();
  model::Job job = b.Build();
  for (model::Process& p : job.processes) {
    p.life = life;
    p.trace.mutable_settings()->set_stall_seconds(30);
    p.trace.mutable_liveness()->set_last_callback_ns(10'000'000'000);
    p.trace.mutable_liveness()->set_heartbeat_ns(10'000'000'000 + static_cast<int64_t>(quiet_s * 1e9));
  }
  return job;
}
bool Said(const Diagnosis& d) {
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::undetermined && f.title().find(" an operation of NCCL for at least ") != std::string::npos) return true;
  }
  return false;
}

TEST(SilentEnd, KilledAfterALongSilenceIsNoAllClear) {
  const Diagnosis d = Diagnose(Quiet(75, model::Life::kGone));
  ASSERT_TRUE(Said(d));
  EXPECT_EQ(d.state(), State::unknown);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("75 s"));
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
  EXPECT_EQ(d.findings(0).who().ranks_size(), 0);
  EXPECT_FALSE(d.findings(0).next().text().empty());
}

TEST(SilentEnd, WhoEndedInOrderOrWorkedIsLeftAlone) {
  EXPECT_FALSE(Said(Diagnose(Quiet(75, model::Life::kExited))));
  EXPECT_FALSE(Said(Diagnose(Quiet(20, model::Life::kGone)))) << "shorter than a stall";
  model::Job job = Quiet(75, model::Life::kGone);
  job.processes[1].trace.mutable_liveness()->set_last_callback_ns(84'000'000'000);
  EXPECT_FALSE(Said(Diagnose(job))) << "one of them worked";
  job = Quiet(75, model::Life::kGone);
  for (trace::Communicator& c : *job.processes[0].trace.mutable_communicators()) c.set_finalized_ns(1);
  EXPECT_FALSE(Said(Diagnose(job))) << "its communicators were destroyed";
}

}  // namespace
}  // namespace ringscope::reasoning
