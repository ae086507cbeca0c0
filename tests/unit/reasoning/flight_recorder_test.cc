// From dumps of PyTorch's flight recorder to findings; and what its own analyzer printed.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'780'000'000 * kSecond;

// Dumps of a job, call by call.
class Dumps {
 public:
  explicit Dumps(int ranks) : entries_(ranks), numbers_(ranks), messages_(ranks) {
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    Group("0", "default_pg", all);
  }
  void Group(const std::string& name, const std::string& description, std::vector<int> ranks) {
    order_.push_back(name);
    groups_[name] = {description, std::move(ranks)};
  }
  // `started` and `completed`: seconds after the call at which that was noticed; 0 not.
  Dumps& Call(int rank, const std::string& group, const std::string& state, int64_t size = 16,
              const std::string& name = "all_reduce", int64_t out = 0, double started = 0, bool retired = true) {
    ++numbers_[rank][group];
    return Add(rank, group, "nccl:" + name, state, size, out, false, started, retired);
  }
  Dumps& All(const std::string& group = "0", const std::string& state = "completed", int64_t size = 16) {
    for (const int r : groups_[group].second) Call(r, group, state, size);
    return *this;
  }
  Dumps& Message(int rank, int peer, bool send, const std::string& state) {
    ++messages_[rank];
    return Add(rank, "0", absl::StrCat("nccl:", send ? "send " : "recv ", rank, send ? "->" : "<-", peer), state, 16, 0, true, 0,
               true);
  }
  void Forget(int rank, size_t oldest) {
    entries_[rank].erase(entries_[rank].begin(), entries_[rank].begin() + static_cast<long>(oldest));
  }

  model::Job Job(const std::set<int>& leave_out = {}) const {
    std::vector<model::Record> records;
    model::Evidence evidence;
    for (size_t r = 0; r < entries_.size(); ++r) {
      if (leave_out.count(static_cast<int>(r))) continue;
      std::vector<std::string> config;
      for (const auto& [name, group] : groups_) {
        if (std::count(group.second.begin(), group.second.end(), static_cast<int>(r)) == 0) continue;
        config.push_back(absl::StrCat("\"", name, R"(":{"name":")", name, R"(","desc":")", group.first, R"(","ranks":"[)",
                                      absl::StrJoin(group.second, ", "), "]\"}"));
      }
      const std::string dump = absl::StrCat(R"({"version":"2.10","pg_config":{)", absl::StrJoin(config, ","), R"(},"entries":[)",
                                            absl::StrJoin(entries_[r], ","), "]}");
      EXPECT_TRUE(ingest::ReadTextBytes(absl::StrCat("nccl_trace_rank_", r), dump, &evidence, &records).ok());
    }
    model::Job job = model::BuildJob(std::move(records));
    job.evidence = std::move(evidence);
    return job;
  }
  Diagnosis Diagnosed(const std::set<int>& leave_out = {}) const { return Diagnose(Job(leave_out)); }

 private:
  Dumps& Add(int rank, const std::string& group, const std::string& name, const std::string& state, int64_t size, int64_t out,
             bool p2p, double started, bool retired) {
    const int64_t created = kStart + static_cast<int64_t>(numbers_[rank]["#"]++) * 2'000'000;
    const bool done = state == "completed";
    entries_[rank].push_back(absl::StrCat(
        R"({"record_id":)", numbers_[rank]["#"] - 1, R"(,"pg_id":)",
        std::find(order_.begin(), order_.end(), group) - order_.begin(), R"(,"process_group":[")", group, R"(",")",
        groups_[group].first, R"("],"collective_seq_id":)", numbers_[rank][group], R"(,"p2p_seq_id":)", messages_[rank],
        R"(,"profiling_name":")", name, R"(","time_created_ns":)", created, R"(,"input_sizes":[[)", size,
        R"(]],"output_sizes":[[)", out == 0 ? size : out, R"(]],"input_dtypes":["Float"],"output_dtypes":["Float"],"state":")",
        state, R"(","time_discovered_started_ns":)",
        started != 0      ? created + static_cast<int64_t>(started * 1e9)
        : timing_ && done ? created + 1'000'000
                          : 0,
        R"(,"time_discovered_completed_ns":)", done ? created + 1'000'500 : 0, R"(,"retired":)",
        done && retired ? "true" : "false", R"(,"timeout_ms":600000,"is_p2p":)", p2p ? "true" : "false",
        R"(,"frames":[{"name":"step","filename":"train.py","line":)", 100 + rank, "}]}"));
    return *this;
  }

  std::vector<std::vector<std::string>> entries_;
  std::vector<std::map<std::string, int64_t>> numbers_;
  std::vector<int64_t> messages_;
  std::map<std::string, std::pair<std::string, std::vector<int>>> groups_;
  std::vector<std::string> order_;

 public:
  bool timing_ = false;
};

