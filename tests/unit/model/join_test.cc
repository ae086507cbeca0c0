// Joining: records to processes, communicators whose ids repeat, job ranks, edges of relays,
// message counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analyzer/model/ranks_text.h"
#include "recorder/flight/handles.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope {
namespace {

using model::BuildJob;
using model::Record;
using testing::CommRef;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using ::testing::Not;
using ::testing::SizeIs;

TEST(Join, TheFlightFileIsNewerThanItsTraces) {
  JobBuilder b(1);
  b.Comm("world", {0});
  auto records = b.Records();
  Record stall = records[0];
  stall.from_flight_file = false;
  stall.source = "stall.trace";
  stall.trace.set_reason(trace::REASON_STALL);
  Record older = stall;
  older.trace.set_written_ns(stall.trace.written_ns() - 5);
  older.trace.set_sequence(0);
  stall.trace.set_written_ns(stall.trace.written_ns() +
                             5);  // the file's newest sign of life may be a moment earlier
  records.push_back(stall);
  records.insert(records.begin(), older);
  const model::Job job = BuildJob(std::move(records));
  ASSERT_THAT(job.processes, SizeIs(1));
  EXPECT_TRUE(job.processes[0].from_flight_file);
  ASSERT_THAT(job.processes[0].earlier, SizeIs(2));
  EXPECT_LT(job.processes[0].earlier[0].written_ns(), job.processes[0].earlier[1].written_ns());
  EXPECT_THAT(job.inputs, ElementsAre("rank0.flight", "stall.trace", "stall.trace"));
}

TEST(Join, OneNumberTwoProcesses) {  // same pid and start time in two containers
  JobBuilder b(2);
  b.Comm("world", {0, 1});
  b.Record(1).mutable_process()->set_pid(b.Record(0).process().pid());
  b.Record(1).mutable_process()->set_start_ticks(b.Record(0).process().start_ticks());
  EXPECT_THAT(b.Build().processes, SizeIs(2));
}

TEST(Join, AnotherAttemptIsLeftOutAndNamed) {
  JobBuilder b(2);
  b.Comm("world", {0, 1});
  auto records = b.Records();
  JobBuilder before(2, 50);
  before.Comm("world", {0, 1});
  for (auto& r : before.Records()) {
    r.trace.mutable_process()->set_pid(r.trace.process().pid() + 500);
    records.push_back(r);
  }
  for (size_t i = 0; i < 2; ++i) records[i].trace.mutable_process()->set_restart_count(1);
  const model::Job job = BuildJob(std::move(records));
  EXPECT_THAT(job.processes, SizeIs(2));
  EXPECT_THAT(
      job.not_seen,
      Contains(HasSubstr("another job or attempt were left out (without a job id, attempt 0: 2")));
}

// One damaged byte in a job id must not throw the other ranks out, nor its own.
TEST(Join, ARecordThatSharesACommunicatorBelongsToThatJob) {
  for (size_t odd = 0; odd < 3; ++odd) {
    JobBuilder b(3);
    b.Comm("world", {0, 1, 2});
    auto records = b.Records();
    for (auto& r : records) r.trace.mutable_process()->set_job_id("train-7");
    records[odd].trace.mutable_process()->set_job_id("tsain-7");
    const model::Job job = BuildJob(std::move(records));
    EXPECT_THAT(job.processes, SizeIs(3));
    EXPECT_EQ(job.name, "train-7, attempt 0");
    EXPECT_TRUE(job.left_out.empty());
  }
}

TEST(Join, AnEarlierRunWithoutJobIdsIsLeftOut) {
  JobBuilder b(2);
  b.Comm("world", {0, 1});
  auto records = b.Records();
  JobBuilder before(2, -100);  // ended 100 s before this run began
  before.Comm("world", {0, 1});
  for (auto& r : before.Records()) {
    r.trace.mutable_process()->set_pid(r.trace.process().pid() + 500);
    r.trace.mutable_clock()->set_first_realtime_ns(testing::kEpochNs - int64_t{900} * 1000000000);
    r.trace.mutable_clock()->set_first_monotonic_ns(testing::kBootNs - int64_t{900} * 1000000000);
    records.push_back(r);
  }
  const model::Job job = BuildJob(std::move(records));
  EXPECT_THAT(job.processes, SizeIs(2));
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("earlier run were left out (ranks 0,1)")));
}

