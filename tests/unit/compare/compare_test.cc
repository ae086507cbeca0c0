// Two runs side by side: what changed is named with both values, what did not is not, and nothing is said where a side is silent.
#include "analyzer/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::compare {
namespace {

using ringscope::testing::CommRef;
using ringscope::testing::JobBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

model::Job OfLog(const std::string& text) {
  model::Job job;
  EXPECT_TRUE(ingest::ReadTextBytes("nccl.log", text, &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  return job;
}

const Change* Find(const Comparison& c, const std::string& name) {
  for (const Change& change : c.changes()) {
    if (change.name().find(name) != std::string::npos) return &change;
  }
  return nullptr;
}

std::string Line(int rank, const std::string& text) {
  return "n:" + std::to_string(100 + rank) + ":" + std::to_string(100 + rank) + " [" + std::to_string(rank) + "] NCCL INFO " +
         text + "\n";
}

// Two ranks and their edges.
std::string Log(const std::string& via, int channels, const std::string& extra = "") {
  std::string text;
  for (int r = 0; r < 2; ++r) {
    const std::string n = std::to_string(r), other = std::to_string(1 - r);
    text += Line(r, "ncclCommInitRank comm 0x5" + n + " rank " + n + " nranks 2 cudaDev " + n + " nvmlDev " + n + " busId " + n +
                        "b000 commId 0xa1 - Init START");
    text += extra.empty() ? "" : Line(r, extra);
    text += Line(r, "Channel 00/0 : " + n + "[" + n + "] -> " + other + "[" + other + "] via " + via);
    text += Line(r, std::to_string(channels) +
                        " coll channels, 0 collnet channels, 0 nvls channels, 8 p2p channels, 8 p2p channels per peer");
    text += Line(r, "ncclCommInitRank comm 0x5" + n + " rank " + n + " nranks 2 cudaDev " + n + " nvmlDev " + n + " busId " + n +
                        "b000 commId 0xa1 - Init COMPLETE");
  }
  return text;
}

TEST(Compare, EqualRunsDifferInNothing) {
  const Comparison c = Compare(OfLog(Log("P2P/IPC", 24)), OfLog(Log("P2P/IPC", 24)));
  EXPECT_THAT(c.changes(), IsEmpty());
  EXPECT_EQ(c.summary(), "Nothing that was compared differs.");
}

TEST(Compare, ASlowerPathAndFewerChannels) {
  const Comparison c = Compare(OfLog(Log("P2P/IPC", 24)), OfLog(Log("SHM/direct/direct", 2)));
  const Change* transport = Find(c, "transport");
  ASSERT_NE(transport, nullptr);
  EXPECT_THAT(transport->subjects(), ElementsAre("edge 0->1", "edge 1->0"));
  EXPECT_EQ(transport->good(), "P2P/IPC");
  EXPECT_EQ(transport->bad(), "SHM/direct/direct");
  EXPECT_EQ(transport->weight(), Change::can_explain);
  EXPECT_THAT(transport->bad_source(), HasSubstr("nccl.log:"));
  const Change* channels = Find(c, "collective channels");
  ASSERT_NE(channels, nullptr);
  EXPECT_EQ(channels->weight(), Change::can_explain);
  EXPECT_EQ(&c.changes(0), transport) << "the path first";
}

TEST(Compare, ABetterPathExplainsNoWorseRun) {
  const Comparison c = Compare(OfLog(Log("SHM/direct/direct", 2)), OfLog(Log("P2P/IPC", 24)));
  for (const Change& change : c.changes()) EXPECT_EQ(change.weight(), Change::harmless) << change.name();
  EXPECT_EQ(c.summary(), "Nothing that matters differs.");
}

TEST(Compare, AdapterNumbersAreNoWays) {
  const Comparison c = Compare(OfLog(Log("NET/IB/0/GDRDMA", 8)), OfLog(Log("NET/IB/3/GDRDMA", 8)));
  EXPECT_THAT(c.changes(), IsEmpty());
  const Comparison lost = Compare(OfLog(Log("NET/IB/0/GDRDMA", 8)), OfLog(Log("NET/IB/0", 8)));
  ASSERT_NE(Find(lost, "transport"), nullptr);
  EXPECT_EQ(Find(lost, "transport")->weight(), Change::can_explain);
}

TEST(Compare, SettingsThatChooseAPath) {
  const Comparison c = Compare(OfLog(Log("P2P/IPC", 24)), OfLog(Log("P2P/IPC", 24, "NCCL_P2P_DISABLE set by environment to 1")));
  const Change* change = Find(c, "NCCL_P2P_DISABLE");
  if (change == nullptr) {  // one side has no setting at all: then that is said
    EXPECT_THAT(c.not_compared(), Contains(HasSubstr("environment")));
    return;
  }
  EXPECT_EQ(change->good(), "absent");
  EXPECT_EQ(change->bad(), "1");
}

TEST(Compare, WhatOneSideDoesNotTellIsNamed) {
  const Comparison c = Compare(OfLog(Log("P2P/IPC", 24)), OfLog("hello\n"));
  EXPECT_THAT(c.changes(), IsEmpty());
  EXPECT_THAT(c.not_compared(), Contains(HasSubstr("transports per edge: the bad run tells nothing of it")));
}

// Two ranks on two hosts that finish `n` all-reduces; each kernel of the last rank takes `ms`.
model::Job Timed(double ms, int n, const std::string& host = "host", uint64_t count = 1 << 22) {
  JobBuilder b(2);
  b.RanksPerHost(1);
  const CommRef c = b.Comm("", {0, 1}, 5);
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 1; i <= n; ++i) {
      auto op = b.Coll(c, rank, static_cast<uint64_t>(i)).Count(count).Finished();
      op.raw().set_channels(1);
      op.raw().set_started_ns(op.raw().entered_ns() + 1'000'000);
      op.raw().set_finished_ns(op.raw().started_ns() + static_cast<int64_t>(ms * 1e6 * (rank == 0 ? 1 : 1.4)));
    }
    b.Record(rank).mutable_process()->set_host(host + std::to_string(rank));
  }
  return b.Build();
}

TEST(Speed, SlowerTransfersWithBusBandwidth) {
  const Comparison c = Compare(Timed(2, 30), Timed(5, 30));
  const Change* change = Find(c, "transfer");
  ASSERT_NE(change, nullptr);
  EXPECT_NEAR(change->ratio(), 2.5, 0.05) << "the shortest kernel, not that of who waited";
  EXPECT_EQ(change->weight(), Change::can_explain);
  EXPECT_THAT(change->good(), HasSubstr("8.4 GB/s busbw")) << "16 MiB in 2 ms, factor 1 for two ranks";
  EXPECT_THAT(c.summary(), HasSubstr("slower"));
}

TEST(Speed, LittleFasterAndTooFewSayNothing) {
  EXPECT_EQ(Find(Compare(Timed(2, 30), Timed(2.1, 30)), "transfer"), nullptr);
  EXPECT_EQ(Find(Compare(Timed(2, 30), Timed(2.4, 30)), "transfer")->weight(), Change::worth_a_look);
  EXPECT_EQ(Find(Compare(Timed(5, 30), Timed(2, 30)), "transfer")->weight(), Change::harmless);
  EXPECT_EQ(Find(Compare(Timed(2, 10), Timed(5, 10)), "transfer"), nullptr);
}

TEST(Place, OtherHostsAreHarmless) {
  const Comparison c = Compare(Timed(2, 30, "a"), Timed(2, 30, "b"));
  ASSERT_THAT(c.changes(), SizeIs(2));
  for (const Change& change : c.changes()) EXPECT_EQ(change.weight(), Change::harmless);
}

TEST(Calls, OtherCallsAreWorthALook) {
  const Comparison c = Compare(Timed(2, 30), Timed(2, 30, "host", 1 << 21));
  const Change* change = Find(c, "AllReduce of 2097152");
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->good(), "absent");
  EXPECT_EQ(change->weight(), Change::worth_a_look);
}

}  // namespace
}  // namespace ringscope::compare