std::vector<int> Ranks(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }
std::string Texts(const Finding& f) {
  std::string all;
  for (const Evidence& e : f.evidence()) absl::StrAppend(&all, e.text(), "\n");
  return all;
}
Dumps Steady(int ranks, int steps = 10) {
  Dumps d(ranks);
  for (int i = 0; i < steps; ++i) d.All();
  return d;
}

TEST(FlightRecorderDumps, AllOverIsHealthy) {
  const Diagnosis d = Steady(8).Diagnosed();
  EXPECT_EQ(d.state(), State::healthy);
  EXPECT_THAT(d.findings(), IsEmpty());
  EXPECT_EQ(d.ranks_seen(), 8u);
}

TEST(FlightRecorderDumps, ARankThatHasNotCome) {
  Dumps d = Steady(8);
  for (int r = 0; r < 8; ++r) {
    if (r != 0) d.Call(r, "0", "scheduled");  // the first dump that is read is the odd one
  }
  const Diagnosis diagnosis = d.Diagnosed();
  ASSERT_GE(diagnosis.findings_size(), 1);
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(Ranks(diagnosis.findings(0)), ElementsAre(0));
  EXPECT_THAT(Texts(diagnosis.findings(0)), HasSubstr("(nccl:all_reduce, called by step at train.py:100)"));
  EXPECT_THAT(Texts(diagnosis.findings(0)), HasSubstr("TORCH_NCCL_ENABLE_TIMING"));  // nothing shows for how long
}

// Nested groups: the end of the waiting is named, not the first rank that is late.
TEST(FlightRecorderDumps, TheWaitingIsFollowedThroughGroups) {
  Dumps d(4);
  d.Group("1", "TP", {0, 1});
  d.Group("2", "TP", {2, 3});
  d.Group("3", "DP", {0, 2});
  d.Group("4", "DP", {1, 3});
  for (int i = 0; i < 5; ++i) d.All("1").All("2").All("3").All("4");
  d.All("1").Call(2, "2", "scheduled").Call(0, "3", "scheduled").Call(1, "4", "scheduled");
  const Diagnosis diagnosis = d.Diagnosed();
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(Ranks(diagnosis.findings(0)), ElementsAre(3));
  EXPECT_EQ(diagnosis.findings_size(), 1);
}

TEST(FlightRecorderDumps, RingsThatStartApartAreComparedByNumber) {
  Dumps d = Steady(4, 30);
  for (int r : {0, 1, 3}) d.Call(r, "0", "scheduled");
  d.Forget(1, 7);
  d.Forget(3, 22);
  const Diagnosis diagnosis = d.Diagnosed();
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(Ranks(diagnosis.findings(0)), ElementsAre(2));
}

TEST(FlightRecorderDumps, ASizeThatDiffersIsTheMinoritys) {
  for (const int odd : {0, 2}) {
    Dumps d = Steady(4);
    for (int r = 0; r < 4; ++r) d.Call(r, "0", "scheduled", r == odd ? 1025 : 262144);
    const Diagnosis diagnosis = d.Diagnosed();
    EXPECT_EQ(diagnosis.findings(0).kind(), Kind::size_mismatch);
    EXPECT_THAT(Ranks(diagnosis.findings(0)), ElementsAre(odd));
    EXPECT_THAT(Texts(diagnosis.findings(0)), HasSubstr(absl::StrCat("train.py:", 100 + odd)));
  }
}

