// Dumps of PyTorch's flight recorder to records. JSON here, since it can be read; pickle says the same (the last tests).
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/readers/flight_recorder_groups.h"
#include "analyzer/readers/flight_recorder_names.h"

namespace ringscope::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kStart = 1'780'000'000'000'000'000;

struct E {
  std::string name = "nccl:all_reduce";
  int64_t collective = 1, message = 0, record = 0;
  std::string state = "completed";
  std::string sizes = "[[8, 2]]", out = "[[8, 2]]";
  std::string group = "0", description = "default_pg";
  bool p2p = false, retired = true;
  int64_t created = kStart;
  std::string extra = "";
};

std::string Entry(const E& e) {
  return absl::StrCat(R"({"record_id":)", e.record, R"(,"pg_id":0,"process_group":[")", e.group, R"(",")", e.description,
                      R"("],"collective_seq_id":)", e.collective, R"(,"p2p_seq_id":)", e.message,
                      R"(,"op_id":1,"profiling_name":")", e.name, R"(","time_created_ns":)", e.created, R"(,"input_sizes":)",
                      e.sizes, R"(,"input_dtypes":["Float"],"output_sizes":)", e.out, R"(,"output_dtypes":["Float"],"state":")",
                      e.state, R"(","time_discovered_started_ns":0,"time_discovered_completed_ns":)",
                      e.state == "completed" ? e.created + 1000 : 0, R"(,"retired":)", e.retired ? "true" : "false",
                      R"(,"timeout_ms":600000,"is_p2p":)", e.p2p ? "true" : "false", e.extra, "}");
}

std::string Dump(const std::vector<std::string>& entries,
                 const std::string& config = R"("0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"})") {
  return absl::StrCat(R"({"version":"2.10","pg_config":{)", config, R"(},"comm_lib_version":"2.27.5","pg_status":{},"entries":[)",
                      absl::StrJoin(entries, ","), "]}");
}

struct Result {
  std::vector<model::Record> records;
  model::Evidence evidence;
  const trace::Trace& trace() const { return records.at(0).trace; }
  const trace::Communicator& comm(int i = 0) const { return trace().communicators(i); }
  std::vector<std::string> notes() const { return evidence.files.at(0).notes; }
};

Result Read(const std::string& bytes, const std::string& path = "dumps/nccl_trace_rank_2") {
  Result result;
  EXPECT_TRUE(ReadTextBytes(path, bytes, &result.evidence, &result.records).ok());
  return result;
}

