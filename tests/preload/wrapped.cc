// Calls every function of the list once, the creation of a communicator first, with arguments that are told apart; prints what
// came back. The libraries behind it (fake.cc) print what they were called.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <type_traits>

struct NcclId {
  char bytes[128];
};
#define RINGSCOPE_CALL(library, number, name, parameters, arguments, detail) extern "C" int name parameters;
#include "recorder/flight/host_calls.def"
#undef RINGSCOPE_CALL

namespace {

// A value of any type that no real function would mind.
struct Any {
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  operator T() const {
    return static_cast<T>(64);
  }
  template <typename T>
  operator T*() const {
    static uint64_t memory[64];
    return reinterpret_cast<T*>(memory);
  }
  operator NcclId() const { return {}; }
};
template <typename... A>
int Call(int (*function)(A...)) {
  return function(static_cast<A>(Any())...);
}

}  // namespace

int main() {
  NcclId id = {{1, 2, 3}};
  void* comm = nullptr;
  printf("-> %d\n", ncclCommInitRank(&comm, 4, id, 2));
  printf("-> %d\n", ncclAllReduce(&id, &id, 1000, 7, 0, comm, nullptr));
#define RINGSCOPE_CALL(library, number, name, parameters, arguments, detail) printf("-> %d\n", Call(&name));
#include "recorder/flight/host_calls.def"
  return 0;
}
