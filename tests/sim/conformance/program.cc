// The program of a capture: conformance_program ID_FILE OP..., with RANK, WORLD_SIZE. An OP is what the captures' logs say with
// colons, "ar:f32:16:2": all-reduce, float32, 16 elements, twice in one group. ar ag rs bc rd (to rank 0), sr (to the next rank,
// from the one before), a2a (sends and receives in one group).
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "tests/sim/include/cuda_runtime.h"
#include "tests/sim/include/nccl.h"

namespace {

struct Type {
  ncclDataType_t type;
  size_t size;
};
const std::map<std::string, Type> kTypes = {{"f64", {ncclFloat64, 8}},   {"f32", {ncclFloat32, 4}}, {"f16", {ncclFloat16, 2}},
                                            {"bf16", {ncclBfloat16, 2}}, {"i64", {ncclInt64, 8}},   {"i32", {ncclInt32, 4}},
                                            {"u8", {ncclUint8, 1}},      {"i8", {ncclInt8, 1}}};

void Check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "%s: %s\n", what, ncclGetLastError(nullptr));
  exit(1);
}

ncclUniqueId Id(const std::string& file, int rank) {
  ncclUniqueId id;
  if (rank == 0) {
    Check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    FILE* f = fopen((file + ".new").c_str(), "wb");
    if (f == nullptr || fwrite(&id, sizeof(id), 1, f) != 1 || fclose(f) != 0 ||
        rename((file + ".new").c_str(), file.c_str()) != 0)
      exit(2);
    return id;
  }
  FILE* f = nullptr;
  while ((f = fopen(file.c_str(), "rb")) == nullptr) usleep(5000);
  if (fread(&id, sizeof(id), 1, f) != 1) exit(2);
  fclose(f);
  return id;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const int rank = atoi(getenv("RANK")), n = atoi(getenv("WORLD_SIZE"));
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  const ncclUniqueId id = Id(argv[1], rank);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Check(ncclCommInitRank(&comm, n, id, rank), "ncclCommInitRank");
  for (int i = 2; i < argc; ++i) {
    char what[8], type_name[8];
    size_t count = 0;
    int times = 0;
    if (sscanf(argv[i], "%7[^:]:%7[^:]:%zu:%d", what, type_name, &count, &times) != 4) return 64;
    const std::string op = what, name = type_name;
    const auto found = kTypes.find(name);
    if (found == kTypes.end()) return 64;
    const auto [type, size] = found->second;
    const size_t all = count * size * static_cast<size_t>(n);
    std::vector<char> from(all), to(all);
    const bool group = times > 1 || op == "sr" || op == "a2a";
    if (group) Check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < times; ++k) {
      if (op == "ar") Check(ncclAllReduce(from.data(), to.data(), count, type, ncclSum, comm, stream), "ncclAllReduce");
      if (op == "ag") Check(ncclAllGather(from.data(), to.data(), count, type, comm, stream), "ncclAllGather");
      if (op == "rs") Check(ncclReduceScatter(from.data(), to.data(), count, type, ncclSum, comm, stream), "ncclReduceScatter");
      if (op == "bc") Check(ncclBroadcast(from.data(), to.data(), count, type, 0, comm, stream), "ncclBroadcast");
      if (op == "rd") Check(ncclReduce(from.data(), to.data(), count, type, ncclSum, 0, comm, stream), "ncclReduce");
      for (int peer = 0; peer < n; ++peer) {
        const size_t at = count * size * static_cast<size_t>(peer);
        if (op == "a2a" || (op == "sr" && peer == (rank + 1) % n))
          Check(ncclSend(from.data() + at, count, type, peer, comm, stream), "ncclSend");
        if (op == "a2a" || (op == "sr" && peer == (rank + n - 1) % n))
          Check(ncclRecv(to.data() + at, count, type, peer, comm, stream), "ncclRecv");
      }
    }
    if (group) Check(ncclGroupEnd(), "ncclGroupEnd");
    if (cudaStreamSynchronize(stream) != cudaSuccess) return 1;
  }
  Check(ncclCommFinalize(comm), "ncclCommFinalize");
  Check(ncclCommDestroy(comm), "ncclCommDestroy");
  return 0;
}
