// How PyTorch's flight recorder spells operations and types.
#ifndef RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_NAMES_H_
#define RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_NAMES_H_

#include <string_view>

#include "proto/trace.pb.h"

namespace ringscope::ingest {

// "nccl:all_reduce", "xccl:send 0->1", "nccl:coalesced": backend, operation, for messages both ranks in the process group.
struct DumpOp {
  trace::Func func = trace::FUNC_UNKNOWN;
  // Which side's elements are what NCCL counts.
  enum class Counts : char { kInput, kOutput } counts = Counts::kInput;
  bool varies = false;     // ranks may pass different sizes
  bool group_end = false;  // stands for the whole of a coalesced group
  int own = -1, peer = -1;
};
DumpOp ParseDumpOp(std::string_view name);

// "Float", "BFloat16", "Long"…; TYPE_UNKNOWN for what NCCL has no type for.
trace::DataType ParseTorchType(std::string_view name);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_NAMES_H_
