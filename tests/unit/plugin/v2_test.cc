// Table v2 (NCCL 2.24, 2.25): names as texts, traffic.
#include <gtest/gtest.h>

#include "tests/unit/plugin/early_nccl.h"

namespace ringscope::testing {
namespace {

TEST(V2, TrafficOfAReduceScatterTellsTheSize) {
  EarlyComm<V2> comm(31, 0);
  auto d = comm.Make(abi::kColl, comm.Group());
  d.coll.hash = 31;
  d.coll.count = 1000;
  d.coll.root = 0;
  V2::Name(&d);
  d.coll.func = "ReduceScatter";
  d.coll.traffic = 16000;
  comm.Start(d);
  EXPECT_EQ(Load(comm.Row().ranks), uint64_t{4} << 32);
  comm.Finalize();
}

TEST(V2, TypesWithoutANameTellNoSize) {
  EarlyComm<V2> comm(32, 0);
  auto d = comm.Make(abi::kColl, comm.Group());
  d.coll.hash = 32;
  d.coll.count = 1000;
  d.coll.root = 0;
  V2::Name(&d);
  d.coll.func = "ReduceScatter";
  d.coll.datatype = "Unknown";
  d.coll.traffic = 8000;
  void* coll = comm.Start(d);
  EXPECT_EQ(Load(comm.Row().ranks) >> 32, 0u);
  EXPECT_EQ(Load(OpRow(coll).stamp) >> 56, 0u);
  comm.Finalize();
}

TEST(V2, KernelChIsNotReadOutOfADescriptorThatHasNone) {
  EarlyComm<V2> comm(33);
  void* coll = comm.Enqueue();
  EXPECT_EQ(comm.Start(comm.Make(abi::kKernelCh, coll)), nullptr);
  EXPECT_NE(flight::Generation(Load(OpRow(coll).kernel)),
            flight::Generation(Load(OpRow(coll).stamp)))
      << "the lane is not of this operation";
  comm.Finalize();
}

}  // namespace
}  // namespace ringscope::testing
