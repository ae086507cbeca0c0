// From answers of NCCL's RAS to findings. tests/corpus/ras holds what real NCCL answered in hangs that were made on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Files = std::vector<std::pair<std::string, std::string>>;

Diagnosis DiagnoseTexts(const Files& files) {
  model::Job job;
  for (const auto& [name, text] : files) EXPECT_TRUE(ingest::ReadTextBytes(name, text, &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  return reasoning::Diagnose(job);
}

std::vector<int> Ranks(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }
std::string TextOf(const Finding& f) {
  std::string text = f.title() + "\n" + f.next().text() + "\n" + f.next().command();
  for (const Evidence& e : f.evidence()) text += "\n" + e.text();
  return text;
}
bool Has(const Diagnosis& d, Kind::Value kind) {
  for (const Finding& f : d.findings()) {
    if (f.kind() == kind) return true;
  }
  return false;
}

std::string Mismatch(int behind, int at, int n = 32, const std::string& hash = "27a079b828ff1a75",
                     const std::string& function = "AllReduce") {
  std::ostringstream out;
  out << "#0-0 (" << hash << ") MISMATCH\n  Communicator ranks have different " << function << " operation counts\n  " << n - 1
      << " ranks have launched up to operation " << at << "\n  Rank " << behind << " has launched up to operation " << at - 1
      << " -- GPU 1 managed by process 4410 on node 10.77.20.15\n\n";
  return out.str();
}

TEST(RasCounts, OneAnswerIsAMomentOnly) {
  const Diagnosis d = DiagnoseTexts({{"ras.txt", Mismatch(9, 6650)}});
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(d.findings(0).next().command(), HasSubstr("ncclras"));
  EXPECT_THAT(d.findings(0).title(), HasSubstr("rank 9"));
}

TEST(RasCounts, IncreasingCountsAreProgress) {
  for (const bool reversed : {false, true}) {  // files come in any order
    Files files = {{"ras-1.txt", Mismatch(9, 6650)}, {"ras-2.txt", Mismatch(17, 7112)}};
    if (reversed) std::swap(files[0].second, files[1].second);
    const Diagnosis d = DiagnoseTexts(files);
    ASSERT_GE(d.findings_size(), 1);
    EXPECT_EQ(d.findings(0).kind(), Kind::none) << d.findings(0).title();
    EXPECT_THAT(d.findings(0).title(), HasSubstr("progress"));
    EXPECT_FALSE(Has(d, Kind::missing_rank));
    EXPECT_EQ(d.state(), State::healthy);
  }
  // Also of the rank that is always last.
  EXPECT_FALSE(Has(DiagnoseTexts({{"a.txt", Mismatch(9, 6650)}, {"b.txt", Mismatch(9, 6700)}}), Kind::missing_rank));
}

TEST(RasCounts, UnchangedCountsNameTheRankBehind) {
  const Diagnosis d = DiagnoseTexts({{"ras-1.txt", Mismatch(9, 6650)}, {"ras-2.txt", Mismatch(9, 6650)}});
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);  // RAS prints no time: the two may be of one second
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(9));
  EXPECT_EQ(d.findings(0).collateral().ranks_size(), 31);
  EXPECT_THAT(TextOf(d.findings(0)), HasSubstr("4410"));

  const Diagnosis noted = DiagnoseTexts({{"ras.txt", Mismatch(57, 88214, 128) + "(identical 10 minutes later)\n"}});
  EXPECT_EQ(noted.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(noted.findings(0).confidence(), Confidence::probable);
  EXPECT_THAT(Ranks(noted.findings(0)), ElementsAre(57));
}

TEST(RasCounts, FlightRecorderAgrees) {
  const std::string ras =
      "#0-0 (12a1b02d15a8bb89) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
      "  Rank 1 has launched up to operation 686 -- GPU 0 managed by process 311 on node 10.77.0.12\n"
      "  Rank 0 has launched up to operation 685 -- GPU 0 managed by process 298 on node 10.77.0.11\n";
  const auto fr = [](const std::string& missing) {
    return "collective: nccl:_all_gather_base\ninput sizes: [[18, 64640]]\noutput sizes: [[36, 64640]]\nexpected ranks: {0, 1}\n"
           "missing ranks: {" +
           missing + "}\ncollective state: scheduled\n";
  };
  const Diagnosis d = DiagnoseTexts({{"fr_trace.txt", fr("0")}, {"ras.txt", ras}});
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::probable);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(0));
  EXPECT_THAT(TextOf(d.findings(0)), HasSubstr("685"));
  EXPECT_THAT(TextOf(d.findings(0)), HasSubstr("missing ranks"));
  // The two disagree: neither is more than possible.
  const Diagnosis apart = DiagnoseTexts({{"fr_trace.txt", fr("1")}, {"ras.txt", ras}});
  for (const Finding& f : apart.findings()) EXPECT_EQ(f.confidence(), Confidence::possible) << f.title();
}