TEST(FlightRecorderDumps, HalfAgainstHalfAccusesNobody) {
  Dumps d = Steady(4);
  for (int r = 0; r < 4; ++r) d.Call(r, "0", "scheduled", r < 2 ? 1025 : 262144);
  const Diagnosis diagnosis = d.Diagnosed();
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::size_mismatch);
  EXPECT_THAT(Ranks(diagnosis.findings(0)), IsEmpty());
}

TEST(FlightRecorderDumps, UnevenSplitsAreNoMismatch) {
  Dumps d = Steady(3);
  for (int r = 0; r < 3; ++r) d.Call(r, "0", "completed", 10 + r, "all_to_all", 12 - r);
  for (int r = 0; r < 3; ++r) d.Call(r, "0", "completed", r == 0 ? 1 : 30, "scatter", 10);
  for (int r = 0; r < 3; ++r) d.Call(r, "0", "completed", 10, "gather", r == 0 ? 30 : 1);
  EXPECT_THAT(d.Diagnosed().findings(), IsEmpty());
}

// Every rank's splits may be its own, but what all send is what all receive.
TEST(FlightRecorderDumps, AllToAllThatDoesNotAddUp) {
  Dumps d = Steady(3);
  for (int r = 0; r < 3; ++r) d.Call(r, "0", "scheduled", 10 + r, "all_to_all", 12);
  const Diagnosis diagnosis = d.Diagnosed();
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::size_mismatch);
  EXPECT_THAT(Ranks(diagnosis.findings(0)), IsEmpty());
  EXPECT_THAT(diagnosis.findings(0).title(), HasSubstr("33"));
  // With one dump missing nothing can be added up.
  const Diagnosis without = d.Diagnosed({1});
  for (const Finding& f : without.findings()) EXPECT_NE(f.kind(), Kind::size_mismatch);
}

TEST(FlightRecorderDumps, TheOneThatHasNotStartedWhereTheOthersHave) {
  Dumps d(4);
  d.timing_ = true;
  for (int i = 0; i < 10; ++i) d.All();
  for (int r = 0; r < 4; ++r) d.Call(r, "0", r == 2 ? "scheduled" : "started", 16, "all_reduce", 0, r == 2 ? 0 : 600);
  const Diagnosis diagnosis = d.Diagnosed();
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::gpu_stalled);
  EXPECT_THAT(Ranks(diagnosis.findings(0)), ElementsAre(2));
  EXPECT_THAT(Texts(diagnosis.findings(0)), Not(HasSubstr("TORCH_NCCL_ENABLE_TIMING")));
}

TEST(FlightRecorderDumps, TheOneThatRunsAmongThoseThatDoNotIsNotAccused) {
  Dumps d(4);
  d.timing_ = true;
  for (int i = 0; i < 10; ++i) d.All();
  for (int r = 0; r < 4; ++r) d.Call(r, "0", r == 2 ? "started" : "scheduled", 16, "all_reduce", 0, r == 2 ? 600 : 0);
  const Diagnosis diagnosis = d.Diagnosed();
  for (const Finding& f : diagnosis.findings()) EXPECT_THAT(Ranks(f), Not(::testing::Contains(2)));
}

TEST(FlightRecorderDumps, AllHaveComeAndNothingTellsMore) {
  Dumps d = Steady(4);
  d.All("0", "scheduled");
  const Diagnosis diagnosis = d.Diagnosed();
  ASSERT_EQ(diagnosis.findings_size(), 1);
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(diagnosis.findings(0).title(), HasSubstr("do not tell for how long"));
}

// The recorder saw operations end while the dump was taken, and others start: what is open had been called a moment before.
TEST(FlightRecorderDumps, ADumpOfARunningJobAccusesNobody) {
  Dumps d(4);
  d.timing_ = true;
  for (int i = 0; i < 10; ++i) d.All();
  for (int r = 0; r < 4; ++r) d.Call(r, "0", "completed", 16, "all_reduce", 0, 0, /*retired=*/false);
  for (int r = 0; r < 3; ++r) d.Call(r, "0", "started", 16, "all_reduce", 0, 0.01);  // rank 3 was dumped a little earlier
  const Diagnosis diagnosis = d.Diagnosed();
  EXPECT_EQ(diagnosis.state(), State::healthy);
  EXPECT_THAT(diagnosis.findings(), IsEmpty());
}

