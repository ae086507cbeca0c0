// Calls the plugin for one event, as NCCL of the capture's release does: which starts it makes
// under the mask, what it puts into *eHandle, which parents it passes, which states and stops it
// sends for which handles.
#ifndef RINGSCOPE_TESTS_REPLAY_DELIVER_H_
#define RINGSCOPE_TESTS_REPLAY_DELIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/replay/capture.h"
#include "tests/replay/plugin_table.h"
#include "tests/replay/shared.h"

namespace ringscope::replay {

// Told around every call into the plugin; on the calling thread.
class DeliveryObserver {
 public:
  virtual ~DeliveryObserver() = default;
  virtual void Entering(const Event&) {}
  virtual void Returned(const Event&) {}
};

// One per process. Not thread-safe: calls come one after another, in the captured order, from
// different threads.
class Deliverer {
 public:
  // `process` is the index into capture.processes. Nothing is owned.
  Deliverer(const Capture& capture, size_t process, PluginTable& plugin, Shared& shared,
            DeliveryObserver* observer);

  // Makes the call, or leaves it out where NCCL would. An error means that the plugin could not be
  // loaded.
  absl::Status Deliver(const Event& event);

  int mask() const { return mask_; }

 private:
  absl::Status Init(const Event& event);
  void Start(const Event& event);
  void StateOrStop(const Event& event);
  void Finalize(const Event& event);
  bool NcclStarts(const Event& event) const;
  uint64_t ParentHandle(const Event& event) const;
  uint64_t ContextPointer(const Event& event) const;
  int32_t ProxyPid(const Event& event) const;
  bool Given(int32_t slot) const;
  uint64_t Handle(int32_t slot) const;
  // Waits a little for the owner to have started what we are to hand on; 0 and false when it did
  // not.
  bool Await(SharedHandle& handle, uint64_t* value) const;

  const Capture& capture_;
  const Process& process_;
  size_t index_;
  PluginTable& plugin_;
  Shared& shared_;
  DeliveryObserver* observer_;
  DeliveryObserver silent_;
  int mask_ = 0;  // one for the whole process, as in NCCL; survives a reload of the plugin
  std::vector<bool> failed_contexts_;
};

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_DELIVER_H_
