#include "plugin/names.h"

#include <stddef.h>
#include <string.h>

namespace ringscope::plugin {
namespace {

template <typename T>
struct Name {
  const char* text;
  T value;
};

template <typename T, size_t n>
T Lookup(const Name<T> (&names)[n], const char* text) {
  if (text == nullptr) return T{0};
  for (const Name<T>& name : names) {
    // First characters decide nearly always; strcmp only where they agree.
    if (name.text[0] == text[0] && strcmp(name.text, text) == 0) return name.value;
  }
  return T{0};
}

using flight::Algo;
using flight::DataType;
using flight::Func;
using flight::Proto;

// Ordered by how often they occur.
constexpr Name<Func> kFuncs[] = {
    {"AllReduce", Func::kAllReduce},
    {"AllGather", Func::kAllGather},
    {"ReduceScatter", Func::kReduceScatter},
    {"Send", Func::kSend},
    {"Recv", Func::kRecv},
    {"Broadcast", Func::kBroadcast},
    {"Reduce", Func::kReduce},
    {"SendRecv", Func::kSendRecv},
    {"AlltoAll", Func::kAlltoAll},
    {"Scatter", Func::kScatter},
    {"Gather", Func::kGather},
    {"AllGatherV", Func::kAllGatherV},
    {"PutSignal", Func::kPutSignal},
    {"Signal", Func::kSignal},
    {"WaitSignal", Func::kWaitSignal},
};
constexpr Name<DataType> kTypes[] = {
    {"Bfloat16", DataType::kBfloat16},     {"Float32", DataType::kFloat32},
    {"Float16", DataType::kFloat16},       {"Int8", DataType::kInt8},
    {"Int64", DataType::kInt64},           {"Int32", DataType::kInt32},
    {"Uint8", DataType::kUint8},           {"Uint32", DataType::kUint32},
    {"Uint64", DataType::kUint64},         {"Float64", DataType::kFloat64},
    {"Float8e4m3", DataType::kFloat8e4m3}, {"Float8e5m2", DataType::kFloat8e5m2},
};
constexpr Name<Algo> kAlgos[] = {
    {"RING", Algo::kRing},
    {"TREE", Algo::kTree},
    {"NVLS", Algo::kNvls},
    {"NVLS_TREE", Algo::kNvlsTree},
    {"PAT", Algo::kPat},
    {"COLLNET_DIRECT", Algo::kCollnetDirect},
    {"COLLNET_CHAIN", Algo::kCollnetChain},
};
constexpr Name<Proto> kProtos[] = {
    {"SIMPLE", Proto::kSimple}, {"LL", Proto::kLl}, {"LL128", Proto::kLl128}};

}  // namespace

Func FuncOf(const char* name) { return Lookup(kFuncs, name); }
DataType DataTypeOf(const char* name) {
  if (name == nullptr || strncmp(name, "nccl", 4) != 0) return DataType::kUnknown;
  return Lookup(kTypes, name + 4);
}
Algo AlgoOf(const char* name) { return Lookup(kAlgos, name); }
Proto ProtoOf(const char* name) { return Lookup(kProtos, name); }

// NCCL's ncclFunc_t in 2.23 (Broadcast 0 ... Recv 7); its ncclDataType_t (Int8 0 ... Float8e5m2
// 11), NCCL_ALGO_* and NCCL_PROTO_* of all releases. Ours are the same, one higher, but for the
// functions, which 2.28 has continued in an order of its own.
Func FuncOf(uint8_t number) { return number <= 7 ? static_cast<Func>(number + 1) : Func::kUnknown; }
DataType DataTypeOf(uint8_t number) {
  return number <= 11 ? static_cast<DataType>(number + 1) : DataType::kUnknown;
}
Algo AlgoOf(uint8_t number) { return number <= 6 ? static_cast<Algo>(number + 1) : Algo::kUnknown; }
Proto ProtoOf(uint8_t number) {
  return number <= 2 ? static_cast<Proto>(number + 1) : Proto::kUnknown;
}
static_assert(static_cast<int>(Func::kBroadcast) == 1 && static_cast<int>(Func::kReduce) == 2 &&
              static_cast<int>(Func::kAllGather) == 3 &&
              static_cast<int>(Func::kReduceScatter) == 4 &&
              static_cast<int>(Func::kAllReduce) == 5 && static_cast<int>(Func::kSendRecv) == 6 &&
              static_cast<int>(Func::kSend) == 7 && static_cast<int>(Func::kRecv) == 8);
static_assert(static_cast<int>(DataType::kInt8) == 1 && static_cast<int>(DataType::kFloat16) == 7 &&
              static_cast<int>(DataType::kBfloat16) == 10 &&
              static_cast<int>(DataType::kFloat8e5m2) == 12);
static_assert(static_cast<int>(Algo::kTree) == 1 && static_cast<int>(Algo::kRing) == 2 &&
              static_cast<int>(Algo::kPat) == 7 && static_cast<int>(Proto::kLl) == 1 &&
              static_cast<int>(Proto::kSimple) == 3);

}  // namespace ringscope::plugin