TEST(Join, TheOrderOfTheRecordsDoesNotMatter) {
  JobBuilder b(6);
  const CommRef w = b.Comm("world", {0, 1, 2, 3, 4, 5});
  b.Comm("a", {0, 2, 4});
  b.Comm("b", {1, 3, 5});
  b.Finish(w, 3);
  const model::Job expected = b.Build();
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    auto records = b.Records();
    std::shuffle(records.begin(), records.end(), random);
    const model::Job job = BuildJob(std::move(records));
    ASSERT_EQ(job.communicators.size(), expected.communicators.size());
    for (size_t c = 0; c < job.communicators.size(); ++c) {
      EXPECT_EQ(job.communicators[c].Label(), expected.communicators[c].Label());
      for (size_t m = 0; m < job.communicators[c].members.size(); ++m) {
        EXPECT_EQ(job.communicators[c].members[m].process,
                  expected.communicators[c].members[m].process);
      }
    }
  }
}

// Two shrinks of one parent share an id and a size. The first left rank 3 out, the second rank 2.
TEST(Join, RepeatedIdsAreToldApartByTheOrderOfCreation) {
  JobBuilder b(4);
  b.Comm("world", {0, 1, 2, 3});
  b.Comm("first", {0, 1, 2}, 0x77);
  b.Comm("second", {0, 1, 3}, 0x77);
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(3));
  EXPECT_EQ(job.communicators[1].name, "first");
  EXPECT_EQ(job.communicators[1].members[2].job_rank, 2);
  EXPECT_EQ(job.communicators[2].name, "second");
  EXPECT_EQ(job.communicators[2].members[2].job_rank, 3);
  EXPECT_EQ(job.communicators[2].instance, 1);
  EXPECT_THAT(job.communicators[2].Label(), HasSubstr("#2"));
}

TEST(Join, RepeatedIdsWithARecordMissing) {
  JobBuilder b(4);
  b.Comm("world", {0, 1, 2, 3});
  b.Comm("first", {0, 1, 2}, 0x77);
  for (int i = 0; i < 100; ++i) b.Comm("", {0});  // time passes: 1 ms each
  b.Comm("second", {0, 1, 3}, 0x77);
  b.Drop(2);
  const model::Job job = b.Build();
  const auto second = std::find_if(job.communicators.begin(), job.communicators.end(),
                                   [](auto& c) { return c.name == "second"; });
  ASSERT_NE(second, job.communicators.end());
  EXPECT_EQ(second->members[2].job_rank, 3);
  EXPECT_TRUE(second->members[2].has_record());
}

TEST(Join, NonsenseRanksAreLeftOut) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  b.Raw(w, 1).set_rank(7);
  auto records = b.Records();
  for (uint32_t n : {0u, 0xffffffffu}) {
    auto& c = *records[0].trace.add_communicators();
    c.set_row(9);
    c.set_n_ranks(n);
    c.set_rank(n - 1);
  }
  const model::Job job = BuildJob(std::move(records));
  EXPECT_THAT(job.communicators, SizeIs(1));
  EXPECT_FALSE(job.communicators[0].members[1].has_record());
  EXPECT_THAT(job.not_seen,
              Contains(HasSubstr("says rank 7-4294967295 of 0-4294967295; it is left out")));
}

TEST(Join, ManyHugeCommunicatorsStaySmall) {
  JobBuilder b(1);
  b.Comm("world", {0});
  auto records = b.Records();
  for (uint32_t i = 0; i < 400; ++i) {
    auto& c = *records[0].trace.add_communicators();
    c.set_row(10 + i);
    c.set_comm_id(1000 + i);
    c.set_n_ranks(1u << 18);
  }
  const model::Job job = BuildJob(std::move(records));
  EXPECT_LE(job.communicators.size(), 20u);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("more communicator members than can be true")));
}