TEST(FlightRecorderDumps, AMissingDumpIsNoSilence) {
  Dumps d = Steady(4);
  for (int r : {0, 1, 2}) d.Call(r, "0", "scheduled");
  const Diagnosis diagnosis = d.Diagnosed({3});
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(diagnosis.findings(0).title(), HasSubstr("rank 3, of which there is no record"));
  EXPECT_THAT(diagnosis.findings(0).next().command(), HasSubstr("nccl_trace_rank"));
  EXPECT_EQ(diagnosis.ranks_total(), 4u);
}

// Rank 3's dump is of an earlier time: the others have finished what it has not called.
TEST(FlightRecorderDumps, AnOldDumpIsNoEvidence) {
  Dumps d = Steady(4);
  for (int i = 0; i < 20; ++i) {
    for (int r : {0, 1, 2}) d.Call(r, "0", "completed");
  }
  for (int r : {0, 1, 2}) d.Call(r, "0", "scheduled");
  const model::Job job = d.Job();
  EXPECT_THAT(job.not_seen, ::testing::Contains(HasSubstr("older than the others'")));
  const Diagnosis diagnosis = Diagnose(job);
  for (const Finding& f : diagnosis.findings()) EXPECT_NE(f.kind(), Kind::missing_rank);
}

TEST(FlightRecorderDumps, BothSendFirst) {
  Dumps d = Steady(2);
  d.Message(0, 1, true, "scheduled").Message(1, 0, true, "scheduled");
  EXPECT_EQ(d.Diagnosed().findings(0).kind(), Kind::p2p_unmatched);
}

// A pipeline whose rings have gone round: rank 1 received, computes for ever, and does not send.
TEST(FlightRecorderDumps, MessagesOfAForgottenPastAreMatchedFromTheNewestOn) {
  Dumps d = Steady(3);
  for (int i = 0; i < 6; ++i) {
    d.Message(0, 1, true, "completed")
        .Message(1, 0, false, "completed")
        .Message(1, 2, true, "completed")
        .Message(2, 1, false, "completed");
  }
  d.Message(0, 1, true, "completed").Message(1, 0, false, "completed").Message(2, 1, false, "scheduled");
  d.Forget(0, 12);
  d.Forget(1, 14);
  d.Forget(2, 11);
  const Diagnosis diagnosis = d.Diagnosed();
  EXPECT_EQ(diagnosis.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(Ranks(diagnosis.findings(0)), ElementsAre(1));
}

// ---------------------------------------------------------------------------------------------------- torchfrtrace's own output
Diagnosis OfText(const std::string& text) {
  model::Job job;
  EXPECT_TRUE(ingest::ReadTextBytes("fr_trace.txt", text, &job.evidence).ok());
  return Diagnose(job);
}

TEST(FrTrace, MissingRanksOfEveryRelease) {
  for (const std::string head : {"Not all ranks joining collective 5 at entry 4\n",
                                 "Not all ranks joining collective, sequence number: 5\ninternal record id: 4\n"}) {
    const Diagnosis d = OfText(
        head +
        "group info: 0:default_pg\ncollective: nccl:all_reduce\nmissing ranks: {1}\ninput sizes: [[3, 4]]\noutput sizes: [[3, "
        "4]]\n"
        "world size: 4\nexpected ranks: {0, 1, 2, 3}\ncollective state: scheduled\ncollective stack trace: \n"
        " all_reduce at /opt/site-packages/torch/distributed/distributed_c10d.py:2696\nmain at /app/crash.py:44\nother line\n");
    ASSERT_EQ(d.findings_size(), 1);
    EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
    EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(1));
    EXPECT_THAT(d.findings(0).title(), HasSubstr("AllReduce #5 of process group 0:default_pg"));
    EXPECT_THAT(Texts(d.findings(0)), HasSubstr("main at /app/crash.py:44"));
    EXPECT_THAT(d.findings(0).collateral().ranks(), ElementsAre(0, 2, 3));
  }
  const Diagnosis first =
      OfText("Not all ranks joining collective for group 0:default_pg collective nccl:_all_gather_base Missing ranks are {7}\n");
  EXPECT_THAT(Ranks(first.findings(0)), ElementsAre(7));
  const Diagnosis bare = OfText(
      "collective: nccl:_all_gather_base\ninput sizes: [[2]]\nexpected ranks: {0, 1}\nmissing ranks: {0}\ncollective state: "
      "scheduled\n");
  EXPECT_THAT(Ranks(bare.findings(0)), ElementsAre(0));
}

