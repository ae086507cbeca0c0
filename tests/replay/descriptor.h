// Descriptors and state arguments as NCCL lays them out, written byte by byte at the documented
// offsets: neither the plugin's declarations nor NCCL's headers are used, so a wrong offset in
// either shows.
#ifndef RINGSCOPE_TESTS_REPLAY_DESCRIPTOR_H_
#define RINGSCOPE_TESTS_REPLAY_DESCRIPTOR_H_

#include <cstddef>
#include <cstdint>

#include "tests/replay/event.h"

namespace ringscope::replay {

// What the stack held before: every byte that NCCL does not set.
inline constexpr unsigned char kGarbage = 0xA5;

struct Descriptor {
  alignas(8) unsigned char bytes[128];
  alignas(8) unsigned char net[40];  // what netPlugin.data points to
};

struct StateArgs {
  alignas(8) unsigned char bytes[16];
};

// Size of the descriptor in this version of the API: 120 (v1, v3), 128 (v2), 104 (v4), 112 (v5,
// v6). Bytes after it are garbage as well.
size_t DescriptorSize(int api);

struct DescriptorPointers {
  uint64_t parent = 0;
  uint64_t parent_group = 0;    // v5 and later
  int32_t pid = 0;              // ProxyOp
  bool channels_unset = false;  // P2p: NCCL's shim leaves its nChannels as it found them (v4)
};

// Fills `out` for a start of event.type. Texts are passed on as pointers.
void BuildDescriptor(int api, const Event& event, const DescriptorPointers& pointers,
                     Descriptor& out);

// Arguments of a state: 16 bytes up to v3, 8 from v4 on; `zero`: a shim passes none. Not called
// where NCCL passes NULL.
void BuildStateArgs(int api, const Event& event, bool zero, StateArgs& out);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_DESCRIPTOR_H_