TEST(RasCounts, OneGoesOnOneDoesNot) {
  // The others enqueue ahead; the rank behind stands still.
  const std::string later =
      "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  31 ranks have launched up "
      "to operation 6690\n"
      "  Rank 9 has launched up to operation 6649 -- GPU 1 managed by process 4410 on node 10.77.20.15\n";
  const Diagnosis d = DiagnoseTexts({{"a.txt", Mismatch(9, 6650)}, {"b.txt", later}});
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::probable);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(9));
}

TEST(RasCounts, ListedRanksMayBeAhead) {
  const std::string ahead =
      "    0         1         4         8        32        32   RUNNING  MISMATCH\n\n#0-0 (fa93daea854b060b) MISMATCH\n"
      "  Communicator ranks have different AllGather operation counts\n  30 ranks have launched up to operation 640\n"
      "  2 ranks have launched up to operation 641\n  Rank 12 -- GPU 4 managed by process 323 on node 10.137.190.124\n"
      "  Rank 13 -- GPU 5 managed by process 324 on node 10.137.190.124\n";
  for (const auto& files : {Files{{"a.txt", ahead}}, Files{{"a.txt", ahead}, {"b.txt", ahead}}}) {
    const Diagnosis d = DiagnoseTexts(files);
    EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
    EXPECT_THAT(d.findings(0).title(), HasSubstr("ahead"));
    EXPECT_FALSE(Has(d, Kind::missing_rank));
  }
}

TEST(RasCounts, AnotherProgramShowsAtOnce) {
  const Diagnosis d =
      DiagnoseTexts({{"ras.txt",
                      "#0-0 (d4172d74d90b1afe) MISMATCH\n  Communicator ranks have different AllGather operation counts\n  3 ranks "
                      "have not launched any operations\n"
                      "  Rank 1 has launched up to operation 1 -- GPU 0 managed by process 792 on node 127.0.0.1\n\n"
                      "  Communicator ranks have different AllReduce operation counts\n  3 ranks have launched up to operation 13\n"
                      "  Rank 1 has launched up to operation 12 -- GPU 0 managed by process 792 on node 127.0.0.1\n"}});
  EXPECT_EQ(d.findings(0).kind(), Kind::collective_mismatch);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(1));
  // One against one: the kind is sure, who is not.
  const Diagnosis two =
      DiagnoseTexts({{"ras.txt",
                      "#0-0 (d4172d74d90b1afe) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
                      "  Rank 1 has launched up to operation 1 -- GPU 0 managed by process 792 on node h\n  Rank 0 has not launched "
                      "any operations -- GPU 0 managed by process 7 on "
                      "node h\n"
                      "  Communicator ranks have different AllReduce operation counts\n"
                      "  Rank 0 has launched up to operation 13 -- GPU 0 managed by process 7 on node h\n  Rank 1 has launched up to "
                      "operation 12 -- GPU 0 managed by process 792 on "
                      "node h\n"}});
  EXPECT_EQ(two.findings(0).kind(), Kind::collective_mismatch);
  EXPECT_THAT(Ranks(two.findings(0)), IsEmpty());
}

TEST(RasCounts, BehindInSeveralFunctionsIsNoDivergence) {
  const std::string both =
      Mismatch(3, 100, 8) +
      "  Communicator ranks have different Broadcast operation counts\n  7 ranks have launched up to operation 5\n"
      "  Rank 3 has launched up to operation 4 -- GPU 1 managed by process 4410 on node 10.77.20.15\n";
  EXPECT_EQ(DiagnoseTexts({{"a.txt", both}}).findings(0).kind(), Kind::undetermined);
  EXPECT_EQ(DiagnoseTexts({{"a.txt", both}, {"b.txt", both}}).findings(0).kind(), Kind::missing_rank);
}

