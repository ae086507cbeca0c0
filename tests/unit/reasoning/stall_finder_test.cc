#include "analyzer/reasoning/stall_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/reasoning/hang_jobs.h"

namespace ringscope::reasoning {
namespace {

using testing::As;
using testing::HangCase;
using testing::HangCases;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using testing::Same;
using ::testing::UnorderedElementsAre;

struct Who {
  std::set<int> ranks;
  std::set<std::pair<int, int>> edges;
  std::set<std::string> hosts;
  bool operator==(const Who&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Who& who) {
  for (int r : who.ranks) out << " rank " << r;
  for (const auto& [from, to] : who.edges) out << " edge " << from << "->" << to;
  for (const auto& h : who.hosts) out << " host " << h;
  return out;
}

Who WhoOf(const Finding& f) {
  Who who;
  who.ranks = {f.who().ranks().begin(), f.who().ranks().end()};
  for (const EdgeName& e : f.who().edges()) who.edges.insert({e.from(), e.to()});
  who.hosts = {f.who().hosts().begin(), f.who().hosts().end()};
  return who;
}
Who Expected(const HangCase& c, const As& as) {
  Who who;
  for (int r : c.who) who.ranks.insert(as[static_cast<size_t>(r)]);
  for (const auto& [from, to] : c.edges)
    who.edges.insert({as[static_cast<size_t>(from)], as[static_cast<size_t>(to)]});
  who.hosts = c.hosts;
  return who;
}

JobBuilder Builder(const HangCase& c, const As& as) {
  JobBuilder b(c.ranks);
  c.build(b, as);
  return b;
}

class Hang : public ::testing::TestWithParam<int> {
 protected:
  const HangCase& c = HangCases()[static_cast<size_t>(GetParam())];
};

TEST_P(Hang, IsNamed) {
  SCOPED_TRACE(c.name);
  const As as = Same(c.ranks);
  const Diagnosis d = Diagnose(Builder(c, as).Build());
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.state(), State::hang);
  const Finding& f = d.findings(0);
  EXPECT_EQ(Kind::Value_Name(f.kind()), Kind::Value_Name(c.kind)) << f.title();
  EXPECT_EQ(WhoOf(f), Expected(c, as)) << f.title();
  EXPECT_FALSE(f.title().empty());
  EXPECT_FALSE(f.refuted_by().empty());
  EXPECT_FALSE(f.next().text().empty());
  EXPECT_FALSE(f.next().command().empty());
  EXPECT_EQ(f.cause().id(), "not established");
  EXPECT_TRUE(std::any_of(f.evidence().begin(), f.evidence().end(), [](const Evidence& e) {
    return e.rank() >= 0;
  })) << "cites no record";
  for (int rank : f.collateral().ranks()) EXPECT_EQ(WhoOf(f).ranks.count(rank), 0u);
}

TEST_P(Hang, IsTheSameWithRanksRenamed) {
  SCOPED_TRACE(c.name);
  std::mt19937 random(11);
  for (int round = 0; round < 4; ++round) {
    As as = Same(c.ranks);
    std::shuffle(as.begin(), as.end(), random);
    const Diagnosis d = Diagnose(Builder(c, as).Build());
    ASSERT_GE(d.findings_size(), 1);
    EXPECT_EQ(d.findings(0).kind(), c.kind) << d.findings(0).title();
    EXPECT_EQ(WhoOf(d.findings(0)), Expected(c, as)) << d.findings(0).title();
  }
}

TEST_P(Hang, DoesNotDependOnTheOrderOfTheRecords) {
  SCOPED_TRACE(c.name);
  const JobBuilder b = Builder(c, Same(c.ranks));
  const Diagnosis first = Diagnose(b.Build());
  auto records = b.Records();
  std::reverse(records.begin(), records.end());
  const Diagnosis second = Diagnose(model::BuildJob(std::move(records)));
  ASSERT_EQ(first.findings_size(), second.findings_size());
  for (int i = 0; i < first.findings_size(); ++i) {
    EXPECT_EQ(first.findings(i).kind(), second.findings(i).kind());
    EXPECT_EQ(WhoOf(first.findings(i)), WhoOf(second.findings(i)));
    EXPECT_EQ(first.findings(i).confidence(), second.findings(i).confidence());
  }
}

// Right, or undetermined and naming the record that is missing; never another rank.
TEST_P(Hang, WithOneRecordMissingNobodyElseIsAccused) {
  SCOPED_TRACE(c.name);
  const As as = Same(c.ranks);
  for (int dropped = 0; dropped < c.ranks; ++dropped) {
    SCOPED_TRACE(dropped);
    JobBuilder b = Builder(c, as);
    b.Drop(dropped);
    const Diagnosis d = Diagnose(b.Build());
    ASSERT_GE(d.findings_size(), 1);
    const Finding& f = d.findings(0);
    if (f.kind() == Kind::undetermined) {
      EXPECT_EQ(WhoOf(f), Who()) << f.title();
      if (c.who.count(dropped) > 0) {
        EXPECT_THAT(f.title() + f.next().text(), HasSubstr("rank " + std::to_string(dropped)));
      }
      continue;
    }
    // Without the rank that saw its lock, gone and frozen are not told apart.
    const bool lost = c.kind == Kind::process_stopped && f.kind() == Kind::process_exited &&
                      f.confidence() == Confidence::possible;
    EXPECT_TRUE(lost || f.kind() == c.kind) << f.title();
    const Who got = WhoOf(f), want = Expected(c, as);
    // A cycle without its odd member, or some of several edges: less may be named, nothing else.
    EXPECT_TRUE(
        std::includes(want.ranks.begin(), want.ranks.end(), got.ranks.begin(), got.ranks.end()))
        << f.title() << got;
    EXPECT_TRUE(
        std::includes(want.edges.begin(), want.edges.end(), got.edges.begin(), got.edges.end()))
        << f.title() << got;
    EXPECT_TRUE(
        std::includes(want.hosts.begin(), want.hosts.end(), got.hosts.begin(), got.hosts.end()))
        << f.title() << got;
  }
}

// Records of processes that were all ended while things moved: the same job, but the last progress
// was a moment ago.
TEST_P(Hang, IsNotClaimedOfAJobThatWasEndedInMidFlight) {
  SCOPED_TRACE(c.name);
  if (c.name.find("abort") != std::string::npos) GTEST_SKIP() << "an abort is an end of its own";
  const As as = Same(c.ranks);
  JobBuilder b = Builder(c, as);
  for (int r = 0; r < c.ranks; ++r) {
    trace::Trace& t = b.Record(r);
    if (t.liveness().clean()) GTEST_SKIP() << "has an end of its own";
    int64_t last = 0;
    for (int other = 0; other < c.ranks; ++other) {
      for (const auto& comm : b.Record(other).communicators()) {
        for (const auto& op : comm.operations()) last = std::max(last, op.entered_ns());
      }
    }
    b.LastSeen(r, static_cast<double>(last - testing::kBootNs) / 1e9 + 0.5);
    t.clear_siblings();
  }
  const Diagnosis d = Diagnose(b.Build());
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::undetermined) {
      EXPECT_EQ(WhoOf(f), Who());
    } else {
      EXPECT_NE(f.kind(), c.kind) << f.title();
    }
  }
}

