// RINGSCOPE_STREAM, on the side of our thread: what happened, not only what is.
//
// An operation goes to the stream once, when it is over. Nothing is added to the callbacks for that: with each heartbeat our
// thread copies the rows that are over from the tables; only an operation whose row is given to another one before that is
// kept by the callback that does so (hot_stream.h). Steps come from the callbacks alone. Batches become chunks of a stream
// file (stream_file.h), at the latest with each heartbeat: that is what a killed process can lose.
#ifndef RINGSCOPE_RECORDER_STREAM_H_
#define RINGSCOPE_RECORDER_STREAM_H_

#include <stdint.h>

#include "recorder/flight/op_view.h"
#include "recorder/flight/clock_map.h"
#include "recorder/flight/stream_pack.h"
#include "recorder/state.h"
#include "recorder/stream_door.h"
#include "recorder/stream_file.h"

namespace ringscope::recorder {

// Maps what streaming needs and opens the door for the callbacks; for Start(), before the tables are published. Nothing when
// the setting is off; off with one line on stderr when there is no memory.
void PrepareStream(Runtime* runtime);

// How often the rings are looked at while they do not fill.
inline constexpr uint64_t kStreamPollNs = 50000000;

class Streamer {
 public:
  // Our thread's streamer, ready; nullptr when streaming is off.
  static Streamer* Of(Runtime* runtime);

  // Lives in zeroed memory.
  void Init(Runtime* runtime, StreamDoor* door);

  // What the rings hold goes to the batch.
  void Drain();
  // With each heartbeat: also the operations that are over, then a chunk. `asked`: bit per Reason asked of our thread; at the
  // end of the process the open ones go, too.
  void Round(uint64_t now_ticks, uint64_t asked);
  // How long until the next Drain(), ns.
  uint64_t PollNs() const { return poll_ns_; }

 private:
  struct CommState {
    uint32_t generation;  // of the row that the rest is about
    uint32_t idle;        // looks in a row that found nothing to come at this head
    uint32_t finalized;   // looks since it was found finalized
    uint64_t head;
  };
  struct EdgeState {
    uint32_t tag;       // ordinal and generation of the operation that the rest is about, 1 << 31; 0 nothing
    uint32_t transfer;  // of the batch + 1; 0 none yet
    uint64_t position;
  };

  void DrainRing(uint32_t index, const flight::ClockMap& clock);
  void TakeOp(const uint64_t* words, const flight::ClockMap& clock);
  void TakeComm(const uint64_t* words);
  void TakeStep(const uint64_t* words, const flight::ClockMap& clock);
  void Look(uint32_t comm, bool last, bool finalizing, uint64_t now_ticks, const flight::ClockMap& clock);
  bool IsOver(const flight::OpView& op, const flight::CommFacts& facts, uint64_t now_ticks) const;
  void Add(const flight::OpView& op, uint32_t comm_generation, flight::StreamEnd end, const flight::ClockMap& clock);
  bool Identify(uint32_t row, uint32_t generation, flight::StreamComm* c) const;
  uint32_t CommOfBatch(uint32_t row, uint32_t generation);
  void AddTransfer(uint32_t edge, EdgeState* state, uint32_t row_low, uint64_t ticks);
  void MakeRoom();
  void WriteChunk(bool last);
  size_t Pack(bool begins_file, bool last);
  void SumLosses();
  void FreeRings();

  Runtime* runtime_;
  Image* image_;
  StreamDoor* door_;
  StreamFiles files_;
  uint64_t sequence_, poll_ns_;
  uint64_t settle_ticks_;     // so long nothing must have happened to an operation whose end is a conclusion
  uint64_t rings_looked_at_;  // ticks
  uint64_t lost_before_[2];   // operations, steps of rings that were given back
  flight::StreamLosses lost_;
  bool closed_;
  CommState comms_[flight::kCommRows];
  EdgeState edges_[flight::kEdgeRows];
  flight::StreamComm buried_[16];  // communicators whose rows are void; the newest overwrite the oldest
  uint32_t buried_count_;
  flight::StreamComm looked_at_;   // the communicator of the newest Look()
  flight::OpView found_[flight::kMostRingRows];  // what that found
  uint16_t comm_of_batch_[flight::kCommRows];  // by row: index + 1 to try first
  flight::StreamBatch batch_;
  unsigned char chunk_[kStreamFrame + flight::kMaxStreamChunk];
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_STREAM_H_
