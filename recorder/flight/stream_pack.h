// Operations and proxy steps packed into one chunk of a stream (proto/trace.proto, StreamChunk).
//
// Pure: no clock, no file, no allocation. The recorder's thread fills a StreamBatch and packs it; tests do
// the same, and the analyzer's reader is held against it.
#ifndef RINGSCOPE_RECORDER_FLIGHT_STREAM_PACK_H_
#define RINGSCOPE_RECORDER_FLIGHT_STREAM_PACK_H_

#include <stddef.h>
#include <stdint.h>

#include "recorder/flight/wire_writer.h"

namespace ringscope::flight {

inline constexpr char kStreamMagic[9] = "RNGSTR01";  // 8 bytes

// As trace.StreamedEnd.
enum class StreamEnd : uint32_t { kEnded = 0, kNotSeen = 1, kStillOpen = 2 };

struct StreamComm {
  uint32_t row, generation;
  uint64_t comm_id;  // 0 and n_ranks 0: nothing is known of it
  uint32_t ordinal, rank, n_ranks, api;
  uint32_t flags;  // enum CommFlags
  char name[48];   // NUL-terminated
};

// What is equal for many operations. Every byte is a field's, so that two can be compared as bytes.
struct StreamSignature {
  uint64_t count, stream;
  uint32_t communicator;  // index into StreamBatch::comms
  uint32_t root, peer;    // kNoRoot, kNoRank: none
  uint32_t tail_tasks;
  uint32_t thread;
  uint8_t func, datatype, algo, proto, channels;
  uint8_t flags;  // enum OpFlags
  uint8_t zero[6];
};
static_assert(sizeof(StreamSignature) == 2 * 8 + 5 * 4 + 12, "bytes without an owner break memcmp");
inline constexpr uint32_t kStreamNoRoot = 0xffffff;

struct StreamOp {
  StreamSignature signature;
  StreamEnd end;
  uint32_t group;
  uint64_t position;
  // ns of CLOCK_MONOTONIC, 0 never; gpu_*: ns of the GPU's timer, 0 unknown.
  uint64_t entered, returned, enqueued, started, finished, gpu_started, gpu_finished;
};

struct StreamTransfer {
  uint32_t communicator;  // 1 + index into StreamBatch::comms, 0 none
  uint32_t rank, peer, channel;
  bool send, p2p;
  uint64_t context;   // of another process, 0 own
  uint64_t position;  // 0 unknown
};

struct StreamStep {
  uint32_t transfer;  // index into StreamBatch::transfers
  uint32_t code;      // step * 4 + state
  uint64_t time;      // ns of CLOCK_MONOTONIC
  uint64_t bytes;
};

// Content of StreamLoss.
struct StreamLosses {
  uint64_t operations_no_room, steps_no_room, operations_over_rate, steps_over_rate;
  uint64_t operations_no_row, removed_bytes;
};

inline constexpr uint32_t kStreamBatchComms = 128;
inline constexpr uint32_t kStreamBatchOps = 2048;
inline constexpr uint32_t kStreamBatchTransfers = 1024;
inline constexpr uint32_t kStreamBatchSteps = 8192;
inline constexpr uint32_t kStreamHashSlots = 2 * kStreamBatchOps;

// One chunk in the making. About 1 MiB, touched as far as it is used.
struct StreamBatch {
  uint32_t comm_count, op_count, transfer_count, step_count;
  StreamComm comms[kStreamBatchComms];
  StreamOp ops[kStreamBatchOps];
  StreamTransfer transfers[kStreamBatchTransfers];
  StreamStep steps[kStreamBatchSteps];
  // Scratch of the packer.
  uint16_t signature_of[kStreamBatchOps];  // by operation
  uint16_t first_of[kStreamBatchOps];      // by signature: an operation that has it
  uint16_t slots[kStreamHashSlots];
  uint64_t last_position[kStreamBatchComms][2];
  uint32_t last_code[kStreamBatchTransfers];

  bool empty() const { return op_count == 0 && step_count == 0; }
  void Clear() { comm_count = op_count = transfer_count = step_count = 0; }
};

// A chunk's payload is at most this long; what would be longer overflows the writer.
inline constexpr size_t kMaxStreamChunk = 1 << 20;

// StreamChunk's fields 1 and 2.
void PackStreamBegin(uint64_t sequence, uint64_t written_ns, WireWriter* w);
// Field 4: the communicators of the batch.
void PackStreamComms(const StreamBatch& batch, WireWriter* w);
// Fields 5 and 6; nothing for none. The batch's indices must lie within its counts.
void PackStreamOps(StreamBatch* batch, WireWriter* w);
void PackStreamSteps(StreamBatch* batch, WireWriter* w);
// Fields 7 and 8.
void PackStreamEnd(const StreamLosses& lost, bool last, WireWriter* w);

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_STREAM_PACK_H_
