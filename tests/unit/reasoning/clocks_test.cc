// Wall clocks of hosts may be anything, and so may the moments at which they booted: no verdict changes with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/stamp_order.h"
#include "tests/unit/reasoning/hang_jobs.h"
#include "tests/unit/testing/clock_hosts.h"
#include "tests/unit/testing/clock_shift.h"

namespace ringscope::reasoning {
namespace {

using namespace ringscope::testing;

std::vector<std::string> SaidOf(std::vector<model::Record> records) { return Said(Diagnose(model::BuildJob(std::move(records)))); }

class Clocks : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Clocks, AreOffAndNothingChanges) {
  const HangCase& c = HangCases()[static_cast<size_t>(std::get<0>(GetParam()))];
  JobBuilder b(c.ranks);
  c.build(b, Same(c.ranks));
  b.RanksPerHost(std::get<1>(GetParam()));
  const std::vector<model::Record> records = b.Records();
  const std::vector<std::string> expected = SaidOf(records);
  std::mt19937 random(42);
  for (int round = 0; round < 12; ++round) {
    std::vector<model::Record> shifted = records;
    if (round % 3 != 1) ShiftWallClocks(Offsets(records, 5 * kSecond / 2, &random), &shifted);
    if (round % 3 != 0) ShiftBoots(Offsets(records, 4'000 * kSecond, &random), &shifted);
    EXPECT_EQ(SaidOf(std::move(shifted)), expected) << c.name << ", round " << round;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Clocks,
                         ::testing::Combine(::testing::Range(0, static_cast<int>(HangCases().size())), ::testing::Values(1, 2)));

// A heartbeat that stopped 3 s before the others' is no sign of anything on a host whose clock nothing bounds, and 20 s are.
TEST(UnboundClocks, SilenceCountsBeyondWhatTheyMayDiffer) {
  for (const double last : {97.0, 80.0}) {
    JobBuilder b(4);
    const CommRef w = b.Comm("world", {0, 1, 2, 3});
    for (const int r : {0, 1, 3}) b.Coll(w, r, 1, 10).Running();
    b.RanksPerHost(1).LastSeen(2, last);
    const model::Job job = b.Build();
    EXPECT_EQ(job.processes[2].life == model::Life::kGoneOrFrozen, last == 80) << last;
    if (last == 80) {
      EXPECT_THAT(job.processes[2].life_evidence, ::testing::HasSubstr("nothing that they did together bounds the hosts' clocks"));
    }
  }
}

// What makes up for operations: members make a communicator at one time, whatever their wall clocks show.
TEST(UnboundClocks, CommunicatorsTieThem) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (const int r : {0, 1, 3}) b.Coll(w, r, 1, 10).Running();
  b.RanksPerHost(1).LastSeen(2, 80);
  std::vector<model::Record> records = b.Records();
  const std::vector<std::string> expected = SaidOf(records);
  ShiftWallClocks({{"boot-2", 100 * kSecond}, {"boot-3", -40 * kSecond}}, &records);
  const model::Job job = model::BuildJob(records);
  EXPECT_EQ(job.processes[2].life, model::Life::kGoneOrFrozen);
  for (const model::Process& p : job.processes) EXPECT_LE(p.time.error_ns, 2 * kSecond);
  EXPECT_EQ(SaidOf(std::move(records)), expected);
}

// An id that repeats: who was not in the first of two is put into the second, though its clock is 5 s behind.
TEST(UnboundClocks, CommunicatorsOfOneIdAreToldApart) {
  for (const double behind : {0.0, 5.0, -5.0}) {
    JobBuilder b(3);
    b.Comm("world", {0, 1, 2});
    const CommRef first = b.Comm("split", {0, 1, 2}, 7), second = b.Comm("split", {0, 1, 2}, 7);
    for (int r = 0; r < 3; ++r) {
      b.Raw(first, r).set_created_ns(OpBuilder::Ns(2));
      b.Raw(second, r).set_created_ns(OpBuilder::Ns(4));
    }
    b.RanksPerHost(1);
    std::vector<model::Record> records = b.Records();
    auto& of_2 = *records[2].trace.mutable_communicators();
    of_2.DeleteSubrange(1, 1);
    ShiftWallClocks({{"boot-2", static_cast<int64_t>(-behind * 1e9)}}, &records);
    const model::Job job = model::BuildJob(records);
    for (const model::Communicator& c : job.communicators) {
      EXPECT_EQ(c.members[2].has_record(), c.id != 7 || c.instance == 1) << behind;
    }
  }
}

TEST(Diagnosis, CarriesTheClocks) {
  ClockHosts hosts(4, 3);
  hosts.Sleeps(2, 12 * kSecond, 30 * kSecond);
  const Diagnosis d = Diagnose(model::BuildJob(hosts.Records({})));
  ASSERT_EQ(d.clocks_size(), 4);
  int references = 0;
  for (const HostClock& c : d.clocks()) {
    references += c.reference();
    EXPECT_GE(c.error_ms(), 0);
    EXPECT_LT(c.error_ms(), 3);
    EXPECT_EQ(c.doubt().empty(), c.host() != "host2") << c.doubt();
  }
  EXPECT_EQ(references, 1);
}

model::Stamp At(double seconds) { return {model::Stamp::Clock::kRealtime, 1'700'000'000 * kSecond + static_cast<int64_t>(seconds * 1e9)}; }

TEST(SurelyBefore, HostsWithoutRecordsMayBeFiveSecondsApart) {
  const model::Job job;
  const std::string a = "a", b = "b.cluster", same = "b", none;
  EXPECT_FALSE(SurelyBefore(job, {At(0), a}, {At(4.9), b}));
  EXPECT_TRUE(SurelyBefore(job, {At(0), a}, {At(5.1), b}));
  EXPECT_TRUE(SurelyBefore(job, {At(0), same}, {At(0.1), b})) << "one host, one clock";
  EXPECT_FALSE(SurelyBefore(job, {At(0), none}, {At(4.9), none})) << "who knows which hosts";
  EXPECT_TRUE(SurelyBefore(job, {At(0), none}, {At(0.1), none}, true)) << "one log";
  EXPECT_FALSE(SurelyBefore(job, {At(0), a}, {{model::Stamp::Clock::kBoot, 7}, b}));
}

TEST(SurelyBefore, RecordsPutTheLogsOfTheirHostsRight) {
  model::Job job;
  model::HostClock a, b;
  a.host = "a", a.error_ns = 0;
  b.host = "b", b.error_ns = 1'000'000, b.ahead_ns = 3 * kSecond;
  job.clocks = {a, b};
  const std::string host_a = "a", host_b = "b";
  EXPECT_TRUE(SurelyBefore(job, {At(3.0), host_b}, {At(0.1), host_a})) << "b's clock is 3 s ahead";
  EXPECT_FALSE(SurelyBefore(job, {At(0.1), host_a}, {At(3.0), host_b}));
  EXPECT_FALSE(SurelyBefore(job, {At(3.0), host_b}, {At(0.0005), host_a})) << "within the error";
}

}  // namespace
}  // namespace ringscope::reasoning
