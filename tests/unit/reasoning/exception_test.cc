// Exceptions and ends of processes: the one that began it among the echoes.
#include "tests/unit/reasoning/text_job.h"

namespace ringscope::reasoning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char kEcho0[] =
    "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/app/t.py\", line 9, in main\n"
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:1, remote process exited or there was a network "
    "error\n";

TEST(Exceptions, TheOneThatComplainsOfNobodyBeganIt) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log", std::string(kEcho0) +
                                     "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/app/t.py\", line 12, in step\n"
                                     "[rank3]: KeyError: 'vocab'\n"}});
  EXPECT_EQ(FirstKind(d), Kind::process_exited);
  EXPECT_THAT(FirstRanks(d), ElementsAre(3));
  EXPECT_THAT(FirstCollateral(d), ElementsAre(0));
  EXPECT_EQ(FirstCause(d), "UC-05");
}

TEST(Exceptions, EchoesAloneAccuseNobody) {
  const Diagnosis d = DiagnoseTexts({{"job.log", kEcho0}});
  EXPECT_NE(FirstKind(d), Kind::process_exited);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
}

TEST(Exceptions, GpuMemoryOfOneRank) {
  const Diagnosis d =
      DiagnoseTexts({{"rank-5.log",
                      "Traceback (most recent call last):\n  File \"/app/t.py\", line 3, in f\n"
                      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 5 has a total capacity\n"},
                     {"rank-0.log", kEcho0}});
  EXPECT_EQ(FirstKind(d), Kind::process_exited);
  EXPECT_THAT(FirstRanks(d), ElementsAre(5));
  EXPECT_THAT(FirstText(d), HasSubstr("out of memory"));
}

TEST(Exceptions, ASizeThatNoGpuHasIsAnArtefact) {
  const Diagnosis d = DiagnoseTexts(
      {{"rank-7.log",
        "[E ProcessGroupNCCL.cpp:828] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=BROADCAST, "
        "Timeout(ms)=1800000) ran for 1800432 milliseconds before timing out.\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1768515945.25 GiB\n"}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstText(d), HasSubstr("BROADCAST"));
  EXPECT_THAT(FirstText(d), HasSubstr("follows from the timeout"));
}

TEST(Exceptions, TheSameOnEveryRankNamesNone) {
  std::string text;
  for (const char* rank : {"[rank0]: ", "[rank1]: "}) {
    for (const char* line : {"Traceback (most recent call last):\n", "  File \"/x/site-packages/pkg/a.py\", line 2, in g\n",
                             "TypeError: f() missing 1 required positional argument: 'n'\n"})
      text += std::string(rank) + line;
  }
  const Diagnosis d = DiagnoseTexts({{"job.log", text}});
  EXPECT_EQ(FirstKind(d), Kind::error_reported);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
  EXPECT_THAT(FirstText(d), HasSubstr("pip show pkg"));
}

TEST(Exceptions, AnErrorRaisedWhileHandlingAConnectionErrorIsItsEcho) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log",
                      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                      "torch.distributed.DistBackendError: NCCL error in: x, unhandled system error\n\n"
                      "During handling of the above exception, another exception occurred:\n\n"
                      "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: not initialized\n"}});
  EXPECT_THAT(FirstText(d), Not(HasSubstr("raised ValueError")));
}

TEST(Exceptions, PathsNeverReachACommand) {
  const Diagnosis d = DiagnoseTexts({{"job.log",
                                      "Traceback (most recent call last):\n  File \"/x/site-packages/$(rm -rf x)/a.py\", line 2, in g\n"
                                      "TypeError: bad\n"}});
  EXPECT_THAT(d.findings(0).next().command(), Not(HasSubstr("rm -rf")));
}