TEST(JobRanks, SeveralRanksInOneProcessTakeThoseOfTheSpanningCommunicator) {
  JobBuilder b(2);  // two processes of two ranks each
  auto records = b.Records();
  const auto add = [](trace::Trace* t, uint32_t row, uint64_t id, uint32_t rank, uint32_t n,
                      uint64_t stream) {
    auto& c = *t->add_communicators();
    c.set_row(row);
    c.set_ordinal(row);
    c.set_comm_id(id);
    c.set_rank(rank);
    c.set_n_ranks(n);
    auto& op = *c.add_operations();
    op.set_position(1);
    op.set_stream(stream);
  };
  for (uint32_t p = 0; p < 2; ++p) {
    trace::Trace* t = &records[p].trace;
    add(t, 0, 1, 2 * p, 4, 100);
    add(t, 1, 1, 2 * p + 1, 4, 101);
    add(t, 2, 20, p, 2, 101);  // {1, 3}: the streams say so, whatever the order
    add(t, 3, 21, p, 2, 100);  // {0, 2}
  }
  const model::Job job = BuildJob(std::move(records));
  ASSERT_THAT(job.communicators, SizeIs(3));
  for (int r = 0; r < 4; ++r)
    EXPECT_EQ(job.communicators[0].members[static_cast<size_t>(r)].job_rank, r);
  EXPECT_EQ(job.processes[0].job_rank, -1);
  const auto ranks_of = [&](uint64_t id) {
    std::vector<int> ranks;
    for (const auto& c : job.communicators) {
      for (const auto& m : c.members) {
        if (c.id == id) ranks.push_back(m.job_rank);
      }
    }
    return ranks;
  };
  EXPECT_THAT(ranks_of(20), ElementsAre(1, 3));
  EXPECT_THAT(ranks_of(21), ElementsAre(0, 2));
  EXPECT_THAT(job.missing_job_ranks, IsEmpty());
  EXPECT_EQ(job.HostOf(3), "host0");
}

TEST(JobRanks, WithoutALauncherTheSpanningCommunicatorTells) {
  JobBuilder b(3);
  b.Comm("world", {2, 0, 1});
  for (int r = 0; r < 3; ++r) {
    b.Record(r).mutable_process()->set_rank(-1);
    b.Record(r).mutable_process()->set_world_size(-1);
  }
  const model::Job job = b.Build();
  EXPECT_EQ(job.world_size, 3);
  for (const auto& m : job.communicators[0].members) EXPECT_EQ(m.job_rank, m.rank);
}

TEST(JobRanks, AbsentMembersOfSeveralMissingRanks) {
  JobBuilder b(8);
  b.Comm("dp", {1, 3, 5, 7});
  b.Comm("tp", {6, 7});
  b.Drop(5).Drop(6).Drop(7);
  const model::Job job = b.Build();
  EXPECT_THAT(job.missing_job_ranks, ElementsAre(5, 6, 7));
  EXPECT_EQ(job.communicators[0].members[2].job_rank, 5);
  EXPECT_EQ(job.communicators[0].members[3].job_rank, 7);
}

TEST(Edges, BothSidesMeet) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  auto edge = b.EdgeOf(w, 0, 1, 3);
  edge.Send(7, 12, trace::SEND_WAIT, 8, 12, 8);
  edge.Recv(7, 12, trace::RECV_WAIT, 8);
  const model::Job job = b.Build();
  ASSERT_THAT(job.edges, SizeIs(1));
  const model::Edge& e = job.edges[0];
  EXPECT_EQ(e.from, 0);
  EXPECT_EQ(e.to, 1);
  EXPECT_EQ(e.channel, 3);
  ASSERT_TRUE(e.sender && e.receiver);
  EXPECT_TRUE(e.sender->open);
  EXPECT_EQ(e.sender->position, 7u);
  EXPECT_EQ(e.sender->raw->posted(), 12u);
  EXPECT_EQ(e.receiver->process, 1);
}

// PXN: rank 1's data leaves through rank 0's process on the same host.
class Relay : public ::testing::Test {
 protected:
  Relay() : b_(4) {
    b_.RanksPerHost(2);
    w_ = b_.Comm("world", {0, 1, 2, 3});
    b_.Raw(w_, 1).set_generation(kCommGeneration);
    trace::Operation& op = b_.Coll(w_, 1, 7).Running().raw();
    op.set_row(kRow);
    op.set_generation(kOpGeneration);
    b_.EdgeOf(w_, 1, 2, 5).Recv(7, 12, trace::RECV_WAIT, 3);
    edge_ = b_.Record(0).add_edges();
    edge_->set_row(9);
    edge_->set_foreign(true);
    edge_->set_communicator(0xffff);
    edge_->set_rank(1);
    edge_->set_peer(2);
    edge_->set_channel(5);
    edge_->set_send(true);
    edge_->set_ops_started(7);
    edge_->set_ops_stopped(6);
    edge_->set_has_current(true);
    edge_->set_current_op_row(kRow & 0xff);
    edge_->set_foreign_context(flight::MakeHandle(
        101, flight::HandleKind::kContext, b_.Raw(w_, 1).row() | uint64_t{kCommGeneration} << 16));
    edge_->set_foreign_parent(OpHandle(101, kRow));
  }
  static uint64_t OpHandle(uint32_t nonce, uint32_t row) {
    return flight::MakeHandle(nonce, flight::HandleKind::kOp,
                              row | uint64_t{kOpGeneration} << 16 | flight::kOpLaunched);
  }
  static constexpr uint32_t kRow = 300, kOpGeneration = 3000000, kCommGeneration = 5;
  JobBuilder b_;
  CommRef w_ = 0;
  trace::Edge* edge_ = nullptr;
};

