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

}  // namespace ringscope::plugin
