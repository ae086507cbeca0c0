// Transfers that became slower in mid-run, and those that only look so; transfers against NCCL's plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::HasSubstr;
using testing::JobBuilder;

// `ms` of the n-th operation's transfer; rank 1 comes `late_ms` after the others.
model::Job Make(int n, double (*ms)(int), double late_ms = 0, uint64_t count = 1 << 20, double noise = 0.05) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> wander(1 - noise, 1 + noise);
  JobBuilder b(4);
  const CommRef c = b.Comm("world", {0, 1, 2, 3}, 9);
  double now = 1;
  for (int i = 1; i <= n; ++i) {
    const double transfer = ms(i) * wander(random) * 1e-3;
    for (int r = 0; r < 4; ++r) {
      auto op = b.Coll(c, r, static_cast<uint64_t>(i)).Count(count).Finished();
      const double start = now + (r == 1 ? late_ms * 1e-3 : 0);
      op.raw().set_entered_ns(static_cast<int64_t>((start - 1e-4) * 1e9));
      op.raw().set_enqueued_ns(static_cast<int64_t>((start - 5e-5) * 1e9));
      op.raw().set_started_ns(static_cast<int64_t>(start * 1e9));
      op.raw().set_finished_ns(static_cast<int64_t>((now + late_ms * 1e-3 + transfer) * 1e9));
      op.raw().clear_gpu_started_ns();
      op.raw().clear_gpu_finished_ns();
    }
    now += transfer + late_ms * 1e-3 + 0.001;
  }
  return b.Build();
}

const Finding* Slow(const Diagnosis& d) {
  for (const Finding& f : d.findings()) {
    if (f.title().rfind("Transfers of", 0) == 0) return &f;
  }
  return nullptr;
}

TEST(SlowTransfer, SinceAnOperation) {
  const Diagnosis d = Diagnose(Make(120, [](int i) { return i <= 60 ? 2.0 : 5.0; }));
  const Finding* f = Slow(d);
  ASSERT_NE(f, nullptr);
  EXPECT_THAT(f->title(), HasSubstr("2.5 times"));
  EXPECT_THAT(f->title(), HasSubstr("since operation 61"));
  EXPECT_EQ(f->who().ranks_size(), 0) << "kernels do not say which link";
  EXPECT_EQ(d.state(), State::slow);
}

TEST(SlowTransfer, OneWindowALittleOrBackAgainSaysNothing) {
  EXPECT_EQ(Slow(Diagnose(Make(120, [](int i) { return i > 100 ? 5.0 : 2.0; }))), nullptr) << "one window";
  EXPECT_EQ(Slow(Diagnose(Make(120, [](int i) { return i > 60 ? 2.4 : 2.0; }))), nullptr) << "a little";
  EXPECT_EQ(Slow(Diagnose(Make(120, [](int i) { return i > 40 && i < 81 ? 5.0 : 2.0; }))), nullptr) << "it is over";
  EXPECT_EQ(Slow(Diagnose(Make(50, [](int i) { return i > 20 ? 5.0 : 2.0; }))), nullptr) << "too short a record";
  EXPECT_EQ(Slow(Diagnose(Make(
                120, [](int) { return 3.0; }, 0, 1 << 20, 0.9))),
            nullptr)
      << "noise";
}

TEST(SlowTransfer, SmallMessagesAreBoundByLatency) {
  EXPECT_EQ(Slow(Diagnose(Make(120, [](int i) { return i <= 60 ? 2.0 : 5.0; }, 0, 1000))), nullptr);
}

TEST(SlowTransfer, ALateRankIsNoSlowTransfer) {
  EXPECT_EQ(Slow(Diagnose(Make(
                120, [](int) { return 2.0; }, 30))),
            nullptr);
}

std::string Plan(const char* bw) {
  std::string log;
  for (int r = 0; r < 4; ++r) {
    const std::string n = std::to_string(r), head = "h:" + std::to_string(70 + r) + ":1 [" + n + "] NCCL INFO ";
    log += head + "ncclCommInitRank comm 0x5" + n + " rank " + n + " nranks 4 cudaDev " + n + " nvmlDev " + n + " busId " + n +
           "b000 commId 0x9 - Init START\n";
    log += head + "Pattern 4, crossNic 0, nChannels 12, bw " + bw + "/" + bw + ", type NVL/PIX, sameChannels 1\n";
    log += head + "ncclCommInitRank comm 0x5" + n + " rank " + n + " nranks 4 cudaDev " + n + " nvmlDev " + n + " busId " + n +
           "b000 commId 0x9 - Init COMPLETE\n";
  }
  return log;
}

bool BelowPlan(const char* bw, double (*ms)(int)) {
  model::Job job = Make(40, ms, 0, 64u << 20);
  EXPECT_TRUE(ingest::ReadTextBytes("nccl.log", Plan(bw), &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  const Diagnosis d = Diagnose(job);
  return std::any_of(d.findings().begin(), d.findings().end(),
                     [](const Finding& f) { return f.title().rfind("Large transfers reach", 0) == 0; });
}

TEST(PlanRate, FarBelowTheRing) {
  // 256 MiB of float32 on four ranks: factor 1.5. In 2 ms 201 GB/s, in 20 ms 20.
  EXPECT_FALSE(BelowPlan("20.0", [](int) { return 2.0; })) << "the ring has 240 GB/s";
  EXPECT_TRUE(BelowPlan("20.0", [](int) { return 20.0; }));
  EXPECT_FALSE(BelowPlan("1.2", [](int) { return 20.0; })) << "it has 14";
}

}  // namespace
}  // namespace ringscope::reasoning