std::vector<int> All() { return Same(static_cast<int>(HangCases().size())); }
INSTANTIATE_TEST_SUITE_P(Cases, Hang, ::testing::ValuesIn(All()), [](const auto& which) {
  std::string name = HangCases()[static_cast<size_t>(which.param)].name;
  std::replace_if(
      name.begin(), name.end(),
      [](char ch) { return !std::isalnum(static_cast<unsigned char>(ch)); }, '_');
  return std::to_string(which.param) + "_" + name;
});

// ---- What must not be said
Finding First(const JobBuilder& b) {
  const Diagnosis d = Diagnose(b.Build());
  return d.findings_size() > 0 ? d.findings(0) : Finding();
}

TEST(StallFinder, RanksOfTheHostThatStandsStillDoNotOnlyWait) {
  JobBuilder b(8);
  testing::TwoHostsJob(b, Same(8));
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_THAT(d.findings(0).who().hosts(), UnorderedElementsAre("hostA"));
  EXPECT_THAT(d.findings(0).collateral().ranks(), UnorderedElementsAre(4, 5, 6, 7));
}

TEST(StallFinder, UnknownStreamsAccuseNoGpuOfACycle) {
  // As below profiler API v5: neither call nor stream is told.
  JobBuilder b(4);
  testing::CycleJob(b, Same(4));
  for (int r = 0; r < 4; ++r) {
    for (auto& comm : *b.Record(r).mutable_communicators()) {
      for (auto& op : *comm.mutable_operations()) {
        op.clear_stream();
        op.clear_from_api();
      }
    }
  }
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::communicator_cycle);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
  EXPECT_THAT(d.findings(0).who().ranks(), UnorderedElementsAre(2));
  for (const Finding& f : d.findings()) EXPECT_NE(f.kind(), Kind::gpu_stalled);
}

