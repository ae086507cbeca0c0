// libcuda's part: forwards to the runtime's stand-in, which has the queues.
#include <dlfcn.h>
#include <string.h>

#include <string>

#include "tests/sim/include/cuda.h"
#include "tests/sim/include/cuda_runtime.h"

extern "C" {

CUresult cuInit(unsigned) { return cudaSuccess; }
CUresult cuDriverGetVersion(int* version) { return cudaDriverGetVersion(version); }
CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  cudaGetDeviceCount(count);
  return cudaSuccess;  // none is no error here
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device == nullptr) return cudaErrorInvalidValue;
  if (ordinal < 0 || ordinal >= count) return cudaErrorInvalidDevice;
  *device = ordinal;
  return cudaSuccess;
}
CUresult cuDeviceGetPCIBusId(char* bus_id, int length, CUdevice device) { return cudaDeviceGetPCIBusId(bus_id, length, device); }
CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return cudaErrorInvalidValue;
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return cudaSuccess;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return cudaErrorInvalidValue;
  *name = cudaGetErrorName(static_cast<cudaError_t>(error));
  return cudaSuccess;
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream) {
  return cudaMemcpyAsync(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), count, cudaMemcpyDefault, stream);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t count, CUstream stream) {
  return cudaMemcpyAsync(reinterpret_cast<void*>(to), from, count, cudaMemcpyHostToDevice, stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t count, CUstream stream) {
  return cudaMemcpyAsync(to, reinterpret_cast<const void*>(from), count, cudaMemcpyDeviceToHost, stream);
}
CUresult cuStreamSynchronize(CUstream stream) { return cudaStreamSynchronize(stream); }

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult* result) {
  if (symbol == nullptr || function == nullptr) return cudaErrorInvalidValue;
  Dl_info here;
  void* self = dladdr(reinterpret_cast<void*>(cuInit), &here) != 0 ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  *function = nullptr;
  if (self != nullptr) {
    *function = dlsym(self, (std::string(symbol) + "_v2").c_str());
    if (*function == nullptr) *function = dlsym(self, symbol);
    dlclose(self);
  }
  if (result != nullptr) *result = *function != nullptr ? 0 : 1;
  return *function != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
}
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
}
