// Profiler API v5: NCCL 2.28, and 2.29-2.30 through a shim that drops copy-engine events.
#include "plugin/v5.h"

namespace ringscope::plugin {
namespace {

int InitV5(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
           abi::LogFn) {
  return Init(context, mask, {id, name, nodes, ranks, rank, 5, __builtin_return_address(0)});
}
int StartV5Event(void* context, void** handle, abi::v5::Descr* d) {
  return StartV5(context, handle, d);
}

}  // namespace
}  // namespace ringscope::plugin

extern "C" __attribute__((visibility("default")))
const ringscope::abi::TableV5 ncclProfiler_v5 = {"Ringscope",
                                                 ringscope::plugin::InitV5,
                                                 ringscope::plugin::StartV5Event,
                                                 ringscope::plugin::StopEvent,
                                                 ringscope::plugin::RecordState,
                                                 ringscope::plugin::Finalize};