TEST(StallFinder, HalfThatHasNotEnteredIsNotAccused) {
  JobBuilder b(4);
  const auto w = testing::World(b, Same(4), 10);
  for (int r : {0, 1}) b.Coll(w, r, 11).Running();
  const Finding f = First(b);
  EXPECT_EQ(f.kind(), Kind::undetermined);
  EXPECT_EQ(WhoOf(f), Who());
  EXPECT_THAT(f.title(), HasSubstr("2 of 4 ranks"));
}

TEST(StallFinder, ChannelsThatPointToDifferentPlacesAreUndetermined) {
  JobBuilder b(4);
  const auto w = testing::World(b, Same(4), 10);
  testing::RunAll(b, w, 4, 11);
  // Channel 0: GPU of rank 3. Channel 1: GPU of rank 1.
  const auto edge = [&](int from, int to, uint32_t ch, testing::Step s, testing::Step r) {
    auto e = b.EdgeOf(w, from, to, ch);
    e.Send(11, 12, s.state, s.done, s.posted, s.moved);
    e.Recv(11, 12, r.state, r.done, r.posted, r.moved);
  };
  for (uint32_t ch : {0u, 1u}) {
    const int stuck = ch == 0 ? 3 : 1;
    for (int r = 0; r < 4; ++r) {
      const int next = (r + 1) % 4;
      edge(r, next, ch, testing::Owes(next == stuck ? 5 : 1),
           next == stuck ? testing::Full(1) : testing::Waits(1));
    }
  }
  const Finding f = First(b);
  EXPECT_EQ(f.kind(), Kind::undetermined);
  EXPECT_EQ(WhoOf(f), Who());
}

TEST(StallFinder, UnequalStepsAreNoStalledEdge) {
  JobBuilder b(2);
  const auto w = testing::World(b, Same(2), 10);
  testing::RunAll(b, w, 2, 11);
  b.EdgeOf(w, 0, 1).Send(11, 60, trace::SEND_WAIT, 4, 8, 8).Recv(11, 12, trace::RECV_WAIT, 4, 8, 4);
  EXPECT_EQ(First(b).kind(), Kind::undetermined);
}

TEST(StallFinder, BackPressureOnASocketIsNoStalledEdge) {
  // SendWait with a receiver that has data and does not take it.
  JobBuilder b(4);
  const auto w = testing::World(b, Same(4), 10);
  testing::RunAll(b, w, 4, 11);
  testing::RingEdge(b, w, 0, 1, 11, testing::OnWire(2), testing::Full(2));
  testing::RingEdge(b, w, 1, 2, 11, testing::OnWire(2), testing::Full(2));
  testing::RingEdge(b, w, 2, 3, 11, testing::OnWire(2), testing::Full(2));
  testing::RingEdge(b, w, 3, 0, 11, testing::Owes(2), testing::Waits(2));
  const Finding f = First(b);
  EXPECT_EQ(f.kind(), Kind::gpu_stalled);
  EXPECT_EQ(WhoOf(f).ranks, std::set<int>{3});
}

TEST(StallFinder, NothingOpenIsHealthy) {
  JobBuilder b(4);
  testing::World(b, Same(4), 10);
  const Diagnosis d = Diagnose(b.Build());
  EXPECT_EQ(d.findings_size(), 0);
  EXPECT_EQ(d.state(), State::healthy);
}

TEST(StallFinder, EnqueuedWithHiddenCompletionIsNoStall) {
  JobBuilder b(2);
  b.RanksPerHost(1);
  const auto w = b.Comm("world", {0, 1}, 0, false);
  for (int r : {0, 1}) {
    for (uint64_t k = 1; k <= 5; ++k) b.Coll(w, r, k).Enqueued();
  }
  EXPECT_EQ(Diagnose(b.Build()).findings_size(), 0);
}

TEST(StallFinder, OneRecordOfBeforeAndOneOfAfterTheMoveAreNoLostData) {
  for (const double moved : {20.0, 99.9}) {
    JobBuilder b(2);
    b.RanksPerHost(1);
    const auto w = b.Comm("world", {0, 1}, 0, false);
    for (int r : {0, 1}) b.Coll(w, r, 1).Enqueued();
    auto edge = b.EdgeOf(w, 0, 1);
    edge.Send(1, 12, trace::SEND_GPU_WAIT, 2, 6, 2).ChangedAt(moved).Recv(1, 12, trace::RECV_WAIT, 0, 4, 0).ChangedAt(1);
    b.EdgeOf(w, 1, 0).Send(1, 12, trace::SEND_GPU_WAIT, 0, 4, 0).ChangedAt(1).Recv(1, 12, trace::RECV_WAIT, 0, 4, 0).ChangedAt(1);
    const Diagnosis d = Diagnose(b.Build());
    int accused = 0;
    for (const Finding& f : d.findings()) accused += f.kind() == Kind::edge_stalled ? 1 : 0;
    EXPECT_EQ(accused, moved < 30 ? 1 : 0) << moved;
  }
}

