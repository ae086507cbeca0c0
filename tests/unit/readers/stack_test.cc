// Call stacks of every tool: whose they are, and their frames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using model::StackProcess;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<StackProcess> Read(const std::string& text, const std::string& name = "stacks.txt") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  return evidence.stacks.processes;
}

std::vector<std::string> Functions(const model::StackThread& thread) {
  std::vector<std::string> names;
  for (const model::StackFrame& f : thread.frames) names.push_back(f.function);
  return names;
}

TEST(PySpy, ThreadsNativeFramesAndLocals) {
  const auto p = Read(
      "Process 4410: python -u train.py --local_rank=3\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
      "Thread 4410 (active+gil): \"MainThread\"\n"
      "    cuMemAlloc_v2 (libcuda.so.535.54.03)\n"
      "    0x7f3a8d1c (libtorch_cuda.so)\n"
      "    all_reduce (torch/distributed/distributed_c10d.py:2501)\n"
      "        Arguments:\n            tensor: <Tensor at 0x7f>\n        Locals:\n            op: 3\n"
      "    step (train.py:88)\n"
      "    <module> (train.py:120)\n"
      "Thread 0x7F1A2B3C4D5E (idle): \"Thread-1 (_pin_memory_loop)\"\n"
      "    wait (threading.py:302)\n",
      "py-spy.rank7.txt");
  ASSERT_THAT(p, SizeIs(1));
  EXPECT_EQ(p[0].tool, "py-spy");
  EXPECT_EQ(p[0].by.pid, 4410);
  EXPECT_EQ(p[0].by.rank, 7);
  ASSERT_THAT(p[0].threads, SizeIs(2));
  EXPECT_TRUE(p[0].threads[0].main);
  EXPECT_EQ(p[0].threads[0].state, "active+gil");
  EXPECT_THAT(Functions(p[0].threads[0]), ElementsAre("cuMemAlloc_v2", "0x7f3a8d1c", "all_reduce", "step", "<module>"));
  EXPECT_EQ(p[0].threads[0].frames[0].module, "libcuda.so.535.54.03");
  EXPECT_EQ(p[0].threads[0].frames[3].file, "train.py");
  EXPECT_EQ(p[0].threads[0].frames[3].line, 88);
  EXPECT_TRUE(p[0].threads[0].frames[3].python);
  EXPECT_THAT(p[0].threads[1].frames, SizeIs(1));
}

TEST(PySpy, SeveralProcessesAndHeadings) {
  const auto p = Read(
      "=== rank 0 ===\nProcess 10: python train.py\n\nThread 10 (idle): \"MainThread\"\n    wait (a.py:1)\n\n"
      "rank 1 (pid 11):\nThread 11 (idle): \"MainThread\"\n    wait (a.py:1)\n"
      "== pid 12 ==\nThread 12 (active): \"MainThread\"\n    load (b.py:2)\n"
      "Process 13: python x.py\nThread 13 (active): \"MainThread\"\n    load (b.py:2)\n");
  ASSERT_THAT(p, SizeIs(4));
  EXPECT_EQ(p[0].by.rank, 0);
  EXPECT_EQ(p[0].by.pid, 10);
  EXPECT_EQ(p[1].by.rank, 1);
  EXPECT_EQ(p[1].by.pid, 11);
  EXPECT_EQ(p[2].by.pid, 12);
  EXPECT_EQ(p[2].by.rank, -1);
  EXPECT_EQ(p[3].by.pid, 13);
  EXPECT_EQ(p[3].by.rank, -1);
}

