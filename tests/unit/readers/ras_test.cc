// NCCL's RAS, text and JSON: what the facts are. Real answers are in tests/corpus/ras (read by the finders' test).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using model::RasCommunicator;
using model::RasSnapshot;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

model::Evidence Read(const std::string& text, const std::string& name = "ras.txt") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  return evidence;
}

constexpr char kUneven[] =
    "NCCL version 2.26.2 compiled with CUDA 12.4\n"
    "CUDA runtime version 12040, driver version 12040\n\n"
    "Job summary\n===========\n\n"
    "  Nodes  Processes         GPUs\n"
    "          per node  per process\n"
    "      3          8            1\n"
    "      1          6            1\n\n"
    "  Nodes  Processes         GPUs\n"
    "(total)    (total)      (total)\n"
    "      4         30           30\n\n"
    "The outlier node:\n"
    "  Node 10.9.0.4 running processes 11,12,13,14,15,16\n\n"
    "Communicators... (0.03s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
    "    0         1         4       6-8        30        29   RUNNING  INCOMPLETE,ERROR,MISMATCH\n"
    "    1         2         1         8         8        16   RUNNING      OK\n\n"
    "Errors\n======\n\n"
    "INCOMPLETE\n"
    "  Missing communicator data from 1 job process\n"
    "  Process 15 on node 10.9.0.4 managing GPU 4 (NVML 6)\n\n"
    "DEAD\n"
    "  2 job processes are considered dead (unreachable via the RAS network)\n"
    "  Process 77 on node fd00::7 managing GPUs 0,1\n"
    "  [could not find information on 1 process]\n\n"
    "#0-0 (00a1b2c3d4e5f607) INCOMPLETE\n"
    "  Missing communicator data from 1 rank\n"
    "  Rank 28 -- GPU 4 (NVML 6) managed by process 15 on node 10.9.0.4\n\n"
    "#0-0 (00a1b2c3d4e5f607) ERROR\n"
    "  Asynchronous errors on 3 ranks\n"
    "  2 ranks reported Remote process error\n"
    "  Rank 4 -- GPU 4 managed by process 5 on node 10.9.0.1\n"
    "  Rank 5 -- [process information not found]\n"
    "  Rank 9 reported Unhandled CUDA error -- GPU 1 managed by process 9 on node 10.9.0.2\n\n"
    "Warnings\n========\n\n"
    "TIMEOUT\n"
    "  Encountered 2 communication timeouts while gathering communicator data\n\n"
    "#0-0 (00a1b2c3d4e5f607) MISMATCH\n"
    "  Communicator ranks have different status\n"
    "  28 ranks have status RUNNING\n"
    "  Rank 3 has status NOCOMM -- GPU 3 managed by process 4 on node 10.9.0.1\n"
    "  Communicator ranks have different AllReduce operation counts\n"
    "  27 ranks have launched up to operation 12\n"
    "  2 ranks have not launched any operations\n"
    "  Rank 1 -- GPU 1 managed by process 2 on node 10.9.0.1\n"
    "  Rank 2 -- GPU 2 managed by process 3 on node 10.9.0.1\n\n"
    "  Communicator ranks have different Broadcast operation counts\n"
    "  28 ranks have launched up to operation 7\n"
    "  Rank 2 has not launched any operations -- GPU 2 managed by process 3 on node 10.9.0.1\n\n";

