// The signature chain as the callbacks write it and as a reader finds it.
#include "recorder/flight/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "recorder/hot_op.h"
#include "tests/unit/recorder/test_image.h"

namespace ringscope::recorder {
namespace {

struct Call {
  uint64_t count = 1024;
  flight::Func func = flight::Func::kAllReduce;
  flight::DataType type = flight::DataType::kFloat32;
  int root = 0;
  uint32_t flags = 0;
};

// One rank's communicator, called through the recorder as the plugin does.
class Rank {
 public:
  explicit Rank(uint32_t api = 6) : api_events_(api >= 5) {
    context_ = OpenCommunicator(&image_.image(), {77, nullptr, 1, 4, 0, api, api_events_, true});
  }
  void Group(const std::vector<Call>& calls) {
    const uint64_t group = GroupStart(&image_.image(), context_, calls.size() > 1 ? 2 : 1, false);
    for (const Call& c : calls) {
      const OpCall call = {c.func, c.type, c.count, c.root, 0, c.flags};
      if (api_events_) {
        ApiStop(&image_.image(), ApiStart(&image_.image(), context_, call));
      } else {
        LaunchStop(&image_.image(), LaunchStart(&image_.image(), context_, 0, call, {}));
      }
    }
    GroupStop(&image_.image(), group);
  }
  void One(const Call& call) { Group({call}); }
  const CommRow& comm() { return *CommOf(&image_.image(), context_); }
  flight::ChainView chain() { return flight::ReadChain(comm()); }
  // Position of each checkpoint to its hash.
  std::map<uint64_t, uint64_t> checkpoints() {
    std::map<uint64_t, uint64_t> found;
    for (uint32_t level = 0; level < flight::kChainLevels; ++level) {
      const uint64_t newest = chain().position >> flight::kChainShift[level];
      for (uint64_t o = newest; o != 0 && o + 2 > newest; --o) {
        uint64_t hash;
        if (flight::ReadCheckpoint(comm(), level, o, &hash))
          found[o << flight::kChainShift[level]] = hash;
      }
    }
    return found;
  }

