// Communicators that never came up, from the logs of the ranks: who never came, who ended on the way, and when nobody is named.
#include "tests/unit/reasoning/text_job.h"

namespace ringscope::reasoning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string Who(int rank) { return "node-a:" + std::to_string(500 + rank) + ":" + std::to_string(500 + rank) + " [0] NCCL INFO "; }

std::string Start(int rank, int n) {
  return Who(rank) + "ncclCommInitRankConfig comm 0x7f901fcda01" + std::to_string(rank) + " rank " + std::to_string(rank) + " nranks " +
         std::to_string(n) + " cudaDev 0 nvmlDev 0 busId " + std::to_string(rank + 1) + "0000 commId 0xea4670895d2e0be6 - Init START\n";
}

std::string Closed(int rank) {
  return "[2026-11-30 20:00:19] node-a:" + std::to_string(500 + rank) + ":" + std::to_string(500 + rank) +
         " [0] misc/socket.cc:58 (socketProgress) NCCL WARN socketProgress: Connection closed by remote peer 10.0.0.9<41353>\n";
}

// A file a rank; `closed` ones report that a connection was closed.
Files Logs(int n, const std::set<int>& present, const std::set<int>& closed) {
  Files files;
  for (int rank : present)
    files.push_back({"rank" + std::to_string(rank) + ".log", Start(rank, n) + (closed.count(rank) ? Closed(rank) : "")});
  return files;
}

TEST(Init, OneRankOfFourNeverCame) {
  const Diagnosis d = DiagnoseTexts(Logs(4, {0, 1, 3}, {0}));
  ASSERT_EQ(FirstKind(d), Kind::init_incomplete);
  EXPECT_THAT(FirstRanks(d), ElementsAre(2));
  EXPECT_THAT(FirstCollateral(d), UnorderedElementsAre(0, 1, 3));
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible) << "its log may only not have been collected";
  EXPECT_THAT(d.findings(0).title(), HasSubstr("not collected"));
}

TEST(Init, TheLogOfOneRankAloneAccusesNobody) {
  EXPECT_THAT(FirstRanks(DiagnoseTexts(Logs(4, {0}, {}))), IsEmpty());
  EXPECT_THAT(FirstRanks(DiagnoseTexts(Logs(8, {0, 1, 2}, {}))), IsEmpty());
}

TEST(Init, TheRankThatEndedWithoutAWordIsNamed) {
  const Diagnosis d = DiagnoseTexts(Logs(4, {0, 1, 2, 3}, {0, 1, 3}));
  ASSERT_EQ(FirstKind(d), Kind::init_incomplete);
  EXPECT_THAT(FirstRanks(d), ElementsAre(2));
  EXPECT_THAT(FirstCollateral(d), UnorderedElementsAre(0, 1, 3));
  EXPECT_EQ(d.state(), State::init_failure);
}

TEST(Init, WhoOfManyEndedFirstIsNotTold) {
  EXPECT_THAT(FirstRanks(DiagnoseTexts(Logs(4, {0, 1, 2, 3}, {0, 1}))), IsEmpty()) << "half against half";
  EXPECT_THAT(FirstRanks(DiagnoseTexts(Logs(4, {0, 1, 2, 3}, {0, 1, 2, 3}))), IsEmpty()) << "all lost a connection";
  EXPECT_THAT(FirstRanks(DiagnoseTexts(Logs(4, {0, 1, 2, 3}, {}))), IsEmpty()) << "a hang: nobody ended";
}

}  // namespace
}  // namespace ringscope::reasoning
