// Finders of the network: from lines to findings, and the nearest inputs on which they must stay silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reasoning/text_job.h"

namespace ringscope::reasoning {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::vector<Kind::Value> AllKinds(const Diagnosis& d) {
  std::vector<Kind::Value> kinds;
  for (const Finding& f : d.findings()) kinds.push_back(f.kind());
  return kinds;
}

using ::testing::HasSubstr;
using ::testing::Not;

Finding First(const Files& files) {
  const Diagnosis d = DiagnoseTexts(files);
  EXPECT_GT(d.findings_size(), 0);
  return d.findings_size() > 0 ? d.findings(0) : Finding();
}

bool AnyCause(const Files& files, const std::string& id) {
  const Diagnosis d = DiagnoseTexts(files);
  for (const Finding& f : d.findings()) {
    if (f.cause().id() == id) return true;
  }
  return false;
}

constexpr char kStatus12[] =
    "tr-5:984:1357 [4] transport/net_ib.cc:1615 NCCL WARN NET/IB : Got completion from peer 10.9.1.59<44206> with status=12 "
    "opcode=129 len=65536 vendor err 129 (Recv) "
    "localGid ::ffff:10.8.8.2 remoteGids::ffff:10.8.4.1\n";
constexpr char kFlush[] =
    "tr-5:984:1357 [4] transport/net_ib.cc:1615 NCCL WARN NET/IB : Got completion from peer 10.9.1.59<44206> with status=5 "
    "opcode=1 len=6 vendor err 249 (Recv)\n";

TEST(IbCompletion, AloneNamesThePeerAndAccusesNobody) {
  const Finding f = First({{"nccl.log", std::string(kFlush) + kStatus12 + kFlush}});
  EXPECT_EQ(f.kind(), Kind::undetermined);
  EXPECT_TRUE(f.who().ranks().empty());
  EXPECT_TRUE(f.who().hosts().empty());
  EXPECT_THAT(f.title(), HasSubstr("10.9.1.59"));
  EXPECT_THAT(f.title(), HasSubstr("status 12"));
  EXPECT_THAT(AllText(f), HasSubstr("status=12"));
}

TEST(IbCompletion, OnlyFlushes) {
  const Finding f = First({{"nccl.log", kFlush}});
  EXPECT_EQ(f.kind(), Kind::undetermined);
  EXPECT_THAT(f.title(), HasSubstr("earlier error"));
}

TEST(IbCompletion, SuccessIsNoError) {
  const Diagnosis d = DiagnoseTexts(
      {{"nccl.log", "n:1:2 [0] NCCL INFO Got completion from peer 10.0.0.1<5> with status=0 opcode=1 len=2 wr_id=3\n"}});
  EXPECT_EQ(d.findings_size(), 0);
}

TEST(IbCompletion, OneHostCommonToAllAndAlive) {
  std::string log;
  for (const char* host : {"n1", "n2", "n3"})
    log += std::string(host) + ":1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0." + (host + 1) + "<0>\n" + host +
           ":1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<5> with error 12, opcode 0, "
           "len 0, vendor err 129\n";
  log += "n7:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.7<0>\n";
  EXPECT_EQ(First({{"a.log", log}}).kind(), Kind::undetermined);  // n7 may have died
  for (const char* peer : {"10.0.0.1", "10.0.0.2"})
    log += std::string("n7:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer ") + peer +
           "<5> with error 12, opcode 0, len 0, vendor err 129\n";
  const Finding f = First({{"a.log", log}});
  EXPECT_EQ(f.kind(), Kind::edge_failed);
  EXPECT_EQ(f.who().hosts(0), "n7");
}

TEST(PeerClosed, ReporterIsNotAccused) {
  const Finding f = First(
      {{"rank-3.log", "[rank3]: socketProgressOpt: Call to recv from 10.9.12.9<33759> failed : Connection reset by peer\n"}});
  EXPECT_EQ(f.kind(), Kind::undetermined);
  EXPECT_TRUE(f.who().ranks().empty());
  ASSERT_EQ(f.collateral().ranks_size(), 1);
  EXPECT_EQ(f.collateral().ranks(0), 3);
  EXPECT_THAT(f.title(), HasSubstr("10.9.12.9"));
}

TEST(IbPort, EventBeforeTheFirstFailure) {
  const std::string port = "cn7:34:35 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error\n";
  const Finding f = First({{"nccl.log", port + "cn9:8:9 [0] NCCL INFO x\n" + port + kStatus12}});
  EXPECT_EQ(f.kind(), Kind::edge_failed);
  EXPECT_EQ(f.cause().id(), "NET-01");
  EXPECT_EQ(f.confidence(), Confidence::probable);
  ASSERT_EQ(f.who().hosts_size(), 1);
  EXPECT_EQ(f.who().hosts(0), "cn7");
}

TEST(IbPort, CountersThatRoseMakeItEstablished) {
  const Finding f =
      First({{"nccl.log", std::string("cn7:34:35 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error\n") + kStatus12},
             {"cn7.before.txt", "cn7: mlx5_0/ports/1/counters/link_downed:1\n"},
             {"cn7.after.txt", "cn7: mlx5_0/ports/1/counters/link_downed:4\n"}});
  EXPECT_EQ(f.kind(), Kind::edge_failed);
  EXPECT_EQ(f.confidence(), Confidence::established);
  EXPECT_THAT(AllText(f), HasSubstr("1 -> 4"));
}

TEST(IbPort, OldTotalsAndUnusedPortsAccuseNobody) {
  EXPECT_EQ(First({{"nccl.log", kStatus12},
                   {"c.txt", "mlx5_0/ports/1/counters/link_downed:1\nmlx5_0/ports/1/counters/symbol_error:3\n"}})
                .kind(),
            Kind::undetermined);
  // An adapter that is not cabled, and that NCCL does not use.
  EXPECT_EQ(First({{"nccl.log",
                    std::string("tr-5:984:9 [4] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.0.0.1<0>\n") + kStatus12},
                   {"ibstat.txt", "CA 'mlx5_4'\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n"}})
                .kind(),
            Kind::undetermined);
}

constexpr char kRoceLog[] =
    "w-0:9:8 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:10.7.8.20<0>\n"
    "w-0:9:8 [0] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129\n";
constexpr char kGids[] =
    "mlx5_0\t1\t0\tfe80:0000:0000:0000:0e42:a1ff:fe00:0001\t\t\tv1\teth0\n"
    "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a4d:0814\t10.7.8.20  \tv2\teth0\n";

TEST(RoceGid, IndexThatWasAskedForIsLinkLocal) {
  const Finding f =
      First({{"nccl.log", std::string("w-0:9:8 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 0.\n") + kRoceLog},
             {"show_gids.txt", kGids}});
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_EQ(f.cause().id(), "NET-03");
  EXPECT_THAT(AllText(f), HasSubstr("NCCL_IB_GID_INDEX=3"));
  EXPECT_THAT(AllText(f), HasSubstr("error 12"));
}

TEST(RoceGid, SilentWhereTheEntryIsRightOrTheJobHadRun) {
  EXPECT_EQ(First({{"nccl.log", std::string("w-0:9:8 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.\n") + kRoceLog},
                   {"show_gids.txt", kGids}})
                .kind(),
            Kind::undetermined);
  EXPECT_FALSE(AnyCause(
      {{"nccl.log", std::string("w-0:9:8 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 0.\n"
                                "    33554432       8388608     float     sum      -1   2874.2   11.67   11.67      0\n") +
                        kRoceLog},
       {"show_gids.txt", kGids}},
      "NET-03"));
}

TEST(RoceGid, SilentAfterIterationsOfTraining) {
  const std::string failed =
      "n1:9:9 [0] transport/net_ib.cc:1698 NCCL WARN NET/IB: Got completion from peer 10.1.1.5<38110> with status=12 opcode=0 "
      "len=0 vendor "
      "err 129 (Send) localGid fe80::a088:c203:a1:1204 remoteGidsfe80::a088:c203:a1:1905 hca mlx5_1\n";
  const std::string step =
      " [2025-07-02 16:20:10] iteration    40112/   90000 | elapsed time per iteration (ms): 5120.7 | lm loss: 1.8E+00\n";
  EXPECT_THAT(AllKinds(DiagnoseTexts({{"job.log", failed}})), Contains(Kind::misconfigured)) << "the control";
  EXPECT_THAT(AllKinds(DiagnoseTexts({{"job.log", step + failed}})), Not(Contains(Kind::misconfigured)));
}

TEST(RoceGid, InfinibandAddressesBeginWithFe80) {
  EXPECT_FALSE(AnyCause({{"nccl.log",
                          "n:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:10.0.0.1<0>\n"
                          "n:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<5> with error "
                          "12, opcode 0, len 0, vendor err 129 (Send) localGid fe80::1 "
                          "remoteGid fe80::2\n"}},
                        "NET-03"));
}

TEST(QueuePair, ForcedIndexThatIsRefused) {
  const Finding f = First({{"nccl.log",
                            "n:1:2 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 9.\n"
                            "n:1:2 [0] misc/ibvwrap.cc:392 NCCL WARN Call to ibv_modify_qp failed with 22 Invalid argument, on "
                            "dev mlx5_0:1, curr state INIT, next state RTR, local GID index 9, local "
                            "GID ::, remote GID ::ffff:10.8.4.1\n"}});
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_EQ(f.cause().id(), "NET-03");
}

TEST(QueuePair, TimedOutWithoutMore) {
  const Finding f =
      First({{"nccl.log",
              "n:1:2 [0] misc/ibvwrap.cc:1 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110\n"}});
  EXPECT_EQ(f.kind(), Kind::error_reported);
  EXPECT_EQ(f.confidence(), Confidence::possible);
}

TEST(Mtu, TwoHostsDisagreeAndTransfersFail) {
  const Files files = {{"devinfo.txt",
                        "rn-a: mlx5_0 port 1 state PORT_ACTIVE max_mtu 4096 (5) active_mtu 4096 (5) link_layer Ethernet\n"
                        "rn-b: mlx5_0 port 1 state PORT_ACTIVE max_mtu 4096 (5) active_mtu 1024 (3) link_layer Ethernet\n"},
                       {"nccl.log",
                        "rn-b:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<5> with "
                        "status=9 opcode=0 len=0 vendor err 138 (Send)\n"}};
  const Finding f = First(files);
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_EQ(f.cause().id(), "NET-03");
  EXPECT_THAT(f.title(), HasSubstr("MTU"));
  EXPECT_EQ(DiagnoseTexts({files[0]}).findings_size(), 0);  // nothing failed
}

TEST(RetryWindow, ShorterThanAnyDefault) {
  const Finding f =
      First({{"nccl.log", std::string("tr-5:984:9 [4] NCCL INFO NCCL_IB_TIMEOUT set by environment to 1.\ntr-5:984:9 [4] NCCL "
                                      "INFO NCCL_IB_RETRY_CNT set by environment to 0.\n") +
                              kStatus12}});
  EXPECT_EQ(f.kind(), Kind::edge_failed);
  EXPECT_EQ(f.cause().id(), "NET-04");
  EXPECT_THAT(AllText(f), HasSubstr("NCCL_IB_TIMEOUT"));
  // A longer one is no reason.
  EXPECT_EQ(First({{"nccl.log", std::string("tr-5:984:9 [4] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n") + kStatus12}})
                .kind(),
            Kind::undetermined);
}

TEST(GdrPath, LocalProtectionWithAccessControlOn) {
  const Files files = {
      {"nccl.log",
       "n:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<5> with error 4, opcode 1, len 1, "
       "vendor err 81 (Send)\n"},
      {"lspci.txt", "     11 \t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"}};
  const Finding f = First(files);
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_EQ(f.cause().id(), "NET-06");
  EXPECT_THAT(AllText(f), HasSubstr("ACS"));
  const Finding alone = First({files[0]});
  EXPECT_EQ(alone.kind(), Kind::error_reported);
  EXPECT_EQ(alone.confidence(), Confidence::possible);
}

TEST(IbUnopened, FallsBackToTcp) {
  const Finding f = First({{"nccl.log",
                            "ds:1:2 [0] misc/ibvwrap.cc:212 NCCL WARN Call to ibv_open_device failed\n"
                            "ds:1:2 [0] NCCL INFO Using network Socket\n"}});
  EXPECT_EQ(f.kind(), Kind::fallback_path);
  EXPECT_THAT(AllText(f), HasSubstr("/dev/infiniband"));
  // One adapter of several: NCCL uses the others.
  EXPECT_FALSE(AnyCause({{"nccl.log",
                          "ds:1:2 [0] transport/net_ib.cc:148 NCCL WARN NET/IB : Unable to open device mlx5_9\nds:1:2 [0] NCCL "
                          "INFO Using network IB\n"}},
                        "NET-08"));
}

TEST(PluginSwitch, DisableDoesNotReachThePlugin) {
  const std::string log =
      "w:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\nw:1:2 [0] NCCL INFO Using network IBext_v8\n"
      "w:1:2 [0] ibvwrap.c:160 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out\n";
  const Finding f = First({{"nccl.log", log}});
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_THAT(AllText(f), HasSubstr("NCCL_IBEXT_DISABLE"));
  EXPECT_THAT(First({{"nccl.log", log + "w:1:2 [0] NCCL INFO NCCL_IBEXT_DISABLE set by environment to 1.\n"}}).title(),
              Not(HasSubstr("NCCL_IBEXT_DISABLE")));
}

constexpr char kMismatch[] =
    "wk:17:18 [0] transport/net_ib.cc:667 NCCL WARN NET/IB : collective mismatch error local size 32768 remote 1048576 addr 0 "
    "rkey 3beac3 seq adf/adf\n";
std::string Call(const char* who, const char* count) {
  return std::string(who) + " [0] NCCL INFO AllGather: opCount f7 sendbuff 0x1 recvbuff 0x2 count " + count +
         " datatype 0 op 0 root 0 comm 0x7f [nranks=16] stream 0x6\n";
}

TEST(NetworkSizes, ForcedRelaxedOrderingWhileCallsAgree) {
  const Finding f = First({{"nccl.log", Call("a:1:1", "512") + Call("b:2:2", "512") + kMismatch},
                           {"mlxconfig.txt", "   PCI_WR_ORDERING      force_relax(1)\n"}});
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_THAT(AllText(f), HasSubstr("relaxed ordering"));
}

TEST(NetworkSizes, CallsThatDifferOrAreNotKnown) {
  EXPECT_EQ(First({{"nccl.log", Call("a:1:1", "512") + Call("b:2:2", "256") + kMismatch},
                   {"mlxconfig.txt", "   PCI_WR_ORDERING      force_relax(1)\n"}})
                .kind(),
            Kind::size_mismatch);
  EXPECT_EQ(First({{"nccl.log", Call("a:1:1", "512") + Call("b:2:2", "512") + kMismatch}}).kind(), Kind::undetermined);
  EXPECT_EQ(First({{"nccl.log", kMismatch}}).kind(), Kind::size_mismatch);
}

constexpr char kP2pLog[] =
    "ws:10:11 [0] NCCL INFO ncclCommInitRank comm 0x71 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 41000 commId 0xdd - Init "
    "START\n"
    "ws:12:13 [1] NCCL INFO ncclCommInitRank comm 0x72 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 61000 commId 0xdd - Init "
    "START\n"
    "ws:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
    "ws:12:13 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/IPC\n";
constexpr char kFirstCall[] =
    "ws:10:10 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 8 datatype 7 op 0 root 0 comm 0x71 [nranks=2] "
    "stream 0x5\n";
constexpr char kAcsOn[] =
    "20:01.1 PCI bridge: Some Root Port\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- "
    "DirectTrans-\n";

TEST(P2pAcs, FirstOperationDoesNotEnd) {
  const Finding f = First({{"nccl.log", std::string(kP2pLog) + kFirstCall}, {"lspci.txt", kAcsOn}});
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_EQ(f.cause().id(), "FB-05");
  EXPECT_EQ(f.confidence(), Confidence::probable);
  EXPECT_THAT(AllText(f), HasSubstr("ReqRedir+"));
  EXPECT_THAT(AllText(f), HasSubstr("NCCL_P2P_DISABLE=1"));
}

TEST(P2pAcs, SilentWhereItWorksOrDoesNotMatter) {
  const char* row = "    33554432       8388608     float     sum      -1   2874.2   11.67   11.67      0\n";
  const char* off = "20:01.1 PCI bridge: Some Root Port\n\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-\n";
  const char* nvlink = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-63\nGPU1\tNV4\t X \t0-63\n";
  const std::string log = std::string(kP2pLog) + kFirstCall;
  EXPECT_FALSE(AnyCause({{"nccl.log", log + row}, {"lspci.txt", kAcsOn}}, "FB-05"));
  EXPECT_FALSE(AnyCause({{"nccl.log", log}, {"lspci.txt", off}}, "FB-05"));
  EXPECT_FALSE(AnyCause({{"nccl.log", log}, {"lspci.txt", kAcsOn}, {"topo.txt", nvlink}}, "FB-05"));
  EXPECT_FALSE(AnyCause({{"lspci.txt", kAcsOn}}, "FB-05"));
}

TEST(P2pAcs, ACopyThatArrivesWrongIsProof) {
  const Files copy = {{"simpleP2P.txt", "Verification error @ element 1: val = 0.000000, ref = 4.000000\n"}};
  EXPECT_EQ(First(copy).cause().id(), "FB-05");
  EXPECT_EQ(First(copy).confidence(), Confidence::probable);
  EXPECT_EQ(First({copy[0], {"lspci.txt", kAcsOn}}).confidence(), Confidence::established);
}

TEST(P2pAcs, LatencyOfAPathThatDoesNotWork) {
  const char* matrix =
      "P2P=Disabled Latency Matrix (us)\n   GPU     0      1 \n     0   1.50  14.20 \n     1  14.30   1.52 \n\n"
      "   CPU     0      1 \n     0   3.1  9999999 \n     1   9.0   3.0 \n"
      "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1 \n     0   1.50  49204.96 \n     1  49204.90   1.50 "
      "\n";
  const Finding f = First({{"p2pBandwidthLatencyTest.txt", matrix}});
  EXPECT_EQ(f.cause().id(), "FB-05");
  EXPECT_THAT(f.title(), HasSubstr("49205"));
}

TEST(PartitionKeys, TwoLimitedMembers) {
  const std::string keys =
      "n1: /sys/class/infiniband/mlx5_0/ports/1/pkeys/0:0x7fff\nn2: /sys/class/infiniband/mlx5_0/ports/1/pkeys/0:0x7fff\n";
  const Finding f = First({{"nccl.log", kStatus12}, {"pkeys.txt", keys}});
  EXPECT_EQ(f.kind(), Kind::misconfigured);
  EXPECT_THAT(AllText(f), HasSubstr("NCCL_IB_PKEY"));
  EXPECT_EQ(First({{"nccl.log", kStatus12}, {"pkeys.txt", "/sys/class/infiniband/mlx5_0/ports/1/pkeys/0:0xffff\n"}}).kind(),
            Kind::undetermined);
}

TEST(AdapterFault, TheAdapterItselfAndOneQueue) {
  const Finding f =
      First({{"nccl.log",
              "n4:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : mlx5_2:1 async fatal event: local catastrophic error\n"}});
  EXPECT_EQ(f.kind(), Kind::error_reported);
  EXPECT_EQ(f.who().hosts(0), "n4");
  EXPECT_EQ(First({{"nccl.log",
                    "n4:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : mlx5_2:1 Got async event : local access violation "
                    "work queue error\n"}})
                .kind(),
            Kind::undetermined);
}

}  // namespace
}  // namespace ringscope::reasoning