TEST(RasCounts, SubCommunicatorsNameAProcess) {
  // Rank 1 of two communicators of two is the same process; rank 0 of the second waits for rank 1 of the first, too.
  const std::string tp =
      "    0         1         1         4         4         4   RUNNING      OK\n    1         2         1         2         2       "
      "  3   RUNNING  MISMATCH\n\n"
      "#1-0 (21920cbd64ee28c8) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
      "  Rank 0 has launched up to operation 6 -- GPU 0 managed by process 1264 on node 10.0.0.1\n"
      "  Rank 1 has launched up to operation 5 -- GPU 0 managed by process 1265 on node 10.0.0.1\n\n"
      "#1-1 (4fd42c4a47d72056) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
      "  Rank 0 has launched up to operation 6 -- GPU 0 managed by process 1263 on node 10.0.0.1\n"
      "  Rank 1 has launched up to operation 5 -- GPU 0 managed by process 1265 on node 10.0.0.1\n";
  const Diagnosis d = DiagnoseTexts({{"a.txt", tp}, {"b.txt", tp}});
  ASSERT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());  // rank 1 is not a rank of the job
  EXPECT_THAT(TextOf(d.findings(0)), HasSubstr("process 1265"));
  // The same without the table that tells sizes.
  const std::string part = tp.substr(tp.find('#'));
  const Diagnosis bare = DiagnoseTexts({{"a.txt", part}, {"b.txt", part}});
  EXPECT_THAT(Ranks(bare.findings(0)), IsEmpty());
}

TEST(RasProcesses, IncompleteThenDead) {
  const std::string first =
      "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n\nErrors\n======\n\nINCOMPLETE\n"
      "  Missing communicator data from 1 job process\n  Process 3487 on node 10.77.64.213 managing GPU 5\n\n"
      "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: "
      "21\n\nWarnings\n========\n\nTIMEOUT\n"
      "  Encountered 2 communication timeouts while gathering communicator data\n";
  const std::string second =
      "Errors\n======\n\nDEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 3487 on node "
      "10.77.64.213 managing GPU 5\n\n"
      "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 21\n";
  const Diagnosis one = DiagnoseTexts({{"ras-1.txt", first}});
  EXPECT_EQ(one.findings(0).kind(), Kind::process_stopped);
  EXPECT_THAT(Ranks(one.findings(0)), ElementsAre(21));
  const Diagnosis both = DiagnoseTexts({{"ras-1.txt", first}, {"ras-2.txt", second}});
  EXPECT_EQ(both.findings(0).kind(), Kind::process_exited);
  EXPECT_THAT(Ranks(both.findings(0)), ElementsAre(21));
  EXPECT_THAT(TextOf(both.findings(0)), HasSubstr("DEAD"));
  EXPECT_THAT(both.findings(0).next().command(), HasSubstr("3487"));
  EXPECT_FALSE(Has(both, Kind::collective_mismatch));
}

TEST(RasProcesses, MostAreGoneIsNoCulprit) {
  const Diagnosis d = DiagnoseTexts(
      {{"ras.txt",
        "Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  "
        "(total)\n"
        "      1          4            1          4        4\n\nErrors\n======\n\nINCOMPLETE\n  Missing communicator data from 3 job "
        "processes\n"
        "  Process 7 on node h managing GPU 0\n  Process 8 on node h managing GPU 0\n  Process 9 on node h managing GPU 0\n"}});
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(Ranks(d.findings(0)), IsEmpty());
}

TEST(RasProcesses, CommandsHoldNoRawText) {
  const Diagnosis d = DiagnoseTexts(
      {{"ras.txt", "INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 7 on node $(reboot) managing GPU 0\n"}});
  for (const Finding& f : d.findings()) EXPECT_THAT(f.next().command(), Not(HasSubstr("reboot")));
}

TEST(RasStates, OwnErrorBeforeRemoteOnes) {
  const Diagnosis d = DiagnoseTexts(
      {{"ras.txt",
        "#0-0 (cf264af53edbe986) ERROR\n  Asynchronous errors on 3 ranks\n  2 ranks reported Remote process error\n"
        "  Rank 4 -- GPU 4 managed by process 5 on node 10.9.0.1\n  Rank 5 -- GPU 5 managed by process 6 on node 10.9.0.1\n"
        "  Rank 9 reported Unhandled CUDA error -- GPU 1 managed by process 9 on node 10.9.0.2\n"}});
  EXPECT_EQ(d.findings(0).kind(), Kind::error_reported);
  EXPECT_THAT(Ranks(d.findings(0)), ElementsAre(9));
}

