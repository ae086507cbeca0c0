// Communicators with their operations: open ones and the newest in full, older finished ones column
// by column.
#include <string.h>

#include <initializer_list>

#include "recorder/flight/chain.h"
#include "recorder/flight/encoder.h"

namespace ringscope::flight {
namespace {

constexpr uint32_t kNewestInFull = 32;

int64_t Difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
// `then` - `base`, 0 when either did not happen.
int64_t After(int64_t base, int64_t then) { return base && then ? Difference(then, base) : 0; }
uint64_t AfterUnsigned(int64_t base, int64_t then) {
  const int64_t d = After(base, then);
  return d > 0 ? static_cast<uint64_t>(d) : 0;
}

int64_t RootOf(const OpView& op) {
  return op.root == 0xffffff ? -1 : static_cast<int64_t>(op.root);
}
int64_t PeerOf(const OpView& op) {
  return op.peer == kNoRank ? -1 : static_cast<int64_t>(static_cast<int32_t>(op.peer));
}
uint32_t TailTasks(const OpView& op) {
  return op.flags & kOpTail ? static_cast<uint32_t>(op.group >> 48) : 0;
}
uint32_t GroupOf(const OpView& op) { return static_cast<uint32_t>(op.group); }
uint32_t ThreadOf(const OpView& op) { return static_cast<uint32_t>(op.group >> 32 & 0xffff); }

// The end is a fact once every channel has stopped, or once the operation has been passed by.
int64_t FinishedNs(const Encoder& e, const OpView& op) {
  return op.AllStopped() || op.passed ? e.Ns(op.finished) : 0;
}

void EncodeOperation(Encoder* e, const OpView& op) {
  WireWriter& w = e->w;
  const WireWriter::Mark mark = w.Begin(30);
  w.Uint(1, op.row);
  w.Uint(2, op.position);
  w.Bool(3, op.flags & kOpP2p);
  w.Uint(4, op.func);
  w.Uint(5, op.datatype);
  w.Uint(6, op.count);
  w.Sint(7, RootOf(op));
  w.Int(8, e->Ns(op.entered));
  w.Int(9, e->Ns(op.returned));
  w.Int(10, e->Ns(op.enqueued));
  w.Int(11, e->Ns(op.started));
  w.Int(12, FinishedNs(*e, op));
  w.Int(13, static_cast<int64_t>(op.gpu_started));
  w.Int(14, static_cast<int64_t>(op.gpu_finished));
  w.Uint(15, op.algo);
  w.Uint(16, op.proto);
  w.Uint(17, op.channels);
  w.Uint(18, op.kernels_started);
  w.Uint(19, op.kernels_stopped);
  w.Uint(20, op.proxy_started);
  w.Uint(21, op.proxy_stopped);
  w.Uint(22, op.launched && !(op.flags & kOpP2p) ? uint64_t{op.sequence} + 1 : 0);
  w.Sint(23, PeerOf(op));
  w.Fixed64(24, op.stream);
  w.Uint(25, GroupOf(op));
  w.Uint(26, ThreadOf(op));
  w.Bool(27, op.flags & kOpFromApi);
  w.Bool(28, op.flags & kOpGraph);
  w.Uint(29, TailTasks(op));
  w.Bool(30, op.open);
  w.Bool(31, op.flags & kOpGrouped);
  w.Bool(32, op.flags & kOpCopyEngine);
  w.Uint(33, op.generation);
  w.Uint(38, (op.flags & kOpReduction) >> kOpReductionShift);
  w.End(mark);
}

bool SameSignature(const OpView& a, const OpView& b) {
  return a.func == b.func && a.datatype == b.datatype && a.count == b.count && a.root == b.root &&
         a.algo == b.algo && a.proto == b.proto && a.channels == b.channels && a.peer == b.peer &&
         a.stream == b.stream && a.flags == b.flags && TailTasks(a) == TailTasks(b) &&
         ThreadOf(a) == ThreadOf(b);
}

void EncodeSignature(Encoder* e, const OpView& op) {
  WireWriter& w = e->w;
  const WireWriter::Mark mark = w.Begin(2);
  w.Bool(1, op.flags & kOpP2p);
  w.Uint(2, op.func);
  w.Uint(3, op.datatype);
  w.Uint(4, op.count);
  w.Sint(5, RootOf(op));
  w.Uint(6, op.algo);
  w.Uint(7, op.proto);
  w.Uint(8, op.channels);
  w.Sint(9, PeerOf(op));
  w.Fixed64(10, op.stream);
  w.Bool(11, op.flags & kOpGraph);
  w.Bool(12, op.flags & kOpFromApi);
  w.Uint(13, TailTasks(op));
  w.Bool(14, op.flags & kOpGrouped);
  w.Bool(15, op.flags & kOpCopyEngine);
  w.Uint(16, ThreadOf(op));
  w.Uint(17, (op.flags & kOpReduction) >> kOpReductionShift);
  w.End(mark);
}

// Operations picked out of an array, in an order of their own.
struct Picked {
  const OpView* ops;
  const uint16_t* order;
  uint32_t count;
  const OpView& operator[](uint32_t i) const { return ops[order[i]]; }
};

// One packed column of value(op, its index).
template <typename F>
void Column(WireWriter& w, uint32_t field, const Picked& ops, F value) {
  const WireWriter::Mark mark = w.Begin(field);
  for (uint32_t i = 0; i < ops.count; ++i) w.Varint(value(ops[i], i));
  w.EndPacked(mark, field);
}

void EncodeColumns(Encoder* e, const OpView* all, const uint16_t* order, uint32_t n) {
  const Picked ops = {all, order, n};
  if (n == 0) return;
  uint16_t signature[kMostRingRows];  // of each operation
  uint16_t first[kMostRingRows];      // operation that has a signature first
  uint32_t signatures = 0;
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t s = 0;
    while (s < signatures && !SameSignature(ops[first[s]], ops[i])) ++s;
    if (s == signatures) first[signatures++] = static_cast<uint16_t>(i);
    signature[i] = static_cast<uint16_t>(s);
  }
  WireWriter& w = e->w;
  const WireWriter::Mark mark = w.Begin(31);
  Column(w, 1, ops, [&](const OpView&, uint32_t i) { return uint64_t{signature[i]}; });
  for (uint32_t s = 0; s < signatures; ++s) EncodeSignature(e, ops[first[s]]);
  uint64_t position[2] = {0, 0};  // collectives, point-to-point
  Column(w, 3, ops, [&](const OpView& op, uint32_t) {
    uint64_t& last = position[op.flags & kOpP2p ? 1 : 0];
    const int64_t delta = static_cast<int64_t>(op.position - last);
    last = op.position;
    return WireWriter::ZigZag(delta);
  });
  int64_t entered = 0;
  Column(w, 4, ops, [&](const OpView& op, uint32_t) {
    const int64_t now = e->Ns(op.entered);
    const int64_t delta = Difference(now, entered);
    entered = now;
    return WireWriter::ZigZag(delta);
  });
  Column(w, 5, ops, [&](const OpView& op, uint32_t) {
    return AfterUnsigned(e->Ns(op.entered), e->Ns(op.returned));
  });
  Column(w, 6, ops, [&](const OpView& op, uint32_t) {
    return WireWriter::ZigZag(After(e->Ns(op.entered), e->Ns(op.enqueued)));
  });
  Column(w, 7, ops, [&](const OpView& op, uint32_t) {
    return WireWriter::ZigZag(After(e->Ns(op.entered), e->Ns(op.started)));
  });
  Column(w, 8, ops, [&](const OpView& op, uint32_t) {
    return AfterUnsigned(e->Ns(op.started), FinishedNs(*e, op));
  });
  Column(w, 9, ops, [&](const OpView& op, uint32_t) {
    return AfterUnsigned(static_cast<int64_t>(op.gpu_started),
                         static_cast<int64_t>(op.gpu_finished));
  });
  Column(w, 10, ops, [&](const OpView& op, uint32_t) { return uint64_t{GroupOf(op)}; });
  Column(w, 11, ops, [&](const OpView& op, uint32_t) { return uint64_t{op.row}; });
  // A ring gives its rows out in turn: one or two runs as a rule.
  const auto begins = [&](uint32_t i) {
    return i == 0 || ops[i].generation != ops[i - 1].generation;
  };
  const WireWriter::Mark from = w.Begin(12);
  for (uint32_t i = 0; i < n; ++i) {
    if (begins(i)) w.Varint(i);
  }
  w.EndPacked(from, 12);
  const WireWriter::Mark generations = w.Begin(13);
  for (uint32_t i = 0; i < n; ++i) {
    if (begins(i)) w.Varint(ops[i].generation);
  }
  w.EndPacked(generations, 13);
  w.End(mark);
}

void EncodeFields(Encoder* e, const CommRow& comm, uint32_t index) {
  WireWriter& w = e->w;
  const uint64_t nodes = Load(comm.nodes), flags = Load(comm.flags);
  // Below API v4, before the stamp says so, one of the two may have been filled in already.
  const uint64_t stamp = Load(comm.stamp);
  const bool identified = stamp & kCommIdentified || (stamp >> 32 & 0xff) >= 4;
  const uint64_t ranks = identified ? Load(comm.ranks) : kNoRank;
  w.Uint(1, index);
  w.Fixed64(2, identified ? Load(comm.comm_id) : 0);
  w.Uint(3, nodes >> 32);
  w.Uint(4, ranks & 0xffffffff);
  w.Uint(5, ranks >> 32);
  w.Uint(6, nodes & 0xffffffff);
  w.String(7, comm.name, strnlen(comm.name, sizeof(comm.name)));
  w.Uint(8, stamp >> 32 & 0xff);
  w.Bool(9, flags & kCommApiEvents);
  w.Bool(10, flags & kCommCompletionVisible);
  w.Uint(11, Load(comm.collectives));
  w.Uint(12, Load(comm.p2ps));
  w.Uint(13, Load(comm.launched));
  w.Uint(14, Load(comm.completed));
  w.Uint(15, Load(comm.no_row));
  w.Int(16, e->Ns(Load(comm.created)));
  w.Int(17, e->Ns(Load(comm.finalized)));
  w.Int(18, e->Ns(Load(comm.last_progress)));
  w.Bool(19, flags & kCommHasSteps);
  w.Bool(20, flags & kCommFallbackNoted);
  w.Bool(21, flags & kCommForeignSteps);
  w.Uint(34, Load(comm.stamp) & 0xffff);
}

// The newest hash, and the checkpoints that the writer's last position lets expect: a word of
// another multiple is one that was overwritten, or written a moment before its writer died.
void EncodeChain(Encoder* e, const CommRow& comm) {
  WireWriter& w = e->w;
  const ChainView chain = ReadChain(comm);
  w.Uint(22, chain.hash);
  w.Uint(33, chain.position);
  for (uint32_t level = 0; level < kChainLevels; ++level) {
    const uint64_t newest = chain.position >> kChainShift[level];
    for (uint64_t ordinal = newest; ordinal != 0 && ordinal + 2 > newest; --ordinal) {
      uint64_t hash;
      if (!ReadCheckpoint(comm, level, ordinal, &hash)) continue;
      const WireWriter::Mark mark = w.Begin(23);
      w.Uint(1, ordinal << kChainShift[level]);
      w.Fixed64(2, hash);
      w.End(mark);
    }
  }
}

// Reads the ring into e->ops, in the order of the rows; returns how many.
uint32_t ReadRing(Encoder* e, const CommRow& comm, uint32_t index) {
  CommFacts facts = FactsOf(comm, index, e->image.ops.count);
  ScanLaunched(e->image.ops.rows, &facts);
  uint32_t n = 0;
  for (uint32_t i = 0; i < facts.rows; ++i) {
    const uint32_t row = facts.base + i;
    if (ReadOp(e->image.ops[row], row, facts, &e->ops[n])) ++n;
  }
  return n;
}

bool Before(const OpView& a, const OpView& b) {
  if (a.entered != b.entered) return a.entered < b.entered;
  if (a.position != b.position) return a.position < b.position;
  return a.row < b.row;
}

// Shell's sort: a ring is two ordered runs, rarely more, and at most kMostRingRows entries.
void SortByEntry(const OpView* ops, uint16_t* order, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) order[i] = static_cast<uint16_t>(i);
  for (const uint32_t gap : {701u, 301u, 132u, 57u, 23u, 10u, 4u, 1u}) {
    for (uint32_t i = gap; i < n; ++i) {
      const uint16_t moved = order[i];
      uint32_t k = i;
      for (; k >= gap && Before(ops[moved], ops[order[k - gap]]); k -= gap)
        order[k] = order[k - gap];
      order[k] = moved;
    }
  }
}

}  // namespace

void EncodeCommunicator(Encoder* e, uint32_t index) {
  CommRow comm;
  if (!CopyRow(e->image.comms[index], &comm) || !CommUsed(Load(comm.stamp))) return;
  const uint32_t n = ReadRing(e, comm, index);
  const WireWriter::Mark mark = e->w.Begin(12);
  EncodeFields(e, comm, index);
  EncodeChain(e, comm);
  // In full: the open ones and the newest. The others go into columns.
  uint16_t order[kMostRingRows];
  SortByEntry(e->ops, order, n);
  uint32_t older = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const OpView& op = e->ops[order[i]];
    if (op.open || i + kNewestInFull >= n) {
      EncodeOperation(e, op);
    } else {
      order[older++] = order[i];
    }
  }
  EncodeColumns(e, e->ops, order, older);
  e->w.End(mark);
}

}  // namespace ringscope::flight
