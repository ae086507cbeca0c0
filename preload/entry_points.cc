// Functions that a program asks the driver for by name (cudaGetDriverEntryPoint, cuGetProcAddress): where the list has a wrapper
// for it, the program gets that, and the wrapper calls what the driver handed out.
#include <string.h>

#include "preload/wrap.h"

#define RINGSCOPE_DECLARE_NCCL(...)
#define RINGSCOPE_DECLARE_NCCL_NEW(...)
#define RINGSCOPE_DECLARE_CUDART(...)
#define RINGSCOPE_DECLARE_CUDA(number, name, parameters, ...) RINGSCOPE_EXPORT int name parameters;
#define RINGSCOPE_CALL(library, ...) RINGSCOPE_DECLARE_##library(__VA_ARGS__)
#include "recorder/flight/host_calls.def"
#undef RINGSCOPE_CALL

namespace {

struct Wrapper {
  uint32_t number;
  const char* name;
  void* function;
};
#define RINGSCOPE_ROW_NCCL(...)
#define RINGSCOPE_ROW_NCCL_NEW(...)
#define RINGSCOPE_ROW_CUDART(...)
#define RINGSCOPE_ROW_CUDA(number, name, ...) {number, #name, reinterpret_cast<void*>(&name)},
#define RINGSCOPE_CALL(library, ...) RINGSCOPE_ROW_##library(__VA_ARGS__)

const Wrapper* WrapperOf(const char* symbol, unsigned long long flags) {
  static const Wrapper kWrappers[] = {
#include "recorder/flight/host_calls.def"
  };
  constexpr unsigned long long kPerThread = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, cudaEnablePerThreadDefaultStream
  const size_t n = strlen(symbol);
  for (const Wrapper& w : kWrappers) {
    if (strncmp(w.name, symbol, n) != 0) continue;
    // The driver hands out the newest version of a function that was revised ("_v2").
    const char* rest = w.name + n;
    if (strncmp(rest, "_v2", 3) == 0) rest += 3;
    const bool per_thread = strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_ptds") == 0;
    if (*rest != 0 && !per_thread) continue;
    if (per_thread == ((flags & kPerThread) != 0)) return &w;
  }
  return nullptr;
}

// Nothing before the first communicator: who asks then keeps the driver's own.
void Replace(const char* symbol, void** function, unsigned long long flags, int result) {
  if (result != 0 || symbol == nullptr || function == nullptr || *function == nullptr) return;
  if (recorder::Current() == nullptr || t_depth != 0) return;
  const Wrapper* wrapper = WrapperOf(symbol, flags);
  if (wrapper == nullptr || *function == wrapper->function) return;
  uintptr_t none = 0;
  const auto real = reinterpret_cast<uintptr_t>(*function);
  // Two different ones under one name (two drivers' versions): the second one is left alone.
  if (!g_targets[wrapper->number].entry.compare_exchange_strong(none, real, std::memory_order_acq_rel) && none != real) return;
  *function = wrapper->function;
}

}  // namespace

#define RINGSCOPE_ENTRY(library, number, name, parameters, arguments)                                                 \
  RINGSCOPE_EXPORT int name parameters {                                                                              \
    const auto real = reinterpret_cast<int(*) parameters>(                                                            \
        Find(&g_targets[number], library, #name, __builtin_return_address(0), reinterpret_cast<const void*>(&name))); \
    if (real == nullptr) return NotFound(library);                                                                    \
    const int result = real arguments;                                                                                \
    Replace(symbol, function, flags, result);                                                                         \
    return result;                                                                                                    \
  }

// (CUDA 11's has no last parameter; one too many does no harm in the C ABI.)
RINGSCOPE_ENTRY(Library::kCudaRuntime, 300, cudaGetDriverEntryPoint,
                (const char* symbol, void** function, unsigned long long flags, void* status), (symbol, function, flags, status))
RINGSCOPE_ENTRY(Library::kCudaRuntime, 301, cudaGetDriverEntryPointByVersion,
                (const char* symbol, void** function, unsigned version, unsigned long long flags, void* status),
                (symbol, function, version, flags, status))
RINGSCOPE_ENTRY(Library::kCudaDriver, 302, cuGetProcAddress,
                (const char* symbol, void** function, int version, unsigned long long flags), (symbol, function, version, flags))
RINGSCOPE_ENTRY(Library::kCudaDriver, 303, cuGetProcAddress_v2,
                (const char* symbol, void** function, int version, unsigned long long flags, void* status),
                (symbol, function, version, flags, status))
