// An NCCL that says which one it is.
#include <stddef.h>
#include <stdio.h>

struct NcclId {
  char bytes[128];
};
extern "C" {
int ncclCommInitRank(void** comm, int, NcclId, int) {
  static char one;
  *comm = &one;
  printf("init in " RINGSCOPE_WHICH "\n");
  return 0;
}
int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*) {
  printf("all-reduce in " RINGSCOPE_WHICH "\n");
  return 0;
}
int ncclCommUserRank(void*, int* rank) { return *rank = 0; }
int ncclCommCount(void*, int* n) {
  *n = 1;
  return 0;
}
}
