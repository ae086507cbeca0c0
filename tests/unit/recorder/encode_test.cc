#include "recorder/flight/encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "recorder/flight/wire_writer.h"
#include "tests/unit/recorder/test_image.h"
#include "tests/unit/recorder/trace_file.h"

namespace ringscope {
namespace {

using testing::Contains;
using testing::HasSubstr;

trace::Trace EncodeAll(TestImage& image, const flight::EncodeOptions& options = {}) {
  std::string error;
  const std::string bytes = Encode(image.base(), image.size(), options, &error);
  EXPECT_EQ(error, "");
  const TraceFile file = ReadTrace(bytes);
  EXPECT_TRUE(file.Complete()) << file.error;
  return file.trace;
}

TEST(Encode, IdentityAndHeader) {
  TestImage image;
  flight::EncodeOptions options;
  options.reason = 1;
  options.sequence = 4;
  options.written_ticks = kStart + 9 * kSecond;
  options.lock_known = options.lock_held = true;
  options.process_state = 'T';
  Set(image.image().counters[static_cast<uint32_t>(flight::Counter::kOpNoRow)], 5);
  Set(image.image().counters[static_cast<uint32_t>(flight::Counter::kForked)], 1);
  const trace::Trace t = EncodeAll(image, options);
  EXPECT_EQ(t.process().host(), "host-a");
  EXPECT_EQ(t.process().boot_id(), "boot-a");
  EXPECT_EQ(t.process().job_id(), "job7");
  EXPECT_EQ(t.process().pid(), 4711);
  EXPECT_EQ(t.process().start_ticks(), 99u);
  EXPECT_EQ(t.process().rank(), 3);
  EXPECT_EQ(t.process().local_rank(), 1);
  EXPECT_EQ(t.process().world_size(), 4);
  EXPECT_EQ(t.process().nonce(), 77u);
  EXPECT_EQ(t.reason(), trace::REASON_STALL);
  EXPECT_EQ(t.sequence(), 4u);
  EXPECT_EQ(t.written_ns(), static_cast<int64_t>(kStart + 9 * kSecond));
  EXPECT_EQ(t.clock().source(), "monotonic");
  EXPECT_EQ(t.clock().realtime_ns() - t.clock().monotonic_ns(),
            static_cast<int64_t>(1600000000 * kSecond));
  EXPECT_DOUBLE_EQ(t.settings().stall_seconds(), 60);
  EXPECT_DOUBLE_EQ(t.settings().first_stall_seconds(), 300);
  EXPECT_EQ(t.settings().event_mask(), 0xF5Fu);
  EXPECT_TRUE(t.liveness().lock_held());
  EXPECT_EQ(t.liveness().process_state(), "T");
  ASSERT_EQ(t.counters_size(), 2);
  EXPECT_EQ(t.counters(0).name(), "op_no_row");
  EXPECT_EQ(t.counters(0).value(), 5u);
  EXPECT_TRUE(t.counters(0).loss());
  EXPECT_EQ(t.counters(1).name(), "forked");
  EXPECT_FALSE(t.counters(1).loss());
}

TEST(Encode, FlightFileIsWrittenAtItsNewestSignOfLife) {
  TestImage image;
  image.AddComm(0);
  image.AddFinished(0, 0, 1, kStart + 12 * kSecond);
  const trace::Trace t = EncodeAll(image);
  EXPECT_EQ(t.reason(), trace::REASON_FLIGHT_FILE);
  EXPECT_EQ(t.written_ns(), static_cast<int64_t>(kStart + 12 * kSecond + 500000));
  EXPECT_EQ(t.liveness().last_callback_ns(), t.written_ns());
  EXPECT_EQ(t.liveness().heartbeat_ns(), static_cast<int64_t>(kStart + 10 * kSecond));
}

TEST(Encode, OpenOperationsAndTheNewestInFullTheOthersInColumns) {
  TestImage image;
  image.AddComm(2);
  for (uint32_t i = 0; i < 200; ++i) image.AddFinished(2, i, i + 1, kStart + i * 1000000);
  OpSpec open;  // launched, one of two kernels stopped
  open.row = 200;
  open.position = 201;
  open.entered = kStart + kSecond;
  open.returned = open.entered + 5;
  open.enqueued = open.entered + 4;
  open.started = 2;
  open.stopped = 1;
  open.first = open.entered + 10;
  open.last = open.entered + 20;
  open.group = 201;
  image.AddOp(2, open);
  const trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.communicators_size(), 1);
  const trace::Communicator& c = t.communicators(0);
  EXPECT_EQ(c.row(), 2u);
  EXPECT_EQ(c.comm_id(), 0xabc2u);
  EXPECT_EQ(c.rank(), 3u);
  EXPECT_EQ(c.n_ranks(), 4u);
  EXPECT_EQ(c.n_nodes(), 2u);
  EXPECT_EQ(c.name(), "comm2");
  EXPECT_EQ(c.profiler_api(), 5u);
  EXPECT_TRUE(c.api_events());
  EXPECT_TRUE(c.completion_visible());
  EXPECT_EQ(c.collectives(), 201u);
  ASSERT_EQ(c.operations_size(), 32);
  const trace::Operation& last = c.operations(31);
  EXPECT_EQ(last.position(), 201u);
  EXPECT_TRUE(last.unfinished());
  EXPECT_EQ(last.finished_ns(), 0);
  EXPECT_EQ(last.kernels_started(), 2u);
  EXPECT_EQ(last.kernels_stopped(), 1u);
  EXPECT_EQ(last.func(), trace::ALL_REDUCE);
  EXPECT_EQ(last.datatype(), trace::FLOAT16);
  EXPECT_EQ(last.algo(), trace::RING);
  EXPECT_EQ(last.proto(), trace::SIMPLE);
  EXPECT_EQ(last.root(), -1);
  EXPECT_EQ(last.peer(), -1);
  EXPECT_EQ(last.stream(), 0x7000u);
  EXPECT_EQ(last.nccl_sequence(), 201u);
  EXPECT_FALSE(c.operations(30).unfinished());
  EXPECT_EQ(c.operations(30).position(), 200u);
  EXPECT_GT(c.operations(30).finished_ns(), 0);

