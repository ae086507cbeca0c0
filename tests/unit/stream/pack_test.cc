// What the recorder packs is what the analyzer reads: for any operation, any step, any value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "recorder/flight/format.h"
#include "recorder/flight/rows.h"
#include "tests/unit/stream/collecting.h"

namespace ringscope {
namespace {

using flight::StreamBatch;
using flight::StreamOp;
using flight::StreamStep;
using testing::Collecting;
using testing::CommOf;
using testing::PackedChunk;
using testing::StreamFileOf;

using Random = std::mt19937_64;

// A number of any size: as often small as huge, often zero.
uint64_t Any(Random& random) {
  const uint64_t bits = random() % 66;
  return bits == 0 ? 0 : bits > 64 ? random() % 3 : random() >> (64 - bits);
}
// Times differ by less than 2^62: more is no time (proto/trace.proto: a stage is one more than a difference).
uint64_t AnyTime(Random& random) { return random() % 4 == 0 ? 0 : 1 + (Any(random) >> 2); }

StreamOp AnyOp(Random& random, uint32_t comms) {
  StreamOp op = {};
  op.signature.count = Any(random) % 3;
  op.signature.stream = random() % 2 * 0x7f0000001000;
  op.signature.communicator = static_cast<uint32_t>(random() % comms);
  op.signature.root = random() % 2 ? flight::kStreamNoRoot : static_cast<uint32_t>(random() % 4);
  op.signature.peer = random() % 2 ? flight::kNoRank : static_cast<uint32_t>(random() % 4);
  op.signature.thread = static_cast<uint32_t>(random() % 3);
  op.signature.tail_tasks = random() % 8 == 0 ? 5 : 0;
  op.signature.func = static_cast<uint8_t>(random() % 16);
  op.signature.datatype = static_cast<uint8_t>(random() % 13);
  op.signature.flags = static_cast<uint8_t>(random() % 64);
  op.end = static_cast<flight::StreamEnd>(random() % 3);
  op.group = static_cast<uint32_t>(Any(random));
  op.position = Any(random);
  op.entered = 1 + AnyTime(random);
  op.returned = AnyTime(random);
  op.enqueued = AnyTime(random);
  op.started = AnyTime(random);
  op.finished = AnyTime(random);
  op.gpu_started = AnyTime(random);
  op.gpu_finished = op.gpu_started ? AnyTime(random) : 0;
  return op;
}

void Fill(StreamBatch* b, Random& random) {
  b->Clear();
  const auto comms = static_cast<uint32_t>(1 + random() % 5);
  for (uint32_t i = 0; i < comms; ++i) b->comms[b->comm_count++] = CommOf(i * 7, 0xabc000 + i);
  for (uint64_t n = random() % 300; n > 0; --n) b->ops[b->op_count++] = AnyOp(random, comms);
  const auto transfers = static_cast<uint32_t>(1 + random() % 9);
  for (uint32_t i = 0; i < transfers; ++i) {
    b->transfers[b->transfer_count++] = {static_cast<uint32_t>(random() % (comms + 1)),
                                         static_cast<uint32_t>(random() % 9),
                                         static_cast<uint32_t>(Any(random)),
                                         static_cast<uint32_t>(random() % 32),
                                         random() % 2 == 0,
                                         random() % 2 == 0,
                                         random() % 3 == 0 ? random() : 0,
                                         Any(random)};
  }
  for (uint64_t n = random() % 500; n > 0; --n) {
    b->steps[b->step_count++] = {static_cast<uint32_t>(random() % transfers), static_cast<uint32_t>(random() % 65536),
                                 Any(random), random() % 2 == 0 ? 0 : 4096 * (random() % 3)};
  }
}

void ExpectSame(const StreamBatch& b, const Collecting& seen) {
  ASSERT_EQ(seen.ops.size(), b.op_count);
  ASSERT_EQ(seen.steps.size(), b.step_count);
  for (uint32_t i = 0; i < b.op_count; ++i) {
    const StreamOp& want = b.ops[i];
    const testing::SeenOp& got = seen.ops[i];
    SCOPED_TRACE(i);
    EXPECT_EQ(got.communicator.comm_id(), b.comms[want.signature.communicator].comm_id);
    EXPECT_EQ(got.communicator.name(), "world");
    EXPECT_EQ(got.op.position, want.position);
    EXPECT_EQ(got.op.group, want.group);
    EXPECT_EQ(static_cast<uint32_t>(got.op.end), static_cast<uint32_t>(want.end));
    EXPECT_EQ(static_cast<uint64_t>(got.op.entered_ns), want.entered);
    EXPECT_EQ(static_cast<uint64_t>(got.op.returned_ns), want.returned);
    EXPECT_EQ(static_cast<uint64_t>(got.op.enqueued_ns), want.enqueued);
    EXPECT_EQ(static_cast<uint64_t>(got.op.started_ns), want.started);
    EXPECT_EQ(static_cast<uint64_t>(got.op.finished_ns), want.finished);
    EXPECT_EQ(static_cast<uint64_t>(got.op.gpu_started_ns), want.gpu_started);
    EXPECT_EQ(static_cast<uint64_t>(got.op.gpu_finished_ns), want.gpu_finished);
    EXPECT_EQ(got.signature.count(), want.signature.count);
    EXPECT_EQ(got.signature.stream(), want.signature.stream);
    EXPECT_EQ(got.signature.p2p(), (want.signature.flags & flight::kOpP2p) != 0);
    EXPECT_EQ(got.signature.root(), want.signature.root == flight::kStreamNoRoot ? -1 : static_cast<int>(want.signature.root));
    EXPECT_EQ(got.signature.peer(), static_cast<int32_t>(want.signature.peer));
    EXPECT_EQ(static_cast<uint8_t>(got.signature.func()), want.signature.func);
    EXPECT_EQ(got.signature.tail_tasks(), want.signature.tail_tasks);
    EXPECT_EQ(got.signature.thread(), want.signature.thread);
  }
  for (uint32_t i = 0; i < b.step_count; ++i) {
    const StreamStep& want = b.steps[i];
    const testing::SeenStep& got = seen.steps[i];
    const flight::StreamTransfer& t = b.transfers[want.transfer];
    SCOPED_TRACE(i);
    EXPECT_EQ(got.step.step, want.code / 4);
    EXPECT_EQ(got.step.state == trace::STEP_FREE, want.code % 4 == 3);
    EXPECT_EQ(static_cast<uint64_t>(got.step.time_ns), want.time);
    EXPECT_EQ(got.step.bytes, want.bytes);
    EXPECT_EQ(got.transfer.peer(), t.peer);
    EXPECT_EQ(got.transfer.send(), t.send);
    EXPECT_EQ(got.transfer.position(), t.position);
    EXPECT_EQ(got.transfer.foreign_context(), t.context);
  }
}

TEST(StreamPack, AnyBatchIsReadAsItWasPacked) {
  auto batch = std::make_unique<StreamBatch>();
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    Fill(batch.get(), random);
    const std::string file = StreamFileOf({PackedChunk(batch.get(), 1, true)});
    Collecting seen;
    const auto summary = ingest::ParseStream(file, "file", &seen);
    ASSERT_TRUE(summary.ok()) << summary.status();
    ASSERT_FALSE(summary->torn) << summary->notes[0];
    EXPECT_TRUE(summary->ended);
    EXPECT_EQ(summary->operations, batch->op_count);
    EXPECT_EQ(summary->steps, batch->step_count);
    ExpectSame(*batch, seen);
    if (HasFailure()) return;
  }
}

TEST(StreamPack, AFullBatchOfTheWorstFitsOrIsRefusedWhole) {
  auto batch = std::make_unique<StreamBatch>();
  Random random(5);
  batch->comms[batch->comm_count++] = CommOf(0, 1);
  while (batch->op_count < flight::kStreamBatchOps) {
    StreamOp op = AnyOp(random, 1);
    op.signature.count = random();  // each another signature
    batch->ops[batch->op_count++] = op;
  }
  const std::string chunk = PackedChunk(batch.get(), 1);
  ASSERT_NE(chunk, "");
  Collecting seen;
  ASSERT_TRUE(ingest::ParseStream(StreamFileOf({chunk}), "file", &seen).ok());
  ExpectSame(*batch, seen);
}

// Training at steady state, drawn: 1 kHz of collectives of a few kinds on two communicators, with the spread of times that
// real ones have.
TEST(StreamPack, ACollectiveTakesNoMoreThan24Bytes) {
  auto batch = std::make_unique<StreamBatch>();
  Random random(9);
  const auto about = [&random](double ns) {
    return static_cast<uint64_t>(std::lognormal_distribution<double>(0, 0.5)(random) * ns);
  };
  uint64_t now = uint64_t{13} * 86400 * 1000000000, positions[2] = {0, 0}, bytes = 0;
  uint32_t group = 0;
  constexpr uint64_t kOps = 100000, kAChunk = 500;
  for (uint64_t n = 0; n < kOps;) {
    batch->Clear();
    for (uint32_t c = 0; c < 2; ++c) batch->comms[batch->comm_count++] = CommOf(c, c + 1);
    for (uint64_t i = 0; i < kAChunk; ++i, ++n) {
      StreamOp& op = batch->ops[batch->op_count++];
      op = {};
      op.signature.communicator = n % 4 == 0;
      op.signature.func = n % 4 == 0 ? 3 : 5;
      op.signature.datatype = 7;
      op.signature.count = uint64_t{1} << (14 + n % 7);
      op.signature.root = flight::kStreamNoRoot;
      op.signature.peer = flight::kNoRank;
      op.signature.channels = 16;
      op.signature.flags = flight::kOpFromApi;
      op.group = ++group;
      op.position = ++positions[op.signature.communicator];
      now += about(1000000);
      op.entered = now;
      op.returned = op.entered + about(5000);
      op.enqueued = op.returned + about(30000);
      op.started = op.enqueued + about(800000);
      op.finished = op.started + about(500000);
      op.gpu_started = op.started + 777777777777 - about(50000);
      op.gpu_finished = op.gpu_started + (op.finished - op.started) - about(30000) % 100000;
    }
    bytes += PackedChunk(batch.get(), n).size();
  }
  const double each = static_cast<double>(bytes) / kOps;
  std::printf("%.2f bytes a collective\n", each);
  EXPECT_LE(each, 24);
  EXPECT_GT(each, 8);  // something was packed
}

TEST(StreamPack, WhatIsNotThereTakesNoBytes) {
  auto batch = std::make_unique<StreamBatch>();
  EXPECT_EQ(PackedChunk(batch.get(), 1).size(), 8u + 2 + 3);  // frame, sequence, time
  batch->comms[batch->comm_count++] = CommOf(0, 1);
  const size_t empty = PackedChunk(batch.get(), 1).size();
  for (uint32_t i = 0; i < 1000; ++i) {
    StreamOp& op = batch->ops[batch->op_count++];
    op = {};
    op.position = i + 1;
    op.group = i + 1;
  }
  EXPECT_LE(PackedChunk(batch.get(), 1).size(), empty + 20);
}

}  // namespace
}  // namespace ringscope
