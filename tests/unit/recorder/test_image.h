// A flight image in memory whose rows a test fills by hand: one tick is one nanosecond.
#ifndef RINGSCOPE_TESTS_UNIT_RECORDER_TEST_IMAGE_H_
#define RINGSCOPE_TESTS_UNIT_RECORDER_TEST_IMAGE_H_

#include <stdint.h>
#include <string.h>

#include <string>
#include <vector>

#include "recorder/flight/format.h"
#include "recorder/flight/handles.h"
#include "recorder/flight_file.h"
#include "recorder/runtime.h"

namespace ringscope {

using flight::CommRow;
using flight::EdgeRow;
using flight::OpRow;

inline constexpr uint64_t kSecond = 1000000000;
inline constexpr uint64_t kStart =
    3000000 * kSecond;  // ticks at which a test image begins: a month after boot

inline void Set(flight::Word& word, uint64_t v) { word.store(v, std::memory_order_relaxed); }

struct OpSpec {
  uint32_t row = 0;  // in the ring
  uint64_t position = 1;
  flight::Func func = flight::Func::kAllReduce;
  uint64_t entered = 0, returned = 0, enqueued = 0;
  uint32_t channels = 2, started = 0, stopped = 0;
  uint64_t first = 0, last = 0;  // kernel times
  uint32_t flags = flight::kOpFromApi;
  uint32_t peer = 0xffffffff;
  uint32_t group = 0;
  uint32_t proxy_started = 0, proxy_stopped = 0;
  uint32_t generation = 1;
  uint64_t count = 1024;
  uint32_t thread = 0;
};

class TestImage {
 public:
  TestImage() : words_(flight::kFileBytes / 8 + 1) {
    base_ = reinterpret_cast<unsigned char*>(words_.data());
    memset(&settings_, 0, sizeof(settings_));
    memset(&identity_, 0, sizeof(identity_));
    settings_.stall_ns = 60 * kSecond;
    settings_.first_stall_ns = 300 * kSecond;
    settings_.events = recorder::kEventsByRelease;
    strcpy(identity_.host, "host-a");
    strcpy(identity_.boot_id, "boot-a");
    strcpy(identity_.job, "job7");
    identity_.rank = 3;
    identity_.local_rank = 1;
    identity_.world_size = 4;
    identity_.pid = 4711;
    identity_.process_start = 99;
    recorder::LayOutImage(settings_, identity_, 77, flight::TableSizes(), base_);
    flight::FileHeader* h = header();
    h->clock_kind = static_cast<uint32_t>(flight::ClockKind::kMonotonicNs);
    h->tick_ns_q32 = uint64_t{1} << 32;
    h->heartbeat_period_ms = 500;
    SetAnchor(&h->first_anchor, kStart);
    SetAnchor(&h->last_anchor, kStart + 10 * kSecond);
    Set(h->heartbeat, kStart + 10 * kSecond);
    Set(h->heartbeats, 20);
    recorder::PublishImage(base_);
    image_ = recorder::ImageAt(base_);
  }

  unsigned char* base() { return base_; }
  size_t size() const { return flight::kFileBytes; }
  flight::FileHeader* header() { return reinterpret_cast<flight::FileHeader*>(base_); }
  recorder::Image& image() { return image_; }
  CommRow& comm(uint32_t i) { return image_.comms[i]; }

  // A communicator with 256 operation rows; rank 3 of 4.
  CommRow& AddComm(uint32_t i,
                   uint64_t flags = flight::kCommApiEvents | flight::kCommCompletionVisible,
                   uint32_t api = 5, uint64_t rows = 256) {
    CommRow& row = comm(i);
    Set(row.comm_id, 0xabc0 + i);
    Set(row.ranks, 3 | uint64_t{4} << 32);
    Set(row.nodes, 2 | uint64_t{i} << 32);
    Set(row.flags, flags);
    Set(row.ring, uint64_t{i} * rows | (rows - 1) << 32);
    Set(row.created, kStart);
    snprintf(row.name, sizeof(row.name), "comm%u", i);
    Set(row.stamp, 1 | uint64_t{api} << 32 | uint64_t{1} << 63);
    return row;
  }