  const trace::OperationColumns& older = c.older();
  ASSERT_EQ(older.position_delta_size(), 201 - 32);
  ASSERT_EQ(older.signatures_size(), 1);
  EXPECT_EQ(older.signatures(0).count(), 1024u);
  int64_t position = 0, entered = 0;
  for (int i = 0; i < older.position_delta_size(); ++i) {
    position += older.position_delta(i);
    entered += older.entered_delta_ns(i);
    EXPECT_EQ(position, i + 1);
    EXPECT_EQ(entered, static_cast<int64_t>(kStart) + i * 1000000);
    EXPECT_EQ(older.returned_after_ns(i), 20000u);
    EXPECT_EQ(older.enqueued_after_ns(i), 15000);
    EXPECT_EQ(older.started_after_ns(i), 100000);
    EXPECT_EQ(older.duration_ns(i), 400000u);
    EXPECT_EQ(older.row(i), 512u + static_cast<uint32_t>(i));
    EXPECT_EQ(older.signature(i), 0u);
  }
}

TEST(Encode, AnOldOpenOperationStaysInFull) {
  TestImage image;
  image.AddComm(0);
  OpSpec open;
  open.entered = kStart + 1;
  open.group = 1;
  image.AddOp(0, open);
  for (uint32_t i = 1; i < 100; ++i) {
    OpSpec later = image.Finished(i, i + 1, kStart + i * 1000);
    later.enqueued = 0;  // nothing that tells that the first one was passed
    later.started = 0;
    image.AddOp(0, later);
  }
  const trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.communicators(0).operations_size(), 100);  // all are open: none was launched
  EXPECT_EQ(t.communicators(0).operations(0).position(), 1u);
  EXPECT_FALSE(t.communicators(0).has_older());
}

