// Finds operations that make no progress, from the tables alone, without slowing the callbacks that
// fill them.
//
// Called once per round of our thread. A communicator whose newest progress is young, or that has
// no open operation, costs one or two cache lines; only where something is suspicious are its ring
// and the edge table read.
#ifndef RINGSCOPE_RECORDER_STALL_H_
#define RINGSCOPE_RECORDER_STALL_H_

#include <stdint.h>

#include "recorder/flight/format.h"
#include "recorder/flight/op_view.h"
#include "recorder/runtime.h"

namespace ringscope::recorder {

// What a round found. Ticks unless a name says otherwise.
struct StallRound {
  uint64_t quiet_since;  // oldest last progress of an open operation's communicator; 0: nothing is
                         // open without progress
  uint32_t noticed;      // bit per slot of FileHeader::stalls that became a finding in this round
  uint32_t recovered;    // bit per slot whose operation went on
};

class StallWatch {
 public:
  // Lives in zeroed memory (the thread's scratch); Init makes it ready.
  void Init(const Image* image, uint64_t stall_ticks, uint64_t first_stall_ticks,
            uint64_t period_ticks);

  // One look. `now`: ticks; `not_before`: no stall is older than this (end of the last time that
  // this process itself stood still, so that a stopped and continued process does not accuse its
  // operations at once).
  StallRound Look(uint64_t now, uint64_t not_before);

  // Is any operation open in a communicator that lives or was aborted? Reads all rings: for the end
  // of the process.
  bool AnythingOpen() const;

 private:
  struct Comm {
    uint64_t stamp;        // of the row that the rest is about
    uint64_t idle_head;    // head of the last round that read the ring
    uint32_t idle_rounds;  // so many such rounds in a row found nothing open at this head
    uint64_t stuck_since;  // last progress before the finding
    uint64_t moved;        // first progress of the stuck operation after the finding; 0 none
    uint32_t slot;         // slot of FileHeader::stalls + 1 while a finding lasts; 0 none
    uint32_t stuck_row;    // operation of that finding
    uint32_t stuck_generation;
  };
  // A communicator's oldest operation that could be stalled, if any.
  struct Candidate {
    bool any;
    flight::OpView op;
  };

  Candidate FindCandidate(uint32_t index, const flight::CommRow& row);
  bool MayStall(const flight::CommRow& row, const flight::OpView& op) const;
  void ReadEdges();
  void Report(Comm* comm, uint32_t index, const flight::OpView& op, uint64_t since, uint64_t now,
              StallRound* round);
  bool StillOpen(uint32_t index, const flight::CommRow& row, const Comm& comm) const;
  bool GoesOn(Comm* comm, uint64_t since, uint64_t now) const;
  void Resolve(Comm* comm, uint64_t now, StallRound* round);

  const Image* image_;
  uint64_t stall_ticks_, first_stall_ticks_, period_ticks_;
  bool edges_read_;  // in this round
  Comm comms_[flight::kCommRows];
  uint64_t edge_progress_[flight::kCommRows];  // ticks
  uint8_t open_steps_[flight::kCommRows];  // 1: some edge has an operation open whose steps are not
                                           // all done
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_STALL_H_
