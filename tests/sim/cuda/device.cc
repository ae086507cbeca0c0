#include "tests/sim/cuda/device.h"

#include <algorithm>

#include "tests/sim/setup/settings.h"

namespace ringscope::sim {
namespace {

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

// A stream a thread, ended with it.
struct PerThread {
  std::vector<cudaStream_t> of_device;
  ~PerThread() {
    for (cudaStream_t s : of_device) {
      if (s == nullptr) continue;
      s->device->Remove(s);
      s->Stop();
      delete s;
    }
  }
};
thread_local PerThread per_thread;

// A job of which one process has other settings than was meant hangs; a mistake in them ends it before it has begun.
[[gnu::constructor]] void AtLoad() { DemandGoodSettings("libcudart (simulated)"); }

}  // namespace

void Moment::Pass() {
  std::lock_guard<std::mutex> lock(mutex);
  done = true;
  when = std::chrono::steady_clock::now();
  passed.notify_all();
}
void Moment::Wait() {
  std::unique_lock<std::mutex> lock(mutex);
  passed.wait(lock, [this] { return done; });
}
bool Moment::Done() {
  std::lock_guard<std::mutex> lock(mutex);
  return done;
}

Device::Device(int i) : index(i) {}

cudaStream_t Device::Legacy() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (legacy_ == nullptr) legacy_ = new CUstream_st(this, false);
  return legacy_;
}
std::vector<cudaStream_t> Device::Blocking() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<cudaStream_t> found;
  for (cudaStream_t s : streams_) {
    if (s->blocking) found.push_back(s);
  }
  return found;
}
void Device::Add(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.insert(stream);
}
void Device::Remove(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(stream);
}
std::vector<cudaStream_t> Device::All() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<cudaStream_t> all(streams_.begin(), streams_.end());
  if (legacy_ != nullptr) all.push_back(legacy_);
  return all;
}

std::vector<Device*>& Devices() {
  static auto& devices = *[] {
    auto* all = new std::vector<Device*>();
    for (int i = 0; i < DevicesAsked(); ++i) all->push_back(new Device(i));
    return all;
  }();
  return devices;
}

int CurrentDevice() { return current_device; }
Device* Current() {
  return static_cast<size_t>(current_device) < Devices().size() ? Devices()[static_cast<size_t>(current_device)] : nullptr;
}

cudaStream_t Resolve(cudaStream_t stream) {
  Device* device = Current();
  if (device == nullptr) return nullptr;
  if (stream == nullptr || stream == cudaStreamLegacy) return device->Legacy();
  if (stream != cudaStreamPerThread) return stream;
  auto& own = per_thread.of_device;
  if (own.size() <= static_cast<size_t>(device->index)) own.resize(static_cast<size_t>(device->index) + 1, nullptr);
  cudaStream_t& mine = own[static_cast<size_t>(device->index)];
  if (mine == nullptr) {
    mine = new CUstream_st(device, true);
    device->Add(mine);
  }
  return mine;
}

// The legacy stream waits for all blocking streams, and they for it.
cudaError_t Enqueue(cudaStream_t handle, std::function<void()> work) {
  cudaStream_t stream = Resolve(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  Device* device = stream->device;
  const bool legacy = stream == device->Legacy();
  {
    std::lock_guard<std::mutex> lock(stream->mutex);
    if (stream->capture != nullptr) {
      stream->capture->graph->nodes.push_back(std::move(work));
      return cudaSuccess;
    }
  }
  if (legacy) {
    for (cudaStream_t other : device->Blocking()) {
      MomentPtr tail = other->Tail();
      stream->Push([tail] { tail->Wait(); });
    }
  } else if (stream->blocking) {
    MomentPtr tail = device->Legacy()->Tail();
    if (!tail->Done()) stream->Push([tail] { tail->Wait(); });
  }
  stream->Push([device, work = std::move(work)] {
    if (device->error.load() == cudaSuccess) work();
  });
  return cudaSuccess;
}

cudaError_t Return(cudaError_t result) {
  if (result != cudaSuccess && result != cudaErrorNotReady) last_error = result;
  return result;
}

cudaError_t Broken() {
  Device* device = Current();
  return device == nullptr ? cudaErrorNoDevice : static_cast<cudaError_t>(device->error.load());
}

}  // namespace ringscope::sim

using ringscope::sim::Current;
using ringscope::sim::Devices;
using ringscope::sim::Return;

void CUstream_st::Push(std::function<void()> work) {
  std::lock_guard<std::mutex> lock(mutex);
  queue.push_back(std::move(work));
  if (!worker.joinable()) worker = std::thread([this] { Loop(); });
  ready.notify_one();
}

void CUstream_st::Loop() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    ready.wait(lock, [this] { return stopping || !queue.empty(); });
    if (queue.empty()) return;
    std::function<void()> work = std::move(queue.front());
    queue.pop_front();
    running = true;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    running = false;
  }
}

ringscope::sim::MomentPtr CUstream_st::Tail() {
  auto moment = std::make_shared<ringscope::sim::Moment>();
  std::unique_lock<std::mutex> lock(mutex);
  if (queue.empty() && !running) {
    lock.unlock();
    moment->Pass();
    return moment;
  }
  queue.push_back([moment] { moment->Pass(); });
  ready.notify_one();
  return moment;
}

void CUstream_st::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
    ready.notify_one();
  }
  if (worker.joinable()) worker.join();
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Return(cudaErrorInvalidValue);
  *count = static_cast<int>(Devices().size());
  return Return(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || static_cast<size_t>(device) >= Devices().size()) return Return(cudaErrorInvalidDevice);
  ringscope::sim::current_device = device;
  return Return(cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return Return(cudaErrorInvalidValue);
  *device = ringscope::sim::current_device;
  return Return(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize(void) {
  if (Current() == nullptr) return Return(cudaErrorNoDevice);
  for (cudaStream_t s : Current()->All()) s->Tail()->Wait();
  return Return(ringscope::sim::Broken());
}
cudaError_t cudaDeviceReset(void) { return cudaDeviceSynchronize(); }

cudaError_t cudaGetLastError(void) {
  const cudaError_t broken = ringscope::sim::Broken();
  const cudaError_t last = broken != cudaSuccess && broken != cudaErrorNoDevice ? broken : ringscope::sim::last_error;
  ringscope::sim::last_error = cudaSuccess;
  return last;
}
cudaError_t cudaPeekAtLastError(void) {
  const cudaError_t broken = ringscope::sim::Broken();
  return broken != cudaSuccess && broken != cudaErrorNoDevice ? broken : ringscope::sim::last_error;
}

cudaError_t ringscopeSimEnqueue(cudaStream_t stream, void (*kernel)(void*), void (*release)(void*), void* argument) {
  std::shared_ptr<void> held(argument, [release](void* a) {
    if (release != nullptr) release(a);
  });
  return Return(ringscope::sim::Enqueue(stream, [kernel, held] { kernel(held.get()); }));
}
void ringscopeSimBreakDevice(int device, cudaError_t error) {
  if (device >= 0 && static_cast<size_t>(device) < Devices().size()) Devices()[static_cast<size_t>(device)]->error.store(error);
}
cudaError_t ringscopeSimDeviceError(int device) {
  if (device < 0 || static_cast<size_t>(device) >= Devices().size()) return cudaErrorInvalidDevice;
  return static_cast<cudaError_t>(Devices()[static_cast<size_t>(device)]->error.load());
}
uint64_t ringscopeSimGlobalTimer(int device) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) +
         77'000'000'000u * static_cast<uint64_t>(device + 1);
}
}
