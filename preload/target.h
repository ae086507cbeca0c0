// The real function behind a wrapper: the one that the caller would have been bound to.
#ifndef RINGSCOPE_PRELOAD_TARGET_H_
#define RINGSCOPE_PRELOAD_TARGET_H_

#include <stdint.h>

#include <atomic>

namespace ringscope::preload {

enum class Library : uint32_t { kNccl, kCudaRuntime, kCudaDriver };

// Of one function, for the object that called last. Several objects of one process can be bound to different libraries of one
// name (two NCCLs, say): what is found holds for callers between `low` and `high` only. Zero-initialised, never destroyed.
struct Target {
  std::atomic<uint64_t> turn;  // odd while somebody writes
  std::atomic<uintptr_t> low, high, function;
  std::atomic<uintptr_t> entry;  // what the driver handed out by name (entry_points.cc); 0: nothing
};
// By the function's number in host_calls.def.
constexpr uint32_t kMostNumbers = 320;
extern Target g_targets[kMostNumbers];

// Looked for in this order: what the caller's own object and its dependencies have; what comes after us in the search order of
// the process; a loaded library of the usual name; any loaded object that has it. Of NCCL the name with a "p" in front is taken,
// which is the same code under a name that nobody interposes (NCCL's documentation, "profiling"). nullptr: there is none. `own`
// is the wrapper, which must not be found. errno is preserved.
void* Find(Target* target, Library library, const char* name, const void* caller, const void* own);

// What a call returns when there is no real function: NCCL's system error, CUDA's "shared object symbol not found".
constexpr int NotFound(Library library) { return library == Library::kNccl ? 2 : 302; }

}  // namespace ringscope::preload

#endif  // RINGSCOPE_PRELOAD_TARGET_H_