TEST(RasText, AllThatAnAnswerCanHold) {
  const model::Evidence evidence = Read(kUneven);
  ASSERT_THAT(evidence.ras.snapshots, SizeIs(1));
  const RasSnapshot& s = evidence.ras.snapshots[0];
  EXPECT_EQ(s.nccl_version, "2.26.2");
  EXPECT_EQ(s.nodes, 4);
  EXPECT_EQ(s.processes, 30);
  EXPECT_EQ(s.gpus, 30);
  ASSERT_THAT(s.groups, SizeIs(2));
  EXPECT_EQ(s.groups[0].errors, "INCOMPLETE,ERROR,MISMATCH");
  EXPECT_EQ(s.groups[0].ranks_per_communicator, 30);
  EXPECT_EQ(s.groups[1].communicators, 2);
  EXPECT_EQ(s.missing_processes, 1);
  EXPECT_EQ(s.dead_processes, 2);
  ASSERT_THAT(s.missing, SizeIs(1));
  EXPECT_EQ(s.missing[0].pid, 15);
  ASSERT_THAT(s.dead, SizeIs(1));
  EXPECT_EQ(s.dead[0].node, "fd00::7");
  EXPECT_THAT(s.dead[0].gpus, ElementsAre(0, 1));
  EXPECT_EQ(s.timeouts, 2);
  ASSERT_THAT(s.communicators, SizeIs(1));
  const RasCommunicator& c = s.communicators[0];
  EXPECT_EQ(c.hash, "00a1b2c3d4e5f607");
  EXPECT_TRUE(c.incomplete && c.error && c.mismatch);
  ASSERT_THAT(c.missing_ranks, SizeIs(1));
  EXPECT_EQ(c.missing_ranks[0].rank, 28);
  EXPECT_EQ(c.missing_ranks[0].nvml_device, 6);
  ASSERT_THAT(c.async_errors, SizeIs(2));
  EXPECT_THAT(c.async_errors[0].named, SizeIs(2));
  EXPECT_EQ(c.async_errors[0].named[1].pid, -1);
  EXPECT_EQ(c.async_errors[1].value, "Unhandled CUDA error");
  EXPECT_EQ(c.async_errors[1].named[0].rank, 9);
  ASSERT_THAT(c.statuses, SizeIs(2));
  EXPECT_EQ(c.statuses[1].value, "NOCOMM");
  ASSERT_THAT(c.counts, SizeIs(2));
  EXPECT_EQ(c.counts[0].function, "AllReduce");
  EXPECT_EQ(c.counts[0].shares[0].count, 12u);
  EXPECT_EQ(c.counts[0].shares[1].count, 0u);
  EXPECT_THAT(c.counts[0].shares[1].named, SizeIs(2));
  EXPECT_EQ(c.counts[1].shares[1].ranks, 1);
  EXPECT_EQ(c.counts[1].shares[1].where.line, 68u);
}

TEST(RasText, SeveralAnswersAndPartsOfThem) {
  EXPECT_THAT(Read(std::string(kUneven) + kUneven).ras.snapshots, SizeIs(2));
  // Two times only the part that mattered.
  const char part[] =
      "#0-0 (82cb41e5908f7a4b) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  3 ranks have launched up to operation 11\n"
      "  Rank 2 has launched up to operation 10 -- GPU 0 managed by process 6248 on node 10.0.0.1\n";
  model::Evidence twice = Read(std::string(part) + "\nand five minutes on:\n\n" + part);
  ASSERT_THAT(twice.ras.snapshots, SizeIs(2));
  EXPECT_EQ(twice.ras.snapshots[1].communicators[0].counts[0].shares[1].named[0].pid, 6248);
  // Rows of the table without its head.
  const char row[] = "    0         1         4         8        32        32   RUNNING  MISMATCH\n";
  EXPECT_THAT(Read(std::string(row) + row).ras.snapshots, SizeIs(2));
  // Details without the line that names the communicator.
  model::Evidence bare = Read(
      "  26 ranks have launched up to operation 6650\n  Rank 7 has launched up to operation 6649 -- GPU 7 managed by process 1 on "
      "node h\n");
  ASSERT_THAT(bare.ras.snapshots, SizeIs(1));
  EXPECT_THAT(bare.ras.snapshots[0].communicators[0].counts[0].shares, SizeIs(2));
}

TEST(RasText, OldWordingAndInsideALog) {
  model::Evidence evidence = Read(
      "[rank0]: step 12 loss 3.1\n"
      "2026-02-03 04:05:06 DEAD\n"
      "2026-02-03 04:05:06   1 job process is considered dead (unreachable via the RAS network)\n"
      "2026-02-03 04:05:06   Process 348 on node 10.7.64.213 managing GPU 5\n"
      "2026-02-03 04:05:06 \n"
      "2026-02-03 04:05:06 #0-0 (cf264af53edbe986) INCOMPLETE\n"
      "2026-02-03 04:05:06   Missing communicator data from 2 ranks\n"
      "2026-02-03 04:05:06   The missing ranks: 21,22\n");
  ASSERT_THAT(evidence.ras.snapshots, SizeIs(1));
  const RasSnapshot& s = evidence.ras.snapshots[0];
  ASSERT_THAT(s.dead, SizeIs(1));
  EXPECT_EQ(s.dead[0].pid, 348);
  ASSERT_THAT(s.communicators, SizeIs(1));
  ASSERT_THAT(s.communicators[0].missing_ranks, SizeIs(2));
  EXPECT_EQ(s.communicators[0].missing_ranks[1].rank, 22);
}