TEST(FrTrace, HalfMissingOrMoreAccusesNobody) {
  const Diagnosis d =
      OfText("Not all ranks joining collective 5 at entry 4\nmissing ranks: {0, 1}\nexpected ranks: {0, 1, 2, 3}\n");
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
}

TEST(FrTrace, ItsCulpritsAreCountedAndNotBelieved) {
  std::string culprits;
  for (int r = 1; r < 8; ++r)
    absl::StrAppend(
        &culprits, r > 1 ? ", " : "", "Culprit rank ", r,
        "; Error type: SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '[[9]]' does not match found input sizes: '[[64]]'");
  const Diagnosis d = OfText(
      "Collective sequence number: 39 has errors\ngroup info: 0:default_pg\ncollective: nccl:all_reduce\nworld size: 8\n"
      "expected ranks: {0, 1, 2, 3, 4, 5, 6, 7}\ncollective state: scheduled\nerror msg: " +
      culprits + "\n");
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::size_mismatch);
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("[[9]] on the rank it read first, [[64]] on 7 ranks that it lists, of 8"));
  const Diagnosis type = OfText(
      "Collective 3 at entry 2 errors\nerror msg: Culprit rank 1; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective "
      "type: 'all_reduce' does "
      "not match found collective type: 'all_gather'\n");
  EXPECT_EQ(type.findings(0).kind(), Kind::collective_mismatch);
  const Diagnosis state = OfText(
      "Collective 3 at entry 2 errors\nerror msg: Culprit rank 1; Error type: COLLECTIVE_STATE_MISMATCH, Expected state: "
      "'scheduled' does not match "
      "found state: 'completed'\n");
  EXPECT_EQ(state.findings(0).kind(), Kind::undetermined);
}

TEST(FrTrace, OnlyTheFirstComplaintOfAGroupCounts) {
  std::string text;
  for (int i = 5; i < 9; ++i)
    absl::StrAppend(&text, "Not all ranks joining collective, sequence number: ", i,
                    "\ngroup info: 0:default_pg\ncollective: nccl:all_reduce\nmissing ranks: {", i - 4,
                    "}\nexpected ranks: {0, 1, 2, 3, 4, 5, 6, 7}\n");
  const Diagnosis d = OfText(text);
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(1));
}

// One look at RAS may have caught a moment; that a dump has the call open says that it is none. Both are cited.
TEST(FrTrace, AgreesWithRas) {
  model::Job job;
  ASSERT_TRUE(ingest::ReadTextBytes("fr_trace.txt",
                                    "collective: nccl:_all_gather_base\nexpected ranks: {0, 1}\nmissing ranks: {0}\n"
                                    "collective state: scheduled\n",
                                    &job.evidence)
                  .ok());
  ASSERT_TRUE(ingest::ReadTextBytes(
                  "ras.txt",
                  "#0-0 (12a1b02d15a8bb89) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
                  "  Rank 1 has launched up to operation 71 -- GPU 0 managed by process 311 on node 10.7.0.12\n"
                  "  Rank 0 has launched up to operation 70 -- GPU 0 managed by process 298 on node 10.7.0.11\n",
                  &job.evidence)
                  .ok());
  const Diagnosis d = Diagnose(job);
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(0));
  EXPECT_THAT(Texts(d.findings(0)), HasSubstr("missing ranks: {0}"));
  EXPECT_THAT(Texts(d.findings(0)), HasSubstr("70"));
}

TEST(FrTrace, AMissingDumpAndOtherPeoplesLines) {
  const Diagnosis d = OfText(
      "We cannot decide what's wrong with this collective entry because we missed FR dumps from ranks ({3, 5}) so we don't have "
      "enough information.\n");
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("ranks 3 and 5"));
  EXPECT_THAT(OfText("collective: nccl:all_reduce\nhello\ngroup info: x\nmissing pieces\n").findings(), IsEmpty());
}

}  // namespace
}  // namespace ringscope::reasoning