TEST(ProcessEnds, SegfaultBehindBrokenPipes) {
  const Diagnosis d =
      DiagnoseTexts({{"slurm.out",
                      "4: [cn-1:90112:0:90112] Caught signal 11 (Segmentation fault: address not mapped)\n"
                      "5: RuntimeError: [/x/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:41877\n"
                      "srun: error: cn-1: task 4: Segmentation fault (core dumped)\n"}});
  EXPECT_EQ(FirstKind(d), Kind::process_exited);
  EXPECT_THAT(FirstRanks(d), ElementsAre(4));
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
}

TEST(ProcessEnds, LaunchersOwnKillsAreLeftOut) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log",
                      "Sending process 77 closing signal SIGTERM\n"
                      "failed (exitcode: -9) local_rank: 3 (pid: 80) of binary: /usr/bin/python\n"
                      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                      "Root Cause (first observed failure):\n[0]:\n  host      : n1\n  rank      : 11 (local_rank: 3)\n"
                      "  exitcode  : -9 (pid: 80)\n  traceback : Signal 9 (SIGKILL) received by PID 80\n======\n"
                      "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1211.0. Some of your processes may\n"}});
  EXPECT_EQ(FirstKind(d), Kind::process_exited);
  EXPECT_THAT(FirstRanks(d), ElementsAre(11));
  EXPECT_EQ(FirstCause(d), "UC-08");
  EXPECT_EQ(d.findings(0).confidence(), Confidence::established);
}

