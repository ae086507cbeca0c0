// One callback of NCCL as a capture holds it, and the release it came from. Plain data: the reader
// fills it, the plan reorders and mends it, the child delivers it.
#ifndef RINGSCOPE_TESTS_REPLAY_EVENT_H_
#define RINGSCOPE_TESTS_REPLAY_EVENT_H_

#include <cstdint>

namespace ringscope::replay {

// Bits of an event type, the same in a descriptor and in the mask (profiler API v1 to v6).
enum Type : uint32_t {
  kGroup = 0x1,
  kColl = 0x2,
  kP2p = 0x4,
  kProxyOp = 0x8,
  kProxyStep = 0x10,
  kProxyCtrl = 0x20,
  kKernelCh = 0x40,
  kNetPlugin = 0x80,
  kGroupApi = 0x100,
  kCollApi = 0x200,
  kP2pApi = 0x400,
  kKernelLaunch = 0x800,
  kCeColl = 0x1000,
  kCeSync = 0x2000,
  kCeBatch = 0x4000,
};

// States that this code treats by name; all others pass through as numbers.
enum State : uint32_t {
  kProxyOpRecvDone = 7,  // the last of the ProxyOp's states before 2.27
  kProxyStepSendGPUWait = 8,
  kProxyStepRecvGPUWait = 12,
  kProxyCtrlAppendEnd = 18,
  kProxyOpInProgress = 19,
  kNetPluginUpdate = 21,
  kKernelChStop = 22,
  kGroupStartApiStop = 23,
  kGroupEndApiStart = 24,
};

enum class Callback : uint8_t { kInit, kStart, kState, kStop, kFinalize };

inline constexpr int32_t kNone = -1;

// A start owns a "slot": the place of the handle that the plugin answers with. Slots are dense per
// process, over all loads of the plugin (a capture's own numbers restart at 1 with each load).
// States, stops and children name slots, so a replay can put the handles of the plugin under test
// where the recording had those of the recording plugin.
struct Event {
  Callback callback = Callback::kStart;
  bool refused = false;  // start: the recording plugin answered NULL or nothing, so its states and
                         // stop are missing
  bool made_up =
      false;  // not in the capture: what NCCL would have sent to a plugin that did answer
  bool args_null = false;  // state: NCCL passed a NULL pointer for the arguments
  bool own_pid = true;     // ProxyOp: it belongs to the process that runs it
  bool garbage_handle =
      false;  // state or stop with a pointer that nobody handed out (a hostile recording)
  uint32_t type = 0;
  uint32_t state = 0;
  uint32_t tid = 0;         // OS thread in the recording
  uint32_t load = 0;        // 0 for the first load of the plugin, 1 after it was unloaded once, ...
  uint64_t n = 0;           // number within the load; 0 when made up
  uint64_t t = 0;           // CLOCK_MONOTONIC of the recording, ns
  int32_t slot = kNone;     // start: its own; state and stop: whose
  int32_t context = kNone;  // index into Process::contexts; kNone for a foreign one
  int32_t parent = kNone;   // slot
  int32_t parent_group = kNone;
  uint64_t foreign_context = 0;  // pointers of another process (PXN): 0 means none
  uint64_t foreign_parent = 0;
  int32_t owner_process =
      kNone;  // index into Capture::processes: whose operation this is (PXN, and own operations)
  int32_t owner_slot = kNone;  // in that process
  int32_t owner_context = kNone;
  uint64_t hin = 0;  // what *eHandle held on entry

  // Fields of the descriptor; which of them hold anything depends on the type. Texts live as long
  // as the Capture.
  int32_t rank = 0;
  const char* func = nullptr;
  const char* datatype = nullptr;
  const char* algo = nullptr;
  const char* proto = nullptr;
  uint64_t seq = 0;
  uint64_t comm_hash = 0;  // v1 to v3: Coll and P2p
  uint64_t traffic = 0;    // v1 and v2
  int32_t reduction = 0;   // v1
  uint64_t count = 0;
  uint64_t send_buff = 0;
  uint64_t recv_buff = 0;  // P2p: its one buffer
  uint64_t stream = 0;
  int32_t root = 0;
  int32_t peer = 0;
  int32_t n_channels = 0;
  int32_t n_warps = 0;
  int32_t group_depth = 0;
  bool graph_captured = false;
  int32_t pid = 0;
  int32_t channel = 0;
  int32_t n_steps = 0;
  int32_t chunk_size = 0;
  bool is_send = false;
  int32_t step = 0;
  uint64_t p_timer = 0;  // GPU clock, ns: never scaled
  uint64_t net_id = 0;
  int32_t sock_type = 0, sock_fd = 0, sock_op = 0;
  uint64_t sock_len = 0;
  uint64_t trans_size = 0;
  int32_t steps = 0;  // ProxyOp states before 2.27: so many steps
  int32_t appended = 0;
};

// Release as 100 * major + minor: 224, 228, 230.
using Release = int;

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_EVENT_H_
