// A library that is linked to one of the two.
#include <stddef.h>

struct NcclId {
  char bytes[128];
};
extern "C" int ncclCommInitRank(void** comm, int n, NcclId id, int rank);
extern "C" int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, void* comm, void* stream);
extern "C" int Use() {
  void* comm = nullptr;
  const int made = ncclCommInitRank(&comm, 1, {}, 0);
  return made != 0 ? made : ncclAllReduce(&comm, &comm, 1, 7, 0, comm, nullptr);
}