TEST(Encode, LanesOfAnotherGenerationAreVoid) {
  TestImage image;
  image.AddComm(0);
  OpRow& row = image.AddOp(0, image.Finished(0, 1, kStart));
  // The row is reused: a new identity, while the proxy thread still writes the old lanes.
  Set(row.stamp, 2 | uint64_t(flight::Func::kAllGather) << 48);
  Set(row.position, 2);
  const trace::Trace t = EncodeAll(image);
  const trace::Operation& op = t.communicators(0).operations(0);
  EXPECT_EQ(op.func(), trace::ALL_GATHER);
  EXPECT_EQ(op.enqueued_ns(), 0);
  EXPECT_EQ(op.started_ns(), 0);
  EXPECT_EQ(op.kernels_started(), 0u);
  EXPECT_EQ(op.channels(), 0u);
  EXPECT_TRUE(op.unfinished());
}

TEST(Encode, PassedOperationsAreNotOpen) {
  TestImage image;
  image.AddComm(0, flight::kCommApiEvents);  // completion not visible: only launches tell
  OpSpec silent;
  silent.row = 0;
  silent.func = flight::Func::kBroadcast;
  silent.entered = kStart + 1;
  silent.returned = kStart + 2;
  silent.group = 1;
  image.AddOp(0, silent);
  OpSpec later = silent;
  later.row = 1;
  later.position = 2;
  later.entered = kStart + 10;
  later.returned = kStart + 12;
  later.enqueued = kStart + 11;
  later.group = 2;
  image.AddOp(0, later);
  trace::Trace t = EncodeAll(image);
  EXPECT_FALSE(t.communicators(0).operations(0).unfinished());
  EXPECT_THAT(t.not_seen(), Contains(HasSubstr("neither launch nor end")));
  EXPECT_THAT(t.not_seen(),
              Contains(HasSubstr("Start and end of operations on the GPU, in 1 of 1")));
  // In the same group it may come later.
  Set(image.op(0, 0).group, 2);
  t = EncodeAll(image);
  EXPECT_TRUE(t.communicators(0).operations(0).unfinished());
}

TEST(Encode, TombstonesAreIncluded) {
  TestImage image;
  Set(image.AddComm(0).finalized, kStart + 5);
  image.AddFinished(0, 0, 1, kStart);
  const trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.communicators_size(), 1);
  EXPECT_EQ(t.communicators(0).finalized_ns(), static_cast<int64_t>(kStart + 5));
  EXPECT_EQ(t.communicators(0).operations_size(), 1);
}

TEST(Encode, EdgeKnowsItsOperation) {
  TestImage image;
  image.AddComm(1);
  OpSpec s = image.Finished(7, 9, kStart);
  s.stopped = 0;
  s.proxy_started = 2;
  image.AddOp(1, s);
  EdgeRow& e = image.AddEdge(40, 1, 2, true, 5);
  const uint64_t handle =
      flight::MakeHandle(77, flight::HandleKind::kProxyOp,
                         40 | 1 << 12 | uint64_t{1} << 18 | uint64_t{7} << 24 | uint64_t{12} << 32);
  Set(e.current, handle);
  Set(e.ops, 1);
  // 4 posted, 3 with the GPU's data, 2 handed over, 1 done.
  Set(e.steps, 4 | uint64_t{3} << 16 | uint64_t{2} << 32 | uint64_t{1} << 48);
  Set(e.changed, (kStart + 2 * kSecond) | 1);
  Set(e.chunk, 4096 | uint64_t{12} << 32);
  Set(e.steps_total, 100);
  Set(e.bytes, 555);
  trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.edges_size(), 1);
  const trace::Edge& edge = t.edges(0);
  EXPECT_EQ(edge.row(), 40u);
  EXPECT_EQ(edge.communicator(), 1u);
  EXPECT_EQ(edge.peer(), 2u);
  EXPECT_EQ(edge.rank(), 3u);
  EXPECT_EQ(edge.channel(), 5u);
  EXPECT_TRUE(edge.send());
  EXPECT_TRUE(edge.has_current());
  EXPECT_EQ(edge.n_steps(), 12u);
  EXPECT_EQ(edge.posted(), 4u);
  EXPECT_EQ(edge.transmitted(), 2u);
  EXPECT_EQ(edge.done(), 1u);
  EXPECT_FALSE(edge.current_stopped());
  EXPECT_EQ(edge.state(), trace::SEND_WAIT);
  EXPECT_EQ(edge.oldest_step(), 1u);
  ASSERT_EQ(edge.slots_size(), 8);
  EXPECT_EQ(edge.slots(0), trace::STEP_FREE);
  EXPECT_EQ(edge.slots(1), trace::SEND_WAIT);
  EXPECT_EQ(edge.slots(2), trace::SEND_PEER_WAIT);
  EXPECT_EQ(edge.slots(3), trace::SEND_GPU_WAIT);
  EXPECT_EQ(edge.steps_total(), 101u);
  EXPECT_EQ(edge.full_steps(), 12u);
  EXPECT_EQ(edge.current_position(), 9u);
  EXPECT_EQ(edge.changed_ns(), static_cast<int64_t>(kStart + 2 * kSecond));

  Set(e.ops, 1 | uint64_t{1} << 32);
  EXPECT_TRUE(EncodeAll(image).edges(0).current_stopped());
  // The row went to a newer operation since the edge last moved: the position is not known any
  // more.
  Set(image.op(1, 7).entered, kStart + 3 * kSecond);
  EXPECT_EQ(EncodeAll(image).edges(0).current_position(), 0u);
}

