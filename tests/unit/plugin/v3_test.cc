// Table v3 (NCCL 2.26): KernelCh with start and stop, no state between them and no GPU times.
#include <gtest/gtest.h>

#include "tests/unit/plugin/early_nccl.h"

namespace ringscope::testing {
namespace {

void* Kernel(const EarlyComm<V3>& comm, void* coll, uint8_t channel) {
  auto d = comm.Make(abi::kKernelCh, coll);
  d.kernel_ch.channel = channel;
  return comm.Start(d);
}

TEST(V3, OperationEndsWhenEveryKernelThatStartedHasStopped) {
  EarlyComm<V3> comm(41);
  void* coll = comm.Enqueue();
  EXPECT_TRUE(flight::OpOpen(OpRow(coll), true, 0));
  void *a = Kernel(comm, coll, 0), *b = Kernel(comm, coll, 1);
  EXPECT_EQ(KernelsStarted(OpRow(coll)), 2u);
  comm.Stop(a);
  EXPECT_TRUE(flight::OpOpen(OpRow(coll), true, 0));
  comm.Stop(b);
  EXPECT_FALSE(flight::OpOpen(OpRow(coll), true, 0));
  EXPECT_EQ(Load(OpRow(coll).gpu_started), 0u);
  EXPECT_EQ(Load(OpRow(coll).gpu_finished), 0u);
  EXPECT_NE(Load(OpRow(coll).finished), 0u);
  EXPECT_EQ(Load(comm.Row().completed), 1u);
  comm.Finalize();
}

TEST(V3, KernelChOfAPointToPointTask) {
  EarlyComm<V3> comm(42);
  void* group = comm.Group();
  void* send = comm.P2p(group, true, 1);
  comm.Stop(send);
  comm.Stop(group);
  comm.Stop(Kernel(comm, send, 0));
  EXPECT_FALSE(flight::OpOpen(OpRow(send), true, 0));
  comm.Finalize();
}

}  // namespace
}  // namespace ringscope::testing