TEST(FlightRecorder, OneEntryAndWhatItTells) {
  const Result r = Read(
      Dump({Entry({.collective = 7,
                   .record = 0,
                   .extra = R"(,"frames":[{"name":"all_reduce","filename":"/x/torch/distributed/distributed_c10d.py","line":9},
      {"name":"step","filename":"/app/train.py","line":88},{"name":"main","filename":"/app/train.py","line":9}])"})}));
  ASSERT_EQ(r.records.size(), 1u);
  EXPECT_EQ(r.trace().process().rank(), 2);
  EXPECT_EQ(r.trace().process().world_size(), 4);
  EXPECT_EQ(r.trace().process().libraries(0).version(), "2.27.5");
  EXPECT_EQ(r.comm().rank(), 2u);
  EXPECT_EQ(r.comm().n_ranks(), 4u);
  EXPECT_EQ(r.comm().name(), "0:default_pg");
  EXPECT_EQ(r.comm().collectives(), 7u);
  EXPECT_THAT(r.comm().job_ranks(), ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(r.comm().operations_size(), 1);
  const trace::Operation& op = r.comm().operations(0);
  EXPECT_EQ(op.position(), 7u);
  EXPECT_EQ(op.func(), trace::ALL_REDUCE);
  EXPECT_EQ(op.count(), 16u);
  EXPECT_EQ(op.datatype(), trace::FLOAT32);
  EXPECT_FALSE(op.unfinished());
  EXPECT_EQ(op.finished_ns() - op.entered_ns(), 1000);
  EXPECT_EQ(r.trace().dump().names(op.name() - 1), "nccl:all_reduce");
  EXPECT_EQ(r.trace().dump().sites(op.site() - 1), "step at /app/train.py:88");
  const trace::Clock& clock = r.trace().clock();
  EXPECT_EQ(op.entered_ns() + clock.realtime_ns() - clock.monotonic_ns(), kStart);
  EXPECT_TRUE(r.comm().partial_history());  // begins at 7
}

TEST(FlightRecorder, NamesOfOperations) {
  EXPECT_EQ(ParseDumpOp("nccl:_all_gather_base").func, trace::ALL_GATHER);
  EXPECT_EQ(ParseDumpOp("xccl:_reduce_scatter_base").func, trace::REDUCE_SCATTER);
  EXPECT_EQ(ParseDumpOp("nccl2:all_to_all").func, trace::ALL_TO_ALL);
  EXPECT_TRUE(ParseDumpOp("nccl:all_to_all").varies);
  EXPECT_EQ(ParseDumpOp("nccl:send 3->12").peer, 12);
  EXPECT_EQ(ParseDumpOp("nccl:recv 3<-12").own, 3);
  EXPECT_EQ(ParseDumpOp("nccl:recv 3->12").peer, -1);
  EXPECT_TRUE(ParseDumpOp("nccl:coalesced").group_end);
  EXPECT_TRUE(ParseDumpOp("nccl:ALLGATHER_coalesced").group_end);
  EXPECT_FALSE(ParseDumpOp("nccl:allreduce_coalesced").group_end);
  EXPECT_EQ(ParseDumpOp("").func, trace::FUNC_UNKNOWN);
  EXPECT_EQ(ParseDumpOp(std::string(1000, ':')).func, trace::FUNC_UNKNOWN);
  EXPECT_EQ(ParseTorchType("BFloat16"), trace::BFLOAT16);
  EXPECT_EQ(ParseTorchType("ComplexFloat"), trace::TYPE_UNKNOWN);
}

TEST(FlightRecorder, CountsAreThoseThatNcclWouldTake) {
  const Result r = Read(Dump(
      {Entry({.name = "nccl:_all_gather_base", .collective = 1, .record = 0, .sizes = "[[4]]", .out = "[[16]]"}),
       Entry({.name = "nccl:_reduce_scatter_base", .collective = 2, .record = 1, .sizes = "[[16]]", .out = "[[4]]"}),
       Entry({.name = "nccl:gather", .collective = 3, .record = 2, .sizes = "[[5]]", .out = "[[0]]"}),
       Entry({.name = "nccl:scatter", .collective = 4, .record = 3, .sizes = "[[0]]", .out = "[[6]]"}),
       Entry({.name = "nccl:all_to_all", .collective = 5, .record = 4, .sizes = "[[7],[1]]", .out = "[[3]]"}),
       Entry({.name = "nccl:all_reduce", .collective = 6, .record = 5, .sizes = "[[]]", .out = "[[]]"}),
       Entry({.name = "nccl:all_reduce", .collective = 7, .record = 6, .sizes = "[[4294967296, 4294967296, 3]]", .out = "[]"}),
       Entry({.name = "nccl:all_reduce", .collective = 8, .record = 7, .sizes = "[[-4]]", .out = "[]"})}));
  std::vector<uint64_t> counts;
  for (const auto& op : r.comm().operations()) counts.push_back(op.count());
  EXPECT_THAT(counts, ElementsAre(4, 4, 5, 6, 8, 1, UINT64_MAX, 0));
  EXPECT_TRUE(r.comm().operations(4).count_varies());
  EXPECT_EQ(r.comm().operations(4).output_count(), 3u);
  EXPECT_FALSE(r.comm().partial_history());
}

// Calls of a coalesced group never leave "scheduled"; the entry that ends the group has their state.
TEST(FlightRecorder, CoalescedCollectivesAreOneOperation) {
  const Result r = Read(Dump(
      {Entry({.name = "nccl:all_reduce", .collective = 1, .record = 0, .state = "scheduled", .sizes = "[[4]]", .out = "[[4]]"}),
       Entry({.name = "nccl:all_reduce", .collective = 1, .record = 1, .state = "scheduled", .sizes = "[[6]]", .out = "[[6]]"}),
       Entry({.name = "nccl:coalesced", .collective = 1, .record = 2, .sizes = "[]", .out = "[]"}),
       Entry({.name = "nccl:all_reduce", .collective = 2, .record = 3, .state = "scheduled"})}));
  ASSERT_EQ(r.comm().operations_size(), 2);
  EXPECT_EQ(r.comm().operations(0).count(), 10u);
  EXPECT_EQ(r.comm().operations(0).func(), trace::ALL_REDUCE);
  EXPECT_FALSE(r.comm().operations(0).unfinished());
  EXPECT_TRUE(r.comm().operations(1).unfinished());
  EXPECT_EQ(r.comm().collectives(), 2u);
}

// Before torch 2.7 only the end of a coalesced group was recorded: what it was is not known.
TEST(FlightRecorder, AGroupOfWhichOnlyTheEndIsThereHasNoFunction) {
  const Result r = Read(Dump({Entry({.name = "nccl:coalesced", .collective = 1, .record = 0, .sizes = "[]", .out = "[]"}),
                              Entry({.name = "nccl:all_reduce", .collective = 2, .record = 1})}));
  EXPECT_EQ(r.comm().operations(0).func(), trace::FUNC_UNKNOWN);
  EXPECT_EQ(r.comm().operations(1).func(), trace::ALL_REDUCE);
}

TEST(FlightRecorder, MessagesAloneAndInABatch) {
  const Result r =
      Read(Dump({Entry({.name = "nccl:send 2->3", .collective = 0, .message = 1, .record = 0, .p2p = true}),
                 Entry({.name = "nccl:recv 2<-1", .collective = 0, .message = 2, .record = 1, .state = "scheduled", .p2p = true}),
                 Entry({.name = "nccl:send 2->3", .collective = 0, .message = 2, .record = 2, .state = "scheduled", .p2p = true}),
                 Entry({.name = "nccl:coalesced",
                        .collective = 0,
                        .message = 2,
                        .record = 3,
                        .state = "started",
                        .sizes = "[]",
                        .out = "[]",
                        .p2p = true})}));
  ASSERT_EQ(r.comm().operations_size(), 3);
  EXPECT_EQ(r.comm().collectives(), 0u);
  EXPECT_EQ(r.comm().p2ps(), 3u);
  EXPECT_FALSE(r.comm().operations(0).unfinished());
  for (int i : {1, 2}) {
    EXPECT_TRUE(r.comm().operations(i).unfinished());
    EXPECT_EQ(r.comm().operations(i).kernels_started(), 1u);
    EXPECT_EQ(r.comm().operations(i).group(), 1u);
  }
  EXPECT_EQ(r.comm().operations(1).peer(), 1);
  ASSERT_EQ(r.trace().edges_size(), 2);  // sends to 3, receives from 1
  for (const trace::Edge& edge : r.trace().edges()) EXPECT_EQ(edge.steps_total(), edge.send() ? 2u : 1u);
}

// torch 2.3 to 2.5: a batch of messages moves collective_seq_id, on those ranks that take part in it.
TEST(FlightRecorder, WhereMessagesMoveTheNumberCollectivesAreCounted) {
  const std::vector<std::string> entries = {
      Entry({.collective = 1, .record = 0}), Entry({.collective = 2, .record = 1}),
      Entry({.name = "nccl:send 2->3", .collective = 3, .message = 1, .record = 2, .p2p = true}),
      Entry({.name = "nccl:coalesced", .collective = 3, .message = 1, .record = 3, .sizes = "[]", .out = "[]", .p2p = true}),
      Entry({.collective = 4, .record = 4, .state = "scheduled"})};
  const Result whole = Read(Dump(entries));
  EXPECT_EQ(whole.comm().collectives(), 3u);
  EXPECT_EQ(whole.comm().operations(3).position(), 3u);
  // Without the beginning nothing can be counted.
  const Result rest = Read(Dump({entries[1], entries[2], entries[3], entries[4]}));
  EXPECT_EQ(rest.comm().collectives(), 0u);
  EXPECT_THAT(rest.notes(), ElementsAre(HasSubstr("cannot be numbered")));
}

TEST(FlightRecorder, AProcessGroupWithoutEntriesIsOnlyKnownToBeUnusedInAWholeRing) {
  const std::string config =
      R"("0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"},"ab12":{"name":"ab12","desc":"mesh_tp","ranks":"[2, 3]"})";
  EXPECT_EQ(Read(Dump({Entry({.record = 0})}, config)).trace().communicators_size(), 2);
  EXPECT_EQ(Read(Dump({Entry({.collective = 900, .record = 900})}, config)).trace().communicators_size(), 1);
  // Numbered groups: pg_status tells how far the silent one came.
  const std::string numbered =
      R"("0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"},"5":{"name":"5","desc":"tp","ranks":"[2, 3]"})";
  const Result r = Read(absl::StrReplaceAll(
      Dump({Entry({.collective = 900, .record = 900})}, numbered),
      {{R"("pg_status":{})", R"("pg_status":{"0":{"last_enqueued_collective":"900"},"3":{"last_enqueued_collective":"41"}})"}}));
  ASSERT_EQ(r.trace().communicators_size(), 2);
  EXPECT_EQ(r.comm(1).collectives(), 41u);
}

TEST(FlightRecorder, ACallThatHasNotReturnedIsNotEnqueued) {
  const auto with = [](const char* status) {
    return Read(absl::StrReplaceAll(
        Dump({Entry({.collective = 1, .record = 0}), Entry({.collective = 2, .record = 1, .state = "scheduled"})}),
        {{R"("pg_status":{})", status}}));
  };
  EXPECT_EQ(with(R"("pg_status":{"0":{"last_enqueued_collective":1}})").comm().operations(1).enqueued_ns(), 0);
  EXPECT_NE(with(R"("pg_status":{"0":{"last_enqueued_collective":2}})").comm().operations(1).enqueued_ns(), 0);
  EXPECT_NE(with(R"("pg_status":{"0":{"last_enqueued_collective":-1}})").comm().operations(1).enqueued_ns(), 0);
}

TEST(FlightRecorder, WhoWroteIt) {
  const std::string dump = Dump({Entry({.record = 0})});
  for (const auto& [path, rank] : std::vector<std::pair<std::string, int>>{{"nccl_trace_rank_3", 3},
                                                                           {"comm_lib_trace_rank_1.pickle", 1},
                                                                           {"nccl_trace_rank_container-node02_2", 2},
                                                                           {"/data/8/_dump_0", 0},
                                                                           {"job77-rank3-2026.json", 3},
                                                                           {"fr.3.gz", 3},
                                                                           {"nccl_trace_rank_9", -1},
                                                                           {"dump", -1}}) {
    EXPECT_EQ(Read(dump, path).trace().process().rank(), rank) << path;
  }
  // Member of all of its groups: there is only one such rank.
  const std::string config =
      R"("0":{"desc":"default_pg","ranks":"[0, 1, 2, 3]"},"1":{"desc":"tp","ranks":"[2, 3]"},"2":{"desc":"dp","ranks":"[1, 3]"})";
  EXPECT_EQ(Read(Dump({Entry({.record = 0})}, config), "dump").trace().process().rank(), 3);
  EXPECT_EQ(Read(absl::StrReplaceAll(dump, {{R"("version")", R"("rank": 1, "version")"}}), "dump").trace().process().rank(), 1);
  const Result unknown = Read(dump, "dump");
  EXPECT_THAT(unknown.notes(), ElementsAre(HasSubstr("which rank wrote it is not told")));
  EXPECT_EQ(unknown.trace().communicators_size(), 0);
}

TEST(FlightRecorder, OlderFormats) {
  // 1.x: one seq_id, the group's name alone, no types, no timeout; members by number.
  const Result r = Read(R"({"version":"1.5","pg_config":{"0":{"name":"0","desc":"","ranks":"[0,1]"}},"entries":[
      {"record_id":0,"pg_id":0,"process_group":"0","seq_id":1,"profiling_name":"nccl:all_reduce","time_created_ns":1700000000000000000,
       "input_sizes":[[3,4]],"output_sizes":[[3,4]],"state":"scheduled","retired":false}]})",
                        "nccl_trace_rank_1");
  ASSERT_EQ(r.trace().communicators_size(), 1);
  EXPECT_EQ(r.comm().operations(0).position(), 1u);
  EXPECT_EQ(r.comm().operations(0).count(), 12u);
  EXPECT_TRUE(r.comm().operations(0).unfinished());
  EXPECT_EQ(r.comm().name(), "process group 0");
  // No configuration at all: only the group of all ranks can be guessed at, and its size is not told.
  const Result bare = Read(
      R"({"version":"2.0","entries":[{"record_id":4,"process_group":["0","default_pg"],"collective_seq_id":4,
       "profiling_name":"nccl:all_reduce","state":"scheduled"},
      {"record_id":5,"process_group":["3","tp"],"collective_seq_id":4,"profiling_name":"nccl:all_reduce","state":"scheduled"}]})",
      "trace_1");
  ASSERT_EQ(bare.trace().communicators_size(), 1);
  EXPECT_EQ(bare.comm().n_ranks(), 0u);
  EXPECT_EQ(bare.comm().rank(), 1u);
  EXPECT_THAT(bare.notes(), ElementsAre(HasSubstr("are not told")));
}

