// One rank of a small job on one GPU: started once a rank by run.sh, which also says where NCCL,
// CUDA and Ringscope are.
//
//   gpu_job check                                   prints GPU and versions; exit 77 if none
//   gpu_job MODE RANK RANKS ID_FILE FAULTY_RANK
//
//   healthy   all kinds of operations, results checked, communicator destroyed
//   missing   FAULTY_RANK leaves one collective out and sleeps outside NCCL
//   stalled   FAULTY_RANK puts what never ends into its stream, the collective behind it
//   timing    prints "step <ns>" and "call <ns>": medians of a collective, of the enqueuing call
//
// In the modes missing and stalled nobody returns: run.sh ends the processes.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

constexpr int kSkipped = 77;           // what CTest and automake take for "skipped"
constexpr int kFaultyStep = 10;        // steps before the fault
constexpr size_t kFloats = 256 << 10;  // of an all-reduce: 1 MiB, some network steps a channel
constexpr int kUniqueIdSeconds = 60;   // how long a rank waits for rank 0's id
constexpr int kSecondsAtMost = 240;    // of a process: the GPU is left even if run.sh is killed

[[noreturn]] void Fail(const char* what, const char* why) {
  fprintf(stderr, "gpu_job: %s: %s\n", what, why);
  _exit(1);
}

void Cuda(cudaError_t rc, const char* what) {
  if (rc != cudaSuccess) Fail(what, cudaGetErrorString(rc));
}

void Nccl(ncclResult_t rc, const char* what) {
  if (rc != ncclSuccess) Fail(what, ncclGetErrorString(rc));
}

int Check() {
  int devices = 0, driver = 0, runtime = 0, nccl = 0;
  const cudaError_t rc = cudaGetDeviceCount(&devices);
  if (rc != cudaSuccess || devices == 0) {
    fprintf(stderr, "no GPU: %s\n", rc != cudaSuccess ? cudaGetErrorString(rc) : "none found");
    return kSkipped;
  }
  cudaDeviceProp properties;
  Cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  Nccl(ncclGetVersion(&nccl), "ncclGetVersion");
  printf("%s, driver for CUDA %d, runtime %d, NCCL %d\n", properties.name, driver, runtime, nccl);
  return 0;
}

// Rank 0 publishes the id under its final name only when all of it is written.
ncclUniqueId ShareId(int rank, const std::string& path) {
  ncclUniqueId id;
  if (rank == 0) {
    Nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::string part = path + ".part";
    FILE* file = fopen(part.c_str(), "wb");
    if (!file || fwrite(&id, sizeof(id), 1, file) != 1 || fclose(file) != 0 ||
        rename(part.c_str(), path.c_str()) != 0) {
      Fail("cannot write the unique id", path.c_str());
    }
    return id;
  }
  for (int tries = 0; tries < kUniqueIdSeconds * 100; ++tries) {
    if (FILE* file = fopen(path.c_str(), "rb")) {
      if (fread(&id, sizeof(id), 1, file) != 1) Fail("short unique id", path.c_str());
      fclose(file);
      return id;
    }
    usleep(10000);
  }
  Fail("rank 0 published no unique id", path.c_str());
}

struct Job {
  int rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  float *in, *out;  // device memory, kFloats * ranks each

