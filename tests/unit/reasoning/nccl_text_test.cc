// From NCCL's debug log to findings: each mechanism once where it holds, once in the nearest case where it must not be said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Diagnosis Of(const std::vector<std::pair<std::string, std::string>>& files) {
  model::Job job;
  for (const auto& [name, text] : files) EXPECT_TRUE(ingest::ReadTextBytes(name, text, &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  return Diagnose(job);
}
Diagnosis Of(const std::string& text) { return Of({{"nccl.log", text}}); }

std::string All(const Finding& f) {
  std::string all = f.title() + "\n" + f.next().text() + "\n" + f.next().command();
  for (const Evidence& e : f.evidence()) all += "\n" + e.text();
  return all;
}
std::string Titles(const Diagnosis& d) {
  std::string all;
  for (const Finding& f : d.findings()) all += Kind::Value_Name(f.kind()) + " " + f.cause().id() + ": " + f.title() + "\n";
  return all;
}
std::vector<int> Ranks(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }

#define ASSERT_FIRST(d, want_kind, want_cause)                      \
  ASSERT_GT((d).findings_size(), 0);                                \
  ASSERT_EQ((d).findings(0).kind(), Kind::want_kind) << Titles(d);  \
  ASSERT_EQ((d).findings(0).cause().id(), want_cause) << Titles(d); \
  EXPECT_FALSE((d).findings(0).refuted_by().empty());               \
  EXPECT_FALSE((d).findings(0).next().text().empty());              \
  EXPECT_FALSE((d).findings(0).evidence().empty())

TEST(Shm, FullAndTheMountSaysSo) {
  const auto d =
      Of({{"nccl.log", "c1:77:140 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"},
          {"df.txt", "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   58M  6.5M  90% /dev/shm\n"}});
  ASSERT_FIRST(d, resource_exhausted, "NC-08");
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
  EXPECT_THAT(All(d.findings(0)), HasSubstr("--shm-size"));
}

TEST(Shm, CudaRefusedTheSegmentIsNoLackOfSpace) {
  const auto d = Of({{"nccl.log",
                      "a:5102:5201 [1] misc/shmutils.cc:103 NCCL WARN Cuda failure 'invalid argument'\n"
                      "a:5102:5201 [1] misc/shmutils.cc:114 NCCL WARN Error while creating shared memory segment "
                      "/dev/shm/nccl-Nz (size 9637888)\n"},
                     {"df.txt", "shm              64M   19M   46M  30% /dev/shm\n"}});
  ASSERT_EQ(d.findings(0).kind(), Kind::undetermined) << Titles(d);
  EXPECT_THAT(Titles(d), Not(HasSubstr("NC-08")));
}

TEST(Shm, RefusedForAnotherReason) {
  const auto d =
      Of("a:5:6 [1] misc/shmutils.cc:70 NCCL WARN Error: failed to create shared memory file /dev/shm/nccl-XXXXXX, error "
         "Permission denied (13)\n");
  ASSERT_FIRST(d, misconfigured, "NC-08");
}

TEST(Limits, LockedMemory) {
  const char* log =
      "b:9120:9201 [1] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n";
  auto d = Of({{"nccl.log", log}, {"u.txt", "$ ulimit -l\n8192\n"}});
  ASSERT_FIRST(d, resource_exhausted, "NC-08");
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
  EXPECT_THAT(All(d.findings(0)), HasSubstr("memlock"));
  // Old releases print no errno.
  d = Of("libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.\nh:5:6 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed\n");
  ASSERT_FIRST(d, resource_exhausted, "NC-08");
  // The limit is no limit: then memory itself may be the reason.
  d = Of({{"nccl.log", log}, {"u.txt", "$ ulimit -l\nunlimited\n"}});
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
}

TEST(InitMemory, TheOthersOnlySawItsSocketsClose) {
  const auto d =
      Of("ng:25:48 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer ng-ib<51159>\n"
         "ng:25:48 [0] NCCL INFO group.cc:65 -> 3 [Async thread]\n"
         "ng:28:52 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
         "ng:28:52 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes\n"
         "ng:28:52 [3] proxy.cc:1519 NCCL WARN [Proxy Service 3] Failed to execute operation Setup from rank 3, retcode 1\n");
  ASSERT_FIRST(d, error_reported, "UC-05");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(3));
}

