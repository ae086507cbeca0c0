// The two ends of a message that name another size; and where that cannot be told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::HasSubstr;
using testing::JobBuilder;

// Rank 0 sends eight messages to rank 1; rank 1 expects `count` elements of `type` in the fifth. The last one stands when `open`.
JobBuilder Pair(uint64_t count, trace::DataType type, bool open = false) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  for (uint64_t k = 1; k <= 8; ++k) {
    auto send = b.P2p(w, 0, k, true, 1).Count(1024).Type(trace::FLOAT32);
    auto receive = b.P2p(w, 1, k, false, 0).Count(k == 5 ? count : 1024).Type(k == 5 ? type : trace::FLOAT32);
    open&& k == 8 ? send.Running() : send.Finished();
    open&& k == 8 ? receive.Running() : receive.Finished();
  }
  b.Messages(w, 0, 1, true, 8);
  b.Messages(w, 1, 0, false, 8);
  return b;
}
std::optional<Finding> Of(const Diagnosis& d) {
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::size_mismatch) return f;
  }
  return std::nullopt;
}

TEST(MessageSize, TheEdgeIsNamedAndNeitherRank) {
  const Diagnosis d = Diagnose(Pair(2048, trace::FLOAT32).Build());
  EXPECT_EQ(d.state(), State::wrong_data);
  const std::optional<Finding> f = Of(d);
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->who().ranks_size(), 0);
  ASSERT_EQ(f->who().edges_size(), 1);
  EXPECT_EQ(f->who().edges(0).from(), 0);
  EXPECT_EQ(f->who().edges(0).to(), 1);
  EXPECT_THAT(f->title(), HasSubstr("sends 4096 bytes to rank 1, which receives 8192 (message 5"));
}

TEST(MessageSize, ItIsWhyALaterMessageStands) {
  const Diagnosis d = Diagnose(Pair(512, trace::FLOAT32, true).Build());
  EXPECT_EQ(d.state(), State::hang);
  ASSERT_GT(d.findings_size(), 0);
  EXPECT_EQ(d.findings(0).kind(), Kind::size_mismatch);
}

TEST(MessageSize, BytesCountNotElements) {
  EXPECT_TRUE(Of(Diagnose(Pair(1024, trace::FLOAT16).Build())).has_value());
  EXPECT_FALSE(Of(Diagnose(Pair(2048, trace::FLOAT16).Build())).has_value());
  EXPECT_FALSE(Of(Diagnose(Pair(1024, trace::INT32).Build())).has_value());
  EXPECT_FALSE(Of(Diagnose(Pair(2048, trace::TYPE_UNKNOWN).Build())).has_value());
}

TEST(MessageSize, NothingIsComparedWhereCountIsLost) {
  JobBuilder rows = Pair(2048, trace::FLOAT32);
  trace::Counter* lost = rows.Record(1).add_counters();
  lost->set_name("edge_no_row");
  lost->set_value(1);
  EXPECT_FALSE(Of(Diagnose(rows.Build())).has_value());

  JobBuilder shared = Pair(2048, trace::FLOAT32);
  shared.P2p(0, 1, 9, false, 0).Finished().raw().set_tail_tasks(4);
  EXPECT_FALSE(Of(Diagnose(shared.Build())).has_value());
}

// The receiver's ring kept the newest three only: they are the last three sends, not the first.
TEST(MessageSize, WhatTheRingForgotKeepsItsNumber) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  for (uint64_t k = 1; k <= 8; ++k) b.P2p(w, 0, k, true, 1).Count(k * 256).Finished();
  for (uint64_t k = 6; k <= 8; ++k) b.P2p(w, 1, k, false, 0).Count(k * 256).Finished();
  b.Messages(w, 0, 1, true, 8);
  b.Messages(w, 1, 0, false, 8);
  EXPECT_FALSE(Of(Diagnose(b.Build())).has_value());
}

}  // namespace
}  // namespace ringscope::reasoning