TEST(StallFinder, WhoMovedOnInTheSameCommunicatorShowsThatItMoves) {
  // Rank 1's record is two seconds newer: it has gone on to later operations, which move.
  for (const double moved : {20.0, 99.9}) {
    JobBuilder b(2);
    b.RanksPerHost(1);
    const auto w = b.Comm("world", {0, 1}, 0, false);
    b.Coll(w, 0, 1).Enqueued();
    for (uint64_t p : {1, 2, 3}) b.Coll(w, 1, p).Enqueued();
    b.EdgeOf(w, 1, 0).Send(1, 12, trace::STEP_FREE, 12, 12, 12).ChangedAt(12).Recv(1, 12, trace::RECV_WAIT, 0, 4, 0).ChangedAt(1);
    b.Raw(w, 1).set_last_progress_ns(testing::OpBuilder::Ns(moved));
    int accused = 0;
    const Diagnosis d = Diagnose(b.Build());
    for (const Finding& f : d.findings()) accused += f.kind() == Kind::edge_stalled ? 1 : 0;
    EXPECT_EQ(accused, moved < 30 ? 1 : 0) << moved;
  }
}

std::vector<Finding> AllFindings(const JobBuilder& b) {
  const Diagnosis d = Diagnose(b.Build());
  return {d.findings().begin(), d.findings().end()};
}

TEST(StallFinder, WhoEndedInOrderASecondAfterTheOtherRecordHadMoved) {
  JobBuilder b(2);
  b.RanksPerHost(1);
  const auto w = b.Comm("world", {0, 1}, 0, false);
  b.Finish(w, 0, 2);
  b.Coll(w, 1, 1).Enqueued();
  b.EdgeOf(w, 0, 1).Send(2, 12, trace::STEP_FREE, 12, 12, 12).ChangedAt(101).Recv(1, 12, trace::RECV_WAIT, 0, 4, 0).ChangedAt(1);
  b.Trace(0, trace::REASON_EXIT, 101.5).Clean(0);
  b.Raw(w, 0).set_finalized_ns(testing::OpBuilder::Ns(101.4));
  for (const Finding& f : AllFindings(b)) EXPECT_EQ(f.kind(), Kind::undetermined) << f.title();
}

TEST(StallFinder, QueueThatIsNotVisibleAccusesNoGpu) {
  // Table v2. Rank 0 has not filled its send to rank 2; what it has before in its queue is an all-reduce with its neighbour, of which
  // nothing tells whether it is over.
  for (const bool neighbour : {true, false}) {
    JobBuilder b(4);
    b.RanksPerHost(2);
    const auto w = b.Comm("pipeline", {0, 1, 2, 3}, 0, false), tp = b.Comm("tp", {0, 1}, 0, false);
    if (neighbour) {
      for (int r : {0, 1}) b.Coll(tp, r, 1, 9).Enqueued().raw().set_unfinished(false);
    }
    b.P2p(w, 0, 1, true, 2, 10).Enqueued();
    b.P2p(w, 2, 1, false, 0, 10).Enqueued();
    b.Messages(w, 0, 2, true, 1).Messages(w, 2, 0, false, 1);
    auto edge = b.EdgeOf(w, 0, 2);
    edge.P2p().Send(1, 12, trace::SEND_GPU_WAIT, 0, 4).Recv(1, 12, trace::RECV_WAIT, 0, 4);
    int accused = 0;
    const Diagnosis d = Diagnose(b.Build());
    for (const Finding& f : d.findings()) accused += f.kind() == Kind::gpu_stalled ? 1 : 0;
    EXPECT_EQ(accused, neighbour ? 0 : 1);
  }
}

TEST(StallFinder, KernelEventsThatNeverCameAreNoStall) {
  JobBuilder b(2);
  b.RanksPerHost(1);
  const auto w = b.Comm("world", {0, 1});
  for (int r : {0, 1}) {
    for (uint64_t k = 1; k <= 5; ++k) b.Coll(w, r, k).Enqueued();
  }
  testing::AbortAll(b, w, 2, 60);
  EXPECT_EQ(Diagnose(b.Build()).findings_size(), 0);
}

