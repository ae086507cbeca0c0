// 100,000 operations, of which one rank makes one differently: the range is found, in whatever way
// the job ends.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <random>
#include <vector>

#include "analyzer/reasoning/finders.h"
#include "analyzer/reasoning/signature_chain.h"
#include "tests/jobs/ranks.h"
#include "tests/unit/plugin/fake_nccl.h"

namespace ringscope::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kOperations = 100000;

enum class Ends { kInOrder, kKilled };
enum class Odd { kNothing, kOtherCount, kOtherFunction, kOneMore };

struct Call {
  const char* func = "AllReduce";
  size_t count = 1024;
};

// Operations of one group, in the order given.
void MakeGroup(testing::Comm& comm, const std::vector<Call>& calls) {
  void* group = comm.Group(calls.size() > 1 ? 2 : 1);
  testing::Comm::State(group, abi::kGroupStartApiStop);
  std::vector<void*> handles;
  for (const Call& call : calls) {
    handles.push_back(comm.CollApi(group, call.func, call.count));
    testing::Comm::Stop(handles.back());
  }
  testing::Comm::State(group, abi::kGroupEndApiStart);
  for (size_t i = 0; i < calls.size(); ++i) {
    handles[i] = comm.Coll(handles[i], 1, calls[i].func, calls[i].count);
    testing::Comm::Stop(handles[i]);
  }
  testing::Comm::Stop(group);
  for (void* handle : handles) comm.Run(handle);
}

// A training loop: buckets of several sizes, a gather now and then, a group whose order differs
// from rank to rank.
void Train(int rank, int ranks, uint64_t at, Odd odd, Ends ends,
           uint64_t operations = kOperations) {
  testing::Comm comm(0xabcdef, rank, ranks, 1);
  std::mt19937_64 random(static_cast<uint64_t>(rank));
  for (uint64_t k = 1; k <= operations;) {
    std::vector<Call> calls;
    for (uint64_t n = k % 50 == 3 ? 4 : 1; n > 0; --n, ++k) {
      Call call{k % 10 == 7 ? "AllGather" : "AllReduce", 1000 + k % 7};
      if (k == at && odd == Odd::kOtherCount) call.count += 1;
      if (k == at && odd == Odd::kOtherFunction) call.func = "ReduceScatter";
      if (k == at && odd == Odd::kOneMore) calls.push_back({"AllReduce", 16});
      calls.push_back(call);
    }
    std::shuffle(calls.begin(), calls.end(), random);
    MakeGroup(comm, calls);
  }
  if (ends == Ends::kKilled) raise(SIGKILL);
  comm.Finalize();
}

struct Case {
  int ranks;
  int odd_rank;
  uint64_t at;
  Odd odd;
  Ends ends;
};

class Divergence : public ::testing::TestWithParam<Case> {};

TEST_P(Divergence, IsBracketed) {
  const Case& c = GetParam();
  Ranks ranks(c.ranks);
  for (int r = 0; r < c.ranks; ++r) {
    ranks.Start(r,
                [&] { Train(r, c.ranks, c.at, r == c.odd_rank ? c.odd : Odd::kNothing, c.ends); });
  }
  ranks.WaitForAll();
  const model::Job job = ranks.Read();
  ASSERT_EQ(job.communicators.size(), 1u);
  const auto divergence = reasoning::FindDivergence(job, job.communicators[0]);
  const auto found = reasoning::FindMismatches(job);
  if (c.odd == Odd::kNothing) {
    EXPECT_FALSE(divergence);
    EXPECT_THAT(found, IsEmpty());
    return;
  }
  ASSERT_TRUE(divergence);
  EXPECT_LT(divergence->agreed, c.at);
  EXPECT_GE(divergence->differed + 4, c.at) << "up to the end of a group of 4";
  EXPECT_LE(divergence->differed - divergence->agreed, 2u * 32768);
  ASSERT_EQ(found.size(), 1u);
  const auto& who = found[0].finding.who().ranks();
  if (c.ranks == 2) {
    EXPECT_THAT(who, IsEmpty()) << "one against one";
  } else {
    EXPECT_THAT(who, ElementsAre(c.odd_rank));
    EXPECT_EQ(found[0].finding.confidence(), Confidence::established);
  }
  EXPECT_FALSE(found[0].stops_job);
  std::string text = found[0].finding.title();
  for (const auto& e : found[0].finding.evidence()) text += "\n" + e.text();
  if (kOperations - c.at < 100) {
    EXPECT_THAT(text, HasSubstr("peration " + std::to_string(c.at)))
        << "the call itself is still kept";
  } else {
    EXPECT_THAT(text, HasSubstr("diverged"));
  }
  EXPECT_EQ(reasoning::Diagnose(job).findings(0).title(), found[0].finding.title());
}

// Each rank runs at its own pace, and the files change while they are read.
TEST(Living, NobodyIsAccusedWhileRead) {
  constexpr int kRanks = 3;
  Ranks ranks(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    ranks.Start(r, [&] { Train(r, kRanks, 0, Odd::kNothing, Ends::kInOrder, uint64_t{1} << 40); });
  }
  ASSERT_TRUE(Eventually([&] { return ranks.AllRecord(); }, 200));
  size_t compared = 0;
  for (int i = 0; i < 100; ++i) {
    const model::Job job = ranks.Read();
    for (const model::Communicator& c : job.communicators) {
      for (const model::Member& m : c.members)
        compared += m.raw != nullptr && m.raw->chain_position() > 64;
    }
    for (const auto& found : reasoning::FindMismatches(job)) {
      ADD_FAILURE() << found.finding.title();
    }
  }
  EXPECT_GT(compared, 100u) << "the chains must have been there";
}

INSTANTIATE_TEST_SUITE_P(Jobs, Divergence,
                         ::testing::Values(Case{8, -1, 0, Odd::kNothing, Ends::kInOrder},
                                           Case{8, 5, 1, Odd::kOtherCount, Ends::kInOrder},
                                           Case{8, 3, 40000, Odd::kOtherCount, Ends::kInOrder},
                                           Case{8, 0, 70001, Odd::kOtherFunction, Ends::kKilled},
                                           Case{8, 7, 99700, Odd::kOtherCount, Ends::kInOrder},
                                           Case{4, 2, 99964, Odd::kOtherCount, Ends::kKilled},
                                           Case{4, 2, 33333, Odd::kOneMore, Ends::kInOrder},
                                           Case{2, 1, 98765, Odd::kOtherCount, Ends::kInOrder},
                                           Case{2, -1, 0, Odd::kNothing, Ends::kKilled}));

}  // namespace
}  // namespace ringscope::jobs
