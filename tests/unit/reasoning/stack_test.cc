// From stacks to findings: who does something else than wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Diagnosis DiagnoseTexts(const std::vector<std::pair<std::string, std::string>>& files) {
  model::Job job;
  for (const auto& [name, text] : files) EXPECT_TRUE(ingest::ReadTextBytes(name, text, &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  return reasoning::Diagnose(job);
}
std::vector<int> Ranks(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }
std::string TextOf(const Finding& f) {
  std::string text = f.title() + "\n" + f.next().text() + "\n" + f.next().command();
  for (const Evidence& e : f.evidence()) text += "\n" + e.text();
  return text;
}

std::string Waiting(int pid) {
  return "Process " + std::to_string(pid) + ": python train.py\nPython v3.11.4 (/usr/bin/python3.11)\n\nThread " +
         std::to_string(pid) +
         " (idle): \"MainThread\"\n    all_reduce (torch/distributed/distributed_c10d.py:2501)\n    wrapper "
         "(torch/distributed/c10d_logger.py:83)\n"
         "    step (train.py:88)\n    <module> (train.py:120)\nThread 77 (idle): \"Thread-1\"\n    wait (threading.py:302)\n";
}
std::string In(int pid, const std::string& frames) {
  return "Process " + std::to_string(pid) + ": python train.py\n\nThread " + std::to_string(pid) + " (active): \"MainThread\"\n" +
         frames + "    <module> (train.py:120)\n";
}

TEST(Stacks, OneLoadsDataTheOthersWait) {
  const Diagnosis d =
      DiagnoseTexts({{"py-spy-rank0.txt", Waiting(10)},
                     {"py-spy-rank1.txt", Waiting(11)},
                     {"py-spy-rank2.txt", In(12,
                                             "    read (fsspec/spec.py:1846)\n    __getitem__ (dataset.py:40)\n    _next_data "
                                             "(torch/utils/data/dataloader.py:675)\n    train (train.py:70)\n")},
                     {"py-spy-rank3.txt", Waiting(13)}});
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::probable);
  EXPECT_EQ(d.findings(0).cause().id(), "UC-06");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(2));
  EXPECT_EQ(d.findings(0).collateral().ranks_size(), 3);
  EXPECT_EQ(d.state(), State::hang);
}

TEST(Stacks, OneSavesAlone) {
  const Diagnosis d =
      DiagnoseTexts({{"py-spy-rank0.txt", In(10, "    save (torch/serialization.py:849)\n    save_checkpoint (ckpt.py:12)\n")},
                     {"py-spy-rank1.txt", Waiting(11)},
                     {"py-spy-rank2.txt", Waiting(12)}});
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(d.findings(0).cause().id(), "FW-07");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(0));
  EXPECT_THAT(d.findings(0).title(), HasSubstr("save"));
}

TEST(Stacks, RasAgreesIsEstablished) {
  const std::string ras =
      "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  2 ranks have launched up "
      "to operation 12\n"
      "  Rank 2 has launched up to operation 11 -- GPU 1 managed by process 12 on node 10.77.20.15\n";
  const std::string odd = In(12, "    compute_metrics (eval.py:33)\n");
  const Diagnosis d =
      DiagnoseTexts({{"py-spy-rank0.txt", Waiting(10)}, {"py-spy-rank1.txt", Waiting(11)}, {"py-spy-12.txt", odd}, {"ras.txt", ras}});
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(2));  // RAS says which rank process 12 is
}

TEST(Stacks, AllWaitSaysNothingOfWho) {
  const Diagnosis d = DiagnoseTexts({{"py-spy-rank0.txt", Waiting(10)}, {"py-spy-rank1.txt", Waiting(11)}});
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
}

TEST(Stacks, DifferentCollectives) {
  const Diagnosis d =
      DiagnoseTexts({{"py-spy.txt",
                      "rank 0: save_checkpoint -> state_dict -> _summon_full_params -> _all_gather_base\n"
                      "rank 1: train_epoch -> forward -> ... all_reduce\nrank 2: train_epoch -> forward -> ... all_reduce\n"}});
  EXPECT_EQ(d.findings(0).kind(), Kind::collective_mismatch);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(0));
  EXPECT_THAT(TextOf(d.findings(0)), HasSubstr("all_reduce"));
  // One against one: no odd one.
  EXPECT_THAT(Ranks(DiagnoseTexts({{"a.txt", "rank 0: eval -> all_gather\nrank 1: step -> all_reduce\n"}}).findings(0)), IsEmpty());
}

