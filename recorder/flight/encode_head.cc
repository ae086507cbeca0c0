// Identity, clock, settings, counters, findings, siblings, liveness: Trace fields 1-10.
#include <string.h>

#include "recorder/flight/counters.h"
#include "recorder/flight/encoder.h"
#include "recorder/flight/host_calls.h"
#include "recorder/flight/text.h"

namespace ringscope::flight {
namespace {

constexpr uint32_t kNone = 0xffffffff;

uint32_t TextNumber(const ImageView& image, const char* key, uint32_t if_missing) {
  size_t size;
  const char* value = TextValue(image, key, &size);
  if (!value || size == 0 || size > 10) return if_missing;
  uint64_t v = 0;
  for (size_t i = 0; i < size; ++i) {
    if (value[i] < '0' || value[i] > '9') return if_missing;
    v = v * 10 + static_cast<uint64_t>(value[i] - '0');
  }
  return v < kNone ? static_cast<uint32_t>(v) : if_missing;
}

void PutText(Encoder* e, uint32_t field, const char* key) {
  size_t size;
  const char* value = TextValue(e->image, key, &size);
  if (value) e->w.String(field, value, size);
}

// -1 on the wire when it is not known.
void PutRank(Encoder* e, uint32_t field, uint32_t rank) {
  e->w.Int(field, rank == kNone ? -1 : static_cast<int64_t>(static_cast<int32_t>(rank)));
}

void EncodeEnvironment(Encoder* e) {
  uint32_t at = 0;
  const char* entry;
  size_t size;
  while (NextText(e->image, &at, &entry, &size)) {
    if (size < 5 || memcmp(entry, "env.", 4) != 0) continue;
    const char* name = entry + 4;
    const char* equals = static_cast<const char*>(memchr(name, '=', size - 4));
    if (!equals) continue;
    const WireWriter::Mark mark = e->w.Begin(11);
    e->w.StringAlways(1, name, static_cast<size_t>(equals - name));
    e->w.StringAlways(2, equals + 1, static_cast<size_t>(entry + size - equals - 1));
    e->w.End(mark);
  }
}

// 22809 is 2.28.9: NCCL's own number since 2.9.
void PutNcclNumber(Encoder* e, uint64_t number) {
  TextBuffer<64> text;
  text.AddUint(number / 10000)
      .AddChar('.')
      .AddUint(number / 100 % 100)
      .AddChar('.')
      .AddUint(number % 100);
  e->w.String(2, text.c_str(), text.size());
}

// "2.28.9" out of ".../libnccl.so.2.28.9"; nothing out of ".../libnccl.so.2".
void PutNcclVersion(Encoder* e, const char* path, size_t size) {
  static constexpr char kName[] = "libnccl.so.";
  for (size_t i = size; i-- > 0;) {
    if (size - i < sizeof(kName) - 1 || memcmp(path + i, kName, sizeof(kName) - 1) != 0) continue;
    const char* version = path + i + sizeof(kName) - 1;
    const size_t n = size - i - (sizeof(kName) - 1);
    size_t dots = 0;
    for (size_t k = 0; k < n; ++k) {
      dots += version[k] == '.';
      if (version[k] != '.' && (version[k] < '0' || version[k] > '9')) return;
    }
    if (dots == 2) e->w.String(2, version, n);
    return;
  }
}

void EncodeLibraries(Encoder* e) {
  uint32_t api = 0;
  for (uint32_t i = 0; i < e->image.comms.count; ++i) {
    const uint64_t stamp = Load(e->image.comms[i].stamp);
    if (CommUsed(stamp)) api = static_cast<uint32_t>(stamp >> 32) & 0xff;
  }
  size_t size;
  const char* path = TextValue(e->image, "nccl", &size);
  const uint64_t number = Load(e->image.header->nccl_version);
  if (path || api) {
    const WireWriter::Mark mark = e->w.Begin(12);
    e->w.String(1, "nccl");
    if (number != 0) {
      PutNcclNumber(e, number);
    } else if (path) {
      PutNcclVersion(e, path, size);
    }
    if (path) e->w.String(3, path, size);
    e->w.Uint(4, api);
    e->w.End(mark);
  }
}

// "bus id|uuid|name"
void EncodeGpu(Encoder* e, const char* value, size_t size) {
  const WireWriter::Mark mark = e->w.Begin(13);
  e->w.Int(1, -1);
  for (uint32_t field = 2; field <= 4; ++field) {
    const char* bar = field < 4 ? static_cast<const char*>(memchr(value, '|', size)) : nullptr;
    const size_t n = bar ? static_cast<size_t>(bar - value) : size;
    e->w.String(field, value, n);
    if (!bar) break;
    size -= n + 1;
    value = bar + 1;
  }
  e->w.End(mark);
}

void EncodeGpus(Encoder* e) {
  uint32_t at = 0;
  const char* entry;
  size_t size;
  while (NextText(e->image, &at, &entry, &size)) {
    if (size < 5 || memcmp(entry, "gpu.", 4) != 0) continue;
    const char* equals = static_cast<const char*>(memchr(entry, '=', size));
    if (equals) EncodeGpu(e, equals + 1, static_cast<size_t>(entry + size - equals - 1));
  }
}

void EncodeProcess(Encoder* e) {
  const FileHeader& h = *e->image.header;
  const WireWriter::Mark mark = e->w.Begin(1);
  e->w.String(1, h.host, strnlen(h.host, sizeof(h.host)));
  e->w.String(2, h.boot_id, strnlen(h.boot_id, sizeof(h.boot_id)));
  e->w.Int(3, h.pid);
  e->w.Uint(4, h.process_start);
  PutText(e, 5, "cmdline");
  PutText(e, 6, "job");
  e->w.Uint(7, TextNumber(e->image, "restart", 0));
  PutRank(e, 8, TextNumber(e->image, "rank", h.rank_hint));
  PutRank(e, 9, TextNumber(e->image, "local_rank", kNone));
  PutRank(e, 10, TextNumber(e->image, "world_size", kNone));
  EncodeEnvironment(e);
  EncodeLibraries(e);
  EncodeGpus(e);
  e->w.Uint(14, h.process_nonce);
  PutText(e, 15, "version");
  e->w.End(mark);
}

void EncodeClock(Encoder* e) {
  const WireWriter::Mark mark = e->w.Begin(5);
  const PlainAnchor& last = e->clock.last();
  e->w.Int(1, static_cast<int64_t>(last.monotonic_ns));
  e->w.Int(2, static_cast<int64_t>(last.realtime_ns));
  e->w.Int(3, static_cast<int64_t>(last.error_ns));
  switch (static_cast<ClockKind>(e->image.header->clock_kind)) {
    case ClockKind::kTsc:
      e->w.String(4, "tsc");
      break;
    case ClockKind::kMonotonicNs:
      e->w.String(4, "monotonic");
      break;
    case ClockKind::kCntvct:
      e->w.String(4, "cntvct");
      break;
  }
  e->w.Int(5, static_cast<int64_t>(e->clock.first().monotonic_ns));
  e->w.Int(6, static_cast<int64_t>(e->clock.first().realtime_ns));
  e->w.End(mark);
}

void EncodeSettings(Encoder* e) {
  const FileHeader& h = *e->image.header;
  const WireWriter::Mark mark = e->w.Begin(6);
  e->w.Double(1, static_cast<double>(h.stall_ns) / 1e9);
  e->w.Double(2, static_cast<double>(h.first_stall_ns) / 1e9);
  e->w.Uint(3, EventMask(e->image));
  e->w.Double(4, h.heartbeat_period_ms / 1e3);
  e->w.End(mark);
}

void EncodeCounters(Encoder* e) {
  for (uint32_t i = 0; i < e->image.counters.count; ++i) {
    const uint64_t value = Load(e->image.counters[i]);
    if (value == 0) continue;
    const CounterInfo info = InfoOf(i);
    const WireWriter::Mark mark = e->w.Begin(7);
    e->w.String(1, info.name);
    e->w.Uint(2, value);
    e->w.Bool(3, info.loss);
    e->w.End(mark);
  }
}

void EncodeStalls(Encoder* e) {
  for (const StallFinding& slot : e->image.header->stalls) {
    const uint64_t what = Load(slot.what);
    if (what >> 63 == 0) continue;
    const uint32_t row = static_cast<uint32_t>(what & 0xffff);
    const uint32_t comm = static_cast<uint32_t>(what >> 16 & 0xffff);
    const WireWriter::Mark mark = e->w.Begin(8);
    e->w.Uint(1, comm);
    if (row < e->image.ops.count) {
      const OpRow& op = e->image.ops[row];
      if (Load(slot.generation) == Generation(Load(op.stamp))) {
        e->w.Uint(2, Load(op.position) & 0xffffffffff);
        e->w.Bool(3, Load(op.stream) >> 48 & kOpP2p);
      }
    }
    e->w.Int(4, e->Ns(Load(slot.since)));
    e->w.Int(5, e->Ns(Load(slot.noticed)));
    e->w.Int(6, e->Ns(Load(slot.resolved)));
    e->w.End(mark);
  }
}

void EncodeSiblings(Encoder* e) {
  for (uint32_t i = 0; i < e->image.siblings.count; ++i) {
    const SiblingRow& row = e->image.siblings[i];
    const uint64_t who = Load(row.who);
    if (who == 0) continue;
    const uint64_t nonce_start = Load(row.nonce_start);
    const uint64_t state = Load(row.state);
    const WireWriter::Mark mark = e->w.Begin(9);
    e->w.Int(1, static_cast<int32_t>(static_cast<uint32_t>(who)));
    PutRank(e, 2, static_cast<uint32_t>(who >> 32));
    e->w.Uint(3, static_cast<uint32_t>(nonce_start));
    e->w.Uint(4, static_cast<uint32_t>(nonce_start >> 32));
    e->w.Uint(5, state & 0xff);
    const char letter = static_cast<char>(state >> 8);
    if (letter) e->w.String(6, &letter, 1);
    e->w.Int(7, e->Ns(Load(row.since)));
    e->w.Int(8, e->Ns(Load(row.checked)));
    e->w.Int(9, static_cast<int64_t>(Load(row.heartbeat_realtime_ns)));
    e->w.End(mark);
  }
}

void EncodeLiveness(Encoder* e) {
  const FileHeader& h = *e->image.header;
  const uint64_t state = Load(h.state);
  const int64_t heartbeat = e->Ns(Load(h.heartbeat));
  const WireWriter::Mark mark = e->w.Begin(10);
  e->w.Int(1, heartbeat);
  e->w.Int(2, e->clock.Realtime(heartbeat));
  e->w.Uint(3, Load(h.heartbeats));
  e->w.Bool(4, state & kStateExiting);
  e->w.Bool(5, state & kStateClean);
  e->w.Bool(6, state & kStateUnloaded);
  e->w.Uint(7, static_cast<uint32_t>(Load(h.freeze_count)));
  e->w.Int(8, e->Ns(Load(h.freeze_begin)));
  e->w.Int(9, static_cast<int64_t>(Load(h.freeze_ns)));
  e->w.Int(10, static_cast<int64_t>(Load(h.starve_ns)));
  e->w.Int(11, e->Ns(e->survey.newest_callback));
  e->w.Bool(12, e->options.lock_known);
  e->w.Bool(13, e->options.lock_held);
  if (e->options.process_state) e->w.String(14, &e->options.process_state, 1);
  // While it writes a trace it is in one: said of flight files only.
  if (e->options.reason == kReasonFlightFile) e->w.Int(15, e->Ns(Load(h.thread_in_call)));
  const uint64_t woken_by = Load(h.woken_by);
  if (woken_by) {
    e->w.Int(16, static_cast<int32_t>(static_cast<uint32_t>(woken_by)));
    PutRank(e, 17, static_cast<uint32_t>(woken_by >> 32));
  }
  e->w.End(mark);
}

void EncodeHostError(Encoder* e, uint32_t field, const HostError& error) {
  const uint64_t what = Load(error.what);
  if (!(what >> 63)) return;
  const WireWriter::Mark mark = e->w.Begin(field);
  e->w.String(1, HostCallOf(static_cast<uint32_t>(what >> 32 & 0xffff)).name);
  e->w.Uint(2, what & 0xffffffff);
  e->w.Int(3, e->Ns(Load(error.when)));
  e->w.Int(4, static_cast<int32_t>(static_cast<uint32_t>(Load(error.tid))));
  e->w.End(mark);
}

// Field 17.
void EncodeHost(Encoder* e) {
  if (e->image.host.count == 0) return;
  const HostRow& host = e->image.host[0];
  const uint64_t seen = Load(host.seen);
  if (!(seen & kHostPreloaded)) return;
  const WireWriter::Mark mark = e->w.Begin(17);
  e->w.Bool(1, seen & kHostNccl);
  e->w.Bool(2, seen & kHostCudaRuntime);
  e->w.Bool(3, seen & kHostCudaDriver);
  e->w.Uint(4, Load(host.nccl_errors));
  e->w.Uint(5, Load(host.cuda_errors));
  EncodeHostError(e, 6, host.first_nccl);
  EncodeHostError(e, 7, host.first_cuda);
  EncodeHostError(e, 8, host.sticky);
  static constexpr uint64_t kUpTo[kCopySizes] = {4096, 65536, 1 << 20, 16 << 20, 0};
  for (uint32_t kind = 0; kind < kCopyKinds; ++kind) {
    for (uint32_t size = 0; size < kCopySizes; ++size) {
      const uint64_t count = Load(host.copies[kind][size][0]);
      if (count == 0) continue;
      const WireWriter::Mark one = e->w.Begin(9);
      e->w.Uint(1, kind);
      e->w.Uint(2, kUpTo[size]);
      e->w.Uint(3, count);
      e->w.Uint(4, Load(host.copies[kind][size][1]));
      e->w.End(one);
    }
  }
  e->w.End(mark);
}

}  // namespace

void EncodeHead(Encoder* e) {
  EncodeProcess(e);
  e->w.Uint(2, e->options.reason);
  e->w.Int(3, e->Ns(e->written));
  e->w.Uint(4, e->options.sequence);
  EncodeClock(e);
  EncodeSettings(e);
  EncodeCounters(e);
  EncodeStalls(e);
  EncodeSiblings(e);
  EncodeLiveness(e);
  EncodeHost(e);
}

void EncodeIdentity(Encoder* e) {
  EncodeProcess(e);
  EncodeClock(e);
  EncodeSettings(e);
}

}  // namespace ringscope::flight
