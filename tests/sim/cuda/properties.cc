// What a program asks about devices and errors, and the driver's entry points.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cuda/device.h"
#include "tests/sim/machine/machine.h"

using ringscope::sim::Devices;
using ringscope::sim::Return;

namespace {

struct Name {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr Name kNames[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"},
    {cudaErrorNvlinkUncorrectable, "cudaErrorNvlinkUncorrectable", "uncorrectable NVLink error detected during the execution"},
    {cudaErrorContained, "cudaErrorContained", "Invalid access of peer GPU memory over nvlink or a hardware error"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Name& NameOf(cudaError_t error) {
  for (const Name& n : kNames) {
    if (n.error == error) return n;
  }
  static constexpr Name kOther = {cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};
  return kOther;
}

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t error) { return NameOf(error).text; }
const char* cudaGetErrorName(cudaError_t error) { return NameOf(error).name; }

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return Return(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return Return(cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int length, int device) {
  if (device < 0 || static_cast<size_t>(device) >= Devices().size()) return Return(cudaErrorInvalidDevice);
  if (bus_id == nullptr || length < 13) return Return(cudaErrorInvalidValue);
  static const ringscope::sim::Machine& machine = *new auto(ringscope::sim::ThisMachine(static_cast<int>(Devices().size())));
  const bool described = static_cast<size_t>(device) < machine.gpus.size();
  snprintf(bus_id, static_cast<size_t>(length), "0000:%02x:00.0",
           described ? machine.gpus[static_cast<size_t>(device)].bus & 0xff : device);
  return Return(cudaSuccess);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const size_t n = Devices().size();
  if (can == nullptr) return Return(cudaErrorInvalidValue);
  if (device < 0 || peer < 0 || static_cast<size_t>(device) >= n || static_cast<size_t>(peer) >= n)
    return Return(cudaErrorInvalidDevice);
  const char* refused = getenv("RINGSCOPE_SIM_P2P");  // "0": the driver refuses
  *can = device != peer && (refused == nullptr || strcmp(refused, "0") != 0);
  return Return(cudaSuccess);
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  int can = 0;
  if (const cudaError_t asked = cudaDeviceCanAccessPeer(&can, ringscope::sim::CurrentDevice(), peer); asked != cudaSuccess)
    return asked;
  return Return(can ? cudaSuccess : cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  if (symbol == nullptr || function == nullptr) return Return(cudaErrorInvalidValue);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) driver = dlopen("libcuda.so.1", RTLD_NOW);
  *function = driver == nullptr ? nullptr : dlsym(driver, symbol);
  if (result != nullptr) *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return Return(*function != nullptr || result != nullptr ? cudaSuccess : cudaErrorSymbolNotFound);
}
}
