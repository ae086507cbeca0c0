// Wall clocks of hosts may be anything: no verdict changes with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "analyzer/reasoning/finder.h"
#include "tests/unit/reasoning/hang_jobs.h"

namespace ringscope::reasoning {
namespace {

using namespace ringscope::testing;

std::vector<std::string> Said(const Diagnosis& d) {
  std::vector<std::string> said;
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::none) continue;
    said.push_back(Kind::Value_Name(f.kind()) + " " + Confidence::Value_Name(f.confidence()) + " " + f.who().ShortDebugString());
  }
  return said;
}

// Each host has a boot of its own, and a wall clock that is off by what `off` says.
std::vector<model::Record> Shifted(std::vector<model::Record> records, const std::map<std::string, int64_t>& off) {
  for (model::Record& r : records) {
    const std::string host = r.trace.process().host();
    r.trace.mutable_process()->set_boot_id("boot of " + host);
    const auto at = off.find(host);
    if (at == off.end()) continue;
    auto& clock = *r.trace.mutable_clock();
    clock.set_realtime_ns(clock.realtime_ns() + at->second);
    if (clock.first_realtime_ns() != 0) clock.set_first_realtime_ns(clock.first_realtime_ns() + at->second);
    auto& live = *r.trace.mutable_liveness();
    if (live.heartbeat_realtime_ns() != 0) live.set_heartbeat_realtime_ns(live.heartbeat_realtime_ns() + at->second);
    for (auto& s : *r.trace.mutable_siblings()) {
      if (s.heartbeat_realtime_ns() != 0) s.set_heartbeat_realtime_ns(s.heartbeat_realtime_ns() + at->second);
    }
    if (r.read_realtime_ns != 0) r.read_realtime_ns += at->second;
  }
  return records;
}

class Clocks : public ::testing::TestWithParam<int> {};

TEST_P(Clocks, AreOffAndNothingChanges) {
  const HangCase& c = HangCases()[static_cast<size_t>(GetParam())];
  JobBuilder b(c.ranks);
  c.build(b, Same(c.ranks));
  const std::vector<model::Record> records = Shifted(b.Records(), {});
  const std::vector<std::string> expected = Said(Diagnose(model::BuildJob(records)));
  std::mt19937 random(42);
  std::uniform_int_distribution<int64_t> offset(-5'000'000'000, 5'000'000'000);
  for (int round = 0; round < 10; ++round) {
    std::map<std::string, int64_t> off;
    for (const model::Record& r : records) off.emplace(r.trace.process().host(), offset(random));
    EXPECT_EQ(Said(Diagnose(model::BuildJob(Shifted(b.Records(), off)))), expected) << c.name << ", round " << round;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Clocks, ::testing::Range(0, static_cast<int>(HangCases().size())));

}  // namespace
}  // namespace ringscope::reasoning
