// Transfers of collectives: the shortest kernel among the ranks, whoever waited.
#include "analyzer/model/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::model {
namespace {

using ringscope::testing::CommRef;
using ringscope::testing::JobBuilder;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Job Make(int ranks, int n, trace::Func func = trace::ALL_REDUCE) {
  JobBuilder b(ranks);
  std::vector<int> all;
  for (int r = 0; r < ranks; ++r) all.push_back(r);
  const CommRef c = b.Comm("", all, 9);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 1; i <= n; ++i) {
      auto op = b.Coll(c, r, static_cast<uint64_t>(i)).Func(func).Finished();
      op.raw().set_started_ns(op.raw().entered_ns() + 1000);
      op.raw().set_finished_ns(op.raw().started_ns() + 2'000'000 + r * 1'000'000);
      op.raw().clear_gpu_started_ns();
      op.raw().clear_gpu_finished_ns();
    }
  }
  return b.Build();
}

TEST(Transfers, TheShortestKernelCountsWithoutTheFirst) {
  const auto series = TransfersOf(Make(3, 5).communicators[0]);
  ASSERT_THAT(series, SizeIs(1));
  ASSERT_THAT(series[0].instances, SizeIs(4));
  EXPECT_EQ(series[0].instances[0].position, 2u);
  EXPECT_EQ(series[0].instances[0].ns, 2'000'000);
}

TEST(Transfers, OneRankOrABroadcastHasNone) {
  EXPECT_THAT(TransfersOf(Make(1, 5).communicators[0]), IsEmpty());
  EXPECT_THAT(TransfersOf(Make(3, 5, trace::BROADCAST).communicators[0]), IsEmpty());
}

TEST(Transfers, LargeCommunicatorsAreSampled) {
  const auto series = TransfersOf(Make(600, 3).communicators[0]);
  ASSERT_THAT(series, SizeIs(1));
  EXPECT_EQ(series[0].instances[0].ns, 2'000'000) << "rank 0 is among those looked at";
}

TEST(Transfers, BytesAndFactorsOfNcclTests) {
  trace::Operation raw;
  raw.set_func(trace::ALL_GATHER);
  raw.set_datatype(trace::BFLOAT16);
  raw.set_count(100);
  EXPECT_EQ(BytesOf(OpRecord(raw), 8), 1600u);
  EXPECT_DOUBLE_EQ(BusFactor(trace::ALL_GATHER, 8), 7.0 / 8);
  EXPECT_DOUBLE_EQ(BusFactor(trace::ALL_REDUCE, 8), 14.0 / 8);
  EXPECT_DOUBLE_EQ(BusFactor(trace::BROADCAST, 8), 1);
  raw.set_count(UINT64_MAX);
  EXPECT_EQ(BytesOf(OpRecord(raw), 1 << 20), 0u) << "no overflow";
}

}  // namespace
}  // namespace ringscope::model
