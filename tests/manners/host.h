// A process that uses the library as NCCL does: dlopen, the ncclProfiler_v6 table, callbacks in NCCL's order.
#ifndef RINGSCOPE_TESTS_MANNERS_HOST_H_
#define RINGSCOPE_TESTS_MANNERS_HOST_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "bench/driver.h"

namespace ringscope::manners {

class Host {
 public:
  // Ends the process with status 99 when the library cannot be loaded.
  explicit Host(const char* library) : library_(library) { Load(); }

  // One communicator of two ranks. Returns its context.
  void* Init(uint64_t id = 7, int rank = 0) {
    void* context = nullptr;
    mask_ = 0;
    table_->init(&context, id, &mask_, "world", 1, 2, rank, &IgnoreLog);
    return context;
  }
  void Finalize(void* context) { table_->finalize(context); }
  // `n` collectives of one channel, from their call to their end on the GPU.
  void Complete(void* context, uint64_t n = 1) {
    bench::Direct call{table_, context};
    bench::Driver<bench::Direct> driver(call, 6, 0);
    for (uint64_t i = 0; i < n; ++i) driver.Collective(1);
  }
  // One that was enqueued and does not end.
  void Open(void* context) {
    bench::Direct call{table_, context};
    bench::Driver<bench::Direct> driver(call, 6, 0);
    driver.Enqueue(1);
  }
  // As NCCL does when its last communicator goes, and when the next one comes.
  void Unload() { dlclose(handle_); }
  void Load() {
    handle_ = dlopen(library_, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      table_ = static_cast<const bench::Table*>(dlsym(handle_, "ncclProfiler_v6"));
    }
    if (handle_ == nullptr || table_ == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      _exit(99);
    }
  }
  int mask() const { return mask_; }  // events that the library asked for at the newest Init

 private:
  static void IgnoreLog(int, unsigned long, const char*, int, const char*, ...) {}

  const char* library_;
  void* handle_ = nullptr;
  const bench::Table* table_ = nullptr;
  int mask_ = 0;
};

}  // namespace ringscope::manners

#endif  // RINGSCOPE_TESTS_MANNERS_HOST_H_
