// Offsets of the fact sheet, one by one, and garbage everywhere else.
#include "tests/replay/descriptor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace ringscope::replay {
namespace {

template <typename T>
T At(const Descriptor& d, size_t offset) {
  T value;
  std::memcpy(&value, d.bytes + offset, sizeof value);
  return value;
}

// Every byte outside these ranges must be what the stack held before.
void ExpectGarbageOutside(const Descriptor& d, const std::vector<std::pair<size_t, size_t>>& set) {
  std::set<size_t> written;
  for (const auto& [from, size] : set) {
    for (size_t i = 0; i < size; ++i) written.insert(from + i);
  }
  for (size_t i = 0; i < sizeof d.bytes; ++i) {
    if (written.count(i) == 0) {
      EXPECT_EQ(d.bytes[i], kGarbage) << "byte " << i;
    }
  }
}

Event Collective() {
  Event e;
  e.type = kColl;
  e.rank = 3;
  e.seq = 11;
  e.func = "AllReduce";
  e.send_buff = 0x1000;
  e.recv_buff = 0x2000;
  e.count = 5;
  e.root = 2;
  e.datatype = "ncclFloat32";
  e.n_channels = 16;
  e.n_warps = 9;
  e.algo = "RING";
  e.proto = "LL";
  return e;
}

TEST(Descriptor, CollOfV6) {
  const Event e = Collective();
  Descriptor d;
  BuildDescriptor(6, e, {0x77, 0x88, 0}, d);
  EXPECT_EQ(At<uint64_t>(d, 0), 2u);
  EXPECT_EQ(At<uint64_t>(d, 8), 0x77u);
  EXPECT_EQ(At<int32_t>(d, 16), 3);
  EXPECT_EQ(At<uint64_t>(d, 24), 11u);
  EXPECT_STREQ(At<const char*>(d, 32), "AllReduce");
  EXPECT_EQ(At<uint64_t>(d, 40), 0x1000u);
  EXPECT_EQ(At<uint64_t>(d, 48), 0x2000u);
  EXPECT_EQ(At<uint64_t>(d, 56), 5u);
  EXPECT_EQ(At<int32_t>(d, 64), 2);
  EXPECT_STREQ(At<const char*>(d, 72), "ncclFloat32");
  EXPECT_EQ(At<uint8_t>(d, 80), 16);
  EXPECT_EQ(At<uint8_t>(d, 81), 9);
  EXPECT_STREQ(At<const char*>(d, 88), "RING");
  EXPECT_STREQ(At<const char*>(d, 96), "LL");
  EXPECT_EQ(At<uint64_t>(d, 104), 0x88u);
  ExpectGarbageOutside(d, {{0, 20}, {24, 44}, {72, 10}, {88, 24}});
}

TEST(Descriptor, V4HasAOneByteTypeAndNoGroup) {
  const Event e = Collective();
  Descriptor d;
  BuildDescriptor(4, e, {0x77, 0x88, 0}, d);
  EXPECT_EQ(At<uint8_t>(d, 0), 2);
  EXPECT_EQ(DescriptorSize(4), 104u);
  EXPECT_EQ(DescriptorSize(5), 112u);
  ExpectGarbageOutside(d, {{0, 1}, {8, 12}, {24, 44}, {72, 10}, {88, 16}});
}

TEST(Descriptor, TheOthers) {
  Descriptor d;
  Event e;
  e.type = kP2p;
  e.func = "Send";
  e.recv_buff = 0x3000;
  e.datatype = "ncclInt8";
  e.count = 7;
  e.peer = 4;
  e.n_channels = 2;
  BuildDescriptor(5, e, {1, 2, 0}, d);
  EXPECT_STREQ(At<const char*>(d, 24), "Send");
  EXPECT_EQ(At<uint64_t>(d, 32), 0x3000u);
  EXPECT_EQ(At<uint64_t>(d, 48), 7u);
  EXPECT_EQ(At<int32_t>(d, 56), 4);
  EXPECT_EQ(At<uint8_t>(d, 60), 2);
  EXPECT_EQ(At<uint64_t>(d, 64), 2u);
  ExpectGarbageOutside(d, {{0, 20}, {24, 37}, {64, 8}});

  e = Event();
  e.type = kProxyOp;
  e.channel = 1;
  e.peer = 5;
  e.n_steps = 12;
  e.chunk_size = 4096;
  e.is_send = true;
  BuildDescriptor(6, e, {1, 0, 4242}, d);
  EXPECT_EQ(At<int32_t>(d, 24), 4242);
  EXPECT_EQ(At<uint8_t>(d, 28), 1);
  EXPECT_EQ(At<int32_t>(d, 32), 5);
  EXPECT_EQ(At<int32_t>(d, 36), 12);
  EXPECT_EQ(At<int32_t>(d, 40), 4096);
  EXPECT_EQ(At<int32_t>(d, 44), 1);
  ExpectGarbageOutside(d, {{0, 20}, {24, 5}, {32, 16}});

  e = Event();
  e.type = kCollApi;
  e.func = "Reduce";
  e.count = 9;
  e.datatype = "ncclInt32";
  e.root = 1;
  e.stream = 0x44;
  e.graph_captured = true;
  BuildDescriptor(6, e, {1, 0, 0}, d);
  EXPECT_STREQ(At<const char*>(d, 24), "Reduce");
  EXPECT_EQ(At<uint64_t>(d, 32), 9u);
  EXPECT_EQ(At<int32_t>(d, 48), 1);
  EXPECT_EQ(At<uint64_t>(d, 56), 0x44u);
  EXPECT_EQ(At<uint8_t>(d, 64), 1);
  ExpectGarbageOutside(d, {{0, 20}, {24, 28}, {56, 9}});

  e = Event();
  e.type = kKernelCh;
  e.channel = 3;
  e.p_timer = 99;
  BuildDescriptor(4, e, {1, 0, 0}, d);
  EXPECT_EQ(At<uint8_t>(d, 24), 3);
  EXPECT_EQ(At<uint64_t>(d, 32), 99u);
  ExpectGarbageOutside(d, {{0, 1}, {8, 12}, {24, 1}, {32, 8}});

  e = Event();
  e.type = kGroupApi;
  e.group_depth = 2;
  BuildDescriptor(6, e, {0, 0, 0}, d);
  EXPECT_EQ(At<uint8_t>(d, 24), 0);
  EXPECT_EQ(At<int32_t>(d, 28), 2);
  ExpectGarbageOutside(d, {{0, 20}, {24, 1}, {28, 4}});
}

Event Early() {
  Event e = Collective();
  e.comm_hash = 0xabcdef;
  e.traffic = 160;
  e.reduction = 3;
  return e;
}

TEST(Descriptor, CollOfV1HasNumbers) {
  Descriptor d;
  BuildDescriptor(1, Early(), {0x77, 0x88, 0}, d);
  EXPECT_EQ(At<uint8_t>(d, 0), 2);
  EXPECT_EQ(At<uint64_t>(d, 8), 0x77u);
  EXPECT_EQ(At<uint64_t>(d, 24), 0u);
  EXPECT_EQ(At<uint64_t>(d, 32), 0xabcdefu);
  EXPECT_EQ(At<uint64_t>(d, 40), 11u);
  EXPECT_EQ(At<uint8_t>(d, 48), 4);
  EXPECT_EQ(At<uint64_t>(d, 56), 0x1000u);
  EXPECT_EQ(At<uint64_t>(d, 64), 0x2000u);
  EXPECT_EQ(At<uint64_t>(d, 72), 5u);
  EXPECT_EQ(At<int32_t>(d, 80), 2);
  EXPECT_EQ(At<uint8_t>(d, 84), 7);
  EXPECT_EQ(At<int32_t>(d, 88), 3);
  EXPECT_EQ(At<uint64_t>(d, 96), 160u);
  EXPECT_EQ(At<uint8_t>(d, 104), 16);
  EXPECT_EQ(At<uint8_t>(d, 105), 9);
  EXPECT_EQ(At<uint8_t>(d, 106), 1);
  EXPECT_EQ(At<uint8_t>(d, 107), 0);
  ExpectGarbageOutside(d, {{0, 1}, {8, 12}, {24, 25}, {56, 29}, {88, 4}, {96, 20}});
  EXPECT_EQ(DescriptorSize(1), 120u);
}

TEST(Descriptor, CollOfV2AndV3HasTexts) {
  Descriptor d;
  BuildDescriptor(2, Early(), {0x77, 0x88, 0}, d);
  EXPECT_EQ(At<uint64_t>(d, 32), 0xabcdefu);
  EXPECT_STREQ(At<const char*>(d, 48), "AllReduce");
  EXPECT_STREQ(At<const char*>(d, 88), "ncclFloat32");
  EXPECT_EQ(At<uint64_t>(d, 96), 160u);
  EXPECT_EQ(At<uint8_t>(d, 104), 16);
  EXPECT_STREQ(At<const char*>(d, 112), "RING");
  EXPECT_STREQ(At<const char*>(d, 120), "LL");
  ExpectGarbageOutside(d, {{0, 1}, {8, 12}, {24, 60}, {88, 18}, {112, 16}});
  BuildDescriptor(3, Early(), {0x77, 0x88, 0}, d);
  EXPECT_STREQ(At<const char*>(d, 88), "ncclFloat32");
  EXPECT_EQ(At<uint8_t>(d, 96), 16);
  EXPECT_EQ(At<uint8_t>(d, 97), 9);
  EXPECT_STREQ(At<const char*>(d, 104), "RING");
  EXPECT_STREQ(At<const char*>(d, 112), "LL");
  ExpectGarbageOutside(d, {{0, 1}, {8, 12}, {24, 60}, {88, 10}, {104, 16}});
  EXPECT_EQ(DescriptorSize(2), 128u);
  EXPECT_EQ(DescriptorSize(3), 120u);
}

TEST(Descriptor, P2pAndKernelChBeforeV4) {
  Event e;
  e.type = kP2p;
  e.func = "Recv";
  e.recv_buff = 0x3000;
  e.datatype = "ncclInt8";
  e.count = 7;
  e.peer = 4;
  e.comm_hash = 9;
  Descriptor d;
  BuildDescriptor(1, e, {}, d);
  EXPECT_EQ(At<uint64_t>(d, 32), 9u);
  EXPECT_EQ(At<uint8_t>(d, 40), 7);
  EXPECT_EQ(At<uint64_t>(d, 48), 0x3000u);
  EXPECT_EQ(At<uint8_t>(d, 56), 0);
  EXPECT_EQ(At<uint64_t>(d, 64), 7u);
  EXPECT_EQ(At<int32_t>(d, 72), 4);
  ExpectGarbageOutside(d, {{0, 1}, {8, 12}, {24, 17}, {48, 9}, {64, 12}});
  BuildDescriptor(3, e, {}, d);
  EXPECT_STREQ(At<const char*>(d, 40), "Recv");
  EXPECT_STREQ(At<const char*>(d, 56), "ncclInt8");
  e = Event();
  e.type = kKernelCh;
  e.channel = 3;
  e.p_timer = 99;
  BuildDescriptor(3, e, {}, d);
  ExpectGarbageOutside(d, {{0, 1}, {8, 12}, {24, 1}});
}

TEST(Descriptor, ShimOfV4LeavesTheChannelsOfP2pAsTheyWere) {
  Event e;
  e.type = kP2p;
  e.func = "Send";
  e.datatype = "ncclInt8";
  e.n_channels = 2;
  DescriptorPointers pointers;
  pointers.channels_unset = true;
  Descriptor d;
  BuildDescriptor(4, e, pointers, d);
  EXPECT_EQ(At<uint8_t>(d, 60), kGarbage);
}

TEST(StateArgs, StepsAndSizesBefore227) {
  StateArgs args;
  Event e;
  e.type = kProxyOp;
  e.state = kProxyOpRecvDone;
  e.trans_size = 17;
  e.steps = 3;
  BuildStateArgs(2, e, false, args);
  uint64_t size;
  int32_t steps;
  std::memcpy(&size, args.bytes, 8);
  std::memcpy(&steps, args.bytes + 8, 4);
  EXPECT_EQ(size, 17u);
  EXPECT_EQ(steps, 3);
  BuildStateArgs(2, e, true, args);
  for (unsigned char byte : args.bytes) EXPECT_EQ(byte, 0);
  BuildStateArgs(4, e, false, args);
  EXPECT_EQ(args.bytes[8], kGarbage) << "the union has 8 bytes";
}

TEST(StateArgs, TimerAndSize) {
  StateArgs args;
  Event e;
  e.type = kKernelCh;
  e.p_timer = 0x1122334455667788;
  BuildStateArgs(6, e, false, args);
  uint64_t value;
  std::memcpy(&value, args.bytes, 8);
  EXPECT_EQ(value, 0x1122334455667788u);
  e.type = kProxyStep;
  e.trans_size = 17;
  BuildStateArgs(6, e, false, args);
  std::memcpy(&value, args.bytes, 8);
  EXPECT_EQ(value, 17u);
}

}  // namespace
}  // namespace ringscope::replay
