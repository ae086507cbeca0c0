// The CUDA stand-in keeps the order that CUDA promises, and no more.
#include "tests/sim/include/cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/sim/cuda/hooks.h"

namespace {

using ::testing::ElementsAre;

// A kernel that holds its stream until it is let go.
struct Gate {
  std::atomic<bool> open{false};
  static void Wait(void* self) {
    while (!static_cast<Gate*>(self)->open.load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
};

// Notes the order in which host functions run.
struct Order {
  struct Note {
    Order* order;
    int number;
  };
  std::mutex mutex;
  std::vector<int> seen;
  std::vector<Note*> notes;
  void Put(cudaStream_t stream, int number) {
    notes.push_back(new Note{this, number});
    ASSERT_EQ(cudaLaunchHostFunc(stream, Run, notes.back()), cudaSuccess);
  }
  static void Run(void* data) {
    Note* note = static_cast<Note*>(data);
    std::lock_guard<std::mutex> lock(note->order->mutex);
    note->order->seen.push_back(note->number);
  }
  ~Order() {
    for (Note* note : notes) delete note;
  }
};

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cudaSetDevice(0), cudaSuccess); }
  cudaStream_t Stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
  }
};

TEST_F(Cuda, DevicesBySetting) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 8);
  EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "asked once";
  char bus[16];
  EXPECT_EQ(cudaDeviceGetPCIBusId(bus, sizeof(bus), 2), cudaSuccess);
  EXPECT_STREQ(bus, "0000:3b:00.0");
}

TEST_F(Cuda, AStreamIsAQueueAndStreamsRunBesideEachOther) {
  Gate gate;
  Order order;
  cudaStream_t a = Stream(), b = Stream();
  ASSERT_EQ(ringscopeSimEnqueue(a, Gate::Wait, nullptr, &gate), cudaSuccess);
  order.Put(a, 1);
  order.Put(b, 2);
  EXPECT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a), cudaErrorNotReady);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "not ready is no error";
  gate.open = true;
  EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_THAT(order.seen, ElementsAre(2, 1));
  cudaStreamDestroy(a), cudaStreamDestroy(b);
}

TEST_F(Cuda, TheLegacyStreamWaitsForBlockingOnesAndTheyForIt) {
  Gate first, second;
  Order order;
  cudaStream_t blocking = Stream(cudaStreamDefault), apart = Stream();
  ringscopeSimEnqueue(blocking, Gate::Wait, nullptr, &first);
  order.Put(blocking, 1);
  ringscopeSimEnqueue(nullptr, Gate::Wait, nullptr, &second);
  order.Put(nullptr, 2);
  order.Put(blocking, 3);
  order.Put(apart, 0);
  cudaStreamSynchronize(apart);
  first.open = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  second.open = true;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(order.seen, ElementsAre(0, 1, 2, 3));
  cudaStreamDestroy(blocking), cudaStreamDestroy(apart);
}

TEST_F(Cuda, EventsJoinStreams) {
  Gate gate;
  Order order;
  cudaStream_t a = Stream(), b = Stream();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  ringscopeSimEnqueue(a, Gate::Wait, nullptr, &gate);
  order.Put(a, 1);
  ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  ASSERT_EQ(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
  order.Put(b, 2);
  gate.open = true;
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_THAT(order.seen, ElementsAre(1, 2));
  cudaEvent_t later = nullptr;
  cudaEventCreate(&later);
  cudaEventRecord(later, a);
  cudaEventSynchronize(later);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, event, later), cudaSuccess);
  EXPECT_GE(ms, 0);
  cudaEventDestroy(event), cudaEventDestroy(later), cudaStreamDestroy(a), cudaStreamDestroy(b);
}