// Tables v1-v3: a writer that died between two of its stores left one of them; the stamp decides.
TEST(Encode, IdentityThatIsNotThereYetIsNotGuessed) {
  TestImage image;
  CommRow& row = image.AddComm(0, 0, 2);
  Set(row.comm_id, 0xabc0);
  Set(row.ranks, 0xffffffffu);
  trace::Communicator c = EncodeAll(image).communicators(0);
  EXPECT_EQ(c.comm_id(), 0u);
  EXPECT_EQ(c.rank(), 0xffffffffu);
  EXPECT_EQ(c.n_ranks(), 0u);
  EXPECT_EQ(c.profiler_api(), 2u);
  Set(row.ranks, 3);
  EXPECT_EQ(EncodeAll(image).communicators(0).rank(), 0xffffffffu);
  Set(row.stamp, row.stamp.load() | flight::kCommIdentified);
  c = EncodeAll(image).communicators(0);
  EXPECT_EQ(c.comm_id(), 0xabc0u);
  EXPECT_EQ(c.rank(), 3u);
  EXPECT_EQ(c.n_ranks(), 0u);
}

TEST(Encode, NcclsOwnVersionIsTakenBeforeAFileName) {
  TestImage image;
  image.AddComm(0);
  Set(image.header()->nccl_version, 22809);
  const trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.process().libraries_size(), 1);
  EXPECT_EQ(t.process().libraries(0).name(), "nccl");
  EXPECT_EQ(t.process().libraries(0).version(), "2.28.9");
  EXPECT_EQ(t.process().libraries(0).profiler_api(), 5u);
}

TEST(Encode, RowsSayTheirGeneration) {
  TestImage image;
  Set(image.AddComm(1).stamp, 9 | uint64_t{6} << 32 | uint64_t{1} << 63);
  // A ring of 256 rows on its third turn, the newest operation in row 99.
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t row = (100 + i) % 256;
    OpSpec s = image.Finished(row, 400 + i, kStart + i * kSecond / 256);
    s.generation = row < 100 ? 3 : 2;
    image.AddOp(1, s);
  }
  const trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.communicators_size(), 1);
  const trace::Communicator& c = t.communicators(0);
  EXPECT_EQ(c.generation(), 9u);
  EXPECT_EQ(c.operations(c.operations_size() - 1).generation(), 3u);
  const auto& older = c.older();
  ASSERT_EQ(older.signature_size() + c.operations_size(), 256);
  EXPECT_THAT(older.generation_from(), testing::ElementsAre(0, 156));
  EXPECT_THAT(older.generation(), testing::ElementsAre(2, 3));
  EXPECT_EQ(older.row(155) % 256, 255u);
}

