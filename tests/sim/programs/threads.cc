// Ranks as threads of one process: threads N [OPERATIONS]. Each rank has a communicator and a stream; the operations are
// all-reduces with a broadcast and a reduction now and then, each checked. Exit status 0: all right.
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/sim/include/cuda_runtime.h"
#include "tests/sim/include/nccl.h"
#include "tests/sim/setup/number.h"

namespace {

constexpr size_t kCount = 256;
std::atomic<int> wrong{0};

bool Check(bool right, int rank, const char* what) {
  if (right) return true;
  if (wrong.fetch_add(1) < 5) fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncclGetLastError(nullptr));
  return false;
}

void Rank(int rank, int n, int operations, ncclUniqueId id) {
  cudaSetDevice(rank % 8);
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  if (!Check(ncclCommInitRank(&comm, n, id, rank) == ncclSuccess, rank, "ncclCommInitRank") ||
      !Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, rank, "cudaStreamCreate"))
    return;
  std::vector<int> data(kCount);
  for (int op = 0; op < operations; ++op) {
    const int root = op * 7 % n;
    for (int& value : data) value = rank + op;
    int64_t want = int64_t{n} * (n - 1) / 2 + int64_t{op} * n;
    ncclResult_t result;
    bool mine = true;
    if (op % 10 == 4) {
      result = ncclBroadcast(data.data(), data.data(), kCount, ncclInt32, root, comm, stream);
      want = root + op;
    } else if (op % 10 == 8) {
      result = ncclReduce(data.data(), data.data(), kCount, ncclInt32, ncclSum, root, comm, stream);
      mine = rank == root;
    } else {
      result = ncclAllReduce(data.data(), data.data(), kCount, ncclInt32, ncclSum, comm, stream);
    }
    Check(result == ncclSuccess && cudaStreamSynchronize(stream) == cudaSuccess, rank, "operation");
    for (const int value : data) {
      if (mine && !Check(value == want, rank, "wrong result")) break;
    }
  }
  Check(ncclCommDestroy(comm) == ncclSuccess && cudaStreamDestroy(stream) == cudaSuccess, rank, "end");
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = ringscope::sim::Whole(argc > 1 ? argv[1] : "8", 1, 4096);
  const auto asked = ringscope::sim::Whole(argc > 2 ? argv[2] : "20", 1, 1000000);
  if (argc > 3 || !wanted || !asked) {
    fprintf(stderr, "usage: threads [RANKS [OPERATIONS]]; 1 to 4096 ranks, 1 to 1000000 operations\n");
    return 64;
  }
  const int n = static_cast<int>(*wanted), operations = static_cast<int>(*asked);
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) {
    fprintf(stderr, "threads: ncclGetUniqueId: %s\n", ncclGetLastError(nullptr));
    return 70;
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < n; ++rank) ranks.emplace_back(Rank, rank, n, operations, id);
  for (std::thread& t : ranks) t.join();
  printf("%d ranks as threads, %d operations: %.1f s\n", n, operations,
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return wrong.load() == 0 ? 0 : 1;
}
