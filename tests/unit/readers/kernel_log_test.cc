// AER blocks, hung tasks and the driver's release out of kernel logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using model::AerFact;
using ::testing::ElementsAre;

model::Evidence Read(std::string_view text) {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes("dmesg.txt", text, &evidence).ok());
  return evidence;
}

TEST(Aer, ABlockIsOneReport) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text +=
        "[  +0.000316] pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0\n"
        "[  +0.000005] pcieport 0000:00:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)\n"
        "[  +0.000003] pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00001000/00002000\n"
        "[  +0.000003] pcieport 0000:00:03.0:    [12] Timeout               \n";
  const auto evidence = Read(text);
  ASSERT_EQ(evidence.kernel.aers.size(), 1u);
  const AerFact& aer = evidence.kernel.aers[0];
  EXPECT_EQ(aer.device, "0000:00:03.0");
  EXPECT_EQ(aer.count, 1000u);
  EXPECT_EQ(aer.layer, "Data Link Layer");
  EXPECT_THAT(aer.errors, ElementsAre("Timeout"));
  EXPECT_EQ(aer.where.line, 1u);
  EXPECT_EQ(aer.last.line, 3997u);
}

TEST(Aer, NewAndOldWordings) {
  const auto evidence = Read(
      "[ 1.0] pcieport 0000:20:01.1: AER: Uncorrectable (Fatal) error message received from 0000:21:00.0\n"
      "[ 1.0] nvidia 0000:21:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)\n"
      "[ 1.0] nvidia 0000:21:00.0:    [20] UnsupReq               (First)\n"
      "[ 2.0] pcieport 0000:80:03.0: AER: Multiple Corrected error received: id=8018\n"
      "[ 2.0] pcieport 0000:80:03.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=8018(Receiver ID)\n"
      "[ 3.0] pcieport 0000:80:05.0: AER: Uncorrected (Non-Fatal) error received: 0000:80:05.0\n");
  ASSERT_EQ(evidence.kernel.aers.size(), 3u);
  EXPECT_EQ(evidence.kernel.aers[0].device, "0000:21:00.0");
  EXPECT_EQ(evidence.kernel.aers[0].severity, AerFact::Severity::kFatal);
  EXPECT_THAT(evidence.kernel.aers[0].errors, ElementsAre("UnsupReq"));
  EXPECT_EQ(evidence.kernel.aers[0].count, 1u);
  EXPECT_EQ(evidence.kernel.aers[1].count, 1u);
  EXPECT_EQ(evidence.kernel.aers[2].severity, AerFact::Severity::kNonfatal);
}

TEST(HungTask, KeepsTheKernelStack) {
  const auto evidence = Read(
      "[ 7300.1] INFO: task python:41220 blocked for more than 120 seconds.\n"
      "[ 7300.1]       Tainted: P           OE     5.15.0-91-generic #101-Ubuntu\n"
      "[ 7300.1] \"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.\n"
      "[ 7300.1] task:python          state:D stack:    0 pid:41220 ppid: 41100 flags:0x00000000\n"
      "[ 7300.1] Call Trace:\n"
      "[ 7300.1]  <TASK>\n"
      "[ 7300.1]  __schedule+0x24e/0x590\n"
      "[ 7300.1]  ? rpc_wait_bit_killable+0x11/0x70 [sunrpc]\n"
      "[ 7300.1]  nfs_file_fsync+0x3d/0x140 [nfs]\n"
      "[ 7300.1]  </TASK>\n"
      "[ 7301.1]  unrelated+0x1/0x2\n"
      "[ 7420.1] INFO: task python:41220 blocked for more than 241 seconds.\n");
  ASSERT_EQ(evidence.kernel.hung_tasks.size(), 1u);
  const model::HungTask& task = evidence.kernel.hung_tasks[0];
  EXPECT_EQ(task.pid, 41220);
  EXPECT_EQ(task.seconds, 241);
  EXPECT_EQ(task.repeats, 1u);
  EXPECT_THAT(task.frames, ElementsAre("__schedule", "rpc_wait_bit_killable", "nfs_file_fsync"));
}

TEST(HungTask, NamesWithColonsAndOldStacks) {
  const auto evidence = Read(
      "[ 7300.1] INFO: task kworker/u130:2:911 blocked for more than 120 seconds.\n"
      "[ 7300.1]  [<ffffffff81a1b2c3>] ? io_schedule+0x46/0x70\n"
      "[ 7300.2] INFO: task a:1 blocked on a mutex likely owned by task b:2.\n");
  ASSERT_EQ(evidence.kernel.hung_tasks.size(), 1u);
  EXPECT_EQ(evidence.kernel.hung_tasks[0].process, "kworker/u130:2");
  EXPECT_THAT(evidence.kernel.hung_tasks[0].frames, ElementsAre("io_schedule"));
}

TEST(DriverVersion, FromTheKernelLog) {
  const auto evidence = Read(
      "[ 9.1] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  525.60.13  Release Build  (dvs-builder@U16-T02)\n"
      "[ 9.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2\n");
  ASSERT_GE(evidence.versions.size(), 2u);
  EXPECT_EQ(evidence.versions[0].component, "driver");
  EXPECT_EQ(evidence.versions[0].version, "525.60.13");
  EXPECT_EQ(evidence.versions[1].version, "470.256.02");
}

}  // namespace
}  // namespace ringscope