TEST(RasStates, TearDownIsNormalOnce) {
  const std::string tear_down =
      "    0         1         4       1-2        32        32  FINALIZE  MISMATCH\n    1         7         4         1         4     "
      "   28   RUNNING      OK\n"
      "    2         1         4         1         4         4      INIT      OK\n\n#0-0 (9e17999afaa87dbb) MISMATCH\n"
      "  Communicator ranks have different status\n  26 ranks have status UNKNOWN\n  4 ranks have status RUNNING\n"
      "  Rank 0 -- GPU 0 managed by process 507285 on node 172.16.64.210\n  Rank 8 -- GPU 0 managed by process 1598388 on node "
      "172.16.64.212\n"
      "  2 ranks have status FINALIZE\n  Rank 4 -- GPU 4 managed by process 507289 on node 172.16.64.210\n";
  EXPECT_EQ(DiagnoseTexts({{"ras.txt", tear_down}}).findings(0).kind(), Kind::none);
}

TEST(RasStates, OkIsNotHealthy) {
  const std::string ok = "    0         1        32         8       256       256   RUNNING      OK\n";
  const Diagnosis d = DiagnoseTexts({{"ras.txt", ok}});
  EXPECT_EQ(d.findings(0).kind(), Kind::none);
  EXPECT_THAT(d.findings(0).refuted_by(), HasSubstr("sends and receives"));
  EXPECT_EQ(d.state(), State::unknown);
}

// ---- what real NCCL answered
struct Expected {
  std::vector<Kind::Value> kinds;  // of the first finding
  std::vector<int> ranks;
};

TEST(RasCorpus, RightOrHonest) {
  const std::filesystem::path root = std::filesystem::path(RINGSCOPE_SOURCE_DIR) / "tests/corpus/ras";
  const std::vector<Kind::Value> silent = {Kind::none, Kind::undetermined};
  const std::map<std::string, Expected> expected = {
      {"2.24.3_rank2_skips_op10", {{Kind::undetermined}, {}}},  // one answer
      {"2.26.6_rank2_skips_op10", {{Kind::undetermined}, {}}},
      {"2.28.9_rank2_skips_op10", {{Kind::missing_rank}, {2}}},
      {"b2_3000_ops_rank2_skips_op2500", {{Kind::missing_rank}, {2}}},
      {"d2_rank0_work_6s_recovers", {{Kind::missing_rank}, {0}}},  // possible: it stood still when it was asked
      {"e3_2procs_x_2gpus_rank3_skips", {{Kind::missing_rank}, {3}}},
      {"i4_init_rank2_sigstop", {{Kind::process_stopped}, {2}}},
      {"n2_2x4_rank5_skips_op10", {{Kind::missing_rank}, {5}}},
      {"n5_2x4_rank6_sigstop", {{Kind::process_stopped}, {6}}},
      {"pp1_pipeline_rank2_no_recv_goes_on_large", {{Kind::missing_rank}, {1}}},  // the victim; RAS cannot know
      {"r1_ras_rank2_skips", {{Kind::missing_rank}, {2}}},
      {"r3_ras_rank1_sigstop", {{Kind::process_stopped}, {1}}},
      {"t1_tp2dp2_rank3_skips_tp", {{Kind::missing_rank}, {3}}},
      {"x1_rank1_allgather_instead", {{Kind::collective_mismatch}, {1}}},
  };
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    Files files;
    for (const auto& file : std::filesystem::directory_iterator(entry.path())) {
      std::ifstream in(file.path());
      std::stringstream text;
      text << in.rdbuf();
      files.push_back({file.path().filename(), text.str()});
    }
    ++seen;
    const Diagnosis d = DiagnoseTexts(files);
    if (d.findings_size() == 0) {
      EXPECT_EQ(name, "i2_init_rank2_killed_early");  // nobody answered
      continue;
    }
    const Finding& first = d.findings(0);
    const auto it = expected.find(name);
    const Expected want = it == expected.end() ? Expected{silent, {}} : it->second;
    EXPECT_THAT(want.kinds, ::testing::Contains(first.kind())) << first.title();
    EXPECT_EQ(Ranks(first), want.ranks) << first.title();
    if (first.kind() == Kind::missing_rank) {
      EXPECT_EQ(first.confidence(), Confidence::possible);
      EXPECT_EQ(d.state(), State::unknown);  // a pause looks the same
    }
    EXPECT_FALSE(first.title().empty() || first.next().text().empty() || first.evidence_size() == 0);
    for (const Finding& f : d.findings()) EXPECT_NE(f.confidence(), Confidence::established);
  }
  EXPECT_GE(seen, 20);
}

}  // namespace
}  // namespace ringscope
