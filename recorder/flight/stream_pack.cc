#include "recorder/flight/stream_pack.h"

#include <string.h>

#include "recorder/flight/format.h"
#include "recorder/flight/rows.h"

namespace ringscope::flight {
namespace {

// A packed column whose zeros at the end are left out, as a reader expects (proto/trace.proto). A column of zeros
// costs nothing.
class Column {
 public:
  Column(WireWriter* w, uint32_t field) : w_(w), field_(field), begin_(w->Begin(field)), kept_(begin_) {}
  void Add(uint64_t v) {
    w_->Varint(v);
    if (v != 0) kept_ = w_->size();
  }
  void AddSigned(int64_t v) { Add(WireWriter::ZigZag(v)); }
  void End() {
    if (!w_->overflow()) w_->Rewind(kept_);
    w_->EndPacked(begin_, field_);
  }

 private:
  WireWriter* w_;
  uint32_t field_;
  WireWriter::Mark begin_;
  size_t kept_;
};

// Differences are taken modulo 2^64, so that any two values can be told apart by one.
int64_t Minus(uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b); }

// A time after `*base`, which moves on to it.
uint64_t Stage(uint64_t time, uint64_t* base) {
  if (time == 0) return 0;
  const uint64_t code = WireWriter::ZigZag(Minus(time, *base)) + 1;
  *base = time;
  return code;
}

uint32_t HashOf(const StreamSignature& s) {
  uint64_t h = 0xcbf29ce484222325;  // FNV-1a over words
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&s);
  for (size_t i = 0; i < sizeof(s); i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, 8);
    h = (h ^ word) * 0x100000001b3;
    h ^= h >> 29;
  }
  return static_cast<uint32_t>(h) % kStreamHashSlots;
}
static_assert(sizeof(StreamSignature) % 8 == 0);

// Numbers the different signatures in the order of their first operation; returns how many.
uint32_t NumberSignatures(StreamBatch* b) {
  memset(b->slots, 0, sizeof(b->slots));
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->op_count; ++i) {
    const StreamSignature& s = b->ops[i].signature;
    uint32_t at = HashOf(s);
    for (; b->slots[at] != 0; at = (at + 1) % kStreamHashSlots) {
      if (memcmp(&b->ops[b->first_of[b->slots[at] - 1]].signature, &s, sizeof(s)) == 0) break;
    }
    if (b->slots[at] == 0) {
      b->first_of[count] = static_cast<uint16_t>(i);
      b->slots[at] = static_cast<uint16_t>(++count);
    }
    b->signature_of[i] = static_cast<uint16_t>(b->slots[at] - 1);
  }
  return count;
}

void PackSignature(const StreamSignature& s, WireWriter* w) {
  const WireWriter::Mark mark = w->Begin(2);
  w->Bool(1, s.flags & kOpP2p);
  w->Uint(2, s.func);
  w->Uint(3, s.datatype);
  w->Uint(4, s.count);
  w->Sint(5, s.root == kStreamNoRoot ? -1 : static_cast<int64_t>(s.root));
  w->Uint(6, s.algo);
  w->Uint(7, s.proto);
  w->Uint(8, s.channels);
  w->Sint(9, s.peer == kNoRank ? -1 : static_cast<int64_t>(static_cast<int32_t>(s.peer)));
  w->Fixed64(10, s.stream);
  w->Bool(11, s.flags & kOpGraph);
  w->Bool(12, s.flags & kOpFromApi);
  w->Uint(13, s.tail_tasks);
  w->Bool(14, s.flags & kOpGrouped);
  w->Bool(15, s.flags & kOpCopyEngine);
  w->Uint(16, s.thread);
  w->End(mark);
}

template <typename F>
void PackColumn(const StreamBatch& b, WireWriter* w, uint32_t field, F value) {
  Column column(w, field);
  for (uint32_t i = 0; i < b.op_count; ++i) column.Add(value(b.ops[i]));
  column.End();
}

// One stage of every operation; `before`: how many stages come before it.
void PackStage(const StreamBatch& b, WireWriter* w, uint32_t field, int before) {
  PackColumn(b, w, field, [before](const StreamOp& op) {
    const uint64_t stages[] = {op.returned, op.enqueued, op.started, op.finished};
    uint64_t base = op.entered;
    for (int i = 0; i < before; ++i) (void)Stage(stages[i], &base);
    return Stage(stages[before], &base);
  });
}

}  // namespace

void PackStreamBegin(uint64_t sequence, uint64_t written_ns, WireWriter* w) {
  w->Uint(1, sequence);
  w->Int(2, static_cast<int64_t>(written_ns));
}

void PackStreamComms(const StreamBatch& batch, WireWriter* w) {
  for (uint32_t i = 0; i < batch.comm_count; ++i) {
    const StreamComm& c = batch.comms[i];
    const WireWriter::Mark mark = w->Begin(4);
    w->Uint(1, c.row);
    w->Uint(2, c.generation);
    w->Fixed64(3, c.comm_id);
    w->Uint(4, c.ordinal);
    w->Uint(5, c.rank);
    w->Uint(6, c.n_ranks);
    w->String(7, c.name, strnlen(c.name, sizeof(c.name)));
    w->Uint(8, c.api);
    w->Bool(9, c.flags & kCommApiEvents);
    w->Bool(10, c.flags & kCommCompletionVisible);
    w->End(mark);
  }
}

