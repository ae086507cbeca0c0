// Loopback sockets: the bootstrap that makes ranks know each other, and the progress thread that moves data between processes.
#ifndef RINGSCOPE_TESTS_SIM_NCCL_WIRE_H_
#define RINGSCOPE_TESTS_SIM_NCCL_WIRE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/nccl/fifo.h"

namespace ringscope::sim {

constexpr int kMostGpus = 16;  // of a host, for pairs

// What a rank tells of itself. Plain data: it goes over the wire as it is.
struct Peer {
  int32_t rank = -1, device = 0, pid = 0;
  uint16_t port = 0;  // where its process accepts connections
  char host[64] = {};
  char bus_id[16] = {};
  // What the plan is made of (plan.h).
  uint8_t sm = 90, nvswitch = 1, lanes = 0, cpu = 0, pci = 0, nics = 0, gdr = 1;
  uint8_t nvls = 0, multicast = 1;  // NVLink SHARP is there; the driver gives this GPU multicast memory
  uint8_t no_p2p = 0, no_shm = 0;   // switched off
  uint8_t pair[kMostGpus] = {};     // lanes to other GPUs, where there is no switch
  uint16_t refused = 0;             // GPUs to which the driver grants no peer-to-peer, a bit each
};

// ---- bootstrap
struct RootAddress {
  uint64_t magic = 0;
  uint64_t hash = 0;  // of the communicator
  uint16_t port = 0;
};
// Listens and answers on a thread of its own, for one communicator, until all its ranks have come.
bool StartRoot(RootAddress* root);
// Blocks until all `n` ranks have come; empty: a connection failed or `stop` was set.
std::vector<Peer> JoinRoot(const RootAddress& root, const Peer& self, int n, const std::atomic<bool>& stop, std::string* error);

// ---- data
// Which direction of which communicator a connection is.
struct Route {
  uint64_t communicator = 0;
  int32_t from = -1, to = -1;
  int32_t tag = 0;  // channel; kMessages, kControl
  bool network = false;  // counts as a network's edge; whoever accepts a connection may not know its peers yet
};
constexpr int32_t kMessages = -1, kControl = -2;

// This process's port for connections from other processes' ranks. `incoming` hands out the fifo of a route.
uint16_t ListenPort();
void SetIncoming(std::function<FifoPtr(const Route&)> incoming);
// Moves what the kernel puts into the fifo to the peer's process. False: nobody listens there.
bool ConnectOut(const Route& route, uint16_t port, FifoPtr fifo);
// Runs on the progress thread, soon and in order.
void OnProgress(std::function<void()> work);
// Rung by kernels that filled or emptied a fifo which the progress thread drives.
std::shared_ptr<Bell> ProgressBell();
// A connection of the communicator ended before it was told to: its peer's process is gone.
void SetLost(std::function<void(const Route&)> lost);
// Whether all that moves over this rank's connections was moved and told; those that are lost count as such. On the progress
// thread.
bool EdgesIdle(uint64_t communicator, int32_t rank);
// Forgets the connections of this rank of the communicator; `drain`: after what is in the slots was sent, and with a word to the
// peers that nothing more comes.
void CloseRoutes(uint64_t communicator, int32_t rank, bool drain);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_WIRE_H_
