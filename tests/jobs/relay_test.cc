// PXN between two real processes: rank 0 drives a send of rank 1, and gets rank 1's own context and
// handles.
#include <gmock/gmock.h>
#include <signal.h>

#include <functional>
#include <string>

#include "tests/jobs/ranks.h"
#include "tests/unit/plugin/fake_nccl.h"

namespace ringscope::jobs {
namespace {

using testing::Bits;
using ::testing::Contains;
using ::testing::HasSubstr;

void* Pointer(uint64_t bits) { return reinterpret_cast<void*>(bits); }

// A proxy operation of rank 1 to rank 2, as NCCL hands it to the process of rank 0.
void* RunForeign(uint64_t context, uint64_t parent, pid_t owner) {
  testing::Descr d = testing::Make(abi::kProxyOp, Pointer(parent));
  d.rank = 1;
  d.proxy_op = {owner, 3, 2, 12, 4194304, true};
  void* handle = testing::kGarbage;
  ncclProfiler_v6.start_event(Pointer(context), &handle, &d);
  return handle;
}

class Relay : public ::testing::Test {
 protected:
  static constexpr uint64_t kId = 0x1234567;

  // Rank 1 makes `operations`, the first ones finished, and tells its context and the handles of
  // the newest `told`; then `after` runs in it. Rank 0 drives them all, and the steps of the first.
  void Run(int operations, int told, const std::function<void(testing::Comm&)>& after) {
    ranks_.Start(1, [&] {
      testing::Comm other(77, 0, 2, 1);  // so that rows and handles of the two processes differ
      testing::Comm comm(kId, 1, 4, 2);
      to_relay_.Put(Bits(comm.context));
      for (int k = 1; k <= operations; ++k) {
        void* coll = comm.Enqueue();
        if (k <= operations - told)
          comm.Run(coll);
        else
          to_relay_.Put(Bits(coll));
      }
      after(comm);
      ready_.Put(1);
      pause();
    });
    const pid_t owner = ranks_[1].pid();
    ranks_.Start(0, [&, owner] {
      testing::Comm comm(kId, 0, 4, 2);
      comm.Run(comm.Enqueue());
      const uint64_t context = to_relay_.Take();
      void* first = nullptr;
      for (int i = 0; i < told; ++i) {
        void* op = RunForeign(context, to_relay_.Take(), owner);
        if (first == nullptr) first = op;
      }
      testing::Comm::State(first, abi::kOpInProgress);
      testing::Comm::State(comm.Step(first, 0), abi::kStepSendGpuWait);
      ready_.Put(1);
      pause();
    });
    ready_.Take();
    ready_.Take();
  }

  // The edge 1 -> 2 as the records tell; position -1 when there is none.
  static int64_t PositionOf(const model::Job& job) {
    int64_t position = -1;
    for (const model::Edge& e : job.edges) {
      if (!e.sender || !e.sender->raw->foreign()) continue;
      EXPECT_EQ(e.from, 1);
      EXPECT_EQ(e.to, 2);
      EXPECT_EQ(e.channel, 3);
      EXPECT_EQ(job.communicators[static_cast<size_t>(e.communicator)].id, kId);
      EXPECT_TRUE(e.sender->open);
      position = static_cast<int64_t>(e.sender->position);
    }
    return position;
  }

  Pipe to_relay_, ready_;
  Ranks ranks_{4};
};

TEST_F(Relay, LeadsToTheOwnersOperation) {
  Run(300, 1, [](testing::Comm&) {});
  EXPECT_EQ(PositionOf(ranks_.Read()), 300);
}

TEST_F(Relay, OfThreeThatWaitTheRunningOneIsNamed) {
  Run(300, 3, [](testing::Comm&) {});
  EXPECT_EQ(PositionOf(ranks_.Read()), 298);
}

TEST_F(Relay, AKilledOwnersFlightFileIsEnough) {
  Run(5, 1, [](testing::Comm&) {});
  kill(ranks_[1].pid(), SIGKILL);
  ranks_[1].Wait();
  EXPECT_EQ(PositionOf(ranks_.Read()), 5);
}

TEST_F(Relay, ARowThatWentToALaterOperationGivesNoPosition) {
  Run(1, 1, [](testing::Comm& comm) {
    // The row is given away once the operation is over, as a stale edge of the relay would have it.
    for (int k = 0; k < 600; ++k) comm.Run(comm.Enqueue());
  });
  EXPECT_EQ(PositionOf(ranks_.Read()), 0) << "the communicator is known all the same";
}

TEST_F(Relay, ACommunicatorThatIsNoMoreIsNotTakenForItsSuccessor) {
  Run(1, 1, [](testing::Comm& comm) {
    comm.Finalize();
    for (uint64_t i = 0; i < 600; ++i) {
      testing::Comm next(1000 + i, 1, 4, 2);
      next.Run(next.Enqueue());
      next.Finalize();
    }
  });
  const model::Job job = ranks_.Read();
  EXPECT_EQ(PositionOf(job), -1);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("could not be joined to their owner")));
}

}  // namespace
}  // namespace ringscope::jobs
