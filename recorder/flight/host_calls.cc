#include "recorder/flight/host_calls.h"

namespace ringscope::flight {
namespace {

// What host_calls.def calls its libraries.
constexpr HostLibrary NCCL = HostLibrary::kNccl, NCCL_NEW = HostLibrary::kNccl, CUDART = HostLibrary::kCudaRuntime,
                      CUDA = HostLibrary::kCudaDriver;
#define RINGSCOPE_CALL(library, number, name, parameters, arguments, detail) {number, library, #name},
constexpr HostCallInfo kCalls[] = {
#include "recorder/flight/host_calls.def"
};
#undef RINGSCOPE_CALL

}  // namespace

HostCallInfo HostCallOf(uint32_t number) {
  for (const HostCallInfo& call : kCalls) {
    if (call.number == number) return call;
  }
  return {0, HostLibrary::kNone, ""};
}

}  // namespace ringscope::flight
