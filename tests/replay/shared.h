// Memory that the parent and all replayed processes share: the handles that the plugin gave in each
// process (another process may have to be handed them: PXN), and how far each process is. And the
// file of returned callbacks.
#ifndef RINGSCOPE_TESTS_REPLAY_SHARED_H_
#define RINGSCOPE_TESTS_REPLAY_SHARED_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/replay/capture.h"

namespace ringscope::replay {

// A handle or a context as the plugin gave it. The value is valid once state is kGiven.
struct SharedHandle {
  enum State : uint32_t { kPending, kGiven, kNotDelivered };
  std::atomic<uint64_t> value;
  std::atomic<uint32_t> state;
};

struct ProcessShared {
  std::atomic<int32_t> pid;
  std::atomic<uint32_t> ready;
  std::atomic<uint32_t> done;       // every action of the plan is done
  std::atomic<uint32_t> failed;     // could not be set up; a message is on stderr
  std::atomic<uint64_t> delivered;  // callbacks that returned
  std::atomic<uint64_t>
      left_out;  // callbacks of the capture that NCCL would not have made, under this plugin's mask
  std::atomic<uint64_t>
      at_event;  // index of the event being delivered, for the message when the plugin crashes
};

struct JobShared {
  std::atomic<uint64_t>
      start_ns;  // CLOCK_MONOTONIC of the capture's first callback in this replay; 0: not yet
};

// Anonymous shared mapping made before the processes are forked.
class Shared {
 public:
  static absl::StatusOr<Shared> Make(const Capture& capture);

  JobShared& job() { return *job_; }
  ProcessShared& process(size_t process) { return processes_[process]; }
  SharedHandle& handle(size_t process, int32_t slot) { return handles_[process][slot]; }
  SharedHandle& context(size_t process, int32_t context) { return contexts_[process][context]; }

 private:
  JobShared* job_ = nullptr;
  ProcessShared* processes_ = nullptr;
  std::vector<SharedHandle*> handles_, contexts_;
};

// DIR/returned.<process>.bin, made for --kill=N and --kill=random: a mapping that outlives a
// SIGKILL. Little-endian, all words 64 bit:
//   header  magic "RSRETURN", version 1, process index, number of threads
//   then for each thread, in the order of their first callback: captured tid, callbacks entered,
//   callbacks returned
// A thread's callbacks are counted as they are delivered: those that NCCL would not have made do
// not count. Killed between two callbacks, entered equals returned; killed inside one, entered is
// one more.
struct ReturnedHeader {
  char magic[8];
  uint64_t version;
  uint64_t process;
  uint64_t threads;
};

struct ReturnedThread {
  uint64_t tid;
  std::atomic<uint64_t> entered;
  std::atomic<uint64_t> returned;
};

class ReturnedFile {
 public:
  // Makes the file with one row a thread; without a file, in memory only, where `dir` is empty.
  static absl::StatusOr<ReturnedFile> Make(const std::string& dir, int process,
                                           const std::vector<uint32_t>& tids);
  ReturnedThread& thread(size_t index) { return threads_[index]; }

 private:
  ReturnedThread* threads_ = nullptr;
};

struct ReturnedCounts {
  uint64_t tid, entered, returned;
};
// For tests: what a dead process left.
absl::StatusOr<std::vector<ReturnedCounts>> ReadReturned(const std::string& dir, int process);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_SHARED_H_
