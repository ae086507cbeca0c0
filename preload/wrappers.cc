// host_calls.def, expanded: a function of the library for each line.
#include "preload/wrap.h"

#define RINGSCOPE_WRAP_NCCL(...) RINGSCOPE_WRAP(Library::kNccl, __VA_ARGS__)
#define RINGSCOPE_WRAP_CUDART(...) RINGSCOPE_WRAP(Library::kCudaRuntime, __VA_ARGS__)
#define RINGSCOPE_WRAP_CUDA(...) RINGSCOPE_WRAP(Library::kCudaDriver, __VA_ARGS__)
#define RINGSCOPE_WRAP_NCCL_NEW(...)  // newer/

#define RINGSCOPE_CALL(library, ...) RINGSCOPE_WRAP_##library(__VA_ARGS__)
#include "recorder/flight/host_calls.def"