TEST(Interface, NoneIsFound) {
  const auto d = Of({{"rank-0.log", "off:211:211 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"},
                     {"rank-1.log",
                      "RuntimeError: [1] is setting up NCCL communicator and retreiving ncclUniqueId from [0] via c10d key-value "
                      "store by key '0', but "
                      "store->get('0') got error: Timeout waiting for key: default_pg/0/0 after 1800000 ms\n"}});
  ASSERT_FIRST(d, misconfigured, "NET-07");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(0));
  EXPECT_THAT(All(d.findings(0)), HasSubstr("NCCL_SOCKET_IFNAME"));
}

TEST(Interface, OneRankTookAContainersOwn) {
  const std::string rank0 =
      "d0:88:88 [0] NCCL INFO Bootstrap : Using veth5a1c2f0:169.254.77.1<0>\nNCCL version 2.14.3+cuda11.7\n";
  const std::string rank1 = "d1:91:91 [0] NCCL INFO Bootstrap : Using eth0:10.77.60.12<0>\n";
  auto d = Of({{"rank-0.log", rank0}, {"rank-1.log", rank1}});
  ASSERT_FIRST(d, misconfigured, "NET-07");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(0));
  // It came up over it: no fault.
  d = Of({{"rank-0.log", rank0},
          {"rank-1.log", rank1 + "d1:91:91 [0] NCCL INFO comm 0x5 rank 1 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE\n"}});
  EXPECT_THAT(Titles(d), Not(HasSubstr("NET-07")));
  // One host alone may use whatever it likes.
  d = Of(rank0);
  EXPECT_THAT(Titles(d), Not(HasSubstr("NET-07")));
}

TEST(Interface, TwoHostsWithOneAddress) {
  const auto d =
      Of("ga:5:5 [0] NCCL INFO Bootstrap: Using enP5:192.168.1.9<0>\ngb:6:6 [0] NCCL INFO Bootstrap: Using enP5:192.168.1.9<0>\n"
         "gb:6:7 [0] misc/socket.cc:582 NCCL WARN socketPollConnect: connect to 192.168.1.9<40117> returned Connection refused, "
         "exceeded error retry count after 35 attempts\n");
  ASSERT_FIRST(d, misconfigured, "NET-07");
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
}

TEST(Connect, RefusedAloneAccusesNobody) {
  const auto d =
      Of("gb:6:7 [0] misc/socket.cc:582 NCCL WARN socketPollConnect: connect to 10.0.0.4<40117> returned Connection refused, "
         "exceeded error retry count after 35 attempts\n");
  ASSERT_FIRST(d, init_incomplete, "NC-05");
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
}

TEST(Versions, TwoWheels) {
  const auto d = Of({{"t.txt", "ImportError: /x/torch/lib/libtorch_cuda.so: undefined symbol: ncclMemFree\n"},
                     {"env.txt", "[pip3] nvidia-nccl-cu11==2.14.3\n[pip3] nvidia-nccl-cu12==2.27.3\n"}});
  ASSERT_FIRST(d, misconfigured, "FB-06");
  EXPECT_THAT(d.findings(0).title(), HasSubstr("nvidia-nccl-cu11 2.14.3 is too old"));
}

TEST(Versions, OneHostWithTwoReleasesIsTwoRuns) {
  const auto d = Of("n1:5:5 [0] NCCL INFO NCCL version 2.14.3+cuda11.7\nn1:6:6 [0] NCCL INFO NCCL version 2.18.5+cuda11.7\n");
  EXPECT_THAT(Titles(d), Not(HasSubstr("FB-06")));
}

