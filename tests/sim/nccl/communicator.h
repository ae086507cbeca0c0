// One rank of one communicator. Internal to the stand-in; the opaque ncclComm of the public interface.
#ifndef RINGSCOPE_TESTS_SIM_NCCL_COMMUNICATOR_H_
#define RINGSCOPE_TESTS_SIM_NCCL_COMMUNICATOR_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/cuda/hooks.h"
#include "tests/sim/nccl/fifo.h"
#include "tests/sim/nccl/plan.h"
#include "tests/sim/nccl/reduce.h"
#include "tests/sim/nccl/wire.h"

struct ncclComm {
  int rank = 0, n = 1, device = 0;
  uint64_t hash = 0;
  std::vector<ringscope::sim::Peer> peers;
  ringscope::sim::Plan plan;
  bool nvls = false;  // this rank uses NVLink SHARP; whether all others do is another question (init.cc)
  std::string name;
  bool blocking = true;
  bool split = false;

  std::shared_ptr<ringscope::sim::Bell> bell = std::make_shared<ringscope::sim::Bell>();
  std::atomic<bool> aborted{false};
  std::atomic<int> state{ncclInProgress};  // of the newest operation of a non-blocking communicator; an error stays
  std::atomic<int> kernels{0};             // enqueued and not over
  int splits = 0;
  void* profiler = nullptr;                   // the plugin's context
  std::map<std::string, uint64_t> sequences;  // of each function, as NCCL counts

  // Scaled sums, by number.
  std::mutex mutex;
  std::map<int, ringscope::sim::Reduction> made;
  int next_op = ncclNumOps;

  // Directions that have been used. The other end makes them known when it uses them first.
  ringscope::sim::FifoPtr Out(int to, int32_t tag);
  ringscope::sim::FifoPtr In(int from, int32_t tag) { return In(from, tag, tag != ringscope::sim::kControl && OverNetwork(from)); }
  ringscope::sim::FifoPtr In(int from, int32_t tag, bool network);
  // Whether data to and from that rank goes over the network. Not before the rank has joined.
  bool OverNetwork(int peer) const;
  // Waits until `ready()`; false: aborted.
  bool Wait(const std::function<bool()>& ready);
  // An error that only ncclCommGetAsyncError shows.
  void Fail(ncclResult_t error);

 private:
  std::map<std::pair<int, int32_t>, ringscope::sim::FifoPtr> out_, in_;
};

namespace ringscope::sim {

// Makes it known in this process, before the other ranks can ask for it.
void Announce(ncclComm* comm);
void Forget(ncclComm* comm);
// Of this process; nullptr.
ncclComm* Find(uint64_t hash, int rank);

// This process as a rank of a communicator, on the machine as it is now.
Peer Self(int rank, int device);
// The name that stands for this host: RINGSCOPE_SIM_HOST, NCCL_HOSTID, else the machine's.
std::string HostName();
// The address of that host's control network, by the number in its name: 10.0.0.3 of node2.
std::string AddressOf(const std::string& host);

// Every rank gives `bytes` bytes and gets those of all, in the order of ranks. On the calling thread; false: aborted.
bool GatherAll(ncclComm* comm, const void* own, size_t bytes, void* all);

// ---- kernels (kernels.cc): on a stream's thread
struct Task {
  enum Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kMessages } kind = kAllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  Reduction reduction;
  int root = 0;
  struct Message {
    bool send = false;
    int peer = 0;
    char* data = nullptr;
    size_t bytes = 0;
    ncclDataType_t type = ncclInt8;
    void *api = nullptr, *handle = nullptr;  // the profiler's
  };
  std::vector<Message> messages;
  const char* function = "";  // for profilers
  void* handle = nullptr;     // of the collective
  int fault = 0;              // faults.h
  enum Algorithm { kRing, kTree, kNvls } algorithm = kRing;
};
// Which connections the task uses. What a switch would do for NVLS is done by a ring of its own, so that a rank which disagrees
// about the algorithm meets nobody, as in NCCL.
inline int32_t TagOf(const Task& task) { return task.algorithm * 100; }
// The algorithm for a task whose other fields are set: NVLS where this rank uses it, a tree for what is small among many, as
// NCCL_ALGO says.
Task::Algorithm ChooseAlgorithm(const ncclComm* comm, const Task& task);
int SlicesOf(size_t bytes);
// Connections that this rank uses in the task, in the order in which NCCL tells of them, each with its slices.
struct EdgeSteps {
  int peer = -1;
  bool send = false;
  int steps = 0;
};
std::vector<EdgeSteps> StepsOf(const ncclComm* comm, const Task& task);
// False: aborted.
bool RunTask(ncclComm* comm, const Task& task);

// ---- log (log.cc): NCCL_DEBUG, in the shapes of NCCL's lines
void LogInfo(int device, const std::string& text);
void LogGraph(int device, const std::string& text);  // where NCCL_DEBUG_SUBSYS asks for GRAPH or ALL
void LogWarn(int device, const std::string& text);
void LogVersion();

// ---- errors: for ncclGetLastError, of this thread
ncclResult_t Error(ncclResult_t result, const std::string& text);
const char* LastError();

// ---- groups (group.cc)
// Runs now, or at the end of the group that this thread is in.
ncclResult_t Submit(ncclComm* comm, Task task, cudaStream_t stream);
ncclResult_t SubmitJob(
    std::function<ncclResult_t()> job);  // init and the like: all of a group at once, each on a thread of its own
bool InGroup();

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_COMMUNICATOR_H_