TEST_F(Cuda, CopiesInOrder) {
  std::vector<int> in(1000), out(1000, -1);
  for (int i = 0; i < 1000; ++i) in[static_cast<size_t>(i)] = i;
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(cudaMalloc(&x, 4000), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&y, 4000), cudaSuccess);
  cudaStream_t s = Stream();
  cudaMemcpyAsync(x, in.data(), 4000, cudaMemcpyHostToDevice, s);
  cudaMemcpyPeerAsync(y, 1, x, 0, 4000, s);
  cudaMemsetAsync(y, 0, 4, s);
  cudaMemcpyAsync(out.data(), y, 4000, cudaMemcpyDeviceToHost, s);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  in[0] = 0;
  EXPECT_EQ(in, out);
  char pitched[3][8] = {}, flat[3][4] = {{'a', 'b', 'c', 'd'}, {'e', 'f', 'g', 'h'}, {'i', 'j', 'k', 'l'}};
  EXPECT_EQ(cudaMemcpy2D(pitched, 8, flat, 4, 4, 3, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(memcmp(pitched[2], "ijkl\0\0\0\0", 8), 0);
  EXPECT_EQ(cudaMemcpy2D(pitched, 2, flat, 4, 4, 3, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x, in.data(), 4, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaFree(x), cudaSuccess);
  EXPECT_EQ(cudaFree(x), cudaErrorInvalidValue) << "twice";
  EXPECT_EQ(cudaFree(y), cudaSuccess);
  cudaGetLastError();
  cudaStreamDestroy(s);
}

TEST_F(Cuda, CapturedWorkRunsWhenTheGraphIsLaunched) {
  Order order;
  cudaStream_t s = Stream(), joined = Stream();
  cudaEvent_t fork = nullptr, join = nullptr;
  cudaEventCreate(&fork), cudaEventCreate(&join);
  ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(s, &status);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  order.Put(s, 1);
  cudaEventRecord(fork, s);
  cudaStreamWaitEvent(joined, fork, 0);
  order.Put(joined, 2);
  cudaEventRecord(join, joined);
  cudaStreamWaitEvent(s, join, 0);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
  EXPECT_TRUE(order.seen.empty());
  cudaStreamIsCapturing(joined, &status);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
  cudaStreamSynchronize(s);
  EXPECT_THAT(order.seen, ElementsAre(1, 2, 1, 2));
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  cudaGetLastError();
  cudaGraphExecDestroy(exec), cudaEventDestroy(fork), cudaEventDestroy(join), cudaStreamDestroy(s), cudaStreamDestroy(joined);
}

TEST_F(Cuda, ABrokenDeviceAnswersForEveryCallAndItsWorkIsDropped) {
  // In a process of its own: nothing mends a device.
  EXPECT_EXIT(
      {
        cudaStream_t s = nullptr;
        cudaSetDevice(3);
        cudaStreamCreate(&s);
        ringscopeSimBreakDevice(3, cudaErrorIllegalAddress);
        Order order;
        void* x = nullptr;
        const bool all = cudaMalloc(&x, 8) == cudaErrorIllegalAddress && cudaStreamSynchronize(s) == cudaErrorIllegalAddress &&
                         cudaGetLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaErrorIllegalAddress;
        cudaSetDevice(0);
        const bool others = cudaMalloc(&x, 8) == cudaSuccess && cudaGetLastError() == cudaSuccess;
        _exit(all && others ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Cuda, PerThreadStreamsAreApart) {
  Gate gate;
  std::thread other(
      [&] { ringscopeSimEnqueue(cudaStreamPerThread, Gate::Wait, nullptr, &gate), cudaStreamSynchronize(cudaStreamPerThread); });
  Order order;
  order.Put(cudaStreamPerThread, 1);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_THAT(order.seen, ElementsAre(1));
  gate.open = true;
  other.join();
}

TEST_F(Cuda, DriverEntryPoints) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result = -1;
  ASSERT_EQ(cuGetProcAddress_v2("cuMemcpyHtoDAsync", &function, CUDA_VERSION, 0, &result), 0);
  EXPECT_EQ(function, reinterpret_cast<void*>(cuMemcpyHtoDAsync_v2)) << "the newest form";
  EXPECT_NE(cuGetProcAddress_v2("cuNoSuchThing", &function, CUDA_VERSION, 0, &result), 0);
  EXPECT_EQ(result, 1);
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPoint("cuInit", &function, 0, &found), cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSuccess);
}

}  // namespace