TEST(Gdb, ThreadsOfAllKinds) {
  const auto p = Read(
      "(gdb) thread apply all bt\n\n"
      "Thread 58 (Thread 0x15535d20d700 (LWP 1823817) \"pt_nccl_watchdg\"):\n"
      "#0  0x000015551cd02434 in ?? () from /lib64/libcuda.so.1\n"
      "#1  0x00001554fb47f4d2 in ncclStrongStreamSynchronize (ss=ss@entry=0x5555bf9ef060) at misc/strongstream.cc:270\n"
      "#2  0x00001554fb45beef in ncclCommAbort (comm=0x5555bf9ec710) at init.cc:1508\n"
      "#3  std::function<void (int)>::operator()(int) const (this=0x1) at /usr/include/c++/9/bits/std_function.h:706\n\n"
      "Thread 1 (Thread 0x15555518b740 (LWP 1811075)):\n"
      "#0  pthread_cond_wait@@GLIBC_2.3.2 () at ../nptl/sysdeps/unix/sysv/linux/x86_64/pthread_cond_wait.S:185\n"
      "#1  0x00007f008a1ab in cudaFree () from /usr/local/cuda/lib64/libcudart.so.11.0\n");
  ASSERT_THAT(p, SizeIs(1));
  ASSERT_THAT(p[0].threads, SizeIs(2));
  EXPECT_THAT(Functions(p[0].threads[0]),
              ElementsAre("??", "ncclStrongStreamSynchronize", "ncclCommAbort", "std::function<void (int)>::operator()"));
  EXPECT_EQ(p[0].threads[0].frames[0].module, "libcuda.so.1");
  EXPECT_EQ(p[0].threads[0].frames[1].file, "misc/strongstream.cc");
  EXPECT_EQ(p[0].threads[0].frames[1].line, 270);
  EXPECT_EQ(p[0].threads[0].name, "pt_nccl_watchdg");
  EXPECT_FALSE(p[0].threads[0].main);
  EXPECT_TRUE(p[0].threads[1].main);
  EXPECT_THAT(Functions(p[0].threads[1]), ElementsAre("pthread_cond_wait@@GLIBC_2.3.2", "cudaFree"));
}

TEST(EuStack, WithAndWithoutAddresses) {
  const auto p = Read(
      "PID 4410 - process\nTID 4410:\n#0  0x00007fdc9c2a6d2d __sched_yield - /usr/lib/libc.so.6\n"
      "#1  0x00007fdc90000000 ncclLocalOpAppend(ncclComm*, ncclProxyConnector*, ncclProxyOp*) - /opt/lib/libnccl.so.2\n"
      "#2  uploadProxyOps(ncclComm*, ncclKernelPlan*)\nTID 4411:\n#0  __poll\n",
      "eu-stack-rank57.txt");
  ASSERT_THAT(p, SizeIs(1));
  EXPECT_EQ(p[0].by.rank, 57);
  EXPECT_EQ(p[0].by.pid, 4410);
  ASSERT_THAT(p[0].threads, SizeIs(2));
  EXPECT_THAT(Functions(p[0].threads[0]), ElementsAre("__sched_yield", "ncclLocalOpAppend", "uploadProxyOps"));
  EXPECT_EQ(p[0].threads[0].frames[1].module, "libnccl.so.2");
}

TEST(KernelStack, IsAThreadOfItsOwn) {
  const auto p = Read(
      "rank 2\n[<0>] rm_ioctl+0x54/0xb0 [nvidia]\n[<0>] nvidia_unlocked_ioctl+0x1f/0x40 [nvidia]\n[<0>] __x64_sys_ioctl+0x91/0xd0\n");
  ASSERT_THAT(p, SizeIs(1));
  EXPECT_EQ(p[0].by.rank, 2);
  EXPECT_THAT(Functions(p[0].threads[0]), ElementsAre("rm_ioctl", "nvidia_unlocked_ioctl", "__x64_sys_ioctl"));
}