TEST_F(Relay, FoundByTheHandleOfItsOwner) {
  const model::Job job = b_.Build();
  ASSERT_THAT(job.edges, SizeIs(1));
  ASSERT_TRUE(job.edges[0].sender);
  EXPECT_EQ(job.edges[0].sender->process, 0);
  EXPECT_EQ(job.edges[0].sender->position, 7u);
  EXPECT_FALSE(job.edges[0].sender->position_p2p);
  EXPECT_EQ(job.edges[0].from, 1);
}

TEST_F(Relay, ARowThatHasAnotherOperationByNowIsNoPosition) {
  b_.Raw(w_, 1).mutable_operations(0)->set_generation(kOpGeneration + 1);
  const model::Job job = b_.Build();
  ASSERT_TRUE(job.edges[0].sender) << "the communicator is known all the same";
  EXPECT_EQ(job.edges[0].sender->position, 0u);
}

TEST_F(Relay, AnOwnerRecordOlderThanTheRelaysIsNoPosition) {
  b_.Raw(w_, 1).mutable_operations(0)->set_generation(kOpGeneration - 1);
  EXPECT_EQ(b_.Build().edges[0].sender->position, 0u);
}

TEST_F(Relay, AnOperationInColumnsIsFoundByItsGeneration) {
  b_.Raw(w_, 1).clear_operations();
  auto& older = *b_.Raw(w_, 1).mutable_older();
  older.add_signatures()->set_func(trace::ALL_REDUCE);
  for (uint32_t i = 0; i < 4; ++i) {
    older.add_signature(0);
    older.add_position_delta(i == 0 ? 40 : 1);
    older.add_entered_delta_ns(1000);
    older.add_row(kRow - 2 + i);
  }
  older.add_generation_from(0);
  older.add_generation(kOpGeneration - 1);
  older.add_generation_from(2);
  older.add_generation(kOpGeneration);
  EXPECT_EQ(b_.Build().edges[0].sender->position, 42u);
  older.set_generation_from(1, 3);  // the run of that generation begins behind the row
  EXPECT_EQ(b_.Build().edges[0].sender->position, 0u);
}

TEST_F(Relay, OfSeveralThatWaitTheRunningOneIsNamed) {
  // Operations 7, 8 and 9 are appended, the newest parent is that of 9; the steps that run are 8's.
  for (uint64_t k : {8u, 9u}) {
    auto& raw = b_.Coll(w_, 1, k).Enqueued().raw();
    raw.set_row(kRow + static_cast<uint32_t>(k) - 7);
    raw.set_generation(kOpGeneration);
  }
  edge_->set_foreign_parent(OpHandle(101, kRow + 2));
  edge_->set_ops_started(9);
  edge_->set_current_op_row((kRow + 1) & 0xff);
  EXPECT_EQ(b_.Build().edges[0].sender->position, 8u);
  edge_->set_current_op_row((kRow + 9) & 0xff);
  EXPECT_EQ(b_.Build().edges[0].sender->position, 0u)
      << "an operation that the owner has no record of";
}

TEST_F(Relay, AnEdgeOfACommunicatorThatIsNoMoreIsNobodys) {
  b_.Raw(w_, 1).set_generation(kCommGeneration + 1);
  const auto lost = Contains(HasSubstr("(PXN) could not be joined"));
  model::Job job = b_.Build();
  ASSERT_THAT(job.edges, SizeIs(1));
  EXPECT_FALSE(job.edges[0].sender) << "not guessed by the other end";
  EXPECT_THAT(job.not_seen, lost);
  edge_->set_ops_stopped(7);
  edge_->set_current_stopped(true);
  EXPECT_THAT(b_.Build().not_seen, Not(lost)) << "idle: nothing is missing";
}