TEST(Encode, MessageCountsAndForeignEdges) {
  TestImage image;
  image.AddComm(0);
  EdgeRow& count = image.AddEdge(1, 0, 2, false, 255);
  Set(count.stamp, count.stamp.load() | uint64_t{flight::kEdgePseudo | flight::kEdgeP2p} << 24);
  Set(count.steps, 70000);
  EdgeRow& foreign = image.AddEdge(2, 0xffff, 5, true);
  Set(foreign.stamp, foreign.stamp.load() | uint64_t{flight::kEdgeForeign} << 24);
  Set(foreign.context, 0x1111);
  Set(foreign.foreign, 0x2222);
  const trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.edges_size(), 2);
  EXPECT_TRUE(t.edges(0).message_count());
  EXPECT_EQ(t.edges(0).steps_total(), 70000u);
  EXPECT_TRUE(t.edges(1).foreign());
  EXPECT_EQ(t.edges(1).foreign_context(), 0x1111u);
  EXPECT_EQ(t.edges(1).foreign_parent(), 0x2222u);
  EXPECT_THAT(t.not_seen(), Contains(HasSubstr("PXN")));
}

TEST(Encode, CallsInFlight) {
  TestImage image;
  flight::ThreadRow& row = image.image().threads[3];
  Set(row.tid, 1234);
  Set(row.call, static_cast<uint64_t>(flight::Call::kKernelLaunch) | 2 << 8 | uint64_t{6} << 32);
  Set(row.since, kStart + 7);
  Set(image.image().threads[4].tid, 1235);  // in no call
  const trace::Trace t = EncodeAll(image);
  ASSERT_EQ(t.calls_size(), 1);
  EXPECT_EQ(t.calls(0).row(), 3u);
  EXPECT_EQ(t.calls(0).tid(), 1234);
  EXPECT_EQ(t.calls(0).call(), trace::CallInFlight::KERNEL_LAUNCH);
  EXPECT_EQ(t.calls(0).communicator(), 7u);
  EXPECT_EQ(t.calls(0).group_depth(), 2u);
}

// 8 communicators with 256 operations each, times as irregular as real ones, and their connections.
TEST(Encode, TraceIsSmall) {
  TestImage image;
  std::mt19937_64 random(1);
  for (uint32_t c = 0; c < 8; ++c) {
    image.AddComm(c);
    uint64_t t = kStart;
    for (uint32_t i = 0; i < 256; ++i) {
      t += 2000000 + random() % 1000000;
      OpSpec s = image.Finished(i, 100000 + i, t);
      s.returned += random() % 20000;
      s.enqueued += random() % 20000;
      s.first += random() % 400000;
      s.last = s.first + 200000 + random() % 300000;
      s.count = 1 << random() % 20;
      s.func = i % 3 ? flight::Func::kAllReduce : flight::Func::kAllGather;
      OpRow& row = image.AddOp(c, s);
      Set(row.gpu_started, 1700000000000000000u + s.first);
      Set(row.gpu_finished, 1700000000000000000u + s.last);
    }
    for (uint32_t e = 0; e < 8; ++e) {
      EdgeRow& edge = image.AddEdge(c * 8 + e, c, e / 2, e & 1, e / 2);
      Set(edge.current, flight::MakeHandle(77, flight::HandleKind::kProxyOp, uint64_t{12} << 32));
      Set(edge.changed, t);
      Set(edge.steps, 0x000c000c000c000c);
      Set(edge.steps_total, 1 << 20);
      Set(edge.bytes, uint64_t{1} << 40);
    }
  }
  const std::string bytes = Encode(image.base(), image.size());
  RecordProperty("trace_bytes", static_cast<int>(bytes.size()));
  std::cout << "trace of 8 x 256 operations: " << bytes.size() << " bytes\n";
  EXPECT_LE(bytes.size(), 96u << 10);
  const TraceFile file = ReadTrace(bytes);
  ASSERT_TRUE(file.Complete());
  EXPECT_EQ(file.trace.communicators_size(), 8);
  EXPECT_EQ(file.trace.communicators(7).operations_size() +
                file.trace.communicators(7).older().row_size(),
            256);
}

