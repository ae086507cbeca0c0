// Devices, queues, events of the CUDA stand-in. Internal.
#ifndef RINGSCOPE_TESTS_SIM_CUDA_DEVICE_H_
#define RINGSCOPE_TESTS_SIM_CUDA_DEVICE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/sim/cuda/hooks.h"

namespace ringscope::sim {

// A moment in a queue: done when everything enqueued before it has run.
struct Moment {
  std::mutex mutex;
  std::condition_variable passed;
  bool done = false;
  std::chrono::steady_clock::time_point when;
  void Pass();
  void Wait();
  bool Done();
};
using MomentPtr = std::shared_ptr<Moment>;

// What a graph runs, in the order of its capture, which is one that its dependencies allow.
struct Graph {
  std::vector<std::function<void()>> nodes;
};
using GraphPtr = std::shared_ptr<Graph>;

struct Capture {
  GraphPtr graph = std::make_shared<Graph>();
  cudaStream_t origin = nullptr;
};
using CapturePtr = std::shared_ptr<Capture>;

class Device;

}  // namespace ringscope::sim

// The opaque types of the public interface.
struct CUstream_st {
  explicit CUstream_st(ringscope::sim::Device* on, bool synchronises) : device(on), blocking(synchronises) {}
  ringscope::sim::Device* const device;
  const bool blocking;  // waits for the legacy stream and makes it wait

  // Enqueues; captured where a capture is under way. `nullptr` moments are fine.
  void Push(std::function<void()> work);
  ringscope::sim::MomentPtr Tail();  // passes when all that is enqueued now has run
  void Stop();                       // runs what is enqueued, then ends the thread

  std::mutex mutex;
  std::condition_variable ready;
  std::deque<std::function<void()>> queue;
  bool stopping = false, running = false;
  ringscope::sim::CapturePtr capture;
  std::thread worker;

 private:
  void Loop();
};

struct CUevent_st {
  unsigned flags = 0;
  std::mutex mutex;
  ringscope::sim::MomentPtr moment;    // of the newest record; nullptr never recorded
  ringscope::sim::CapturePtr capture;  // recorded inside a capture
};

struct CUgraph_st {
  ringscope::sim::GraphPtr graph;
};
struct CUgraphExec_st {
  ringscope::sim::GraphPtr graph;
};

namespace ringscope::sim {

class Device {
 public:
  explicit Device(int index);
  const int index;
  std::atomic<int> error{cudaSuccess};  // sticky
  cudaStream_t Legacy();
  // Streams that the legacy one waits for.
  std::vector<cudaStream_t> Blocking();
  void Add(cudaStream_t stream);
  void Remove(cudaStream_t stream);
  std::vector<cudaStream_t> All();
  std::atomic<int64_t> allocated{0};

 private:
  std::mutex mutex_;
  cudaStream_t legacy_ = nullptr;
  std::set<cudaStream_t> streams_;
};

// RINGSCOPE_SIM_DEVICES (8 unless set); never destroyed.
std::vector<Device*>& Devices();
int CurrentDevice();
Device* Current();
// The queue of a handle of the public interface: 0 and cudaStreamLegacy, cudaStreamPerThread, a created one; nullptr: none of
// these.
cudaStream_t Resolve(cudaStream_t stream);
// Enqueues with the legacy stream's rule.
cudaError_t Enqueue(cudaStream_t stream, std::function<void()> work);
// Remembers the result for cudaGetLastError and returns it; a broken device answers for every call.
cudaError_t Return(cudaError_t result);
cudaError_t Broken();  // of the current device

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_CUDA_DEVICE_H_