TEST_F(Relay, TwoProcessesWithOneNonceAreToldByTheirRank) {
  b_.RanksPerHost(4);
  b_.Record(3).mutable_process()->set_nonce(101);  // same row and generation, rank 3
  b_.Raw(w_, 3).set_generation(kCommGeneration);
  const model::Job job = b_.Build();
  ASSERT_TRUE(job.edges[0].sender);
  EXPECT_EQ(job.edges[0].from, 1);
  EXPECT_EQ(job.edges[0].sender->position, 7u);
}

TEST_F(Relay, TwoProcessesWithOneNonceAndRankAreToldByTheirPeer) {
  // Rank 3 of the job is rank 1 of another communicator, in the same row of its table.
  JobBuilder b(6);
  b.RanksPerHost(6);
  const CommRef one = b.Comm("one", {0, 1, 2}), two = b.Comm("two", {0, 3, 5});
  b.Record(3).mutable_process()->set_nonce(101);
  for (const CommRef c : {one, two}) {
    b.Raw(c, 1).set_generation(kCommGeneration);
    auto& op = b.Coll(c, 1, c == one ? 7 : 70).Running().raw();
    op.set_row(kRow);
    op.set_generation(kOpGeneration);
  }
  b.EdgeOf(two, 1, 2, 5).Recv(70, 12, trace::RECV_WAIT, 3);
  *b.Record(0).add_edges() = *edge_;
  model::Job job = b.Build();
  ASSERT_THAT(job.edges, SizeIs(1));
  ASSERT_TRUE(job.edges[0].sender);
  EXPECT_EQ(job.communicators[static_cast<size_t>(job.edges[0].communicator)].name, "two");
  EXPECT_EQ(job.edges[0].sender->position, 70u);
  // Both peers are there: whose it is cannot be told.
  b.EdgeOf(one, 1, 2, 5).Recv(7, 12, trace::RECV_WAIT, 3);
  job = b.Build();
  for (const auto& e : job.edges) EXPECT_FALSE(e.sender);
}

TEST_F(Relay, ARelayWithTheOwnersNonceIsNotTheOwner) {
  b_.Record(0).mutable_process()->set_nonce(101);
  const model::Job job = b_.Build();
  ASSERT_TRUE(job.edges[0].sender);
  EXPECT_EQ(job.edges[0].sender->position, 7u);
}

TEST_F(Relay, WithoutAContextTheParentNamesTheCommunicator) {
  edge_->set_foreign_context(0);
  b_.Record(2).clear_edges();  // nothing to guess by
  const model::Job job = b_.Build();
  ASSERT_THAT(job.edges, SizeIs(1));
  EXPECT_EQ(job.edges[0].from, 1);
  EXPECT_EQ(job.edges[0].sender->position, 7u);
}

TEST_F(Relay, AnOwnerWithoutARecordIsFoundByTheOtherEnd) {
  b_.Drop(1);
  const model::Job job = b_.Build();
  ASSERT_THAT(job.edges, SizeIs(1));
  ASSERT_TRUE(job.edges[0].sender);
  EXPECT_EQ(job.edges[0].sender->process, 0);
  EXPECT_EQ(job.edges[0].sender->position, 0u);
}

TEST_F(Relay, FoundByItsOtherEndWhenTheHandleSaysNothing) {
  edge_->set_foreign_context(0x7f1234567890);
  edge_->set_foreign_parent(0x7f1234567000);
  const model::Job job = b_.Build();
  ASSERT_THAT(job.edges, SizeIs(1));
  ASSERT_TRUE(job.edges[0].sender);
  EXPECT_EQ(job.edges[0].sender->position, 0u);
}

TEST_F(Relay, NotGuessedWhenTwoCommunicatorsFit) {
  edge_->set_foreign_context(0x7f1234567890);
  edge_->set_foreign_parent(0x7f1234567000);
  const CommRef other = b_.Comm("other", {0, 1, 2, 3});
  b_.EdgeOf(other, 1, 2, 5).Recv(7, 12, trace::RECV_WAIT, 3);
  const model::Job job = b_.Build();
  for (const auto& e : job.edges) EXPECT_FALSE(e.sender);
  EXPECT_THAT(
      job.not_seen,
      Contains(
          "rank 0: 1 edges driven for other processes (PXN) could not be joined to their owner"));
}

