// Functions that the preloaded library wraps (host_calls.def), by their numbers in records.
#ifndef RINGSCOPE_RECORDER_FLIGHT_HOST_CALLS_H_
#define RINGSCOPE_RECORDER_FLIGHT_HOST_CALLS_H_

#include <stdint.h>

namespace ringscope::flight {

enum class HostLibrary : uint32_t { kNone = 0, kNccl = 1, kCudaRuntime = 2, kCudaDriver = 3 };

struct HostCallInfo {
  uint32_t number;  // 0: none such
  HostLibrary library;
  const char* name;
};
// {0, kNone, ""} for a number that no function has.
HostCallInfo HostCallOf(uint32_t number);

// Directions of copies as they are counted. The first five are cudaMemcpyKind.
inline constexpr int kCopyHostToHost = 0, kCopyToDevice = 1, kCopyToHost = 2, kCopyOnDevice = 3, kCopyUnknown = 4, kCopyPeer = 5,
                     kCopyMemset = 6;
inline constexpr uint32_t kCopyKinds = 7;
// Up to 4 KiB, 64 KiB, 1 MiB, 16 MiB, more.
inline constexpr uint32_t kCopySizes = 5;
inline constexpr uint32_t CopySizeOf(uint64_t bytes) {
  return bytes <= 4096 ? 0 : bytes <= 65536 ? 1 : bytes <= 1u << 20 ? 2 : bytes <= 16u << 20 ? 3 : 4;
}

// Errors after which a CUDA context answers every call with the same error: the process must end (cudaError_t, CUDA 11.8-13.0).
inline constexpr bool IsSticky(uint32_t code) {
  switch (code) {
    case 214:  // uncorrectable ECC error
    case 219:  // invalid graphics context
    case 220:  // uncorrectable NVLink error
    case 226:  // contained: a peer's memory, or hardware
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context is destroyed
    case 710:  // assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failure
    case 721:  // tensor memory leak
    case 999:  // unknown
      return true;
    default:
      return false;
  }
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_HOST_CALLS_H_
