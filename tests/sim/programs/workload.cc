// What frameworks make of NCCL, in small, for scenarios: workload NAME ID_FILE STEPS, with RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE.
//
//   dp        gradients all-reduced in three buckets            fsdp     parameters gathered, gradients reduce-scattered
//   tp_dp     all-reduces inside a host, and across hosts       moe      all-to-alls across all ranks, then gradients
//   zero      gradients reduced to their owner, parameters broadcast from it
//   regroup   dp, and half way, after a checkpoint, on a communicator made anew
//   odd_sum   dp, in which one program adds once where the others take the maximum
//   pipeline  activations to the next rank, gradients back, then an all-reduce
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/sim/include/cuda_runtime.h"
#include "tests/sim/include/nccl.h"
#include "tests/sim/setup/job.h"
#include "tests/sim/setup/number.h"
#include "tests/sim/setup/workloads.h"

namespace {

using ringscope::sim::Shown;
using ringscope::sim::Whole;

[[noreturn]] void Refuse(const std::string& what) {
  fprintf(stderr, "workload: %s\n", what.c_str());
  exit(64);
}

int Number(const char* name, int otherwise, int least, int most) {
  const char* value = getenv(name);
  if (value == nullptr) return otherwise;
  const auto number = Whole(value, least, most);
  if (!number) {
    Refuse(std::string(name) + "=" + Shown(value) + ": not a number from " + std::to_string(least) + " to " +
           std::to_string(most));
  }
  return static_cast<int>(*number);
}

struct Job {
  int n = Number("WORLD_SIZE", 1, 1, 65536), rank = Number("RANK", 0, 0, n - 1), per_host = Number("LOCAL_WORLD_SIZE", n, 1, n),
      local = Number("LOCAL_RANK", 0, 0, per_host - 1);
  ncclComm_t world = nullptr, inside = nullptr, across = nullptr;
  cudaStream_t stream = nullptr;
  ncclRedOp_t reduction = ncclMax;
  // Room for a fault that moves more than was meant.
  std::vector<float> big = std::vector<float>(40000 * 64, 1), all = std::vector<float>(40000 * 64, 1);