  void Init(int r, int n, const std::string& id_file) {
    rank = r;
    ranks = n;
    Cuda(cudaSetDevice(0), "cudaSetDevice");
    Nccl(ncclCommInitRank(&comm, ranks, ShareId(rank, id_file), rank), "ncclCommInitRank");
    Cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    const size_t bytes = sizeof(float) * kFloats * ranks;
    Cuda(cudaMalloc(reinterpret_cast<void**>(&in), bytes), "cudaMalloc");
    Cuda(cudaMalloc(reinterpret_cast<void**>(&out), bytes), "cudaMalloc");
    const std::vector<float> ones(kFloats * ranks, 1.0f);
    Cuda(cudaMemcpy(in, ones.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  void AllReduce() {
    Nccl(ncclAllReduce(in, out, kFloats, ncclFloat, ncclSum, comm, stream), "ncclAllReduce");
  }

  void Wait() { Cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

  void CheckSum(float expected) {
    float got[2];
    Cuda(cudaMemcpy(got, out, sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    Cuda(cudaMemcpy(got + 1, out + kFloats - 1, sizeof(float), cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    if (got[0] != expected || got[1] != expected) Fail("wrong result", "of an all-reduce of ones");
  }

  void Destroy() {
    Nccl(ncclCommFinalize(comm), "ncclCommFinalize");
    Nccl(ncclCommDestroy(comm), "ncclCommDestroy");
  }
};

void Healthy(Job* job) {
  const size_t part = kFloats / 4;
  const int next = (job->rank + 1) % job->ranks,
            previous = (job->rank + job->ranks - 1) % job->ranks;
  for (int step = 0; step < 2 * kFaultyStep; ++step) {
    Nccl(ncclAllGather(job->in, job->out, part, ncclFloat, job->comm, job->stream),
         "ncclAllGather");
    Nccl(ncclReduceScatter(job->in, job->out, part, ncclFloat, ncclSum, job->comm, job->stream),
         "ncclReduceScatter");
    Nccl(ncclBroadcast(job->in, job->out, part, ncclFloat, step % job->ranks, job->comm,
                       job->stream),
         "ncclBroadcast");
    Nccl(ncclGroupStart(), "ncclGroupStart");
    Nccl(ncclSend(job->in, part, ncclFloat, next, job->comm, job->stream), "ncclSend");
    Nccl(ncclRecv(job->out, part, ncclFloat, previous, job->comm, job->stream), "ncclRecv");
    Nccl(ncclGroupEnd(), "ncclGroupEnd");
    job->AllReduce();
    job->Wait();
    job->CheckSum(static_cast<float>(job->ranks));
  }
  job->Destroy();
}

void CUDART_CB SleepForEver(void*) {
  for (;;) sleep(3600);
}

// Whatever is enqueued behind this never starts. The driver's wait for a word that nobody writes
// leaves the GPU to the other ranks and needs no compiler for it; where it is refused, a host
// function does the same.
void BlockStream(Job* job) {
  using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
  WaitValue wait = nullptr;
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
    wait = reinterpret_cast<WaitValue>(dlsym(driver, "cuStreamWaitValue32_v2"));
    if (!wait) wait = reinterpret_cast<WaitValue>(dlsym(driver, "cuStreamWaitValue32"));
  }
  void* word = nullptr;
  Cuda(cudaMalloc(&word, 4096), "cudaMalloc");
  Cuda(cudaMemset(word, 0, 4096), "cudaMemset");
  Cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (wait && wait(job->stream, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_EQ) ==
                  CUDA_SUCCESS) {
    fprintf(stderr, "gpu_job: the stream waits for a value\n");
    return;
  }
  Cuda(cudaLaunchHostFunc(job->stream, SleepForEver, nullptr), "cudaLaunchHostFunc");
  fprintf(stderr, "gpu_job: the stream waits for a host function\n");
}

void Hang(Job* job, bool stalled, bool faulty) {
  for (int step = 0; step < kFaultyStep; ++step) {
    job->AllReduce();
    job->Wait();
  }
  if (faulty && !stalled) {
    fprintf(stderr, "gpu_job: leaving the next collective out\n");
    SleepForEver(nullptr);
  }
  if (faulty) BlockStream(job);
  job->AllReduce();
  job->Wait();
  Fail("it should have hung", "and did not");
}

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

int64_t Median(std::vector<int64_t> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Timing(Job* job) {
  constexpr int kWarmUp = 20, kSteps = 200;
  std::vector<int64_t> step, call;
  for (int i = 0; i < kWarmUp + kSteps; ++i) {
    const int64_t before = NowNs();
    job->AllReduce();
    const int64_t returned = NowNs();
    job->Wait();
    if (i < kWarmUp) continue;
    call.push_back(returned - before);
    step.push_back(NowNs() - before);
  }
  job->Destroy();
  printf("step %lld\ncall %lld\n", static_cast<long long>(Median(step)),
         static_cast<long long>(Median(call)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "check") return Check();
  if (argc != 6) {
    fprintf(stderr, "usage: gpu_job check | gpu_job MODE RANK RANKS ID_FILE FAULTY_RANK\n");
    return 64;
  }
  alarm(kSecondsAtMost);
  Job job;
  job.Init(atoi(argv[2]), atoi(argv[3]), argv[4]);
  const bool faulty = job.rank == atoi(argv[5]);
  if (mode == "healthy") {
    Healthy(&job);
  } else if (mode == "missing" || mode == "stalled") {
    Hang(&job, mode == "stalled", faulty);
  } else if (mode == "timing") {
    Timing(&job);
  } else {
    Fail("unknown mode", mode.c_str());
  }
  return 0;
}
