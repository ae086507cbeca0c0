// The part of CUDA's driver interface that the stand-in has. Names, values and signatures are those of NVIDIA's public
// documentation.
#ifndef RINGSCOPE_TESTS_SIM_INCLUDE_CUDA_H_
#define RINGSCOPE_TESTS_SIM_INCLUDE_CUDA_H_

#include <stddef.h>
#include <stdint.h>

#define CUDA_VERSION 12080

#ifdef __cplusplus
extern "C" {
#endif

typedef int CUresult;  // 0 success; the numbers of cudaError_t
typedef int CUdevice;
typedef uintptr_t CUdeviceptr;
typedef struct CUstream_st* CUstream;
typedef uint64_t cuuint64_t;
typedef int CUdriverProcAddressQueryResult;

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetPCIBusId(char* busId, int length, CUdevice device);
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuGetErrorName(CUresult error, const char** name);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t count, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t count, CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
// `symbol` without a version suffix gives the newest; CUDA 12's form (_v2) has the last argument.
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* result);

#ifdef __cplusplus
}
#endif

#endif  // RINGSCOPE_TESTS_SIM_INCLUDE_CUDA_H_
