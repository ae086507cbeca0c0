// Table v1 (NCCL 2.23): NCCL's numbers for its names, and the size of the communicator in the
// traffic.
#include <gtest/gtest.h>

#include "plugin/names.h"
#include "tests/unit/plugin/early_nccl.h"

namespace ringscope::testing {
namespace {

using flight::Func;
using plugin::AlgoOf;
using plugin::DataTypeOf;
using plugin::FuncOf;
using plugin::ProtoOf;

TEST(V1, NumbersAreNccls) {
  const char* const funcs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                               "AllReduce", "SendRecv", "Send",      "Recv"};
  for (uint8_t i = 0; i < 8; ++i) EXPECT_EQ(FuncOf(i), FuncOf(funcs[i])) << funcs[i];
  const char* const types[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                               "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                               "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  for (uint8_t i = 0; i < 12; ++i) EXPECT_EQ(DataTypeOf(i), DataTypeOf(types[i])) << types[i];
  const char* const algos[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                               "NVLS_TREE", "PAT"};
  for (uint8_t i = 0; i < 7; ++i) EXPECT_EQ(AlgoOf(i), AlgoOf(algos[i])) << algos[i];
  const char* const protos[] = {"LL", "LL128", "SIMPLE"};
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(ProtoOf(i), ProtoOf(protos[i])) << protos[i];
  EXPECT_EQ(FuncOf(uint8_t{8}), Func::kUnknown);
  EXPECT_EQ(DataTypeOf(uint8_t{12}), flight::DataType::kUnknown);
  EXPECT_EQ(AlgoOf(uint8_t{255}), flight::Algo::kUnknown);
  EXPECT_EQ(ProtoOf(uint8_t{3}), flight::Proto::kUnknown);
}

TEST(V1, TrafficOfAnAllGatherTellsTheSize) {
  EarlyComm<V1> comm(21, 2);
  auto d = comm.Make(abi::kColl, comm.Group());
  d.coll.hash = 21;
  d.coll.count = 1000;
  d.coll.root = 0;
  V1::Name(&d);
  d.coll.traffic = 8000;  // an all-reduce: twice the bytes, whatever the size
  comm.Start(d);
  EXPECT_EQ(Load(comm.Row().ranks) >> 32, 0u);
  d.coll.func = 2;  // AllGather, which NCCL counts in bytes
  d.coll.datatype = 0;
  d.coll.traffic = 16001;
  comm.Start(d);
  EXPECT_EQ(Load(comm.Row().ranks) >> 32, 0u) << "no multiple: not believed";
  d.coll.traffic = 2000;
  comm.Start(d);
  EXPECT_EQ(Load(comm.Row().ranks) >> 32, 0u) << "rank 2 is not one of two";
  d.coll.traffic = 16000;
  comm.Start(d);
  EXPECT_EQ(Load(comm.Row().ranks), 2 | uint64_t{16} << 32);
  EXPECT_EQ(Load(comm.Row().comm_id), 21u);
  comm.Finalize();
}

TEST(V1, KernelChIsNotReadOutOfADescriptorThatHasNone) {
  EarlyComm<V1> comm(22);
  void* coll = comm.Enqueue();
  EXPECT_EQ(comm.Start(comm.Make(abi::kKernelCh, coll)), nullptr);
  EXPECT_NE(flight::Generation(Load(OpRow(coll).kernel)),
            flight::Generation(Load(OpRow(coll).stamp)))
      << "the lane is not of this operation";
  comm.Finalize();
}

}  // namespace
}  // namespace ringscope::testing