TEST(RasText, NotesOfPeople) {
  const char part[] =
      "  127 ranks have launched up to operation 88214\n  Rank 57 has launched up to operation 88213 -- [process information not "
      "found]\n";
  EXPECT_TRUE(Read(std::string(part) + "(identical 10 minutes later)\n").ras.snapshots[0].said_unchanged.known());
  EXPECT_TRUE(Read(std::string(part) + "same output after 5 min\n").ras.snapshots[0].said_unchanged.known());
  EXPECT_FALSE(Read(std::string(part) + "killed 10 minutes later\n").ras.snapshots[0].said_unchanged.known());
}

TEST(RasText, WordsOfOrdinaryLogsAreNotTaken) {
  EXPECT_THAT(
      Read("Errors\n======\nWarnings\nDEAD\nRank 3\nRank 3 -- done\nINCOMPLETE\nProcess 5 on node a managing GPU 1\n").ras.snapshots,
      IsEmpty());
  EXPECT_THAT(Read("    0         1         4         8        32        32   RUNNING\n").ras.snapshots, IsEmpty());
}

TEST(RasText, DamagedInput) {
  const std::string whole = kUneven;
  for (size_t i = 0; i < whole.size(); i += 3) Read(whole.substr(i));
  for (size_t i = 0; i < whole.size(); i += 7) Read(whole.substr(0, i));
  // Numbers that are none, and numbers out of memory that was not there (seen with NCCL 2.27.3).
  model::Evidence evidence = Read(
      "#2-0 (93d7000200000001) INCOMPLETE\n  Missing communicator data from 99999999999999999999 ranks\n"
      "  Missing communicator data from 255 ranks\n  Rank 1057455228 -- GPU 99999999999999 managed by process 99999999999999999999 on "
      "node h\n"
      "  Rank 99999999999999999999 -- [process information not found]\n  The missing ranks: 4294967295,99999999999999999999,\n"
      "  Rank 7 has launched up to operation 99999999999999999999999 -- [process information not found]\n");
  EXPECT_THAT(evidence.ras.snapshots, SizeIs(1));
}

// ---- JSON
std::string Json(const std::string& comma) {
  return "{\n  \"nccl_version\": \"2.28.7\",\n  \"cuda_runtime_version\": 13000,\n  \"cuda_driver_version\": 13000,\n"
         "  \"timestamp\": \"2026-02-03 04:05:06\",\n  \"communicators_count\": 1,\n  \"communicators\": [\n    {\n"
         "      \"hash\": \"0xd6f9d1a41322fa4\",\n      \"secondary_hash\": \"0x1:0x2\",\n      \"size\": 3,\n      \"ranks_count\": "
         "2,\n"
         "      \"missing_ranks_count\": 2,\n      \"ranks\": [\n"
         "        {\"rank\": 0, \"host\": \"10.0.0.1\", \"pid\": 70, \"cuda_dev\": 0, \"nvml_dev\": 4,\n         \"status\": "
         "{\"init_state\": 0, \"async_error\": 6, "
         "\"finalize_called\": false, \"destroy_flag\": false, \"abort_flag\": false},\n         \"collective_counts\": "
         "{\"AllReduce\": 11, \"Broadcast\": 0}},\n"
         "        {\"rank\": 1, \"host\": \"unknown\", \"pid\": -1, \"cuda_dev\": 1, \"nvml_dev\": 1,\n         \"status\": "
         "{\"init_state\": 7, \"async_error\": 0, "
         "\"finalize_called\": false, \"destroy_flag\": false, \"abort_flag\": false},\n         \"collective_counts\": "
         "{\"AllReduce\": 10, \"Broadcast\": 0}}\n"
         "      ],\n      \"missing_ranks\": [\n        {\n          \"rank\": 2,\n          \"host\": \"10.0.0.2\",\n          "
         "\"pid\": 71,\n"
         "          \"cuda_dev\": 1,\n          \"nvml_dev\": 1" +
         comma +
         "\n          \"status\": {\n            \"unresponsive\": true,\n"
         "            \"considered_dead\": true\n          }\n        },\n        {\n          \"rank\": 3,\n          \"host\": "
         "\"10.0.0.2\",\n          \"pid\": 72,\n"
         "          \"cuda_dev\": 2,\n          \"nvml_dev\": 2" +
         comma +
         "\n          \"status\": {\n            \"unresponsive\": false,\n"
         "            \"considered_dead\": false\n          }\n        }\n      ]\n    }\n  ],\n  \"ras\": {\n    "
         "\"collection_time_sec\": 5.012,\n    \"timeouts_count\": 1\n  }\n}\n";
}

