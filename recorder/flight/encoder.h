// Inside of the encoder (encode.h is its face): the state its parts share. One part a file: process
// and header facts, communicators, edges and calls, what was not seen.
#ifndef RINGSCOPE_RECORDER_FLIGHT_ENCODER_H_
#define RINGSCOPE_RECORDER_FLIGHT_ENCODER_H_

#include <stdint.h>

#include "recorder/flight/clock_map.h"
#include "recorder/flight/encode.h"
#include "recorder/flight/image_view.h"
#include "recorder/flight/op_view.h"
#include "recorder/flight/wire_writer.h"

namespace ringscope::flight {

// What a first pass over the tables found.
struct Survey {
  uint64_t newest_callback;   // ticks
  uint32_t comms, invisible;  // rows in use; those whose completion is not visible
  uint32_t unasked;           // of these, communicators whose table would have told it
  uint32_t without_api;       // communicators whose operations are known from their launch on
  uint32_t foreign_edges;
  uint64_t no_row;  // operations without a row
  uint32_t copy_engine, never_launched, tails;
  uint32_t rings_cut;            // communicators whose ring was not read whole
  uint8_t comm_open[kCommRows];  // 1: it has an open operation
};

struct Encoder {
  Encoder(const ImageView& view, const EncodeOptions& o, WireWriter& writer)
      : image(view), options(o), clock(*view.header), w(writer) {}

  const ImageView& image;
  const EncodeOptions& options;
  ClockMap clock;
  WireWriter& w;
  Survey survey = {};
  OpView* ops = nullptr;  // kMostRingRows of them: scratch
  uint64_t written = 0;   // ticks

  int64_t Ns(uint64_t ticks) const { return clock.Ns(ticks); }
};

// First pass: fills e->survey and e->written.
void TakeSurvey(Encoder* e);

// Trace.process ... liveness (fields 1-10) and not_seen.
void EncodeHead(Encoder* e);
void EncodeNotSeen(Encoder* e);

// Trace.process, clock and settings only.
void EncodeIdentity(Encoder* e);

// One Trace.communicators entry; nothing if the row is free.
void EncodeCommunicator(Encoder* e, uint32_t index);

// One Trace.edges / Trace.calls entry; nothing if the row is free.
void EncodeEdge(Encoder* e, uint32_t index);
void EncodeCall(Encoder* e, uint32_t index);

// Largest size of one such entry: a chunk is closed when less is left. A communicator may take the
// whole chunk.
inline constexpr size_t kEntryBytes = 2048;

// Bits asked of NCCL. (A plain word for the process that writes it, which may be running.)
inline uint32_t EventMask(const ImageView& image) {
  return __atomic_load_n(&image.header->event_mask, __ATOMIC_RELAXED);
}

inline bool CommUsed(uint64_t stamp) { return stamp >> 63 != 0; }

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_ENCODER_H_
