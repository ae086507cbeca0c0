// Each invariant finds its fault in an image that is sound otherwise.
#include "tests/interface/invariants.h"

#include <gtest/gtest.h>

#include <functional>

#include "recorder/flight/handles.h"
#include "tests/unit/recorder/test_image.h"

namespace ringscope::interface_model {
namespace {

using flight::HandleKind;

constexpr uint64_t kNow = kStart + 9 * kSecond;

// Two communicators with a finished and an open operation each, and an edge.
void Fill(TestImage* image) {
  for (uint32_t c = 0; c < 2; ++c) {
    image->AddComm(c);
    image->AddFinished(c, 0, 1, kStart + kSecond);
    OpSpec open = image->Finished(1, 2, kStart + 2 * kSecond);
    open.stopped = 1;
    image->AddOp(c, open);
  }
  EdgeRow& edge = image->AddEdge(9, 0, 1, true);
  const uint64_t handle =
      flight::MakeHandle(image->image().nonce, HandleKind::kProxyOp, 9 | 1 << 12);
  Set(edge.current, handle);
  Set(edge.queued, handle);
  Set(edge.ops, 1);
  Set(edge.steps, 0x0001000200030003);
  Set(edge.changed, kStart + kSecond);
}

void Expect(const char* message, const std::function<void(TestImage*)>& damage) {
  TestImage image;
  Fill(&image);
  damage(&image);
  EXPECT_EXIT(CheckTables(image.image(), kNow, true), testing::ExitedWithCode(1), message);
}

TEST(Invariants, HoldInASoundImage) {
  TestImage image;
  Fill(&image);
  CheckTables(image.image(), kNow, true);
  EXPECT_GT(CheckEncoding(image.image()), 100u);
}

TEST(Invariants, Communicators) {
  Expect("ring overlaps another", [](TestImage* i) { Set(i->comm(1).ring, uint64_t{255} << 32); });
  Expect("ring outside", [](TestImage* i) { Set(i->comm(1).ring, 16384 | uint64_t{255} << 32); });
  Expect("crooked ring", [](TestImage* i) { Set(i->comm(1).ring, 256 | uint64_t{254} << 32); });
  Expect("in the future", [](TestImage* i) { Set(i->comm(1).finalized, kNow + 1); });
  Expect("more operations lost", [](TestImage* i) { Set(i->comm(0).no_row, 3); });
  Expect("no profiler API", [](TestImage* i) { Set(i->comm(0).stamp, 1 | uint64_t{1} << 63); });
}

TEST(Invariants, Operations) {
  Expect("not in the ring", [](TestImage* i) {
    Set(i->op(0, 1).stamp, i->op(0, 1).stamp.load() | uint64_t{1} << 32);
  });
  Expect("has not reached", [](TestImage* i) { Set(i->op(0, 1).position, 3); });
  Expect("was entered after position", [](TestImage* i) { Set(i->op(0, 1).position, 1); });
  Expect("more stops than starts",
         [](TestImage* i) { Set(i->op(0, 1).kernel, 0x0003000200000001); });
  Expect("lane of a later use", [](TestImage* i) { Set(i->op(0, 1).kernel, 2); });
  Expect("returned before", [](TestImage* i) { Set(i->op(0, 1).returned, kStart); });
  Expect("kernel started before", [](TestImage* i) { Set(i->op(0, 1).started, kStart); });
  Expect("without its time", [](TestImage* i) { Set(i->op(0, 1).finished, 0); });
  Expect("unknown data type", [](TestImage* i) {
    Set(i->op(0, 1).stamp, i->op(0, 1).stamp.load() | uint64_t{0xff} << 56);
  });
}

TEST(Invariants, EdgesAndThreads) {
  const auto edge = [](TestImage* i) -> EdgeRow& { return i->image().edges[9]; };
  Expect("left a state than reached",
         [&](TestImage* i) { Set(edge(i).steps, 0x0002000100030003); });
  Expect("stopped than started", [&](TestImage* i) { Set(edge(i).ops, 1 | uint64_t{2} << 32); });
  Expect("none of its own",
         [&](TestImage* i) { Set(edge(i).current, edge(i).current.load() ^ 1); });
  Expect("earlier use", [&](TestImage* i) { Set(edge(i).stamp, edge(i).stamp.load() ^ 3); });
  Expect("no such communicator",
         [&](TestImage* i) { Set(edge(i).stamp, edge(i).stamp.load() | uint64_t{0xffff} << 32); });
  Expect("communicator that is gone",
         [&](TestImage* i) { Set(edge(i).stamp, edge(i).stamp.load() | uint64_t{7} << 32); });
  Expect("two edge rows", [&](TestImage* i) { i->AddEdge(10, 0, 1, true); });
  Expect("unknown call", [](TestImage* i) {
    Set(i->image().threads[0].tid, 1);
    Set(i->image().threads[0].call, 99);
  });
}

TEST(Invariants, AnImageThatTheEncoderRefuses) {
  TestImage image;
  Fill(&image);
  image.header()->version = 99;
  EXPECT_EXIT(CheckEncoding(image.image()), testing::ExitedWithCode(1), "the encoder says");
}

}  // namespace
}  // namespace ringscope::interface_model