TEST(Environment, DiffersAndSizesDisagree) {
  const std::string start =
      "w1:7:7 [0] NCCL INFO NCCL version 2.14.3+cuda11.7\nw2:8:8 [0] NCCL INFO NCCL version 2.14.3+cuda11.7\n"
      "w2:8:8 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 1048576.\n";
  auto d =
      Of(start + "w1:7:9 [0] transport/net_socket.cc:5 NCCL WARN Message truncated : received 65536 bytes instead of 4096\n");
  ASSERT_FIRST(d, misconfigured, "NC-04");
  EXPECT_THAT(All(d.findings(0)), HasSubstr("NCCL_BUFFSIZE is not set on w1"));
  // No failure that it explains.
  d = Of(start);
  EXPECT_THAT(Titles(d), Not(HasSubstr("NC-04")));
}

TEST(Driver, UpgradedUnderARunningModule) {
  const auto d =
      Of({{"job.log", "n7:26:27 [0] misc/nvmlwrap.cc:88 NCCL WARN nvmlInit_v2() failed: Driver/library version mismatch\n"},
          {"apt.log",
           "Commandline: /usr/bin/unattended-upgrade\nUpgrade: libnvidia-common-535:amd64 (535.129.03-0u1, 535.154.05-0u1)\n"}});
  ASSERT_FIRST(d, misconfigured, "FB-06");
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("535.129.03"));
}

TEST(DuplicateGpu, BothRanksAreNamed) {
  const auto d = Of(
      {{"run.log",
        "[1,0]<stdout>:d1:80:81 [0] init.cc:824 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 2000\n"},
       {"train.py.txt", "torch.cuda.set_device(0)\n"}});
  ASSERT_FIRST(d, misconfigured, "UC-09");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(0, 1));
  EXPECT_THAT(All(d.findings(0)), HasSubstr("set_device(0)"));
}

TEST(Nvls, TheFabricManagerWasRestarted) {
  const std::string log = "n:1:2 [0] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'\n";
  auto d = Of({{"nccl.log", log},
               {"journal.txt",
                "Oct 19 08:31:44 n systemd[1]: Stopping nvidia-fabricmanager.service - NVIDIA fabric manager service...\n"
                "Oct 19 08:32:05 n systemd[1]: Started nvidia-fabricmanager.service - NVIDIA fabric manager service.\n"}});
  ASSERT_FIRST(d, misconfigured, "FB-01");
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
  // Alone it is a guess.
  d = Of(log);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
  // Memory is another mechanism.
  d = Of("n:1:2 [0] transport/nvls.cc:244 NCCL WARN Cuda failure 2 'out of memory'\n");
  EXPECT_THAT(Titles(d), Not(HasSubstr("FB-01")));
}

TEST(Capture, RegistrationInsideACapture) {
  const auto d = Of(
      "(Worker_TP3 pid=8) Capturing CUDA graphs (PIECEWISE):   0%|          | 0/51\n"
      "(Worker_TP3 pid=8) ERROR     return self.nccl.ncclCommWindowRegister(self.comm, buf, size, 1)\n"
      "(Worker_TP3 pid=8) ERROR torch.AcceleratorError: CUDA error: operation failed due to a previous error during capture\n");
  ASSERT_FIRST(d, error_reported, "NC-09");
  EXPECT_THAT(d.findings(0).title(), HasSubstr("ncclCommWindowRegister"));
}

std::string Starts(int from, int to, int world, const std::string& host, const std::string& what = "START") {
  std::string text;
  for (int r = from; r < to; ++r) {
    const std::string n = std::to_string(r);
    text += host + ":" + std::to_string(700 + r) + ":1 [" + n + "] NCCL INFO ncclCommInitRank comm 0x55" + n + " rank " + n +
            " nranks " + std::to_string(world) + " cudaDev " + n + " nvmlDev " + n + " busId 1b000 commId 0x9d - Init " + what +
            "\n";
  }
  return text;
}

TEST(Init, OneOfTheWholeJobsLogIsAbsent) {
  auto d = Of(Starts(0, 5, 8, "a") + Starts(6, 8, 8, "b"));
  ASSERT_FIRST(d, init_incomplete, "NC-05");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(5));
  // Files of single ranks: a missing file is no missing rank where the others are through the bootstrap.
  d = Of({{"rank-0.log", Starts(0, 1, 3, "a")},
          {"rank-1.log", Starts(1, 2, 3, "a") + "a:701:1 [1] NCCL INFO Bootstrap timings total 0.04 (create 0.01)\n"}});
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
  // It came up.
  d = Of(Starts(0, 5, 8, "a") + Starts(0, 5, 8, "a", "COMPLETE"));
  EXPECT_THAT(Titles(d), Not(HasSubstr("init_incomplete")));
}

