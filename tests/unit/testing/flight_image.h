// A flight file in memory, laid out as recorder/flight/format.h says, for tests of readers. Words
// are set directly.
#ifndef RINGSCOPE_TESTS_UNIT_TESTING_FLIGHT_IMAGE_H_
#define RINGSCOPE_TESTS_UNIT_TESTING_FLIGHT_IMAGE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "recorder/flight/format.h"

namespace ringscope::testing {

class FlightImage {
 public:
  FlightImage() : words_(flight::kFileBytes / 8, 0) {
    flight::FileHeader& h = header();
    memcpy(h.magic, flight::kMagic, sizeof(h.magic));
    h.version = flight::kVersion;
    h.byte_order = flight::kByteOrder;
    h.file_bytes = flight::kFileBytes;
    h.process_nonce = 1234;
    h.pid = 4711;
    h.process_start = 987654;
    strcpy(h.boot_id, "00000000-1111-2222-3333-444444444444");
    strcpy(h.host, "node-a");
    h.clock_kind = static_cast<uint32_t>(flight::ClockKind::kMonotonicNs);
    h.tick_ns_q32 = uint64_t{1} << 32;
    h.rank_hint = 3;
    h.stall_ns = 60000000000;
    h.first_stall_ns = 300000000000;
    h.heartbeat_period_ms = 500;
    h.event_mask = 0xF5F;
    SetAnchor(&h.first_anchor, kBegin);
    SetAnchor(&h.last_anchor, kBegin + kMinute);
    h.heartbeat = kBegin + kMinute;
    h.heartbeats = 120;
    h.state = flight::kStateRecording;
    uint64_t at = 4096;
    const auto table = [&](flight::Table which, uint32_t row_bytes, uint32_t rows,
                           uint64_t offset) {
      h.tables[h.table_count++] = {static_cast<uint32_t>(which), row_bytes, rows, 0, offset};
      at = offset + uint64_t{row_bytes} * rows;
    };
    table(flight::Table::kText, 1, flight::kTextBytes, at);
    table(flight::Table::kCounters, 8, flight::kCounterWords, at);
    table(flight::Table::kSiblings, 64, flight::kSiblingRows, at);
    table(flight::Table::kThreads, 128, flight::kThreadRows, 32768);
    table(flight::Table::kComms, sizeof(flight::CommRow), flight::kCommRows, at);
    table(flight::Table::kOps, 128, flight::kOpRows, at);
    table(flight::Table::kEdges, 128, flight::kEdgeRows, at);
  }

  static constexpr uint64_t kBegin = 1000000000000;  // ticks = ns of CLOCK_MONOTONIC
  static constexpr uint64_t kMinute = 60000000000;
  static constexpr uint64_t kRealtimeOffset = 1800000000000000000;

  flight::FileHeader& header() { return *reinterpret_cast<flight::FileHeader*>(words_.data()); }
  template <typename Row>
  Row* table(flight::Table which) {
    for (const auto& t : header().tables) {
      if (t.table == static_cast<uint32_t>(which)) return reinterpret_cast<Row*>(base() + t.offset);
    }
    return nullptr;
  }
  flight::CommRow& comm(size_t i) { return table<flight::CommRow>(flight::Table::kComms)[i]; }
  flight::OpRow& op(size_t i) { return table<flight::OpRow>(flight::Table::kOps)[i]; }
  flight::EdgeRow& edge(size_t i) { return table<flight::EdgeRow>(flight::Table::kEdges)[i]; }

  // Appends "key=value" to the text block.
  void Text(const std::string& entry) {
    char* text = base() + 4096 + text_used_;
    memcpy(text, entry.c_str(), entry.size() + 1);
    text_used_ += entry.size() + 1;
  }
  // Communicator `row` of `n` ranks with 256 operation rows, API events and visible completion.
  flight::CommRow& AddComm(uint32_t row, uint64_t id, uint32_t rank, uint32_t n) {
    flight::CommRow& c = comm(row);
    c.comm_id = id;
    c.ranks = rank | uint64_t{n} << 32;
    c.nodes = 1 | uint64_t{row} << 32;
    c.flags = flight::kCommApiEvents | flight::kCommCompletionVisible;
    c.ring = uint64_t{row} * 256 | uint64_t{255} << 32;
    c.created = kBegin + 1;
    c.stamp = uint64_t{1} | uint64_t{6} << 32 | uint64_t{1} << 63;
    return c;
  }
  // Next collective of that communicator: entered and returned; launched when `enqueued`.
  flight::OpRow& AddAllReduce(uint32_t comm_row, bool enqueued) {
    flight::CommRow& c = comm(comm_row);
    const uint64_t head = c.head++;
    const uint64_t position = ++c.collectives;
    flight::OpRow& o = op(comm_row * 256 + (head & 255));
    o.position = position | uint64_t{0xffffff} << 40;
    o.count = 1024;
    o.entered = kBegin + 1000 * position;
    o.returned = kBegin + 1000 * position + 10;
    o.stream = uint64_t{flight::kOpFromApi} << 48;
    o.sequence = (position - 1) | uint64_t{0xffffffff} << 32;
    o.stamp = (head + 1) | uint64_t{comm_row} << 32 |
              uint64_t{static_cast<uint8_t>(flight::Func::kAllReduce)} << 48 |
              uint64_t{static_cast<uint8_t>(flight::DataType::kFloat32)} << 56;
    if (enqueued) {
      ++c.launched;
      o.enqueued = kBegin + 1000 * position + 20;
      o.launch = (head + 1) | uint64_t{2} << 32 | uint64_t{3} << 40 | uint64_t{2} << 48;
    }
    return o;
  }

  std::string Bytes() const {
    return std::string(reinterpret_cast<const char*>(words_.data()), words_.size() * 8);
  }

 private:
  char* base() { return reinterpret_cast<char*>(words_.data()); }
  static void SetAnchor(flight::Anchor* a, uint64_t at) {
    a->ticks = at;
    a->monotonic_ns = at;
    a->realtime_ns = at + kRealtimeOffset;
    a->error_ns = 50;
  }
  std::vector<uint64_t> words_;
  size_t text_used_ = 0;
};

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_TESTING_FLIGHT_IMAGE_H_
