// A serving engine's timeout: undetermined, unless trials and busy GPUs tell more; never a full /dev/shm.
#include <absl/strings/str_cat.h>

#include "tests/unit/reasoning/text_job.h"

namespace ringscope::reasoning {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char kStall[] =
    "(EngineCore_DP0 pid=9) INFO 05-09 08:20:15 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 "
    "seconds.\n"
    "(EngineCore_DP0 pid=9) ERROR 05-09 08:24:15 [core.py:895] TimeoutError: RPC call to execute_model timed out.\n";
const char kBusy[] = "nvidia-smi: all 8 GPUs 100 % util, 190 W; dmesg: no Xid\n";

TEST(ServingStall, AloneItNamesNothing) {
  const Diagnosis d = DiagnoseTexts({{"engine.log", kStall}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
  for (const Finding& f : d.findings()) EXPECT_NE(f.kind(), Kind::resource_exhausted);
}

TEST(ServingStall, OneReleaseOfAPackageAndBusyGpus) {
  const Diagnosis d =
      DiagnoseTexts({{"engine.log", kStall},
                     {"notes.txt", absl::StrCat("some-kernels 0.6.7: ok 12 h\nsome-kernels 0.6.8.post1: hang < 30 min\n", kBusy)}});
  EXPECT_EQ(FirstKind(d), Kind::gpu_stalled);
  EXPECT_EQ(FirstCause(d), "UC-11");
  EXPECT_THAT(FirstText(d), HasSubstr("0.6.8.post1"));
  EXPECT_THAT(d.findings(0).next().command(), HasSubstr("some-kernels==0.6.7"));
}

TEST(ServingStall, TwoPackagesThatChangedTellNothing) {
  const Diagnosis d = DiagnoseTexts(
      {{"engine.log", kStall}, {"notes.txt", absl::StrCat("a-lib 1.0: ok\na-lib 1.1: hang\nb-lib 2.0: ok\nb-lib 2.1: hang\n", kBusy)}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
}

TEST(ServingStall, AWorkersOwnErrorIsTheReason) {
  const Diagnosis d = DiagnoseTexts({{"engine.log", absl::StrCat("(Worker_TP1 pid=8) Traceback (most recent call last):\n"
                                                                 "(Worker_TP1 pid=8)   File \"v.py\", line 2, in f\n"
                                                                 "(Worker_TP1 pid=8) KeyError: 7\n",
                                                                 kStall)}});
  EXPECT_THAT(FirstText(d), HasSubstr("KeyError"));
  EXPECT_THAT(FirstText(d), Not(HasSubstr("stands still")));
}

}  // namespace
}  // namespace ringscope::reasoning
