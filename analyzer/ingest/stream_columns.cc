#include "analyzer/ingest/stream_columns.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

namespace ringscope::ingest {
namespace {

// Entry i of a column; zero behind its end.
template <typename Column>
auto At(const Column& column, uint32_t i) {
  return static_cast<int>(i) < column.size() ? column.Get(static_cast<int>(i)) : typename Column::value_type(0);
}

uint64_t Plus(uint64_t base, int64_t difference) { return base + static_cast<uint64_t>(difference); }

int64_t ZigZag(uint64_t v) {
  return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
}

// A "stage" of proto/trace.proto.
uint64_t Stage(uint64_t code, uint64_t* base) {
  if (code == 0) return 0;
  *base = Plus(*base, ZigZag(code - 1));
  return *base;
}

void Span(StreamSummary* summary, std::initializer_list<int64_t> times) {
  for (const int64_t t : times) {
    if (t <= 0) continue;
    if (summary->first_ns == 0 || t < summary->first_ns) summary->first_ns = t;
    summary->last_ns = std::max(summary->last_ns, t);
  }
}

class Operations {
 public:
  Operations(const trace::StreamChunk& chunk, StreamSink* sink, StreamSummary* summary)
      : chunk_(chunk), ops_(chunk.operations()), sink_(sink), summary_(summary) {}

  bool Run() {
    const uint32_t count = std::min(ops_.count(), kMaxChunkEntries);
    bool sound = count == ops_.count();
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t signature = At(ops_.signature(), i);
      if (signature >= static_cast<uint32_t>(ops_.signatures_size())) return false;
      sound = One(i, signature) && sound;
    }
    return sound;
  }

 private:
  struct Last {
    uint64_t position[2] = {0, 0};
  };

  bool One(uint32_t i, uint32_t signature) {
    StreamedOperation op{};
    op.signature = &ops_.signatures(static_cast<int>(signature));
    const uint32_t communicator = At(ops_.communicator(), signature);
    const bool known = communicator < static_cast<uint32_t>(chunk_.communicators_size());
    if (known) op.communicator = &chunk_.communicators(static_cast<int>(communicator));
    Last& last = last_[communicator];
    uint64_t& position = last.position[op.signature->p2p() ? 1 : 0];
    op.position = position = Plus(position + 1, At(ops_.position(), i));
    op.group = group_ = static_cast<uint32_t>(Plus(uint64_t{group_} + 1, At(ops_.group(), i)));
    entered_ = Plus(entered_, At(ops_.entered(), i));
    uint64_t base = entered_;
    op.entered_ns = static_cast<int64_t>(base);
    op.returned_ns = static_cast<int64_t>(Stage(At(ops_.returned(), i), &base));
    op.enqueued_ns = static_cast<int64_t>(Stage(At(ops_.enqueued(), i), &base));
    op.started_ns = static_cast<int64_t>(Stage(At(ops_.started(), i), &base));
    op.finished_ns = static_cast<int64_t>(Stage(At(ops_.finished(), i), &base));
    if (const uint64_t code = At(ops_.gpu_started(), i); code != 0) {
      offset_ = Plus(offset_, ZigZag(code - 1));
      op.gpu_started_ns = static_cast<int64_t>(static_cast<uint64_t>(op.started_ns) + offset_);
    }
    if (const uint64_t code = At(ops_.gpu_finished(), i); code != 0) {
      const uint64_t host = static_cast<uint64_t>(op.finished_ns) - static_cast<uint64_t>(op.started_ns);
      op.gpu_finished_ns = static_cast<int64_t>(Plus(static_cast<uint64_t>(op.gpu_started_ns) + host, ZigZag(code - 1)));
    }
    const uint32_t end = At(ops_.end(), i);
    op.end = end == trace::STILL_OPEN ? trace::STILL_OPEN : end == trace::END_NOT_SEEN ? trace::END_NOT_SEEN : trace::ENDED;
    ++summary_->operations;
    summary_->unfinished += op.end == trace::STILL_OPEN;
    Span(summary_, {op.entered_ns, op.returned_ns, op.enqueued_ns, op.started_ns, op.finished_ns});
    if (sink_ != nullptr) sink_->Operation(op);
    return known && end <= trace::STILL_OPEN;
  }

  const trace::StreamChunk& chunk_;
  const trace::StreamedOperations& ops_;
  StreamSink* sink_;
  StreamSummary* summary_;
  std::map<uint32_t, Last> last_;  // by communicator; as many as the chunk has signatures
  uint64_t entered_ = 0, offset_ = 0;
  uint32_t group_ = 0;
};

trace::StepState StateOf(bool send, uint64_t state) {
  static constexpr trace::StepState kSend[] = {trace::SEND_GPU_WAIT, trace::SEND_PEER_WAIT, trace::SEND_WAIT, trace::STEP_FREE};
  static constexpr trace::StepState kRecv[] = {trace::RECV_WAIT, trace::RECV_FLUSH_WAIT, trace::RECV_GPU_WAIT,
                                               trace::STEP_FREE};
  return send ? kSend[state & 3] : kRecv[state & 3];
}

bool Steps(const trace::StreamChunk& chunk, StreamSink* sink, StreamSummary* summary) {
  const trace::StreamedSteps& steps = chunk.steps();
  const uint32_t count = std::min(steps.count(), kMaxChunkEntries);
  bool sound = count == steps.count();
  std::vector<uint64_t> codes(static_cast<size_t>(steps.transfers_size()));
  uint64_t transfer = 0, time = 0, bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    transfer = Plus(transfer, At(steps.transfer(), i));
    if (transfer >= codes.size()) return false;
    uint64_t& code = codes[transfer];
    code = Plus(code, At(steps.step(), i));
    time = Plus(time, At(steps.time(), i));
    StreamedStep s{};
    s.transfer = &steps.transfers(static_cast<int>(transfer));
    const uint32_t communicator = s.transfer->communicator();
    if (communicator > static_cast<uint32_t>(chunk.communicators_size())) {
      sound = false;
    } else if (communicator != 0) {
      s.communicator = &chunk.communicators(static_cast<int>(communicator) - 1);
    }
    s.step = static_cast<uint32_t>(code >> 2);
    s.state = StateOf(s.transfer->send(), code & 3);
    s.time_ns = static_cast<int64_t>(time);
    if (const uint64_t b = At(steps.bytes(), i); b != 0) s.bytes = bytes = b == 1 ? bytes : b - 2;
    ++summary->steps;
    Span(summary, {s.time_ns});
    if (sink != nullptr) sink->Step(s);
  }
  return sound;
}

}  // namespace

bool HandOut(const trace::StreamChunk& chunk, StreamSink* sink, StreamSummary* summary) {
  const bool operations = Operations(chunk, sink, summary).Run();
  return Steps(chunk, sink, summary) && operations;
}

}  // namespace ringscope::ingest