// All tables full and everything open: the largest trace that there can be.
TEST(Encode, LargestTraceIsBounded) {
  TestImage image;
  for (uint32_t c = 0; c < 64; ++c) {
    image.AddComm(c);
    for (uint32_t i = 0; i < 256; ++i) {
      OpSpec s = image.Finished(i, ~uint64_t{0} >> 24, kStart + i);
      s.stopped = 1;
      s.count = ~uint64_t{0};
      s.flags = 0xffff & ~flight::kOpCopyEngine & ~flight::kOpGraph;
      image.AddOp(c, s);
    }
  }
  for (uint32_t e = 0; e < flight::kEdgeRows; ++e) {
    memset(static_cast<void*>(&image.image().edges[e]), 0xff, sizeof(EdgeRow));
  }
  const std::string bytes = Encode(image.base(), image.size());
  const TraceFile file = ReadTrace(bytes);
  ASSERT_TRUE(file.Complete()) << file.error;
  EXPECT_EQ(file.trace.communicators_size(), 64);
  for (const trace::Communicator& c : file.trace.communicators())
    EXPECT_EQ(c.operations_size(), 256);
  EXPECT_EQ(file.trace.edges_size(), static_cast<int>(flight::kEdgeRows));
  EXPECT_LE(bytes.size(), flight::kMaxTraceBytes);
}

TEST(Encode, ATornTailLosesOnlyTheTornChunk) {
  TestImage image;
  for (uint32_t c = 0; c < 30; ++c) {
    image.AddComm(c);
    for (uint32_t i = 0; i < 256; ++i) image.AddFinished(c, i, i + 1, kStart + i * 1000000);
  }
  OpSpec open;
  open.row = 5;
  open.position = 300;
  open.entered = kStart + kSecond;
  open.generation = 9;
  image.AddOp(29, open);  // the last communicator is the one that matters
  const std::string bytes = Encode(image.base(), image.size());
  ASSERT_GT(ReadTrace(bytes).chunks, 4u);
  uint32_t before = 0;
  for (size_t cut = 8; cut < bytes.size(); cut += 991) {
    const TraceFile file = ReadTrace(bytes.substr(0, cut));
    EXPECT_FALSE(file.Complete());
    EXPECT_GE(file.chunks, before);
    before = file.chunks;
    if (file.chunks >= 2) {
      ASSERT_GE(file.trace.communicators_size(), 1);
      EXPECT_EQ(file.trace.communicators(0).row(), 29u);
    }
  }
}

TEST(Encode, UnknownFutureFieldsSurviveARoundTrip) {
  TestImage image;
  image.AddComm(0);
  trace::Trace t = EncodeAll(image);
  std::string bytes = t.SerializeAsString();
  uint8_t buffer[32];
  flight::WireWriter future(buffer, sizeof(buffer));
  future.Fixed64(5000, 42);
  bytes.append(reinterpret_cast<const char*>(buffer), future.size());
  trace::Trace again;
  ASSERT_TRUE(again.ParseFromString(bytes));
  const std::string rewritten = again.SerializeAsString();
  EXPECT_NE(rewritten.find(std::string(reinterpret_cast<const char*>(buffer), future.size())),
            std::string::npos);
}

TEST(Encode, SinkFailureIsReported) {
  TestImage image;
  std::vector<uint64_t> scratch(flight::kEncodeScratchBytes / 8);
  const auto fail = [](void*, const void*, size_t) { return false; };
  const auto result = flight::EncodeTrace(image.base(), image.size(), {}, scratch.data(),
                                          flight::kEncodeScratchBytes, fail, nullptr);
  ASSERT_NE(result.error, nullptr);
  const auto small =
      flight::EncodeTrace(image.base(), image.size(), {}, scratch.data(), 1000, fail, nullptr);
  ASSERT_NE(small.error, nullptr);
}

}  // namespace
}  // namespace ringscope