TEST(StallFinder, QueueThatMovesIsNoStall) {
  // Rank 1's operation waits behind a queue of another communicator that moves.
  JobBuilder b(2);
  b.RanksPerHost(1);
  const auto w = b.Comm("world", {0, 1}), x = b.Comm("other", {0, 1});
  b.Finish(w, 3);
  for (int r : {0, 1}) {
    b.Coll(w, r, 4, 5).Enqueued();
    b.Coll(x, r, 1, 4).Kernel(10, 99.5);
    b.Coll(x, r, 2, 4.5).Running().raw().set_started_ns(testing::OpBuilder::Ns(99.6));
    b.Raw(x, r).set_last_progress_ns(testing::OpBuilder::Ns(99.6));
    b.Record(r).mutable_liveness()->set_lock_known(true);  // the job lives
    b.Record(r).mutable_liveness()->set_lock_held(true);
  }
  EXPECT_EQ(First(b).kind(), Kind::none);
}

TEST(StallFinder, MissingRanksAreGivenAsTheJobNumbersThem) {
  // "tp" of ranks 2 and 3: its rank 1 is rank 3 of the job.
  JobBuilder b(4);
  testing::NestedJob(b, Same(4));
  const Finding f = First(b);
  EXPECT_EQ(WhoOf(f).ranks, std::set<int>{3});
  std::string chain;
  for (const Evidence& e : f.evidence()) chain += e.text() + "\n";
  EXPECT_THAT(chain, HasSubstr("rank 0 waits in AllReduce #6 of dp"));
  EXPECT_THAT(chain, HasSubstr("on rank 2 AllReduce #6 of dp"));
  EXPECT_THAT(chain, HasSubstr("rank 2 waits in AllReduce #6 of tp"));
  EXPECT_EQ(std::set<int>(f.collateral().ranks().begin(), f.collateral().ranks().end()),
            (std::set<int>{0, 1, 2}));
}

TEST(StallFinder, TornRecordLowersConfidence) {
  JobBuilder b(4);
  testing::SkipJob(b, Same(4));
  auto records = b.Records();
  records[0].torn = true;
  const Diagnosis d = Diagnose(model::BuildJob(std::move(records)));
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
}

// ---- Hostile and partial records: whatever is taken away or broken, nothing crashes and every
// finding is whole.
TEST(StallFinder, RandomDamageNeverCrashes) {
  std::mt19937 random(3);
  const auto pick = [&](int n) {
    return n > 0 ? static_cast<int>(random() % static_cast<unsigned>(n)) : 0;
  };
  for (int round = 0; round < 600; ++round) {
    const HangCase& c =
        HangCases()[static_cast<size_t>(pick(static_cast<int>(HangCases().size())))];
    auto records = Builder(c, Same(c.ranks)).Records();
    for (int n = 1 + pick(8); n > 0; --n) {
      trace::Trace& t = records[static_cast<size_t>(pick(static_cast<int>(records.size())))].trace;
      switch (pick(10)) {
        case 0:
          t.clear_edges();
          break;
        case 1:
          t.clear_communicators();
          break;
        case 2:
          t.mutable_process()->set_rank(pick(3) - 1);
          break;
        case 3:
          for (auto& e : *t.mutable_edges()) {
            e.set_peer(static_cast<uint32_t>(random()));
            e.set_current_position(random());
          }
          break;
        case 4:
          for (auto& comm : *t.mutable_communicators())
            comm.set_n_ranks(static_cast<uint32_t>(1 + pick(5)));
          break;
        case 5:
          for (auto& comm : *t.mutable_communicators()) {
            for (auto& op : *comm.mutable_operations()) {
              op.set_position(pick(2) ? random() : op.position());
              op.set_entered_ns(static_cast<int64_t>(random()) << 31);
              op.set_peer(pick(9) - 4);
            }
          }
          break;
        case 6:
          t.mutable_settings()->Clear();
          break;
        case 7:
          t.mutable_clock()->set_realtime_ns(static_cast<int64_t>(random()) << 30);
          break;
        case 8:
          for (auto& comm : *t.mutable_communicators()) {
            if (comm.operations_size() > 0) comm.mutable_operations()->RemoveLast();
            comm.set_finalized_ns(pick(2) ? static_cast<int64_t>(random()) : 0);
          }
          break;
        default:
          t.Clear();
          break;
      }
    }
    const Diagnosis d = Diagnose(model::BuildJob(std::move(records)));
    for (const Finding& f : d.findings()) {
      EXPECT_FALSE(f.title().empty());
      for (uint32_t i : f.explains()) EXPECT_LT(i, static_cast<uint32_t>(d.findings_size()));
    }
  }
}

}  // namespace
}  // namespace ringscope::reasoning