TEST_F(Relay, AnotherHostsNonceIsNotTheOwner) {
  edge_->set_foreign_context(
      flight::MakeHandle(102, flight::HandleKind::kContext, b_.Raw(w_, 2).row()));
  edge_->set_foreign_parent(OpHandle(102, kRow));
  b_.Record(1).clear_edges();
  const model::Job job = b_.Build();
  for (const auto& e : job.edges) EXPECT_TRUE(!e.sender || e.from == 1);
}

TEST(Messages, CountsOfBothSides) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  b.Messages(w, 0, 1, true, 6).Messages(w, 1, 0, false, 5).Messages(w, 1, 2, true, 4);
  model::Job job = b.Build();
  ASSERT_THAT(job.messages, SizeIs(2));
  EXPECT_EQ(job.messages[0].sent, 6u);
  EXPECT_EQ(job.messages[0].received, 5u);
  EXPECT_EQ(job.messages[1].received, 0u) << "a record without a row for the peer received nothing";
  b.Drop(2);
  job = b.Build();
  EXPECT_EQ(job.messages[1].received, std::nullopt) << "no record: not known";
}

TEST(Messages, LostRowsMakeACountUnknown) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  b.Messages(w, 0, 1, true, 6);
  auto& counter = *b.Record(1).add_counters();
  counter.set_name("edge_no_row");
  counter.set_value(1);
  counter.set_loss(true);
  EXPECT_EQ(b.Build().messages[0].received, std::nullopt);
}

TEST(Columns, AreExpanded) {
  JobBuilder b(1);
  const CommRef w = b.Comm("world", {0});
  auto& older = *b.Raw(w, 0).mutable_older();
  auto& s = *older.add_signatures();
  s.set_func(trace::BROADCAST);
  s.set_count(10);
  s.set_root(2);
  s.set_from_api(true);
  for (int i = 0; i < 3; ++i) {
    older.add_signature(0);
    older.add_position_delta(1);
    older.add_entered_delta_ns(i == 0 ? 5000 : 100);
    older.add_returned_after_ns(7);
    older.add_started_after_ns(20);
    older.add_duration_ns(30);
    older.add_row(static_cast<uint32_t>(i) + 50);
  }
  older.add_signature(99);  // no such signature
  b.Coll(w, 0, 4).Running();
  const model::Job job = b.Build();
  const model::Member& m = job.communicators[0].members[0];
  ASSERT_THAT(m.ops, SizeIs(4));
  EXPECT_EQ(m.first_kept, 1u);
  const model::Op* op = m.Collective(3);
  ASSERT_NE(op, nullptr);
  EXPECT_FALSE(op->full);
  EXPECT_EQ(op->raw.entered_ns(), 5200);
  EXPECT_EQ(op->raw.returned_ns(), 5207);
  EXPECT_EQ(op->raw.started_ns(), 5220);
  EXPECT_EQ(op->raw.finished_ns(), 5250);
  EXPECT_EQ(op->raw.root(), 2);
  EXPECT_EQ(op->raw.row(), 52u);
  EXPECT_EQ(op->finished, model::Truth::kYes);
  EXPECT_EQ(op->enqueued, model::Truth::kYes);
  EXPECT_EQ(m.Collective(4)->position(), 4u);
}

TEST(RangeText, Compresses) {
  using model::RangeText;
  using model::RanksText;
  EXPECT_EQ(RangeText({}), "");
  EXPECT_EQ(RangeText({5}), "5");
  EXPECT_EQ(RangeText({2, 0, 1, 5, 5}), "0-2,5");
  EXPECT_EQ(RangeText({0, 1, 4}), "0,1,4");
  EXPECT_EQ(RangeText({0, 4, 8, 12, 13}), "0-12/4,13");
  EXPECT_EQ(RanksText({3}), "rank 3");
  EXPECT_EQ(RanksText({3, 4}), "ranks 3,4");
  std::vector<int> all;
  for (int i = 0; i < 16384; ++i) all.push_back(i);
  EXPECT_EQ(RangeText(all), "0-16383");
  std::vector<int> odd;
  for (int i = 0; i < 100; ++i) odd.push_back(i * i);
  EXPECT_THAT(RangeText(odd), HasSubstr(",... (100 ranks)"));
}

}  // namespace
}  // namespace ringscope