  OpRow& op(uint32_t comm_index, uint32_t row) {
    return image_.ops[static_cast<uint32_t>(comm(comm_index).ring.load()) + row];
  }

  OpRow& AddOp(uint32_t comm_index, const OpSpec& s) {
    OpRow& row = op(comm_index, s.row);
    Set(row.position, s.position | uint64_t{0xffffff} << 40);
    Set(row.count, s.count);
    Set(row.entered, s.entered);
    Set(row.returned, s.returned);
    Set(row.stream, 0x7000 | uint64_t{s.flags} << 48);
    Set(row.group, s.group | uint64_t{s.thread} << 32);
    if (s.enqueued) {
      Set(row.launch,
          s.generation | uint64_t{2} << 32 | uint64_t{3} << 40 | uint64_t{s.channels} << 48);
      Set(row.enqueued, s.enqueued);
      Set(row.sequence, (s.position - 1) | uint64_t{s.peer} << 32);
    }
    if (s.started) {
      Set(row.kernel, s.generation | uint64_t{s.started} << 32 | uint64_t{s.stopped} << 48);
      Set(row.started, s.first);
      Set(row.finished, s.last);
    }
    if (s.proxy_started) {
      Set(row.proxy_ops,
          s.generation | uint64_t{s.proxy_started} << 32 | uint64_t{s.proxy_stopped} << 48);
    }
    Set(row.stamp,
        s.generation | uint64_t{comm_index} << 32 | uint64_t(s.func) << 48 | uint64_t{7} << 56);
    CommRow& c = comm(comm_index);
    flight::Word& counter = s.flags & flight::kOpP2p ? c.p2ps : c.collectives;
    if (counter.load() < s.position) Set(counter, s.position);
    Set(c.head, c.head.load() + 1);
    if (s.enqueued) Set(c.launched, c.launched.load() + 1);
    if (s.last > c.last_progress.load()) Set(c.last_progress, s.last);
    return row;
  }

  // A finished operation: entered at `t`, over half a millisecond later.
  OpSpec Finished(uint32_t row, uint64_t position, uint64_t t) {
    OpSpec s;
    s.row = row;
    s.position = position;
    s.entered = t;
    s.returned = t + 20000;
    s.enqueued = t + 15000;
    s.started = s.stopped = s.channels = 2;
    s.first = t + 100000;
    s.last = t + 500000;
    s.group = static_cast<uint32_t>(position);
    return s;
  }
  void AddFinished(uint32_t comm_index, uint32_t row, uint64_t position, uint64_t t) {
    AddOp(comm_index, Finished(row, position, t));
    Set(comm(comm_index).completed, comm(comm_index).completed.load() + 1);
    Set(comm(comm_index).done_entered, t);
    Set(comm(comm_index).done_group, position);
  }

  EdgeRow& AddEdge(uint32_t i, uint32_t comm_index, uint32_t peer, bool send,
                   uint32_t channel = 0) {
    EdgeRow& e = image_.edges[i];
    Set(e.peer, peer | uint64_t{3} << 32);
    Set(e.stamp, 1 | uint64_t{channel} << 16 | uint64_t{send ? flight::kEdgeSend : 0u} << 24 |
                     uint64_t{comm_index} << 32 | uint64_t{1} << 63);
    return e;
  }

 private:
  template <typename T>
  T* At(flight::Table table) {
    return reinterpret_cast<T*>(base_ + header()->tables[static_cast<uint32_t>(table) - 1].offset);
  }
  static void SetAnchor(flight::Anchor* anchor, uint64_t t) {
    Set(anchor->ticks, t);
    Set(anchor->monotonic_ns, t);
    Set(anchor->realtime_ns, t + 1600000000 * kSecond);
  }

  std::vector<uint64_t> words_;
  unsigned char* base_;
  recorder::Settings settings_;
  recorder::Identity identity_;
  recorder::Image image_;
};

}  // namespace ringscope

#endif  // RINGSCOPE_TESTS_UNIT_RECORDER_TEST_IMAGE_H_
