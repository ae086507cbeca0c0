// libnccl, libcudart and libcuda by the list of wrapped functions (recorder/flight/host_calls.def): each prints its name and
// returns 0, or what RINGSCOPE_FAKE_RESULT says; ncclCommInitRank hands out a communicator. One source, a library each.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct NcclId {
  char bytes[128];
};

namespace {

int Answer(const char* name) {
  fprintf(stdout, "%s\n", name);
  const char* result = getenv("RINGSCOPE_FAKE_RESULT");  // "cudaMalloc=2"
  const size_t n = strlen(name);
  if (result != nullptr && strncmp(result, name, n) == 0 && result[n] == '=') return atoi(result + n + 1);
  return 0;
}
template <typename T>
void Hand(T) {}
[[maybe_unused]] void Hand(void** made) {
  static char comms[64];
  static int used = 0;
  if (made != nullptr) *made = &comms[++used % 64];
}
[[maybe_unused]] int All() { return 0; }
template <typename First, typename... Rest>
void All(First first, Rest...) {
  Hand(first);
}

}  // namespace

#define RINGSCOPE_DEFINE(number, name, parameters, arguments, detail) \
  extern "C" int name parameters {                                    \
    All arguments;                                                    \
    return Answer(#name);                                             \
  }
#ifdef RINGSCOPE_FAKE_NCCL
#define RINGSCOPE_FAKE_OF_NCCL RINGSCOPE_DEFINE
#define RINGSCOPE_FAKE_OF_NCCL_NEW RINGSCOPE_DEFINE
extern "C" int ncclCommUserRank(void*, int* rank) { return *rank = 0; }
extern "C" int ncclCommCount(void*, int* n) {
  *n = 1;
  return 0;
}
#else
#define RINGSCOPE_FAKE_OF_NCCL(...)
#define RINGSCOPE_FAKE_OF_NCCL_NEW(...)
#endif
#ifdef RINGSCOPE_FAKE_CUDART
#define RINGSCOPE_FAKE_OF_CUDART RINGSCOPE_DEFINE
#else
#define RINGSCOPE_FAKE_OF_CUDART(...)
#endif
#ifdef RINGSCOPE_FAKE_CUDA
#define RINGSCOPE_FAKE_OF_CUDA RINGSCOPE_DEFINE
#else
#define RINGSCOPE_FAKE_OF_CUDA(...)
#endif
#define RINGSCOPE_CALL(library, ...) RINGSCOPE_FAKE_OF_##library(__VA_ARGS__)
#include "recorder/flight/host_calls.def"