void ExpectWhole(const model::Evidence& evidence) {
  ASSERT_THAT(evidence.ras.snapshots, SizeIs(1));
  const RasSnapshot& s = evidence.ras.snapshots[0];
  EXPECT_TRUE(s.json);
  EXPECT_EQ(s.nccl_version, "2.28.7");
  EXPECT_TRUE(s.time.known());
  EXPECT_EQ(s.timeouts, 1);
  ASSERT_THAT(s.dead, SizeIs(1));
  EXPECT_EQ(s.dead[0].pid, 71);
  ASSERT_THAT(s.communicators, SizeIs(1));
  const RasCommunicator& c = s.communicators[0];
  EXPECT_EQ(c.hash, "0d6f9d1a41322fa4");
  EXPECT_EQ(c.size, 3);
  ASSERT_THAT(c.missing_ranks, SizeIs(1));
  EXPECT_TRUE(c.missing_ranks[0].dead);
  ASSERT_THAT(c.statuses, SizeIs(3));  // RUNNING, INIT, NOCOMM
  ASSERT_THAT(c.async_errors, SizeIs(1));
  EXPECT_EQ(c.async_errors[0].value, "Remote process error");
  ASSERT_THAT(c.counts, SizeIs(2));
  EXPECT_THAT(c.counts[0].shares, SizeIs(2));
  EXPECT_THAT(c.counts[1].shares, SizeIs(1));
  EXPECT_EQ(c.counts[0].shares[1].named[0].node, "");
}

TEST(RasJson, WithAndWithoutTheForgottenComma) {
  ExpectWhole(Read(Json(","), "ras.json"));
  ExpectWhole(Read(Json(""), "ras.json"));
  ExpectWhole(Read("SERVER PROTOCOL 2\nOK\n" + Json(""), "ras.json"));
}

TEST(RasJson, InsideATextAndSeveralInARow) {
  ExpectWhole(Read("$ ncclras -f json   # while it hung\n" + std::string(20, '\n') + Json("") + "and then I killed it { }\n"));
  EXPECT_THAT(Read(Json("") + Json(",") + Json("")).ras.snapshots, SizeIs(3));
  std::string one_line = Json("");
  for (char& c : one_line) c = c == '\n' ? ' ' : c;
  ExpectWhole(Read(one_line));
  ExpectWhole(Read("a log\n" + one_line + "\nmore log\n"));
}

TEST(RasJson, CutShortAndDamaged) {
  const std::string whole = Json("");
  // The job ended while it answered: the ranks that were written stay.
  const model::Evidence cut = Read(whole.substr(0, whole.find("\"missing_ranks\":")));
  ASSERT_THAT(cut.ras.snapshots, SizeIs(1));
  EXPECT_THAT(cut.ras.snapshots[0].communicators[0].statuses, SizeIs(2));
  for (size_t i = 0; i < whole.size(); i += 5) {
    Read(whole.substr(0, i));
    Read(whole.substr(i));
    std::string flipped = whole;
    flipped[i] ^= 0x15;
    Read(flipped);
  }
  Read("{\"nccl_version\": \"2.30.7\", \"communicators\": " + std::string(100000, '['));
  Read("{\"nccl_version\": \"2.30.7\", \"communicators\": " + std::string(100000, '{'));
  Read(
      "{\"nccl_version\": \"2.30.7\", \"communicators\": "
      "[{\"ranks\":[1,\"a\",null,[],{\"rank\":-5,\"pid\":1e400,\"collective_counts\":[1]}],\"missing_ranks\":{},\"size\":99999999999}]"
      "}");
  EXPECT_THAT(Read("{\"nccl_version\": \"2.30.7\", \"other\": {}}").ras.snapshots, IsEmpty());
}

}  // namespace
}  // namespace ringscope