TEST(Versions, TheBannerIsOfTheHostThatSpeaksInItsFile) {
  const auto log = [](const std::string& version, int rank, const std::string& host, const std::string& end) {
    return "NCCL version " + version + "+cuda12.4\n" + Starts(rank, rank + 1, 2, host) + end;
  };
  const std::string truncated = "a:700:1 [0] bootstrap.cc:84 NCCL WARN Message truncated : received 524288 bytes instead of 65536\n";
  auto d = Of({{"0.log", log("2.20.5", 0, "a", truncated)}, {"1.log", log("2.22.3", 1, "b", "")}});
  ASSERT_FIRST(d, misconfigured, "FB-06");
  EXPECT_THAT(d.findings(0).title(), AllOf(HasSubstr("2.20.5 on a"), HasSubstr("2.22.3 on b")));
  d = Of({{"0.log", log("2.20.5", 0, "a", truncated)}, {"1.log", log("2.20.5", 1, "b", "")}});
  EXPECT_THAT(Titles(d), Not(HasSubstr("misconfigured")));
}

TEST(Init, AllEnteredAndOnlyUnevenLayoutsHang) {
  const auto d = Of({{"nccl.log", "NCCL version 2.31.2+cuda13.3\n" + Starts(0, 7, 15, "a") + Starts(7, 15, 15, "b")},
                     {"matrix.txt", "8+8 ranks: ok\n7+7 ranks: ok\n7+8 ranks: hang 3/3\n"}});
  ASSERT_FIRST(d, misconfigured, "NC-03");
  EXPECT_THAT(d.findings(0).title(), HasSubstr("7+8"));
  EXPECT_THAT(Titles(d), Not(HasSubstr("missing_rank")));
}

TEST(Init, TheStoreOfTheMissing) {
  const auto d =
      Of({{"rank-0.log",
           "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/3 clients joined.\n"}});
  ASSERT_FIRST(d, init_incomplete, "NC-05");
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
}

TEST(KnownDefect, NeedsItsTrigger) {
  const std::string yes =
      "a:1:1 [0] NCCL INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer\n";
  const std::string no =
      "b:2:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels, 2 p2p channels per peer\n";
  auto d = Of("NCCL version 2.27.5+cuda12.9\n" + yes + no);
  ASSERT_FIRST(d, misconfigured, "FB-04");
  d = Of("NCCL version 2.27.5+cuda12.9\n" + yes + yes);
  EXPECT_THAT(Titles(d), Not(HasSubstr("FB-04")));
  d = Of("NCCL version 2.29.3+cuda12.9\n" + yes + no);
  EXPECT_THAT(Titles(d), Not(HasSubstr("FB-04")));
}

TEST(KnownDefect, AnotherReleaseIsTheControl) {
  const auto d =
      Of({{"ab.txt",
           "--enforce-eager: 3 h ok\nnccl 2.30.4 + graphs: 3 h ok\nnccl 2.28.9 + graphs: dead after 2-3 requests (5 of 5)\n"},
          {"engine.log", "(EngineCore pid=210) TimeoutError: RPC call to sample_tokens timed out.\n"}});
  ASSERT_FIRST(d, misconfigured, "NC-03");
  EXPECT_THAT(d.findings(0).title(), HasSubstr("CUDA graph"));
}

TEST(Noise, IsNoFault) {
  const auto d =
      Of("p:17:17 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"
         "p:17:17 [0] NCCL INFO P2P is disabled between connected GPUs 2 and 1. You can repress this message with "
         "NCCL_IGNORE_DISABLED_P2P=1.\n");
  for (const Finding& f : d.findings()) EXPECT_EQ(f.kind(), Kind::none) << f.title();
  EXPECT_EQ(d.state(), State::healthy);
}

}  // namespace
}  // namespace ringscope::reasoning
