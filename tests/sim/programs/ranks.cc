// Ranks as processes: forks N, each of which joins one communicator and checks every collective. Exit status 0: all right.
//
//   sim_ranks N [COUNT]
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/sim/programs/check.h"
#include "tests/sim/setup/number.h"

namespace {

int Rank(int rank, int n, size_t count, const int* id_pipe) {
  ncclUniqueId id;
  if (rank == 0) {
    if (ncclGetUniqueId(&id) != ncclSuccess) return 2;
    for (int i = 1; i < n; ++i) {
      if (write(id_pipe[1], &id, sizeof(id)) != sizeof(id)) return 2;
    }
  } else if (read(id_pipe[0], &id, sizeof(id)) != sizeof(id)) {
    return 2;
  }
  ncclComm_t comm = nullptr;
  if (cudaSetDevice(rank % 8) != cudaSuccess || ncclCommInitRank(&comm, n, id, rank) != ncclSuccess) {
    fprintf(stderr, "rank %d: init: %s\n", rank, ncclGetLastError(nullptr));
    return 3;
  }
  std::string wrong = ringscope::sim::CheckCollectives(comm, rank, n, count);
  if (wrong.empty()) {
    ncclComm_t half = nullptr;
    if (ncclCommSplit(comm, rank % 2, -rank, &half, nullptr) != ncclSuccess) wrong = "split";
    int size = 0, place = 0;
    if (wrong.empty()) {
      ncclCommCount(half, &size);
      ncclCommUserRank(half, &place);
      wrong = ringscope::sim::CheckCollectives(half, place, size, count / 2 + 1);
      ncclCommDestroy(half);
    }
  }
  if (!wrong.empty()) fprintf(stderr, "rank %d: %s\n", rank, wrong.c_str());
  if (ncclCommDestroy(comm) != ncclSuccess) return 5;
  return wrong.empty() ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = ringscope::sim::Whole(argc > 1 ? argv[1] : "2", 1, 256);
  const auto elements = ringscope::sim::Whole(argc > 2 ? argv[2] : "1000", 1, 10000000);
  if (argc > 3 || !wanted || !elements) {
    fprintf(stderr, "usage: sim_ranks [RANKS [COUNT]]; 1 to 256 ranks, 1 to 10000000 elements\n");
    return 64;
  }
  const int n = static_cast<int>(*wanted);
  const auto count = static_cast<size_t>(*elements);
  int id_pipe[2];
  if (pipe(id_pipe) != 0) {
    perror("sim_ranks: pipe");
    return 70;
  }
  for (int rank = 0; rank < n; ++rank) {
    const pid_t child = fork();
    if (child < 0) return perror("sim_ranks: fork"), 70;
    if (child == 0) _exit(Rank(rank, n, count, id_pipe));
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed += status != 0;
  if (failed != 0) fprintf(stderr, "%d of %d ranks failed\n", failed, n);
  return failed == 0 ? 0 : 1;
}