TEST(ProcessEnds, ExitCodeWithoutItsErrorIsUndetermined) {
  const Diagnosis d = DiagnoseTexts(
      {{"job.log", "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: p\n"}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
}

TEST(Scheduler, TimeLimitExplainsNothingWhereAWatchdogSpoke) {
  const std::string limit = "slurmstepd: error: *** JOB 12 ON n4 CANCELLED AT 2025-03-04T05:06:07 DUE TO TIME LIMIT ***\n";
  EXPECT_EQ(FirstKind(DiagnoseTexts({{"job.log", limit}})), Kind::process_exited);
  EXPECT_EQ(FirstKind(DiagnoseTexts({{"job.log",
                                      "[rank0]:[E ProcessGroupNCCL.cpp:475] [Rank 0] Watchdog caught collective operation timeout: "
                                      "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1) ran for 2 "
                                      "milliseconds before timing out.\n" +
                                          limit}})),
            Kind::undetermined);
}

TEST(Scheduler, NodeFailureNamesTheHost) {
  const Diagnosis d = DiagnoseTexts({{"job.log",
                                      "srun: error: Node failure on n4\nslurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT "
                                      "2025-03-04T05:06:07 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"}});
  EXPECT_EQ(FirstKind(d), Kind::process_exited);
  EXPECT_THAT(FirstText(d), HasSubstr("n4"));
}

TEST(Store, MissingClientsAndTakenPorts) {
  const Diagnosis missing = DiagnoseTexts(
      {{"rank-0.log", "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 6/8 clients joined.\n"}});
  EXPECT_EQ(FirstKind(missing), Kind::init_incomplete);
  EXPECT_THAT(FirstRanks(missing), IsEmpty());
  const Diagnosis taken =
      DiagnoseTexts({{"job.log",
                      "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
                      "address. port: 29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use\n"}});
  EXPECT_EQ(FirstKind(taken), Kind::misconfigured);
  EXPECT_EQ(FirstCause(taken), "FW-08");
}

TEST(HostCollectives, SaveThatTimesOutOverGloo) {
  const Diagnosis d = DiagnoseTexts(
      {{"rank-0.log",
        "saving checkpoint to /c/500\nTraceback (most recent call last):\n  File \"/a/fsdp_utils.py\", line 131, in save_model\n"
        "    dist_cp.save(state)\n"
        "RuntimeError: [/g/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete\n"},
       {"rank-17.log", "RuntimeError: [/g/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:41877\n"}});
  EXPECT_EQ(FirstKind(d), Kind::host_blocked);
  EXPECT_EQ(FirstCause(d), "FW-07");
  EXPECT_THAT(FirstRanks(d), IsEmpty());
}

TEST(HostCollectives, MonitoredBarrierNamesWhoDidNotCome) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log", "RuntimeError: [Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 1800000 ms\n"}});
  EXPECT_EQ(FirstKind(d), Kind::missing_rank);
  EXPECT_THAT(FirstRanks(d), ElementsAre(3, 5));
}

TEST(Exceptions, IllegalAccessToldByTheWatchdogOfOneRank) {
  const Diagnosis d = DiagnoseTexts(
      {{"job.log",
        "[rank2]:[E410 09:00:00.000000001 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog "
        "thread "
        "terminated with exception: CUDA error: an illegal memory access was encountered\n"
        "[rank0]:[E410 09:10:00.000000001 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=99, OpType=ALLREDUCE, NumelIn=10, NumelOut=10, Timeout(ms)=600000) ran for 600011 milliseconds before timing "
        "out.\n"}});
  EXPECT_EQ(FirstKind(d), Kind::process_exited);
  EXPECT_THAT(FirstRanks(d), ElementsAre(2));
  EXPECT_EQ(FirstCause(d), "UC-10");
}

TEST(Exceptions, ALineThatWasToldAndNotDiedOfIsLeftOut) {
  const Diagnosis d = DiagnoseTexts(
      {{"rank-0.log",
        "requests.exceptions.HTTPError: 404 Client Error\n"
        "[E ProcessGroupNCCL.cpp:828] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=BROADCAST, "
        "Timeout(ms)=1800000) ran for 1800432 milliseconds before timing out.\n"}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
}

TEST(Exceptions, HostileInputHasNoFinding) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += "[rank" + std::to_string(i) + "]: Traceback (most recent call last):\n\xff\xfe: \x01\n";
    text += "what():  \nterminate called after throwing an instance of ''\nError: \n: Error\n";
    text += "srun: error: : tasks 9-1,,,-: \nMPI_ABORT was invoked on rank 99999999999999999999 in communicator MPI_COMM_WORLD\n";
  }
  DiagnoseTexts({{"job.log", text}});
}

TEST(Ddp, ModelsThatDiffer) {
  const Diagnosis d = DiagnoseTexts({{"job.log",
                                      "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/app/t.py\", line 9, in main\n"
                                      "[rank3]: RuntimeError: DDP expects same model across all ranks, but Rank 3 has 101 params, "
                                      "while rank 0 has inconsistent 100 params.\n"}});
  EXPECT_EQ(FirstKind(d), Kind::size_mismatch);
  EXPECT_THAT(FirstRanks(d), ElementsAre(3));
}

TEST(Echoes, ClosedConnectionsAloneAreUndetermined) {
  const Diagnosis d =
      DiagnoseTexts({{"a.log", "RuntimeError: [/p/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.3.0.4]:1877\n"}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
}

TEST(ProcessEnds, ACrowdThatSrunEndedIsNotToBlame) {
  const Diagnosis d = DiagnoseTexts({{"slurm.out",
                                      "srun: error: n1: task 3: Exited with exit code 1\nsrun: Terminating StepId=7.0\n"
                                      "srun: error: n1: tasks 0-2,4-7: Killed\n"}});
  EXPECT_NE(FirstCause(d), "UC-08");
}

TEST(Echoes, InterruptedWhileItWaited) {
  const Diagnosis d =
      DiagnoseTexts({{"out.log",
                      "^C[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/t.py\", line 9, in step\n"
                      "[rank0]:     dist.all_reduce(x)\n[rank0]:   File \"/o/torch/distributed/c10d.py\", line 2, in all_reduce\n"
                      "[rank0]: KeyboardInterrupt\n"}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
  EXPECT_THAT(FirstText(d), HasSubstr("all_reduce"));
}

}  // namespace
}  // namespace ringscope::reasoning