TEST(FlightRecorder, SeveralDumpsInOneFile) {
  const std::string one = Dump({Entry({.record = 0})});
  const Result by_rank = Read(absl::StrCat(R"({"0":)", one, R"(,"3":)", one, R"(,"note":"x"})"), "all.json");
  ASSERT_EQ(by_rank.records.size(), 2u);
  EXPECT_EQ(by_rank.records[1].trace.process().rank(), 3);
  EXPECT_EQ(Read(absl::StrCat("[", one, ",", one, "]"), "all.json").records.size(), 2u);
}

TEST(FlightRecorder, WhatIsNoDumpIsNoRecord) {
  EXPECT_THAT(Read(R"({"entries": 5, "version": "2.1", "pg_config": 1})").records, IsEmpty());
  EXPECT_THAT(Read(R"({"pg_config": [], "profiling_name": {}})").records, IsEmpty());
  EXPECT_THAT(Read("rank0: {\"pg_config\": \"quoted in a log\"}\n").records, IsEmpty());
  const Result empty = Read(Dump({}));
  ASSERT_EQ(empty.records.size(), 1u);
  EXPECT_THAT(empty.notes(), ElementsAre(HasSubstr("holds no entries")));
  EXPECT_THAT(Read(Dump({"7", R"({"x":1})", Entry({.record = 0})})).notes(), ElementsAre(HasSubstr("2 entries are none")));
}