TEST(FaultHandler, FatalAndTimeout) {
  const auto p = Read(
      "[rank1]: Fatal Python error: Segmentation fault\n[rank1]: \n"
      "[rank1]: Thread 0x00007f1d8b7fe700 (most recent call first):\n"
      "[rank1]:   File \"/usr/lib/python3.10/threading.py\", line 324 in wait\n"
      "[rank1]: \n"
      "[rank1]: Current thread 0x00007f1d9b7fe740 (most recent call first):\n"
      "[rank1]:   File \"/w/train.py\", line 88 in step\n"
      "[rank1]:   File \"/w/train.py\", line 120 in <module>\n"
      "[rank1]: Extension modules: numpy.core\n"
      "[rank0]: Timeout (0:30:00)!\n"
      "[rank0]: Thread 0x00007f (most recent call first):\n"
      "[rank0]:   File \"/w/load.py\", line ??? in next\n");
  ASSERT_THAT(p, SizeIs(2));
  EXPECT_EQ(p[0].by.rank, 1);
  EXPECT_EQ(p[0].fatal, "Segmentation fault");
  ASSERT_THAT(p[0].threads, SizeIs(2));
  EXPECT_TRUE(p[0].threads[1].current);
  EXPECT_TRUE(p[0].threads[1].main);
  EXPECT_EQ(p[0].threads[1].frames[0].line, 88);
  EXPECT_EQ(p[1].by.rank, 0);
  EXPECT_EQ(p[1].fatal, "");
  EXPECT_EQ(p[1].threads[0].frames[0].line, -1);
}

TEST(StackSummary, ChainsAndSentences) {
  const auto p = Read(
      "rank 0: save_checkpoint -> state_dict -> _summon_full_params -> _all_gather_base\n"
      "rank 1: train_epoch -> forward -> ... all_reduce\n"
      "rank 2: cudaStreamSynchronize after ncclSend(peer=0); ncclRecv not reached\n"
      "ranks 3-5, 7 are stuck in all_reduce (train.py:88)\n");
  ASSERT_THAT(p, SizeIs(7));
  EXPECT_THAT(Functions(p[0].threads[0]), ElementsAre("save_checkpoint", "state_dict", "_summon_full_params", "_all_gather_base"));
  EXPECT_THAT(Functions(p[1].threads[0]), ElementsAre("train_epoch", "forward", "all_reduce"));
  EXPECT_THAT(Functions(p[2].threads[0]), ElementsAre("cudaStreamSynchronize", "ncclSend"));
  EXPECT_THAT(p[2].threads[0].not_reached, ElementsAre("ncclRecv"));
  EXPECT_EQ(p[6].by.rank, 7);
  EXPECT_EQ(p[6].threads[0].frames[0].line, 88);
}

TEST(Stacks, OrdinaryLogsAreNone) {
  EXPECT_THAT(
      Read("rank 0: loss 3.2 -> 3.1\nrank 1\nProcess 5: done\n#0 something happened\nThread 3 started\nrank 2 waiting for data\n"
           "#0 all_reduce from /opt/torch/distributed/distributed_c10d.py:2501\nepoch 6 | rank 0 | val loss 1.2043 (best 1.2127) -> "
           "saving\n"),
      ::testing::Each(::testing::Field(&StackProcess::tool, "summary")));
}

TEST(Stacks, DamagedInput) {
  const std::string whole =
      "=== rank 0 ===\nProcess 10: python train.py\nThread 10 (idle): \"MainThread\"\n    wait (a.py:1)\nThread 58 (Thread 0x155 (LWP "
      "18) \"x\"):\n"
      "#0  0x000015551cd02434 in ?? () from /lib64/libcuda.so.1\nTID 7:\n#0  a<b(c\n#1\n#2  ()\nFatal Python error: x\nCurrent thread "
      "0x1 (most recent call first):\n"
      "  File \"a\", line 1 in b\nrank 0: a -> b\n[<0>] x+0x1/0x2\n";
  for (size_t i = 0; i < whole.size(); ++i) {
    Read(whole.substr(i));
    Read(whole.substr(0, i));
    std::string flipped = whole;
    flipped[i] ^= 0x80;
    Read(flipped);
  }
  Read("ranks 0-999999 -> a -> b\nranks 999999-0 -> a -> b\nrank 0: " + std::string(400, '(') + " -> a\n#0  " +
       std::string(60000, '<') + "\n");
  EXPECT_THAT(Read("Thread 99999999999999999999 (idle): \"MainThread\"\n    f (a.py:99999999999)\n"), IsEmpty());
}

}  // namespace
}  // namespace ringscope
