// Where NCCL's own plugin headers are installed, our declarations must agree with them. Nothing is generated.
#include "plugin/abi.h"

#if __has_include(<nccl/profiler_v5.h>)
#include <nccl/profiler_v5.h>
static_assert(sizeof(ncclProfilerEventDescr_v5_t) == sizeof(ringscope::abi::v5::Descr));
static_assert(sizeof(ncclProfiler_v5_t) == sizeof(ringscope::abi::TableV5));
#endif