TEST(FlightRecorder, CutShortItStillTells) {
  const std::string whole = Dump({Entry({.record = 0}), Entry({.collective = 2, .record = 1, .state = "scheduled"})});
  const Result r = Read(whole.substr(0, whole.size() - 20));
  ASSERT_EQ(r.records.size(), 1u);
  EXPECT_TRUE(r.records[0].torn);
  EXPECT_EQ(r.comm().operations_size(), 2);
  EXPECT_THAT(r.notes(), ElementsAre(HasSubstr("cut short")));
  for (size_t n = 0; n < whole.size(); n += 7) (void)Read(whole.substr(0, n));
}

// Every entry's frames are the same long list, which is long because it holds itself: no more work than the bytes explain.
TEST(FlightRecorder, SharedValuesAreNotWalkedWithoutEnd) {
  const auto text = [](const std::string& s) { return absl::StrCat("X", std::string{static_cast<char>(s.size()), 0, 0, 0}, s); };
  std::string pickle("\x80\x02}(", 4);
  pickle += text("pg_config") + "}" + text("version") + text("2.10") + text("entries") + "](}(";
  pickle += text("profiling_name") + text("nccl:all_reduce") + text("input_sizes") + "]q" + std::string(1, '\1') + "(";
  for (int i = 0; i < 5000; ++i) pickle += std::string("h\1", 2);
  pickle += "euq" + std::string(1, '\2');
  for (int i = 0; i < 5000; ++i) pickle += std::string("h\2", 2);
  pickle += "eu.";
  const Result r = Read(pickle);
  EXPECT_THAT(absl::StrJoin(r.notes(), "\n"), HasSubstr("refer to the same values more often"));
}

TEST(FlightRecorder, APickleThatWouldRunCodeIsNoRecord) {
  const std::string evil = "(dp0\nVpg_config\np1\n(dp2\nsVentries\np3\ncos\nsystem\n(Vtouch owned\ntRs.";
  const Result r = Read(evil);
  EXPECT_THAT(r.records, IsEmpty());
  EXPECT_THAT(r.notes(), ElementsAre(HasSubstr("GLOBAL would run code")));
}

TEST(FlightRecorder, DamageNeverCrashes) {
  const std::string whole =
      Dump({Entry({.record = 0}), Entry({.name = "nccl:send 2->3", .message = 1, .record = 1, .p2p = true})});
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(" 0129{}[]\",:-e"[random() % 14]);
    Result r;
    ASSERT_TRUE(ReadTextBytes("rank_2", bytes, &r.evidence, &r.records).ok());
    (void)model::BuildJob(std::move(r.records));
  }
}

}  // namespace
}  // namespace ringscope::ingest
