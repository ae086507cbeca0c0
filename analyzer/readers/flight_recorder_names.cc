// Names as in torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (profilingTitle), torch 2.2 to 2.13, and
// torch/distributed/flight_recorder/components/types.py; c10/core/ScalarType.h for types.
#include "analyzer/readers/flight_recorder_names.h"

#include "analyzer/ingest/scan.h"

namespace ringscope::ingest {
namespace {

struct Known {
  std::string_view name;
  trace::Func func;
  DumpOp::Counts counts = DumpOp::Counts::kInput;
  bool varies = false;
};

constexpr auto kOut = DumpOp::Counts::kOutput;
constexpr auto kIn = DumpOp::Counts::kInput;

constexpr Known kKnown[] = {
    {"all_reduce", trace::ALL_REDUCE},
    {"allreduce", trace::ALL_REDUCE},
    {"allreduce_coalesced", trace::ALL_REDUCE},
    {"all_reduce_coalesced", trace::ALL_REDUCE},
    {"all_reduce_sparse", trace::ALL_REDUCE},
    // A barrier is an all-reduce of one element.
    {"all_reduce_barrier", trace::ALL_REDUCE},
    {"barrier", trace::ALL_REDUCE},
    {"broadcast", trace::BROADCAST, kOut},
    // Parts of an uneven all_gather and reduce_scatter: one call for each rank's share.
    {"_broadcast_oop", trace::BROADCAST, kOut},
    {"reduce", trace::REDUCE},
    {"_reduce_oop", trace::REDUCE},
    {"all_gather", trace::ALL_GATHER},
    {"allgather", trace::ALL_GATHER},
    {"_all_gather_base", trace::ALL_GATHER},
    {"_allgather_base", trace::ALL_GATHER},
    {"all_gather_single", trace::ALL_GATHER},
    {"all_gather_into_tensor", trace::ALL_GATHER},
    {"all_gather_into_tensor_coalesced", trace::ALL_GATHER},
    {"allgather_coalesced", trace::ALL_GATHER},
    {"all_gather_v", trace::ALL_GATHER_V, kIn, true},
    {"reduce_scatter", trace::REDUCE_SCATTER, kOut},
    {"_reduce_scatter_base", trace::REDUCE_SCATTER, kOut},
    {"reduce_scatter_single", trace::REDUCE_SCATTER, kOut},
    {"reduce_scatter_tensor", trace::REDUCE_SCATTER, kOut},
    {"reduce_scatter_tensor_coalesced", trace::REDUCE_SCATTER, kOut},
    {"reduce_scatter_v", trace::REDUCE_SCATTER, kOut, true},
    {"gather", trace::GATHER},
    {"scatter", trace::SCATTER, kOut},
    {"all_to_all", trace::ALL_TO_ALL, kIn, true},
    {"alltoall", trace::ALL_TO_ALL, kIn, true},
    {"alltoall_base", trace::ALL_TO_ALL, kIn, true},
    {"all_to_all_single", trace::ALL_TO_ALL, kIn, true},
    {"all_to_all_v_single", trace::ALL_TO_ALL, kIn, true},
    {"send", trace::SEND},
    {"recv", trace::RECV, kOut},
};

struct Type {
  std::string_view name;
  trace::DataType type;
};
constexpr Type kTypes[] = {
    {"Float", trace::FLOAT32},
    {"BFloat16", trace::BFLOAT16},
    {"Half", trace::FLOAT16},
    {"Long", trace::INT64},
    {"Int", trace::INT32},
    {"Byte", trace::UINT8},
    {"Bool", trace::UINT8},
    {"Char", trace::INT8},
    {"Double", trace::FLOAT64},
    {"UInt64", trace::UINT64},
    {"UInt32", trace::UINT32},
    {"Float8_e4m3fn", trace::FLOAT8_E4M3},
    {"Float8_e5m2", trace::FLOAT8_E5M2},
    {"Float8_e4m3fnuz", trace::FLOAT8_E4M3},
    {"Float8_e5m2fnuz", trace::FLOAT8_E5M2},
};

}  // namespace

DumpOp ParseDumpOp(std::string_view name) {
  DumpOp op;
  if (const size_t colon = name.find(':'); colon != name.npos && colon < 24) name.remove_prefix(colon + 1);
  const size_t blank = name.find(' ');
  const std::string_view verb = name.substr(0, blank);
  if (verb == "coalesced" || verb == "ALLGATHER_coalesced" || verb == "REDUCE_SCATTER_coalesced") {
    op.group_end = true;
    return op;
  }
  for (const Known& known : kKnown) {
    if (verb != known.name) continue;
    op.func = known.func;
    op.counts = known.counts;
    op.varies = known.varies;
    break;
  }
  if ((op.func == trace::SEND || op.func == trace::RECV) && blank != name.npos) {
    Scan scan(name.substr(blank + 1));
    int64_t left = 0, right = 0;
    if (scan.Number(&left, 1, 8) && scan.Literal(op.func == trace::SEND ? "->" : "<-") && scan.Number(&right, 1, 8)) {
      op.own = static_cast<int>(left);
      op.peer = static_cast<int>(right);
    }
  }
  return op;
}

trace::DataType ParseTorchType(std::string_view name) {
  for (const Type& type : kTypes) {
    if (name == type.name) return type.type;
  }
  return trace::TYPE_UNKNOWN;
}

}  // namespace ringscope::ingest