 private:
  TestImage image_;
  uint64_t context_;
  bool api_events_;
};

// (A test image belongs to one thread row at a time.)
class Chain : public ::testing::Test {
 protected:
  ~Chain() override { t_slot = {nullptr, nullptr}; }
};

TEST_F(Chain, EqualCallsGiveEqualChainsAndACallThatDiffersAnotherOne) {
  const Call plain;
  for (const Call& other :
       {Call{1025}, Call{1024, flight::Func::kReduce},
        Call{1024, plain.func, flight::DataType::kInt32}, Call{1024, plain.func, plain.type, 1}}) {
    Rank a, b, c;
    for (int i = 0; i < 10; ++i) {
      a.One(plain);
      b.One(plain);
      c.One(i == 5 ? other : plain);
    }
    EXPECT_EQ(a.chain().position, 9u);  // the tenth waits for the end of its group
    EXPECT_EQ(a.chain().hash, b.chain().hash);
    EXPECT_NE(a.chain().hash, c.chain().hash);
  }
}

TEST_F(Chain, OrderCountsBetweenGroupsAndNotInside) {
  Rank a, b, c;
  const Call x{1}, y{2}, z{3};
  a.Group({x, y});
  a.One(z);
  a.One(z);
  b.Group({y, x});
  b.One(z);
  b.One(z);
  c.One(x);
  c.One(y);
  c.One(z);
  c.One(z);
  EXPECT_EQ(a.chain().position, 3u);
  EXPECT_EQ(a.chain().hash, b.chain().hash);
  EXPECT_EQ(c.chain().position, 3u);
  EXPECT_NE(a.chain().hash, c.chain().hash);
}

TEST_F(Chain, WhatOnlyMovesDataIsComparedInBytes) {
  using flight::DataType;
  using flight::Func;
  for (const Func f : {Func::kBroadcast, Func::kAllGather, Func::kAlltoAll, Func::kScatter,
                       Func::kGather, Func::kAllReduce, Func::kReduce, Func::kReduceScatter}) {
    Rank a, b, c;
    const bool computes = f == Func::kAllReduce || f == Func::kReduce || f == Func::kReduceScatter;
    for (int i = 0; i < 3; ++i) {
      a.One({1024, f, DataType::kFloat32});
      b.One({512, f, DataType::kInt64});
      c.One({1024, f, DataType::kFloat64});
    }
    EXPECT_EQ(a.chain().hash != b.chain().hash, computes) << static_cast<int>(f);
    EXPECT_NE(a.chain().hash, c.chain().hash) << static_cast<int>(f);
  }
}

TEST_F(Chain, PointToPointAndCapturedCallsAreNotFolded) {
  Rank a, b;
  for (int i = 0; i < 5; ++i) {
    a.One({});
    b.One({});
    b.One({7, flight::Func::kSend, flight::DataType::kInt8, -1, flight::kOpP2p});
    b.One({9, flight::Func::kAllReduce, flight::DataType::kInt8, 0, flight::kOpGraph});
  }
  EXPECT_EQ(a.chain().position, b.chain().position);
  EXPECT_EQ(a.chain().hash, b.chain().hash);
}

TEST_F(Chain, BelowTheApiEventsLaunchesAreFolded) {
  Rank a(4), b(4), c(4);
  for (int i = 0; i < 5; ++i) {
    a.One({});
    b.One({});
    c.One({i == 1 ? 9u : 1024u});
  }
  EXPECT_EQ(a.chain().position, 4u);
  EXPECT_EQ(a.chain().hash, b.chain().hash);
  EXPECT_NE(a.chain().hash, c.chain().hash);
}

TEST_F(Chain, CheckpointsAreTheLastTwoMultiplesOfEachLevel) {
  Rank a;
  for (int i = 0; i < 70000; ++i) a.One({});
  std::vector<uint64_t> at;
  for (const auto& [position, hash] : a.checkpoints()) at.push_back(position);
  EXPECT_EQ(a.chain().position, 69999u);
  // 65,536 is a multiple of 32,768 and of 4,096; both keep it.
  EXPECT_EQ(at, (std::vector<uint64_t>{32768, 65536, 69120, 69632, 69888, 69952}));
}

// A model that keeps every hash, against the kept checkpoints, with groups of any size.
TEST_F(Chain, EveryCheckpointHoldsWhatWasFoldedWhenItsMultipleWasPassed) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    Rank a;
    uint64_t hash = 0, position = 0;
    std::map<uint64_t, uint64_t> expected;
    std::vector<Call> open;
    const uint64_t most = round % 4 == 0 ? 300 : 5;
    while (position < 3000) {
      std::vector<Call> group(1 + random() % most);
      for (Call& c : group) c.count = 1 + random() % 3;
      a.Group(group);
      if (!open.empty()) {
        uint64_t sum = 0;
        for (const Call& c : open) sum += flight::ChainOf(c.func, c.type, c.count, 0);
        hash = flight::ChainFold(hash, sum);
        const uint64_t before = position;
        position += open.size();
        for (uint64_t m = before / 64 + 1; m <= position / 64; ++m)
          expected[m * 64] = flight::ChainMix(hash ^ position) & 0xffffffffffff;
      }
      open = group;
    }
    EXPECT_EQ(a.chain().position, position);
    EXPECT_EQ(a.chain().hash, hash);
    const auto kept = a.checkpoints();
    EXPECT_TRUE(kept.count(position / 64 * 64) && kept.count(position / 64 * 64 - 64));
    for (const auto& [at, value] : kept) EXPECT_EQ(value, expected[at]) << at;
  }
}

TEST_F(Chain, ACopyOfTwoMomentsIsRecognised) {
  Rank a;
  struct Words {
    uint64_t place[2], closed;
  };
  std::vector<Words> moments;
  for (int i = 0; i < 40; ++i) {
    a.One({i % 3 + 1u});
    moments.push_back({{a.comm().chain[0], a.comm().chain[1]}, a.comm().chain_closed});
  }
  TestImage copy;
  CommRow& row = copy.comm(0);
  int torn = 0;
  // The three words may be of three moments.
  for (size_t i = 1; i < moments.size(); ++i) {
    for (size_t j = 1; j < moments.size(); ++j) {
      for (size_t k = 1; k < moments.size(); ++k) {
        Set(row.chain[0], moments[i].place[0]);
        Set(row.chain[1], moments[j].place[1]);
        Set(row.chain_closed, moments[k].closed);
        const flight::ChainView view = flight::ReadChain(row);
        const uint64_t truth = moments[k].place[moments[k].closed >> 63];
        EXPECT_EQ(view.position, k);
        EXPECT_TRUE(view.hash == truth || view.hash == 0);
        torn += view.hash == 0;
      }
    }
  }
  EXPECT_GT(torn, 1000);
}

TEST_F(Chain, ACheckpointOfAnotherMultipleIsNotTaken) {
  Rank a;
  for (int i = 0; i < 200; ++i) a.One({});
  uint64_t hash;
  EXPECT_TRUE(flight::ReadCheckpoint(a.comm(), 0, 3, &hash));
  EXPECT_TRUE(flight::ReadCheckpoint(a.comm(), 0, 2, &hash));
  EXPECT_FALSE(flight::ReadCheckpoint(a.comm(), 0, 1, &hash));  // its place holds the third
  EXPECT_FALSE(flight::ReadCheckpoint(a.comm(), 0, 4, &hash));
  EXPECT_FALSE(flight::ReadCheckpoint(a.comm(), 0, 0, &hash));
}

}  // namespace
}  // namespace ringscope::recorder
