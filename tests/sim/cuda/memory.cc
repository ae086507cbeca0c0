// Memory of all devices is host memory; copies run in their streams' order.
#include <stdlib.h>
#include <string.h>

#include <map>

#include "tests/sim/cuda/device.h"

using ringscope::sim::Broken;
using ringscope::sim::Current;
using ringscope::sim::Enqueue;
using ringscope::sim::Return;

namespace {

constexpr size_t kDeviceBytes = size_t{80} << 30;

struct Sizes {
  std::mutex mutex;
  std::map<void*, std::pair<ringscope::sim::Device*, size_t>> of;
};
Sizes& Allocated() {
  static auto* const sizes = new Sizes;
  return *sizes;
}

cudaError_t Allocate(void** pointer, size_t size) {
  if (const cudaError_t broken = Broken(); broken != cudaSuccess) return broken;
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (size > kDeviceBytes || Current()->allocated.load() + static_cast<int64_t>(size) > static_cast<int64_t>(kDeviceBytes))
    return cudaErrorMemoryAllocation;
  if (size == 0) return cudaSuccess;
  if (posix_memalign(pointer, 512, size) != 0) return cudaErrorMemoryAllocation;
  Current()->allocated += static_cast<int64_t>(size);
  std::lock_guard<std::mutex> lock(Allocated().mutex);
  Allocated().of[*pointer] = {Current(), size};
  return cudaSuccess;
}

cudaError_t Release(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  {
    std::lock_guard<std::mutex> lock(Allocated().mutex);
    const auto found = Allocated().of.find(pointer);
    if (found == Allocated().of.end()) return cudaErrorInvalidValue;
    found->second.first->allocated -= static_cast<int64_t>(found->second.second);
    Allocated().of.erase(found);
  }
  free(pointer);
  return cudaSuccess;
}

bool Known(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

cudaError_t Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t broken = Broken(); broken != cudaSuccess) return broken;
  if (!Known(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width > to_pitch || width > from_pitch || ((to == nullptr || from == nullptr) && width * height != 0))
    return cudaErrorInvalidValue;
  return Enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row)
      memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  });
}

cudaError_t Copy(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t broken = Broken(); broken != cudaSuccess) return broken;
  if (!Known(kind)) return cudaErrorInvalidMemcpyDirection;
  if (count != 0 && (to == nullptr || from == nullptr)) return cudaErrorInvalidValue;
  return Enqueue(stream, [=] {
    if (count != 0) memmove(to, from, count);
  });
}

// Forms without "Async" return when it is done.
cudaError_t Done(cudaError_t enqueued) { return Return(enqueued != cudaSuccess ? enqueued : cudaStreamSynchronize(nullptr)); }

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size) { return Return(Allocate(pointer, size)); }
cudaError_t cudaMallocHost(void** pointer, size_t size) { return Return(Allocate(pointer, size)); }
cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned) { return Return(Allocate(pointer, size)); }
cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t) { return Return(Allocate(pointer, size)); }
// The real one waits for the whole device.
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return Return(cudaSuccess);
  if (const cudaError_t waited = cudaDeviceSynchronize(); waited != cudaSuccess) return waited;
  return Return(Release(pointer));
}
cudaError_t cudaFreeHost(void* pointer) { return Return(Release(pointer)); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return Return(Enqueue(stream, [pointer] { Release(pointer); }));
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  if (const cudaError_t broken = Broken(); broken != cudaSuccess) return Return(broken);
  if (available == nullptr || total == nullptr) return Return(cudaErrorInvalidValue);
  *total = kDeviceBytes;
  *available = kDeviceBytes - static_cast<size_t>(Current()->allocated.load());
  return Return(cudaSuccess);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  return Done(Copy(to, from, count, kind, nullptr));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return Return(Copy(to, from, count, kind, stream));
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return Done(Copy2D(to, to_pitch, from, from_pitch, width, height, kind, nullptr));
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return Return(Copy2D(to, to_pitch, from, from_pitch, width, height, kind, stream));
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t count) {
  return Done(Copy(to, from, count, cudaMemcpyDeviceToDevice, nullptr));
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t count, cudaStream_t stream) {
  return Return(Copy(to, from, count, cudaMemcpyDeviceToDevice, stream));
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t stream) {
  if (const cudaError_t broken = Broken(); broken != cudaSuccess) return Return(broken);
  if (to == nullptr && count != 0) return Return(cudaErrorInvalidValue);
  return Return(Enqueue(stream, [=] {
    if (count != 0) memset(to, value, count);
  }));
}
cudaError_t cudaMemset(void* to, int value, size_t count) { return Done(cudaMemsetAsync(to, value, count, nullptr)); }
}
