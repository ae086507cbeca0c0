// Handles: what our callbacks write into NCCL's *eHandle and get back as parentObj. 64-bit codes, never pointers.
//
//   bits 50-63  process nonce (14, non-zero): user-space pointers have zeros there, so a foreign pointer is recognised,
//               and a handle of another process (PXN) is told from our own
//   bits 46-49  kind
//   bits  0-45  payload, per kind below
//
// A handle may come back NULL, stale, from another process, or never: every use is checked against the row it names.
#ifndef RINGSCOPE_RECORDER_FLIGHT_HANDLES_H_
#define RINGSCOPE_RECORDER_FLIGHT_HANDLES_H_

#include <stdint.h>

namespace ringscope::flight {

enum class HandleKind : uint32_t {
  kNone = 0,
  kContext = 1,   // communicator row (16) | generation (16) << 16
  kGroup = 2,     // thread row (16) | group ordinal (24) << 16; GroupApi
  kOp = 3,        // operation row (16) | generation (22) << 16 | 1 << 38 when it came from a launch event
                  // | 1 << 39 for point-to-point
  kKernel = 4,    // operation row (16) | generation (22) << 16 | channel (8) << 38
  kProxyOp = 5,   // edge row (12) | edge generation (6) << 12 | operation ordinal on the edge (6) << 18
                  // | low 8 bits of the operation row << 24 | nSteps (14, cut at 16383) << 32
  kStep = 6,      // edge row (12) | edge generation (6) << 12 | operation ordinal (6) << 18 | step (14) << 24. The low 24 bits
                  // are those of its ProxyOp: one comparison tells whether a step belongs to the running operation
  kLaunch = 7,    // thread row (16) | Call that the thread was in before (4) << 16; KernelLaunch
  kPlan = 8,      // Group (a kernel plan) and other events that we only acknowledge
};

inline constexpr uint64_t kPayloadMask = (uint64_t{1} << 46) - 1;

constexpr uint64_t MakeHandle(uint32_t nonce, HandleKind kind, uint64_t payload) {
  return uint64_t{nonce} << 50 | uint64_t{static_cast<uint32_t>(kind)} << 46 | (payload & kPayloadMask);
}
constexpr uint32_t HandleNonce(uint64_t h) { return static_cast<uint32_t>(h >> 50); }
constexpr HandleKind KindOf(uint64_t h) { return static_cast<HandleKind>(h >> 46 & 15); }
constexpr uint64_t HandlePayload(uint64_t h) { return h & kPayloadMask; }

inline constexpr uint32_t kOpGenerationBits = 22;
inline constexpr uint32_t kMaxSteps = 16383;  // nSteps is cut here; the edge row's `chunk` keeps the full number

// ProxyOp payload.
constexpr uint32_t ProxyOpEdge(uint64_t h) { return h & 0xfff; }
constexpr uint32_t ProxyOpGeneration(uint64_t h) { return h >> 12 & 0x3f; }
constexpr uint32_t ProxyOpOrdinal(uint64_t h) { return h >> 18 & 0x3f; }
constexpr uint32_t ProxyOpRowLow(uint64_t h) { return h >> 24 & 0xff; }
constexpr uint32_t ProxyOpSteps(uint64_t h) { return h >> 32 & 0x3fff; }
// Step payload; edge, generation and ordinal as above.
constexpr uint32_t StepOf(uint64_t h) { return h >> 24 & 0x3fff; }
inline constexpr uint64_t kSameOperationMask = 0xffffff;
// Op and Kernel payload.
inline constexpr uint32_t kNoOpRow = 0xffff;  // an operation that found no room: known, counted, not kept
inline constexpr uint64_t kOpLaunched = uint64_t{1} << 38;
inline constexpr uint64_t kOpIsP2p = uint64_t{1} << 39;
constexpr uint32_t OpRowOf(uint64_t h) { return h & 0xffff; }
constexpr uint32_t OpGeneration(uint64_t h) { return h >> 16 & ((1u << kOpGenerationBits) - 1); }

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_HANDLES_H_
