// NCCL in one process, as far as a profiler sees it: user threads, a launching thread, a proxy
// thread per communicator, all of them turns of one real thread so that a seed decides every order.
// Legal traffic only, traps of NCCL's releases included (docs/nccl.md); what is told to the
// recorder goes into the model too.
#ifndef RINGSCOPE_TESTS_INTERFACE_WORLD_H_
#define RINGSCOPE_TESTS_INTERFACE_WORLD_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "recorder/hot_thread.h"
#include "tests/interface/dice.h"
#include "tests/interface/door.h"
#include "tests/interface/model.h"

namespace ringscope::interface_model {

struct CommSim;

// One call of the user: a collective, a send or a receive.
struct Task {
  CommSim* comm = nullptr;
  bool p2p = false, send = false, captured = false, copy_engine = false, silent = false;
  uint32_t func = 0, type = 0;  // into tables of names
  uint64_t count = 0, sequence = 0;
  int root = -1, peer = -1;
  uint32_t channels = 1;
  void* api = nullptr;
  void* launch = nullptr;                   // Coll or P2p: the parent of what follows
  uint32_t sends_left = 0, recvs_left = 0;  // proxy operations of its own that have not ended
  OperationPtr op;
};
using TaskPtr = std::shared_ptr<Task>;

// One ncclGroup, explicit or not.
struct GroupSim {
  int depth = 1;
  bool captured = false;
  void* api = nullptr;
  void* plan = nullptr;
  void* kernel_launch = nullptr;
};
using GroupPtr = std::shared_ptr<GroupSim>;

enum class Do {
  kGroupStart,
  kGroupStartStop,
  kApiStart,
  kApiStop,
  kGroupEndStart,
  kGroupStop,
  kKernelLaunch,
  kKernelLaunchStop,
  kPlanStart,
  kLaunchStart,
  kLaunchStop,
  kPlanStop
};
struct Act {
  Do what;
  GroupPtr group;
  TaskPtr task;
  CommSim* comm = nullptr;
};

struct ProxyOpSim {
  TaskPtr task;
  EdgeKey key;
  void* handle = nullptr;
  int n_steps = 0, chunk = 0, peer = 0, rank = 0, pid = 0;
  uint32_t channel = 0;
  bool send = false, begun = false;
  void* context = nullptr;
  void* parent = nullptr;
  std::array<uint32_t, 4> reached{};
  uint32_t started = 0;
  uint64_t bytes = 0;  // so far
  std::array<void*, 8> steps{};
  Edge* edge = nullptr;  // stays while it is busy
};
using ProxyPtr = std::shared_ptr<ProxyOpSim>;

struct CommSim {
  std::shared_ptr<Comm> model;
  uint32_t thread = 0;       // user thread that calls on it
  uint32_t most_queued = 8;  // tasks launched and not finished before its thread waits
  bool network = false, shim = false;
  std::deque<TaskPtr> kernels;  // in the order of the launches; the first one runs
  std::vector<std::pair<uint8_t, void*>> channels;  // of the first one: state, handle
  std::deque<ProxyPtr> to_append;
  std::map<EdgeKey, std::deque<ProxyPtr>> edges;  // each in order
  std::vector<TaskPtr> graphs;                    // captured calls that may be launched again
  TaskPtr last_task;                              // the one whose kernel ended last
  std::pair<void*, OperationPtr> last_kernel;     // handle that was stopped, its operation
  std::map<uint32_t, uint64_t> sequences;         // per function
  uint32_t open_calls = 0;                        // acts of groups that still name it
};

class World {
 public:
  World(const recorder::Image& image, int version, uint64_t seed);
  // Makes about `callbacks` of them, comparing now and then; then everything finishes, or is
  // aborted, and is compared again.
  void Run(uint64_t callbacks);
  uint64_t callbacks() const { return door_.callbacks; }

 private:
  static constexpr uint32_t kUserThreads = 3, kLauncher = 3, kProxy = 4, kThreads = 5;

  // world.cc: turns, communicators
  void Turn();
  void On(uint32_t thread);
  template <typename F>
  Moment Timed(F call);
  void Open();
  void Close(CommSim* comm);
  void Drain();
  void Abort();
  bool Quiet(const CommSim& comm) const;
  // world_calls.cc: what the user's threads do
  void NewGroup(uint32_t thread);
  TaskPtr NewTask(CommSim* comm, bool p2p);
  void Push(std::deque<Act>* queue, Do what, const GroupPtr& group, const TaskPtr& task,
            CommSim* comm);
  void QueueLaunch(const GroupPtr& group, const std::vector<TaskPtr>& tasks,
                   std::deque<Act>* queue);
  void Step(uint32_t thread, std::deque<Act>* queue);
  void ApiStart(uint32_t thread, const Act& act);
  void ApiStop(const Act& act);
  void LaunchStart(const Act& act);
  void LaunchStop(const Act& act);
  void NewOperation(const TaskPtr& task, uint64_t handle, uint32_t flags, void* stream,
                    const Moment& entered);
  void Messages(const Task& task);
  void Identify(const Task& task, Event* e);
  void Replay(CommSim* comm);
  // world_proxy.cc: what the proxy threads do
  void AppendProxyOps(const TaskPtr& task);
  void Proxy(CommSim* comm);
  void Kernel(CommSim* comm);
  void AppendOne(CommSim* comm);
  void Network(CommSim* comm, std::deque<ProxyPtr>* queue);
  void Reach(ProxyOpSim* op, uint32_t field);
  void RefuseSend(ProxyOpSim* op);
  void SkipPeerWait(ProxyOpSim* op);
  void Finish(ProxyOpSim* op);
  void OpReach(ProxyOpSim* op, uint32_t field);
  static void BeginOperation(Edge* edge, uint64_t handle, Moment now);

  const recorder::Image& image_;
  Dice dice_;
  Door door_;
  Model model_;
  std::vector<std::unique_ptr<CommSim>> comms_;
  std::array<std::deque<Act>, kUserThreads + 1> queues_;  // the last one: the launcher's
  struct ThreadSim {
    uint32_t p2p_tasks = 0;
    OperationPtr tail;
  };
  std::array<ThreadSim, kUserThreads + 1> threads_;
  uint64_t gpu_clock_ = 1000;
};

}  // namespace ringscope::interface_model

#endif  // RINGSCOPE_TESTS_INTERFACE_WORLD_H_
