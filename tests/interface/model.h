// What the record should say, kept as plainly as possible: no rings, no generations, no packed
// words. The world (world.h) writes down here what it tells the recorder, and Compare() holds the
// image against it.
//
// Where a row lies and whether there was room is the recorder's choice: the model learns it from
// the handle, and holds the recorder to its promises (nothing unfinished is overwritten, what finds
// no room is counted).
#ifndef RINGSCOPE_TESTS_INTERFACE_MODEL_H_
#define RINGSCOPE_TESTS_INTERFACE_MODEL_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "recorder/flight/format.h"
#include "recorder/runtime.h"

namespace ringscope::interface_model {

// A moment that lies between two readings of the clock; {0, 0}: never.
struct Moment {
  uint64_t low = 0, high = 0;
  explicit operator bool() const { return high != 0; }
};

struct Comm;

struct Operation {
  Comm* comm = nullptr;
  uint64_t handle = 0;  // without the launched bit
  uint32_t row = 0;
  flight::Func func = flight::Func::kUnknown;
  flight::DataType type = flight::DataType::kUnknown;
  uint64_t position = 0, count = 0, stream = 0;
  uint64_t group = 0, entered_at = 0;  // as the row says
  int root = -1;
  uint32_t flags = 0, peer = 0xffffffff, sequence = 0, channels = 0, tasks = 0;
  bool launched = false;
  Moment entered, returned, enqueued, started, finished;
  uint32_t kernels_started = 0, kernels_stopped = 0, proxy_started = 0, proxy_stopped = 0;
  uint64_t gpu_started = 0, gpu_finished = 0;
};
using OperationPtr = std::shared_ptr<Operation>;

struct Edge {
  Comm* comm = nullptr;  // nullptr: foreign
  bool send = false, pseudo = false;
  uint64_t started = 0, stopped = 0;  // proxy operations
  uint64_t current = 0;               // handle of the one whose steps run
  std::array<uint32_t, 4> reached{};
  std::array<Moment, 4> entered{};  // sums, modulo 2^64
  Moment changed;
  bool refused = false;  // an attempt to send was repeated since
  uint64_t bytes = 0, steps_total = 0, messages = 0, foreign = 0;
  uint32_t chunk = 0, n_steps = 0;
  bool Idle() const { return !pseudo && started == stopped; }
};
// communicator row (0xffff foreign), context, rank, peer, channel, flags
using EdgeKey = std::tuple<uint32_t, uint64_t, uint32_t, uint32_t, uint32_t, uint32_t>;

struct Comm {
  uint64_t id = 0, serial = 0;
  void* context = nullptr;
  uint32_t row = 0;
  bool kept = false;  // it got a row
  bool finalized = false, has_steps = false;
  bool visible = true;     // KernelCh events come
  bool identified = true;  // id and rank are known; below v4 the first operation tells them
  bool sized = true;       // its size is known
  int version = 6, nodes = 1, ranks = 2, rank = 0;
  uint64_t stamp = 0;
  uint64_t collectives = 0, p2ps = 0, launched = 0, completed = 0, no_row = 0;
  uint64_t done_entered = 0,
           done_group = 0;  // as the row says: when the newest finished operation was entered
};

class Model {
 public:
  explicit Model(const recorder::Image& image);

  // Counters move by what is expected of them: Expect() adds to that.
  void Expect(flight::Counter which, uint64_t times = 1) {
    expected_[static_cast<uint32_t>(which)] += times;
  }
  uint64_t Counter(flight::Counter which) const;

  // A communicator was opened: those whose rows it may have taken are forgotten, which must be
  // finalized ones.
  void Opened(const std::shared_ptr<Comm>& comm);
  // An operation got this handle from its start: resident from now on, or counted as lost.
  void Resident(const OperationPtr& operation);
  // True when finalize of `comm` must say that operations are open (it was aborted).
  bool OpenAtEnd(const Comm& comm) const;
  // True while the row still holds it; one that was not over must never lose its row.
  bool Holds(const OperationPtr& operation) const;
  static bool Over(const Operation& operation);
  // What lies in a row; nullptr: nothing of this model.
  Operation* At(uint32_t row) const { return operations_[row].get(); }

  Edge* FindEdge(const EdgeKey& key);
  // A proxy operation got edge row `row`: forgets the edge that lay there, which must have been
  // idle.
  Edge* TakeEdge(const EdgeKey& key, uint32_t row);
  Edge* TakeMessages(const EdgeKey& key);

  // Ends the program with a message unless the image says what was written down.
  void Compare() const;
  const recorder::Image& image() const { return image_; }

 private:
  void CompareComm(const Comm& comm) const;
  void CompareOperation(const Operation& operation) const;
  void CompareEdges() const;

  const recorder::Image& image_;
  std::array<uint64_t, flight::kCounterWords> expected_{};
  std::vector<std::shared_ptr<Comm>> comms_;  // by row
  std::vector<OperationPtr> operations_;      // by row
  std::map<EdgeKey, Edge> edges_;
  std::vector<const EdgeKey*> edge_rows_;  // by row; nullptr: none of ours
};

}  // namespace ringscope::interface_model

#endif  // RINGSCOPE_TESTS_INTERFACE_MODEL_H_