  void Check(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncclGetLastError(world));
    exit(1);
  }
  void Wait() const {
    if (const cudaError_t error = cudaStreamSynchronize(stream); error != cudaSuccess) {
      fprintf(stderr, "RuntimeError: CUDA error: %s\n", cudaGetErrorString(error));
      exit(1);
    }
  }
  void Init(const std::string& file) {
    ncclUniqueId id;
    if (rank == 0) {
      Check(ncclGetUniqueId(&id), "ncclGetUniqueId");
      FILE* f = fopen((file + ".new").c_str(), "wb");
      if (f == nullptr || fwrite(&id, sizeof(id), 1, f) != 1 || fclose(f) != 0 ||
          rename((file + ".new").c_str(), file.c_str()) != 0)
        Refuse("ID_FILE: " + Shown(file) + " cannot be written: " + strerror(errno));
    } else {
      FILE* f = nullptr;
      while ((f = fopen(file.c_str(), "rb")) == nullptr) usleep(5000);
      if (fread(&id, sizeof(id), 1, f) != 1) Refuse("ID_FILE: " + Shown(file) + " holds no id; remove it");
      fclose(f);
    }
    if (cudaSetDevice(local) != cudaSuccess) Refuse("LOCAL_RANK=" + std::to_string(local) + ": this machine has no such GPU");
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    Check(ncclCommInitRank(&world, n, id, rank), "ncclCommInitRank");
  }
  ncclComm_t Part(const char* name, int color, int key) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = name;
    ncclComm_t part = nullptr;
    Check(ncclCommSplit(world, color, key, &part, &config), "ncclCommSplit");
    return part;
  }
  void Reduce(ncclComm_t comm, size_t count) {
    Check(ncclAllReduce(big.data(), big.data(), count, ncclFloat32, reduction, comm, stream), "ncclAllReduce");
  }

  void Step(const std::string& what, int step) {
    if (what == "regroup") {
      for (int bucket = 0; bucket < 3; ++bucket) Reduce(inside != nullptr ? inside : world, 40000);
    } else if (what == "dp") {
      for (int bucket = 0; bucket < 3; ++bucket) Reduce(world, 40000);
    } else if (what == "odd_sum") {
      reduction = step == 5 && rank == 1 ? ncclSum : ncclMax;
      for (int bucket = 0; bucket < 3; ++bucket) Reduce(world, 40000);
    } else if (what == "tp_dp") {
      for (int layer = 0; layer < 4; ++layer) Reduce(inside, 20000);
      Reduce(across, 40000);
    } else if (what == "fsdp") {
      const size_t part = 40000 / static_cast<size_t>(n);
      Check(ncclAllGather(big.data(), all.data(), part, ncclFloat32, world, stream), "ncclAllGather");
      Check(ncclReduceScatter(all.data(), big.data(), part, ncclFloat32, ncclSum, world, stream), "ncclReduceScatter");
    } else if (what == "moe") {
      Check(ncclAlltoAll(big.data(), all.data(), 1000, ncclFloat32, world, stream), "ncclAlltoAll");
      Reduce(world, 40000);
    } else if (what == "zero") {
      for (int owner = 0; owner < n; ++owner) {
        Check(ncclReduce(big.data(), big.data(), 20000, ncclFloat32, ncclMax, owner, world, stream), "ncclReduce");
        Check(ncclBroadcast(big.data(), big.data(), 20000, ncclFloat32, owner, world, stream), "ncclBroadcast");
      }
    } else if (what == "pipeline") {
      if (rank > 0) Check(ncclRecv(big.data(), 30000, ncclFloat32, rank - 1, world, stream), "ncclRecv");
      if (rank + 1 < n) Check(ncclSend(big.data(), 30000, ncclFloat32, rank + 1, world, stream), "ncclSend");
      if (rank + 1 < n) Check(ncclRecv(big.data(), 30000, ncclFloat32, rank + 1, world, stream), "ncclRecv");
      if (rank > 0) Check(ncclSend(big.data(), 30000, ncclFloat32, rank - 1, world, stream), "ncclSend");
      Reduce(world, 40000);
    }
    Wait();
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) Refuse("usage: workload NAME ID_FILE STEPS; names are " + ringscope::sim::AllWorkloads());
  if (!ringscope::sim::IsWorkload(argv[1]))
    Refuse("there is no \"" + Shown(argv[1]) + "\"; there are " + ringscope::sim::AllWorkloads());
  const auto asked = Whole(argv[3], 1, ringscope::sim::kMostSteps);
  if (!asked) Refuse("STEPS: " + Shown(argv[3]) + " is not a number from 1 to " + std::to_string(ringscope::sim::kMostSteps));
  const std::string id_file = argv[2], folder = id_file.substr(0, id_file.find_last_of('/') + 1);
  if (id_file.empty() || access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    Refuse("ID_FILE: \"" + Shown(id_file) + "\" is not in a folder that can be written");
  Job job;
  if (job.n % job.per_host != 0) Refuse("WORLD_SIZE must be a multiple of LOCAL_WORLD_SIZE");
  if (strcmp(argv[1], "fsdp") == 0 && job.n > 40000) Refuse("fsdp shares 40000 parameters among at most as many ranks");
  job.Init(argv[2]);
  if (strcmp(argv[1], "tp_dp") == 0) {
    job.inside = job.Part("tp", job.rank / job.per_host, job.rank);
    job.across = job.Part("dp", job.rank % job.per_host, job.rank);
  }
  const int steps = static_cast<int>(*asked);
  uint64_t seed =
      static_cast<uint64_t>(Number("RINGSCOPE_SIM_SEED", 1, 0, 1000000000)) * 1000003 + static_cast<uint64_t>(job.rank);
  const bool regroup = strcmp(argv[1], "regroup") == 0;
  if (regroup) job.reduction = ncclSum;
  for (int step = 0; step < steps; ++step) {
    if (regroup && step == steps / 2) {
      printf("saving checkpoint at step %d\n", step);
      fflush(stdout);
      usleep(300000);
      job.inside = job.Part("dp_after_checkpoint", 0, job.rank);
    }
    job.Step(argv[1], step);
    printf("step %d 0.010 s/it\n", step);
    fflush(stdout);
    // What a step computes takes as long as the seed says: every rank its own, the same in every run.
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    usleep(3000 + static_cast<unsigned>(seed >> 33) % 2000);
  }
  for (ncclComm_t comm : {job.inside, job.across, job.world}) {
    if (comm != nullptr) ncclCommDestroy(comm);
  }
  return 0;
}
