#include "tests/unit/reasoning/text_job.h"

namespace ringscope::reasoning {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Positions, ARankAheadIsNotMissing) {
  const Diagnosis d = DiagnoseTexts({{"py-spy.txt",
                                      "node0 rank 0: layers.py:136 self.moe()      launch blocked\n"
                                      "node1 rank 1: layers.py:136 self.moe()      launch blocked\n"
                                      "node2 rank 2: layers.py:245 qkv (next layer) launch blocked\n"},
                                     {"notes.txt", "odd (ahead) rank per capture: 0, 2, 1\n"}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
  EXPECT_THAT(FirstText(d), HasSubstr("ahead"));
  EXPECT_THAT(FirstText(d), HasSubstr("changes from capture to capture"));
}

TEST(Positions, ElsewhereIsNeitherAheadNorBehind) {
  const Diagnosis d = DiagnoseTexts({{"notes.txt", "rank 0: a.py:1 f()\nrank 1: a.py:1 f()\nrank 2: a.py:9 g()\n"}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstText(d), HasSubstr("do not tell"));
}

TEST(Positions, AllAtOnePlaceIsNoFinding) {
  const Diagnosis d = DiagnoseTexts({{"notes.txt", "rank 0: a.py:1 f()\nrank 1: a.py:1 f()\n"}});
  EXPECT_EQ(d.findings_size() == 0 || FirstText(d).find("elsewhere") == std::string::npos, true);
}

}  // namespace
}  // namespace ringscope::reasoning
