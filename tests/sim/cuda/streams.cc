// Streams, events, host functions, capture and graphs.
#include "tests/sim/cuda/device.h"

using ringscope::sim::Broken;
using ringscope::sim::Current;
using ringscope::sim::Enqueue;
using ringscope::sim::MomentPtr;
using ringscope::sim::Resolve;
using ringscope::sim::Return;

namespace {

// A device that broke answers for every call.
#define RETURN_IF_BROKEN()                                                                 \
  do {                                                                                     \
    if (const cudaError_t broken = Broken(); broken != cudaSuccess) return Return(broken); \
  } while (0)

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  RETURN_IF_BROKEN();
  if (stream == nullptr || flags > cudaStreamNonBlocking) return Return(cudaErrorInvalidValue);
  *stream = new CUstream_st(Current(), flags != cudaStreamNonBlocking);
  Current()->Add(*stream);
  return Return(cudaSuccess);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    return Return(cudaErrorInvalidResourceHandle);
  stream->device->Remove(stream);
  // The real one returns at once and ends the stream when its work is done.
  std::thread([stream] {
    stream->Stop();
    delete stream;
  }).detach();
  return Return(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  cudaStream_t stream = Resolve(handle);
  if (stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  stream->Tail()->Wait();
  return Return(Broken());
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  RETURN_IF_BROKEN();
  cudaStream_t stream = Resolve(handle);
  if (stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  std::lock_guard<std::mutex> lock(stream->mutex);
  return Return(stream->queue.empty() && !stream->running ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  RETURN_IF_BROKEN();
  if (function == nullptr) return Return(cudaErrorInvalidValue);
  return Return(Enqueue(stream, [function, data] { function(data); }));
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  RETURN_IF_BROKEN();
  if (callback == nullptr) return Return(cudaErrorInvalidValue);
  return Return(Enqueue(stream, [stream, callback, data] { callback(stream, cudaSuccess, data); }));
}

// ---- events
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  RETURN_IF_BROKEN();
  if (event == nullptr) return Return(cudaErrorInvalidValue);
  *event = new CUevent_st;
  (*event)->flags = flags;
  return Return(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return Return(cudaErrorInvalidResourceHandle);
  delete event;
  return Return(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  RETURN_IF_BROKEN();
  cudaStream_t stream = Resolve(handle);
  if (event == nullptr || stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  {
    std::lock_guard<std::mutex> capturing(stream->mutex);
    if (stream->capture != nullptr) {
      std::lock_guard<std::mutex> lock(event->mutex);
      event->capture = stream->capture;
      return Return(cudaSuccess);
    }
  }
  auto moment = std::make_shared<ringscope::sim::Moment>();
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    event->moment = moment;
    event->capture = nullptr;
  }
  // Not through Enqueue alone: work on a broken device is dropped, and an event must pass all the same.
  const cudaError_t result = Enqueue(handle, [] {});
  stream->Push([moment] { moment->Pass(); });
  return Return(result);
}

static MomentPtr MomentOf(cudaEvent_t event) {
  std::lock_guard<std::mutex> lock(event->mutex);
  return event->moment;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  RETURN_IF_BROKEN();
  if (event == nullptr) return Return(cudaErrorInvalidResourceHandle);
  const MomentPtr moment = MomentOf(event);
  return Return(moment == nullptr || moment->Done() ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return Return(cudaErrorInvalidResourceHandle);
  if (const MomentPtr moment = MomentOf(event)) moment->Wait();
  return Return(Broken());
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  RETURN_IF_BROKEN();
  if (ms == nullptr || start == nullptr || end == nullptr) return Return(cudaErrorInvalidValue);
  const MomentPtr a = MomentOf(start), b = MomentOf(end);
  if (a == nullptr || b == nullptr) return Return(cudaErrorInvalidResourceHandle);
  if (!a->Done() || !b->Done()) return Return(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(b->when - a->when).count();
  return Return(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  RETURN_IF_BROKEN();
  cudaStream_t stream = Resolve(handle);
  if (event == nullptr || stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    if (event->capture != nullptr) {
      // A stream that waits for captured work joins the capture.
      std::lock_guard<std::mutex> joining(stream->mutex);
      stream->capture = event->capture;
      return Return(cudaSuccess);
    }
  }
  const MomentPtr moment = MomentOf(event);
  if (moment == nullptr) return Return(cudaSuccess);
  return Return(Enqueue(handle, [moment] { moment->Wait(); }));
}

// ---- capture and graphs
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  RETURN_IF_BROKEN();
  cudaStream_t stream = Resolve(handle);
  if (stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  if (stream == stream->device->Legacy()) return Return(cudaErrorStreamCaptureUnsupported);
  std::lock_guard<std::mutex> lock(stream->mutex);
  if (stream->capture != nullptr) return Return(cudaErrorIllegalState);
  stream->capture = std::make_shared<ringscope::sim::Capture>();
  stream->capture->origin = stream;
  return Return(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  RETURN_IF_BROKEN();
  cudaStream_t stream = Resolve(handle);
  if (stream == nullptr || graph == nullptr) return Return(cudaErrorInvalidValue);
  ringscope::sim::CapturePtr capture;
  {
    std::lock_guard<std::mutex> lock(stream->mutex);
    capture = stream->capture;
  }
  if (capture == nullptr || capture->origin != stream) return Return(cudaErrorIllegalState);
  for (cudaStream_t s : stream->device->All()) {
    std::lock_guard<std::mutex> lock(s->mutex);
    if (s->capture == capture) s->capture = nullptr;
  }
  *graph = new CUgraph_st{capture->graph};
  return Return(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  cudaStream_t stream = Resolve(handle);
  if (stream == nullptr || status == nullptr) return Return(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(stream->mutex);
  *status = stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return Return(cudaSuccess);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  if (mode == nullptr) return Return(cudaErrorInvalidValue);
  std::swap(*mode, current);
  return Return(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  RETURN_IF_BROKEN();
  if (exec == nullptr || graph == nullptr) return Return(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st{graph->graph};
  return Return(cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  RETURN_IF_BROKEN();
  if (exec == nullptr) return Return(cudaErrorInvalidValue);
  return Return(Enqueue(stream, [graph = exec->graph] {
    for (const auto& node : graph->nodes) node();
  }));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return Return(cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return Return(cudaSuccess);
}
}
