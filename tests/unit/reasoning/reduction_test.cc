// Ranks that reduce differently: named where a majority agrees; and what looks like it and is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;

// All-reduces that all ended, the fifth with those reductions (Operation.reduction; 0: not told), the others with a sum.
JobBuilder Ended(const std::vector<uint32_t>& reductions, uint32_t group = 0) {
  JobBuilder b(static_cast<int>(reductions.size()));
  std::vector<int> all;
  for (size_t r = 0; r < reductions.size(); ++r) all.push_back(static_cast<int>(r));
  const CommRef w = b.Comm("world", all);
  for (size_t r = 0; r < reductions.size(); ++r) {
    for (uint64_t k = 1; k <= 8; ++k) {
      auto op = b.Coll(w, static_cast<int>(r), k).Finished();
      op.raw().set_reduction(k == 5 ? reductions[r] : reductions[r] == 0 ? 0 : 1);
      if (k == 5 && group != 0) op.raw().set_group(group), op.raw().set_grouped(true);
    }
  }
  return b;
}
std::optional<Finding> Of(const Diagnosis& d) {
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::collective_mismatch) return f;
  }
  return std::nullopt;
}
std::vector<int> Who(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }

TEST(Reduction, TheRankThatReducesOtherwiseIsNamed) {
  const Diagnosis d = Diagnose(Ended({1, 1, 3, 1}).Build());
  const std::optional<Finding> f = Of(d);
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(d.state(), State::wrong_data);
  EXPECT_THAT(Who(*f), ElementsAre(2));
  EXPECT_EQ(f->confidence(), Confidence::established);
  EXPECT_THAT(f->title(), HasSubstr("operation 5 of communicator world"));
  EXPECT_THAT(f->title(), HasSubstr("rank 2 with maximum, the others with sum"));
}

TEST(Reduction, HalfAgainstHalfNamesNobody) {
  const std::optional<Finding> f = Of(Diagnose(Ended({1, 1, 5, 5}).Build()));
  ASSERT_TRUE(f.has_value());
  EXPECT_TRUE(Who(*f).empty());
  EXPECT_THAT(f->title(), HasSubstr("ranks 0 and 1 with sum, ranks 2 and 3 with average"));
}

TEST(Reduction, ARankThatDoesNotTellTakesNoPart) {
  EXPECT_FALSE(Of(Diagnose(Ended({1, 0, 1, 0}).Build())).has_value());
  const std::optional<Finding> f = Of(Diagnose(Ended({1, 4, 1, 0}).Build()));
  ASSERT_TRUE(f.has_value());
  EXPECT_THAT(Who(*f), ElementsAre(1));
  EXPECT_EQ(f->confidence(), Confidence::probable);
}

TEST(Reduction, TheSameEverywhereIsNoFinding) { EXPECT_EQ(Diagnose(Ended({6, 6, 6, 6}).Build()).state(), State::healthy); }

TEST(Reduction, CallsOfAGroupAreNotCompared) { EXPECT_FALSE(Of(Diagnose(Ended({1, 1, 3, 1}, 7).Build())).has_value()); }

TEST(Reduction, AfterAnotherDifferencePositionsSayNothing) {
  JobBuilder b = Ended({1, 1, 3, 1});
  for (auto& op : *b.Record(2).mutable_communicators(0)->mutable_operations()) {
    if (op.position() == 4) op.set_count(77);
  }
  const Diagnosis d = Diagnose(b.Build());
  for (const Finding& f : d.findings()) EXPECT_THAT(f.title(), ::testing::Not(HasSubstr("differently")));
}

}  // namespace
}  // namespace ringscope::reasoning
