// Shapes of launcher prefixes and of damage, as public logs have them; names and addresses are invented.
#include "analyzer/ingest/text_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ringscope::ingest {
namespace {

struct Case {
  const char* raw;
  const char* text;
  int rank = -1;
  const char* host = "";
  int64_t pid = -1;
  int device = -1;
};

class Wrapped : public ::testing::TestWithParam<Case> {};

TEST_P(Wrapped, IsUnwrapped) {
  LineCleaner cleaner;
  const TextLine line = cleaner.Clean(GetParam().raw, {0, 1});
  EXPECT_EQ(line.text, GetParam().text);
  EXPECT_EQ(line.by.rank, GetParam().rank);
  EXPECT_EQ(line.by.host, GetParam().host);
  EXPECT_EQ(line.by.pid, GetParam().pid);
  EXPECT_EQ(line.by.device, GetParam().device);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Wrapped,
    ::testing::Values(
        Case{"n1:70:88 [3] NCCL INFO Connected all rings", "Connected all rings", -1, "n1", 70, 3},
        Case{"n1:70:88 [3] transport/net_ib.cc:1909 NCCL WARN NET/IB : x", "NET/IB : x", -1, "n1", 70, 3},
        Case{"[2026-01-02 03:04:05] n1:70:88 [3] init.cc:12 (ncclInit) NCCL WARN y", "y", -1, "n1", 70, 3},
        Case{"[3] NCCL INFO only the message was pasted", "only the message was pasted", -1, "", -1, 3},
        Case{"NCCL WARN bare", "bare"},
        Case{"[rank5]:[E ProcessGroupNCCL.cpp:523] [Rank 5] x", "[E ProcessGroupNCCL.cpp:523] [Rank 5] x", 5},
        Case{"[rank12]: Traceback (most recent call last):", "Traceback (most recent call last):", 12},
        Case{"[default3]:n1:70:88 [3] NCCL INFO z", "z", -1, "n1", 70, 3},
        Case{"[1,12]<stderr>:n1:70:88 [0] NCCL INFO z", "z", 12, "n1", 70, 0},
        Case{"[1,12]<stdout>:", "", 12},
        Case{"2026-06-02T16:13:44.884Z: [1,7]<stdout>:hello", "hello", 7},
        Case{"3: slurm line", "slurm line", 3},
        Case{"3: ", "", 3},
        Case{"2: eth0: <BROADCAST,MULTICAST,UP> mtu 1500", "2: eth0: <BROADCAST,MULTICAST,UP> mtu 1500"},
        Case{"10.0.0.6: wk-06:88:89 [0] NCCL INFO a", "a", -1, "wk-06", 88, 0},
        Case{"node7: Traceback (most recent call last):", "Traceback (most recent call last):", -1, "node7"},
        Case{"ValueError: Traceback (most recent call last):", "ValueError: Traceback (most recent call last):"},
        Case{"\x1b[36m(RayWorkerWrapper pid=77, ip=10.0.0.3)\x1b[0m n1:70:88 [0] NCCL INFO a", "a", -1, "n1", 70, 0},
        Case{"[36m(RayWorkerWrapper pid=77)[0m hello", "hello", -1, "", 77},
        Case{"(Worker_TP1 pid=233) ERROR 08-16 09:09:02 [dump_input.py:69] Dumping", "Dumping", 1, "", 233},
        Case{"[2026-01-02 03:04:05 DP0 TP3] Prefill batch", "Prefill batch", 3},
        Case{"[01/02/2026-03:04:05] [TRT-LLM] [RANK 6] [I] ok", "ok", 6},
        Case{"  | 2026-08-23T22:22:51.874Z | a message", "a message"},
        Case{"May 16, 2026 @ 20:46:57.892    a message", "a message"},
        Case{"[80746] [rank0]:[E9 x", "[E9 x", 0},
        Case{"18:11:06.680 [rank4]:[E9 x", "[E9 x", 4},
        Case{"[  123.456789] NVRM: Xid (PCI:0000:3b:00): 79, x", "NVRM: Xid (PCI:0000:3b:00): 79, x"},
        Case{"[Tue Mar  5 12:00:00 2026] NVRM: y", "NVRM: y"},
        Case{"[  +0.000005] NVRM: y", "NVRM: y"},
        Case{"kern  :warn  : [  123.456789] NVRM: y", "NVRM: y"},
        Case{"Aug  3 22:22:51 gpu7 kernel: NVRM: y", "NVRM: y", -1, "gpu7"},
        Case{"Aug 23 22:22:51 gpu7 kernel: [  99.1] NVRM: y", "NVRM: y", -1, "gpu7"},
        Case{"2026-08-23T22:22:51+0200 gpu7 systemd[1]: Stopped x", "Stopped x", -1, "gpu7"},
        Case{"2026-08-23T22:22:51.123456+02:00 gpu7.cluster kernel: NVRM: y", "NVRM: y", -1, "gpu7.cluster"},
        Case{"2026-08-23T22:22:51,123456+00:00 NVRM: y", "NVRM: y"},
        Case{"Aug 23 22:22:51.123456 gpu7 kernel: NVRM: y", "NVRM: y", -1, "gpu7"},
        Case{"Wed 2026-08-05 03:12:01 CEST gpu7 kernel: NVRM: y", "NVRM: y", -1, "gpu7"},
        Case{"[  812.123456] gpu7 kernel: NVRM: y", "NVRM: y", -1, "gpu7"},
        Case{"[  812.1] EDAC MC0: 1 CE memory", "EDAC MC0: 1 CE memory"},
        Case{"[  812.1] Memory failure: 0x8a1: Killing a", "Memory failure: 0x8a1: Killing a"},
        Case{"2026-08-23 22:22:51,123 root trainer: step 3", "root trainer: step 3"},
        Case{"kernel: NVRM: y", "NVRM: y"},
        Case{"kernel: [123.456789] nvidia-nvswitch0: y", "nvidia-nvswitch0: y"},
        Case{"gpu7: [123.456789] NVRM: y", "NVRM: y", -1, "gpu7"},
        Case{"10.0.0.9: kern: warning: [2026-04-22T21:27:51.291660856Z]: NVRM: y", "NVRM: y", -1, "10.0.0.9"},
        Case{"<4>[  123.456789] NVRM: y", "NVRM: y"},
        Case{"<4> not a level", "<4> not a level"},
        Case{"4,9921,9370042162,-;NVRM: y", "NVRM: y"},
        Case{"4,9921,9370042162,-,caller=T77;NVRM: y", "NVRM: y"},
        Case{"1,2,3 apples; pears", "1,2,3 apples; pears"},
        Case{"> n1:70:88 [0] NCCL INFO &lt;quoted&gt; [net.cc:9](http://net.cc:9/)", "<quoted> net.cc:9", -1, "n1", 70, 0},
        Case{"step 155.57 examples/s]n1:70:88 [0] NCCL INFO glued", "glued", -1, "n1", 70, 0},
        Case{"[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog", "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog", 2},
        Case{"[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [PG ID 0 PG GUID 0(default_pg) Rank 1] x",
             "[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [PG ID 0 PG GUID 0(default_pg) Rank 1] x", 1},
        Case{"", ""}, Case{"[", "["}, Case{"[1,", "[1,"}, Case{"NCCL WARN ", ""}));

TEST(LineCleaner, ZoneDateAndBootTimesAreToldApart) {
  LineCleaner cleaner;
  using Clock = model::Stamp::Clock;
  const auto stamp = [&](const char* raw) { return cleaner.Clean(raw, {0, 1}).time; };
  EXPECT_EQ(stamp("1970-01-02T00:00:01.5Z x").ns, 86'401'500'000'000);
  // Of two stamps on a kernel line the one with a date counts.
  EXPECT_EQ(stamp("Aug 23 22:22:51 gpu7 kernel: [  99.1] x").clock, Clock::kLocal);
  EXPECT_EQ(stamp("4,9921,9370042,-;x").ns, 9'370'042'000);
  // Torch's month and day are kept as syslog's are.
  EXPECT_EQ(stamp("[rank0]:[E321 02:07:08.5 ProcessGroupNCCL.cpp:607] x").ns, stamp("Mar 21 02:07:08.5 gpu7 kernel: x").ns);
  EXPECT_FALSE(stamp("[E1399 02:07:08.5 ProcessGroupNCCL.cpp:607] x").known());
  EXPECT_EQ(stamp("1970-01-02T00:00:01.5Z x").clock, Clock::kRealtime);
  EXPECT_EQ(stamp("1970-01-02T02:00:01+02:00 x").ns, 86'401'000'000'000);
  EXPECT_EQ(stamp("1970-01-02 00:00:01,250 x").clock, Clock::kLocal);
  EXPECT_EQ(stamp("[   12.000003] x").ns, 12'000'003'000);
  EXPECT_EQ(stamp("[   12.000003] x").clock, Clock::kBoot);
  EXPECT_EQ(stamp("2026-13-41 99:00:00 x").clock, Clock::kNone);
  EXPECT_EQ(stamp("no time").clock, Clock::kNone);
}

TEST(LineCleaner, TheFilesNameSpeaksWhereTheLineIsSilent) {
  LineCleaner cleaner(4, "hostB");
  EXPECT_EQ(cleaner.Clean("hello", {0, 1}).by.rank, 4);
  EXPECT_EQ(cleaner.Clean("hello", {0, 1}).by.host, "hostB");
  EXPECT_EQ(cleaner.Clean("[rank5]: hello", {0, 1}).by.rank, 5);
  EXPECT_EQ(cleaner.Clean("n1:70:88 [3] NCCL INFO x", {0, 1}).by.host, "n1");
}

TEST(LineCleaner, QuoteKeepsNcclsPrefixWithoutWrappers) {
  LineCleaner cleaner;
  EXPECT_EQ(cleaner.Clean("[1,2]<stderr>:n1:70:88 [3] net.cc:9 NCCL WARN x", {0, 1}).quote, "n1:70:88 [3] net.cc:9 NCCL WARN x");
  EXPECT_EQ(cleaner.Clean("n1:70:88 [3] net.cc:9 NCCL WARN x", {0, 1}).nccl_source, "net.cc:9");
  EXPECT_EQ(cleaner.Clean("n1:70:88 [3] net.cc:9 NCCL WARN x", {0, 1}).nccl, TextLine::Nccl::kWarn);
}

TEST(LineCleaner, AnyBytesComeThrough) {
  std::string raw;
  for (int i = 0; i < 256; ++i) raw += static_cast<char>(i);
  for (size_t n = 0; n <= raw.size(); ++n) {
    LineCleaner cleaner;
    cleaner.Clean(std::string_view(raw).substr(n), {0, 1});
    const std::string wrapped = "[rank1]:" + raw.substr(n) + " NCCL WARN " + raw;
    cleaner.Clean(wrapped, {0, 1});
  }
}

TEST(HintsOfName, EvidenceOfARun) {
  EXPECT_EQ(HintsOfName("out/evidence/gpu-17.stall.stacks.txt").host, "gpu-17");
  EXPECT_EQ(HintsOfName("gpu-17.rack2.stall.2.stacks.txt").host, "gpu-17.rack2");
  EXPECT_EQ(HintsOfName("Trainer.A.start.topo-p2p.txt").host, "Trainer.A");
  EXPECT_EQ(HintsOfName("rank-host.end.kernel.txt").rank, -1);
  EXPECT_EQ(HintsOfName("cold.start.notes.txt").host, "") << "somebody's own file";
  EXPECT_EQ(HintsOfName(".stall.stacks.txt").host, "");
  EXPECT_EQ(HintsOfName("x.stall.").host, "");
  EXPECT_EQ(HintsOfName("x.stall.12").host, "");
}

TEST(HintsOfName, RankAndHost) {
  EXPECT_EQ(HintsOfName("a/rank-3.log").rank, 3);
  EXPECT_EQ(HintsOfName("nccl.hostA.rank12.log.gz").rank, 12);
  EXPECT_EQ(HintsOfName("nccl.hostA.rank12.log.gz").host, "hostA");
  EXPECT_EQ(HintsOfName("nvidia-smi-node2-gpu3.txt").host, "node2");
  EXPECT_EQ(HintsOfName("rank-all.log").rank, -1);
  EXPECT_EQ(HintsOfName("ranks.txt").rank, -1);
  EXPECT_EQ(HintsOfName("hostnames").host, "");
  EXPECT_EQ(HintsOfName("rank0/dmesg.txt").rank, -1);
}

}  // namespace
}  // namespace ringscope::ingest
