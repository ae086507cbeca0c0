// The NCCL stand-in with ranks as threads: right results, and the errors and waits of the real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tests/sim/nccl/reduce.h"
#include "tests/sim/programs/check.h"

namespace {

using namespace std::chrono_literals;

// Runs `rank(r)` on a thread each.
void OnThreads(int n, const std::function<void(int)>& rank) {
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      cudaSetDevice(r % 8);
      rank(r);
    });
  }
  for (std::thread& t : threads) t.join();
}

std::vector<ncclComm_t> Init(int n) {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<ncclComm_t> comms(static_cast<size_t>(n));
  OnThreads(n, [&](int r) { EXPECT_EQ(ncclCommInitRank(&comms[static_cast<size_t>(r)], n, id, r), ncclSuccess); });
  return comms;
}

class Ranks : public ::testing::TestWithParam<int> {};

TEST_P(Ranks, EveryCollectiveTypeAndReduction) {
  const int n = GetParam();
  std::vector<ncclComm_t> comms = Init(n);
  for (const size_t count : {size_t{1}, size_t{7}, size_t{1000}}) {
    OnThreads(n, [&](int r) { EXPECT_EQ(ringscope::sim::CheckCollectives(comms[static_cast<size_t>(r)], r, n, count), ""); });
  }
  OnThreads(n, [&](int r) { EXPECT_EQ(ncclCommDestroy(comms[static_cast<size_t>(r)]), ncclSuccess); });
}
INSTANTIATE_TEST_SUITE_P(Numbers, Ranks, ::testing::Values(1, 2, 3, 4, 8));

TEST(Nccl, LargeMessagesGoThroughEightSlots) {
  constexpr size_t kCount = 3'000'001;  // 12 MB: many times the slots
  std::vector<ncclComm_t> comms = Init(3);
  OnThreads(3, [&](int r) {
    std::vector<float> data(kCount, static_cast<float>(r + 1)), out(kCount);
    cudaStream_t s;
    cudaStreamCreate(&s);
    EXPECT_EQ(ncclAllReduce(data.data(), out.data(), kCount, ncclFloat32, ncclSum, comms[static_cast<size_t>(r)], s),
              ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
    EXPECT_EQ(out.front(), 6);
    EXPECT_EQ(out[kCount / 2], 6);
    EXPECT_EQ(out.back(), 6);
    ncclCommDestroy(comms[static_cast<size_t>(r)]);
    cudaStreamDestroy(s);
  });
}

TEST(Nccl, OneThreadWithAllDevices) {
  ncclComm_t comms[4];
  ASSERT_EQ(ncclCommInitAll(comms, 4, nullptr), ncclSuccess);
  cudaStream_t streams[4];
  std::vector<float> data[4], out[4];
  ncclGroupStart();
  for (int i = 0; i < 4; ++i) {
    cudaSetDevice(i);
    cudaStreamCreate(&streams[i]);
    data[i].assign(100, static_cast<float>(i));
    out[i].resize(100);
    EXPECT_EQ(ncclAllReduce(data[i].data(), out[i].data(), 100, ncclFloat32, ncclSum, comms[i], streams[i]), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int i = 0; i < 4; ++i) {
    cudaSetDevice(i);
    EXPECT_EQ(cudaStreamSynchronize(streams[i]), cudaSuccess);
    EXPECT_EQ(out[i][50], 6);
    ncclCommDestroy(comms[i]);
    cudaStreamDestroy(streams[i]);
  }
  cudaSetDevice(0);
}

TEST(Nccl, AMissingRankMakesTheOthersWaitUntilTheyAbort) {
  std::vector<ncclComm_t> comms = Init(3);
  std::atomic<int> waiting{0};
  OnThreads(3, [&](int r) {
    if (r == 2) {
      while (waiting.load() < 2) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommAbort(comms[2]), ncclSuccess);
      return;
    }
    std::vector<float> data(100, 1), out(100);
    cudaStream_t s;
    cudaStreamCreate(&s);
    ncclAllReduce(data.data(), out.data(), 100, ncclFloat32, ncclSum, comms[static_cast<size_t>(r)], s);
    ++waiting;
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(cudaStreamQuery(s), cudaErrorNotReady) << "nothing ends it";
    EXPECT_EQ(ncclCommAbort(comms[static_cast<size_t>(r)]), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
    cudaStreamDestroy(s);
  });
}

TEST(Nccl, SmallMessagesAreBufferedLargeOnesWaitForTheirReceiver) {
  std::vector<ncclComm_t> comms = Init(2);
  std::vector<char> small(1000), large(4 << 20);
  cudaStream_t s;
  cudaSetDevice(0);
  cudaStreamCreate(&s);
  ncclSend(small.data(), small.size(), ncclInt8, 1, comms[0], s);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess) << "it fits the slots";
  ncclSend(large.data(), large.size(), ncclInt8, 1, comms[0], s);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(cudaStreamQuery(s), cudaErrorNotReady);
  cudaStream_t t;
  cudaStreamCreate(&t);
  ncclRecv(small.data(), small.size(), ncclInt8, 0, comms[1], t);
  ncclRecv(large.data(), large.size(), ncclInt8, 0, comms[1], t);
  EXPECT_EQ(cudaStreamSynchronize(t), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  for (ncclComm_t c : comms) ncclCommDestroy(c);
  cudaStreamDestroy(s), cudaStreamDestroy(t);
}

TEST(Nccl, NonBlockingAndAbsentRanks) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t first = nullptr, second = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&first, 2, id, 0, &config), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  std::this_thread::sleep_for(20ms);
  ncclCommGetAsyncError(first, &state);
  EXPECT_EQ(state, ncclInProgress) << "rank 1 has not come";
  EXPECT_EQ(ncclCommInitRank(&second, 2, id, 1), ncclSuccess);
  for (int i = 0; i < 1000 && state == ncclInProgress; ++i) {
    std::this_thread::sleep_for(1ms);
    ncclCommGetAsyncError(first, &state);
  }
  EXPECT_EQ(state, ncclSuccess);
  ncclCommDestroy(first), ncclCommDestroy(second);
}

TEST(Nccl, WrongUseIsRefused) {
  ncclUniqueId id = {};
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument) << "an id that nobody made";
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  std::vector<ncclComm_t> comms = Init(1);
  float x = 1;
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, static_cast<ncclDataType_t>(99), ncclSum, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat32, static_cast<ncclRedOp_t>(77), comms[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(nullptr, &x, 1, ncclFloat32, ncclSum, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat8e4m3, ncclSum, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(&x, &x, 1, ncclFloat32, 1, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(&x, 1, ncclFloat32, 5, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_STRNE(ncclGetLastError(nullptr), "");
  ncclCommDestroy(comms[0]);
}

TEST(Reduce, HalvesRoundToNearestEven) {
  using namespace ringscope::sim;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t h = static_cast<uint16_t>(bits);
    const float f = FromHalf(h);
    if (f != f) continue;
    EXPECT_EQ(ToHalf(f), h) << bits;
    const float b = FromBfloat(h);
    if (b == b) {
      EXPECT_EQ(ToBfloat(b), h) << bits;
    }
  }
  EXPECT_EQ(ToHalf(65520.0f), 0x7c00) << "infinity";
  EXPECT_EQ(ToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(ToHalf(2049.0f), ToHalf(2048.0f)) << "a tie goes to even";
}

}  // namespace
