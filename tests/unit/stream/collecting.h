// What a stream hands out, kept; a batch filled at random; a file of chunks.
#ifndef RINGSCOPE_TESTS_UNIT_STREAM_COLLECTING_H_
#define RINGSCOPE_TESTS_UNIT_STREAM_COLLECTING_H_

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "analyzer/ingest/stream_reader.h"
#include "recorder/flight/crc32c.h"
#include "recorder/flight/stream_pack.h"

namespace ringscope::testing {

struct SeenOp {
  ingest::StreamedOperation op;
  trace::StreamedCommunicator communicator;
  trace::Signature signature;
};
struct SeenStep {
  ingest::StreamedStep step;
  trace::StreamedTransfer transfer;
};

class Collecting : public ingest::StreamSink {
 public:
  void Operation(const ingest::StreamedOperation& op) override {
    ops.push_back({op, op.communicator != nullptr ? *op.communicator : trace::StreamedCommunicator(), *op.signature});
  }
  void Step(const ingest::StreamedStep& step) override { steps.push_back({step, *step.transfer}); }

  // Positions of one communicator's collectives, in the order of the stream.
  std::vector<uint64_t> Positions(uint64_t comm_id) const {
    std::vector<uint64_t> positions;
    for (const SeenOp& seen : ops) {
      if (seen.communicator.comm_id() == comm_id && !seen.signature.p2p()) positions.push_back(seen.op.position);
    }
    return positions;
  }

  std::vector<SeenOp> ops;
  std::vector<SeenStep> steps;
};

// One framed chunk.
inline std::string Framed(const std::string& payload) {
  const auto n = static_cast<uint32_t>(payload.size());
  const uint32_t words[2] = {n, flight::Crc32c(payload.data(), payload.size())};
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(words[i / 4] >> 8 * (i % 4)));
  return out + payload;
}

inline std::string PackedChunk(flight::StreamBatch* batch, uint64_t sequence, bool last = false,
                               const flight::StreamLosses& lost = {}) {
  std::vector<unsigned char> buffer(flight::kMaxStreamChunk);
  flight::WireWriter w(buffer.data(), buffer.size());
  flight::PackStreamBegin(sequence, 1000 + sequence, &w);
  flight::PackStreamComms(*batch, &w);
  flight::PackStreamOps(batch, &w);
  flight::PackStreamSteps(batch, &w);
  flight::PackStreamEnd(lost, last, &w);
  if (w.overflow()) return "";
  return Framed(std::string(reinterpret_cast<const char*>(w.data()), w.size()));
}

inline std::string StreamFileOf(const std::vector<std::string>& chunks) {
  std::string out = flight::kStreamMagic;
  for (const std::string& chunk : chunks) out += chunk;
  return out;
}

inline flight::StreamComm CommOf(uint32_t row, uint64_t id) {
  flight::StreamComm c = {};
  c.row = row;
  c.generation = 1;
  c.comm_id = id;
  c.rank = 3;
  c.n_ranks = 8;
  c.ordinal = row;
  c.api = 5;
  strcpy(c.name, "world");
  return c;
}

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_STREAM_COLLECTING_H_