void PackStreamOps(StreamBatch* b, WireWriter* w) {
  if (b->op_count == 0) return;
  const uint32_t signatures = NumberSignatures(b);
  const WireWriter::Mark mark = w->Begin(5);
  w->Uint(1, b->op_count);
  for (uint32_t s = 0; s < signatures; ++s) PackSignature(b->ops[b->first_of[s]].signature, w);
  Column communicator(w, 3);
  for (uint32_t s = 0; s < signatures; ++s) communicator.Add(b->ops[b->first_of[s]].signature.communicator);
  communicator.End();
  Column signature(w, 4);
  for (uint32_t i = 0; i < b->op_count; ++i) signature.Add(b->signature_of[i]);
  signature.End();
  memset(b->last_position, 0, sizeof(b->last_position));
  PackColumn(*b, w, 5, [b](const StreamOp& op) {
    uint64_t& last = b->last_position[op.signature.communicator][op.signature.flags & kOpP2p ? 1 : 0];
    const uint64_t code = WireWriter::ZigZag(Minus(op.position, last + 1));
    last = op.position;
    return code;
  });
  uint64_t entered = 0;
  PackColumn(*b, w, 6, [&entered](const StreamOp& op) {
    const uint64_t code = WireWriter::ZigZag(Minus(op.entered, entered));
    entered = op.entered;
    return code;
  });
  for (int stage = 0; stage < 4; ++stage) PackStage(*b, w, 7 + static_cast<uint32_t>(stage), stage);
  uint64_t offset = 0;
  PackColumn(*b, w, 11, [&offset](const StreamOp& op) -> uint64_t {
    if (op.gpu_started == 0) return 0;
    const uint64_t own = op.gpu_started - op.started;
    const uint64_t code = WireWriter::ZigZag(Minus(own, offset)) + 1;
    offset = own;
    return code;
  });
  PackColumn(*b, w, 12, [](const StreamOp& op) -> uint64_t {
    if (op.gpu_finished == 0) return 0;
    const uint64_t host = op.finished - op.started, gpu = op.gpu_finished - op.gpu_started;
    return WireWriter::ZigZag(Minus(gpu, host)) + 1;
  });
  uint32_t group = 0;
  PackColumn(*b, w, 13, [&group](const StreamOp& op) {
    const int64_t step = static_cast<int64_t>(op.group) - group - 1;
    group = op.group;
    return WireWriter::ZigZag(step);
  });
  PackColumn(*b, w, 14, [](const StreamOp& op) { return static_cast<uint64_t>(op.end); });
  w->End(mark);
}

void PackStreamSteps(StreamBatch* b, WireWriter* w) {
  if (b->step_count == 0) return;
  const WireWriter::Mark mark = w->Begin(6);
  w->Uint(1, b->step_count);
  for (uint32_t i = 0; i < b->transfer_count; ++i) {
    const StreamTransfer& t = b->transfers[i];
    const WireWriter::Mark one = w->Begin(2);
    w->Uint(1, t.communicator);
    w->Fixed64(2, t.context);
    w->Uint(3, t.rank);
    w->Uint(4, t.peer);
    w->Uint(5, t.channel);
    w->Bool(6, t.send);
    w->Bool(7, t.p2p);
    w->Uint(8, t.position);
    w->End(one);
  }
  const auto column = [b, w](uint32_t field, auto value) {
    Column c(w, field);
    for (uint32_t i = 0; i < b->step_count; ++i) c.Add(value(b->steps[i]));
    c.End();
  };
  uint64_t transfer = 0, time = 0, bytes = 0;
  column(3, [&transfer](const StreamStep& s) {
    const uint64_t code = WireWriter::ZigZag(Minus(s.transfer, transfer));
    transfer = s.transfer;
    return code;
  });
  memset(b->last_code, 0, sizeof(b->last_code));
  column(4, [b](const StreamStep& s) {
    const uint64_t code = WireWriter::ZigZag(static_cast<int64_t>(s.code) - b->last_code[s.transfer]);
    b->last_code[s.transfer] = s.code;
    return code;
  });
  column(5, [&time](const StreamStep& s) {
    const uint64_t code = WireWriter::ZigZag(Minus(s.time, time));
    time = s.time;
    return code;
  });
  column(6, [&bytes](const StreamStep& s) -> uint64_t {
    if (s.bytes == 0) return 0;
    if (s.bytes == bytes) return 1;
    bytes = s.bytes;
    return bytes + 2;
  });
  w->End(mark);
}

void PackStreamEnd(const StreamLosses& lost, bool last, WireWriter* w) {
  const WireWriter::Mark mark = w->Begin(7);
  w->Uint(1, lost.operations_no_room);
  w->Uint(2, lost.steps_no_room);
  w->Uint(3, lost.operations_over_rate);
  w->Uint(4, lost.steps_over_rate);
  w->Uint(5, lost.operations_no_row);
  w->Uint(6, lost.removed_bytes);
  w->EndPacked(mark, 7);
  w->Bool(8, last);
}

}  // namespace ringscope::flight
