// What the preloaded library saw, in verdicts: calls that hold a rank, errors that stay, ranks that all wait for their GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/reasoning/finder.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;

constexpr int64_t kNow = 400'000'000'000;

// Thread of the process is inside `function` for `s` seconds when the record ends.
void Held(model::Process* p, const std::string& function, double s) {
  p->trace.mutable_settings()->set_stall_seconds(60);
  p->trace.mutable_liveness()->set_heartbeat_ns(kNow);
  p->trace.set_written_ns(kNow);
  trace::CallInFlight& call = *p->trace.add_calls();
  call.set_tid(4711);
  call.set_host_function(function);
  call.set_host_since_ns(kNow - static_cast<int64_t>(s * 1e9));
}
std::vector<int> Who(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }

// Rank 2 has not entered operation 5.
model::Job RankMissing() {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 4);
  for (int r : {0, 1, 3}) b.Coll(w, r, 5).Running();
  return b.Build();
}

TEST(HostCalls, ARankHeldInACallIsBlockedNotLate) {
  model::Job job = RankMissing();
  Held(&job.processes[2], "cudaFree", 200);
  const Diagnosis d = Diagnose(job);
  const Finding& f = d.findings(0);
  EXPECT_EQ(f.kind(), Kind::host_blocked);
  EXPECT_THAT(Who(f), ElementsAre(2));
  EXPECT_THAT(f.title(), HasSubstr("inside cudaFree"));
  EXPECT_EQ(f.cause().id(), "FW-03");
}

TEST(HostCalls, ARankThatWaitsForItsOwnGpuIsMissingWithThatAsEvidence) {
  model::Job job = RankMissing();
  Held(&job.processes[2], "cudaStreamSynchronize", 200);
  const Diagnosis d = Diagnose(job);
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(d.findings(0).ShortDebugString(), HasSubstr("cudaStreamSynchronize"));
}

TEST(HostCalls, AShortCallHoldsNobody) {
  model::Job job = RankMissing();
  Held(&job.processes[2], "cudaFree", 2);
  EXPECT_EQ(Diagnose(job).findings(0).kind(), Kind::missing_rank);
}

TEST(HostCalls, TheFirstStickyErrorIsNamed) {
  for (const auto& [code, cause] : {std::pair<uint32_t, std::string>{700, "UC-10"}, {220, "HW-01"}, {719, "not established"}}) {
    model::Job job = RankMissing();
    for (const int rank : {1, 2}) {
      trace::HostError& error = *job.processes[rank].trace.mutable_host()->mutable_sticky();
      error.set_function("cudaStreamSynchronize");
      error.set_code(code);
      error.set_at_ns(kNow - (rank == 2 ? 20 : 10) * int64_t{1'000'000'000});
    }
    const Diagnosis d = Diagnose(job);
    const Finding& f = d.findings(0);
    EXPECT_EQ(f.kind(), Kind::error_reported);
    EXPECT_EQ(f.cause().id(), cause);
    EXPECT_THAT(Who(f), ElementsAre(2));
    EXPECT_EQ(f.confidence(), Confidence::probable) << "two processes have one";
  }
}

TEST(HostCalls, AllWaitingForTheirGpusIsNoAllClear) {
  for (const double seconds : {200.0, 2.0}) {
    JobBuilder b(3);
    const CommRef w = b.Comm("world", {0, 1, 2}, 0, /*completion=*/false);
    for (int r = 0; r < 3; ++r) b.Coll(w, r, 1).Enqueued().raw().set_unfinished(false);
    model::Job job = b.Build();
    for (model::Process& p : job.processes) Held(&p, "cudaStreamSynchronize", seconds);
    const Diagnosis d = Diagnose(job);
    bool said = false;
    for (const Finding& f : d.findings()) said |= f.title().find("wait in cudaStreamSynchronize") != std::string::npos;
    EXPECT_EQ(said, seconds > 60);
    if (seconds > 60) {
      EXPECT_EQ(d.state(), State::hang);
    }
  }
}

}  // namespace
}  // namespace ringscope::reasoning