TEST(Stacks, BothSendFirst) {
  const Diagnosis d = DiagnoseTexts({{"stacks.txt",
                                      "rank 0: cudaStreamSynchronize after ncclSend(peer=1); ncclRecv not reached\n"
                                      "rank 1: cudaStreamSynchronize after ncclSend(peer=0); ncclRecv not reached\n"}});
  EXPECT_EQ(d.findings(0).kind(), Kind::order_mismatch);
  EXPECT_THAT(d.findings(0).next().text(), HasSubstr("ncclGroupStart"));
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
  // One of them receives: no such deadlock.
  const Diagnosis pair = DiagnoseTexts({{"stacks.txt", "rank 0: stuck in ncclSend\nrank 1: stuck in ncclRecv\n"}});
  for (const Finding& f : pair.findings()) EXPECT_NE(f.kind(), Kind::order_mismatch);
}

TEST(Stacks, DriverCallHoldsTheOthersUp) {
  const Diagnosis d = DiagnoseTexts(
      {{"rank0.txt", Waiting(10)},
       {"rank1.txt",
        In(11, "    cuLibraryLoadData (libcuda.so.1)\n    cudaLaunchKernel (libcudart.so.12)\n    forward (model.py:5)\n")}});
  EXPECT_EQ(d.findings(0).kind(), Kind::host_blocked);
  EXPECT_EQ(d.findings(0).cause().id(), "FW-03");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(1));
}

TEST(Stacks, AbortIsACommonConsequence) {
  const Diagnosis d =
      DiagnoseTexts({{"gdb-rank1.txt",
                      "Thread 58 (Thread 0x15535d20d700 (LWP 1823817)):\n#0  0x000015551cd02434 in ?? () from /lib64/libcuda.so.1\n"
                      "#1  0x00001554fb45aa8c in commDestroySync (job_=0x1) at init.cc:1313\n#2  0x00001554fb45beef in ncclCommAbort "
                      "(comm=0x5) at init.cc:1508\n\n"
                      "Thread 1 (Thread 0x15555518b740 (LWP 1811075)):\n#0  0x000015551cd02434 in ?? () from /lib64/libcuda.so.1\n"
                      "#1  0x00007f008a1ab in cudaMemcpyAsync () from /usr/lib/libcudart.so.11.0\n"}});
  EXPECT_EQ(d.findings(0).kind(), Kind::host_blocked);
  EXPECT_EQ(d.findings(0).cause().id(), "NC-07");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(1));
}

constexpr char kSlots[] =
    "TID 4410:\n#0  __sched_yield\n#1  ncclLocalOpAppend(ncclComm*, ncclProxyConnector*, ncclProxyOp*)\n#2  SaveProxy(ncclComm*, "
    "ncclChannel*, int)\n";

TEST(NcclDefect, ProxySlotsOnArm) {
  const Diagnosis d =
      DiagnoseTexts({{"eu-stack-rank57.txt", kSlots},
                     {"env.txt", "Linux gb200 6.8.0-1021-nvidia-64k aarch64\nnvidia-nccl-cu13==2.28.9\n"},
                     {"ras.txt",
                      "#0-0 (5f0a77c1d2e90311) MISMATCH\n  Communicator ranks have different ReduceScatter operation counts\n"
                      "  127 ranks have launched up to operation 88214\n"
                      "  Rank 57 has launched up to operation 88213 -- GPU 1 managed by process 4410 on node 10.77.20.15\n"
                      "(identical 10 minutes later)\n"}});
  EXPECT_EQ(d.findings(0).kind(), Kind::error_reported);
  EXPECT_EQ(d.findings(0).cause().id(), "NC-03");
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(57));
  EXPECT_THAT(TextOf(d.findings(0)), HasSubstr("88213"));
  EXPECT_EQ(d.findings(0).confidence(), Confidence::probable);
}

TEST(NcclDefect, OtherReleaseOrMachineIsAnotherMatter) {
  for (const char* env : {"Linux h1 6.8.0-1021 x86_64\nnvidia-nccl-cu13==2.28.9\n",
                          "Linux gb200 6.8.0-1021-nvidia-64k aarch64\nnvidia-nccl-cu13==2.29.3\n",
                          "Linux gb200 6.8.0-1021-nvidia-64k aarch64\nnvidia-nccl-cu13==2.30.7\n", "\n"}) {
    const Diagnosis d = DiagnoseTexts({{"eu-stack-rank57.txt", kSlots}, {"env.txt", env}});
    EXPECT_EQ(d.findings(0).kind(), Kind::host_blocked) << env;
    EXPECT_EQ(d.findings(0).confidence(), Confidence::possible) << env;
  }
}

}  // namespace
}  // namespace ringscope
