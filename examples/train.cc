// A data-parallel training loop in small: each rank computes gradients (here: fills buffers), all-reduces them in buckets, and
// steps. Written against cuda_runtime.h and nccl.h; runs on GPUs with the real libraries, or on the CPU with the stand-ins of
// tests/sim.
//
//   RANK=r WORLD_SIZE=n LOCAL_RANK=l train ID_FILE [STEPS]
//
// Rank 0 writes NCCL's unique id to ID_FILE, the others wait for it.
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

int Number(const char* name, int otherwise) {
  const char* value = getenv(name);
  return value == nullptr ? otherwise : atoi(value);
}

void Check(bool ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "rank %d: %s failed: %s, %s\n", Number("RANK", 0), what, cudaGetErrorString(cudaGetLastError()),
          ncclGetLastError(nullptr));
  exit(1);
}

ncclUniqueId Share(const std::string& file, int rank) {
  ncclUniqueId id;
  if (rank == 0) {
    Check(ncclGetUniqueId(&id) == ncclSuccess, "ncclGetUniqueId");
    FILE* f = fopen((file + ".new").c_str(), "wb");
    Check(f != nullptr && fwrite(&id, sizeof(id), 1, f) == 1 && fclose(f) == 0 &&
              rename((file + ".new").c_str(), file.c_str()) == 0,
          "writing the id");
    return id;
  }
  FILE* f = nullptr;
  while ((f = fopen(file.c_str(), "rb")) == nullptr) usleep(10000);
  Check(fread(&id, sizeof(id), 1, f) == 1, "reading the id");
  fclose(f);
  return id;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = Number("RANK", 0), n = Number("WORLD_SIZE", 1), steps = argc > 2 ? atoi(argv[2]) : 20;
  if (argc < 2) {
    fprintf(stderr, "usage: RANK=r WORLD_SIZE=n LOCAL_RANK=l %s ID_FILE [STEPS]\n", argv[0]);
    return 64;
  }
  Check(cudaSetDevice(Number("LOCAL_RANK", 0)) == cudaSuccess, "cudaSetDevice");
  ncclComm_t comm = nullptr;
  Check(ncclCommInitRank(&comm, n, Share(argv[1], rank), rank) == ncclSuccess, "ncclCommInitRank");
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "cudaStreamCreate");
  constexpr int kBuckets = 3;
  constexpr size_t kCount = 40000;
  void* gradients[kBuckets];
  std::vector<float> host(kCount, static_cast<float>(rank));
  for (void*& bucket : gradients) Check(cudaMalloc(&bucket, kCount * sizeof(float)) == cudaSuccess, "cudaMalloc");
  for (int step = 0; step < steps; ++step) {
    for (void* bucket : gradients) {
      Check(cudaMemcpyAsync(bucket, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice, stream) == cudaSuccess,
            "cudaMemcpyAsync");
      Check(ncclAllReduce(bucket, bucket, kCount, ncclFloat32, ncclSum, comm, stream) == ncclSuccess, "ncclAllReduce");
    }
    float sum = -1;
    Check(cudaMemcpyAsync(&sum, gradients[0], sizeof(sum), cudaMemcpyDeviceToHost, stream) == cudaSuccess, "cudaMemcpyAsync");
    Check(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
    if (rank == 0) {
      printf("step %d gradient sum %g\n", step, static_cast<double>(sum));
      fflush(stdout);
    }
    usleep(5000);
  }
  Check(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy");
  for (void* bucket : gradients) Check(cudaFree(bucket) == cudaSuccess, "cudaFree");
  Check(cudaStreamDestroy(stream) == cudaSuccess, "cudaStreamDestroy");
  return 0;
}
