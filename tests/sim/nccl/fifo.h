// One direction between two ranks of a communicator: eight slots that the sending kernel fills and the receiving one empties, as
// NCCL's connections have (NCCL_STEPS).
#ifndef RINGSCOPE_TESTS_SIM_NCCL_FIFO_H_
#define RINGSCOPE_TESTS_SIM_NCCL_FIFO_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ringscope::sim {

constexpr size_t kSlots = 8;
constexpr size_t kSliceBytes = size_t{64} << 10;  // of one slot

// What waits on one rank of a communicator waits here: its kernels, and whoever moves its data.
struct Bell {
  std::mutex mutex;
  std::condition_variable rings;
  uint64_t count = 0;
  void Ring() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++count;
    }
    rings.notify_all();
  }
};

// Both ends are in one process: two ranks' kernels, or a kernel and the progress thread that drives the socket to the other rank.
class Fifo {
 public:
  // `filled` and `emptied` ring when a slot was filled, emptied. May be the same.
  Fifo(std::shared_ptr<Bell> filled, std::shared_ptr<Bell> emptied) : filled_(std::move(filled)), emptied_(std::move(emptied)) {}

  // False: no slot is free.
  bool TryPut(const void* data, size_t bytes) {
    std::shared_ptr<Bell> bell;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (tail_ - head_ == kSlots) return false;
      const char* from = static_cast<const char*>(data);
      slots_[tail_ % kSlots].assign(from, from + bytes);
      ++tail_;
      bell = filled_;
    }
    bell->Ring();
    return true;
  }
  // False: nothing has come. `take(data, bytes)` sees the oldest slot, which is free afterwards.
  template <typename Take>
  bool TryTake(Take take) {
    std::vector<char> slot;
    std::shared_ptr<Bell> bell;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (tail_ == head_) return false;
      slot.swap(slots_[head_ % kSlots]);
      ++head_;
      bell = emptied_;
    }
    take(slot.data(), slot.size());
    bell->Ring();
    return true;
  }
  bool Full() {
    std::lock_guard<std::mutex> lock(mutex_);
    return tail_ - head_ == kSlots;
  }
  // Slots that were filled since the beginning.
  uint64_t Put() {
    std::lock_guard<std::mutex> lock(mutex_);
    return tail_;
  }
  // Slots that were emptied since the beginning.
  uint64_t Taken() {
    std::lock_guard<std::mutex> lock(mutex_);
    return head_;
  }
  // What a profiler hears of a direction that the progress thread drives over the network; only that thread touches it.
  std::shared_ptr<class EdgeEvents> events;
  void Rebell(std::shared_ptr<Bell> filled, std::shared_ptr<Bell> emptied) {
    std::lock_guard<std::mutex> lock(mutex_);
    filled_ = std::move(filled);
    emptied_ = std::move(emptied);
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<char>, kSlots> slots_;
  uint64_t head_ = 0, tail_ = 0;
  std::shared_ptr<Bell> filled_, emptied_;
};
using FifoPtr = std::shared_ptr<Fifo>;

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_FIFO_H_
