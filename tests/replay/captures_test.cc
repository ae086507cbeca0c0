// The reader: of good captures, and of everything that is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "tests/replay/flat_json.h"
#include "tests/replay/operations.h"
#include "tests/replay/plan.h"
#include "tests/replay/test_support.h"

namespace ringscope::replay {
namespace {

using testing::HasSubstr;

constexpr char kInit[] =
    R"({"n":1,"t":100,"tid":7,"cb":"init","ver":6,"ctx":1,"commId":"0xab","commName":"w","nNodes":1,"nRanks":2,"rank":0,"pid":7})"
    "\n";

TEST(FlatJson, ReadsScalars) {
  FlatJson json;
  ASSERT_TRUE(json.Parse(
      R"j({"a":1,"b":-2,"c":"x\"y","d":null,"e":true,"f":"0x1f","g":"(nil)","h":18446744073709551615})j"));
  EXPECT_EQ(json.Unsigned("a"), 1u);
  EXPECT_EQ(json.Signed("b"), -2);
  EXPECT_EQ(json.Text("c"), "x\\\"y");
  EXPECT_TRUE(json.Has("d"));
  EXPECT_TRUE(json.True("e"));
  EXPECT_EQ(json.Unsigned("f"), 31u);
  EXPECT_EQ(json.Unsigned("g", 5), 0u);
  EXPECT_EQ(json.Unsigned("h"), ~uint64_t{0});
  EXPECT_EQ(json.Unsigned("missing", 9), 9u);
}

TEST(FlatJson, RefusesEverythingElse) {
  FlatJson json;
  for (const char* line : {"", "{", "{}", "[]", R"({"a")", R"({"a":})", R"({"a":1)", R"({"a":1,})",
                           R"({"a":"x)", R"({"a":nul})", R"({"a":1}{)", R"({"a":{"b":1}})",
                           R"({a:1})", "\xff\xfe", R"({"a":1x})", R"({"a":"\)"}) {
    EXPECT_FALSE(json.Parse(line)) << line;
    EXPECT_LE(json.position(), std::string(line).size() + 1) << line;
  }
}

TEST(Reader, OrdersByNumberAndCountsLoads) {
  auto capture = ReadCapture(CaptureFolder("e1_create_destroy_10x_healthy"));
  ASSERT_TRUE(capture.ok()) << capture.status();
  const Process& process = (*capture)->processes[0];
  EXPECT_EQ(process.contexts.size(), 10u);
  EXPECT_EQ(process.events.back().load, 9u);
  for (size_t i = 1; i < process.events.size(); ++i) {
    const Event &a = process.events[i - 1], &b = process.events[i];
    EXPECT_TRUE(a.load < b.load || (a.load == b.load && a.n < b.n));
  }
  EXPECT_EQ((*capture)->release, 230);
  EXPECT_EQ((*capture)->api, 6);
}

TEST(Reader, KnowsProcessesHostsAndRanks) {
  auto capture = ReadCapture(CaptureFolder("e3_2procs_x_2gpus_rank3_skips"));
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ((*capture)->job_size, 4);
  EXPECT_THAT((*capture)->processes[1].ranks, testing::ElementsAre(2, 3));
  EXPECT_EQ((*capture)->processes[1].host, "host1");
  EXPECT_EQ((*capture)->processes[1].local_index, 0);
  auto wide = ReadCapture(CaptureFolder("n1_2x4_healthy"));
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ((*wide)->processes[6].host, "hostB");
  EXPECT_EQ((*wide)->processes[6].local_index, 2);
  EXPECT_THAT((*wide)->processes[6].ranks, testing::ElementsAre(6));
}

TEST(Reader, TakesACaptureWithoutLayoutFile) {
  ScratchFolder folder;
  folder.Write("rank0.jsonl", kInit);
  auto capture = ReadCapture(folder.path());
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ((*capture)->api, 6);
  EXPECT_EQ((*capture)->processes[0].end.how, AppEnd::kLivesOn) << "no log: nobody saw it end";
}

TEST(Reader, SaysWhereAndWhat) {
  struct Case {
    const char *name, *text, *said;
  };
  const std::string start = R"({"n":2,"t":5,"tid":7,"cb":"start","h":2,"type":)";
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {std::string(kInit) + "{\"n\":2,", "rank0.jsonl:2: not a JSON object"},
           {std::string(kInit) + start + "\"Collective\"}\n",
            "rank0.jsonl:2: unknown type \"Collective\""},
           {std::string(kInit) + R"({"n":2,"t":5,"tid":7,"cb":"state","h":2,"state":"Dancing"})",
            "unknown state \"Dancing\""},
           {std::string(kInit) + R"({"n":2,"t":5,"tid":7,"cb":"sing"})",
            "unknown callback \"sing\""},
           {std::string(kInit) + R"({"n":2,"tid":7,"cb":"stop","h":2})", "no time"},
           {R"({"n":2,"t":5,"tid":7,"cb":"finalize","ctx":4})", "never made"},
       }) {
    ScratchFolder folder;
    folder.Write("rank0.jsonl", text);
    auto capture = ReadCapture(folder.path());
    ASSERT_FALSE(capture.ok()) << text;
    EXPECT_THAT(std::string(capture.status().message()), HasSubstr(said));
  }
  ScratchFolder folder;
  EXPECT_THAT(std::string(ReadCapture(folder.path()).status().message()),
              HasSubstr("neither rank<N>.jsonl nor"));
  EXPECT_THAT(std::string(ReadCapture(folder / "nothing").status().message()),
              HasSubstr("no such folder"));
  folder.Write("rank0.jsonl.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03garbage", 17));
  EXPECT_THAT(std::string(ReadCapture(folder.path()).status().message()), HasSubstr("damaged"));
}

TEST(AppLog, EndsOfProcesses) {
  AppEnd end = ReadAppLog("100 rank 0 tid 7 op 1 call\n200 rank 0 tid 7 end\n");
  EXPECT_EQ(end.how, AppEnd::kExits);
  EXPECT_EQ(end.exit_t, 200u);
  end = ReadAppLog("100 rank 0 tid 7 end\n150 rank 1 tid 8 op 10 SKIPPED, sleeping forever\n");
  EXPECT_EQ(end.how, AppEnd::kLivesOn) << "one of its ranks never ended";
  end = ReadAppLog("100 rank 0 tid 7 op 10 TIMEOUT after 15 s -> exit\n101 rank 0 tid 7 exit\n");
  EXPECT_EQ(end.how, AppEnd::kLivesOn);
  EXPECT_EQ(end.outside_t, 100u);
  end = ReadAppLog("100 rank 0 tid 7 op 10 TIMEOUT after 15 s -> abort\n300 rank 0 tid 7 end\n");
  EXPECT_EQ(end.how, AppEnd::kExits);
  EXPECT_EQ(end.outside_t, 0u);
  end = ReadAppLog("100 rank 0 tid 7 init w -> 6 remote process exited\n101 rank 0 tid 7 exit\n");
  EXPECT_EQ(end.how, AppEnd::kExits);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(ReadAppLog("").how, AppEnd::kLivesOn);
  EXPECT_EQ(ReadAppLog("garbage\n\xff rank x tid\n1 rank 0 tid 99999999999999 end\n").how,
            AppEnd::kLivesOn);
}

TEST(AppLog, Signals) {
  AppEnd end = ReadAppLog("100 rank 1 tid 7 op 10 signal KILL before call\n");
  ASSERT_EQ(end.signals.size(), 1u);
  EXPECT_EQ(end.signals[0].number, SIGKILL);
  end = ReadAppLog("100 rank 1 tid 7 stopafter 3 us\n200 rank 1 tid 7 init w call\n");
  ASSERT_EQ(end.signals.size(), 1u);
  EXPECT_EQ(end.signals[0].number, SIGSTOP);
  EXPECT_EQ(end.signals[0].t, 3100u);
}

TEST(Plan, SignalsComeBeforeTheCall) {
  auto capture = ReadCapture(CaptureFolder("r3_ras_rank1_sigstop"));
  ASSERT_TRUE(capture.ok());
  const std::vector<ProcessPlan> plans = MakePlans(**capture, 0);
  size_t stops = 0;
  for (size_t i = 0; i < plans[1].actions.size(); ++i) {
    const Action& action = plans[1].actions[i];
    if (action.kind != Action::kStopSelf) continue;
    ++stops;
    ASSERT_GT(i, 0u);
    ASSERT_LT(i + 1, plans[1].actions.size());
    EXPECT_LE(plans[1].actions[i - 1].t, action.t);
    // It was continued ten seconds later.
    EXPECT_GT(plans[1].actions[i + 1].t, action.t + 9'000'000'000);
    EXPECT_GT(action.continued_t, action.t + 9'000'000'000);
    EXPECT_LE(action.continued_t, plans[1].actions[i + 1].t);
  }
  EXPECT_EQ(stops, 1u);
  EXPECT_TRUE(plans[1].exits);

  auto killed = ReadCapture(CaptureFolder("e1_rank1_sigkill_before_op10_abort"));
  ASSERT_TRUE(killed.ok());
  const ProcessPlan plan = MakePlans(**killed, 0)[1];
  EXPECT_EQ(plan.actions.back().kind, Action::kKillSelf);
  EXPECT_FALSE(plan.exits);
}

TEST(Plan, OpenOperationsAndCuts) {
  auto capture = ReadCapture(CaptureFolder("b1_rank2_skips_op10"));
  ASSERT_TRUE(capture.ok());
  const std::vector<ProcessPlan> plans = MakePlans(**capture, 0);
  EXPECT_TRUE(plans[0].open_operations && plans[1].open_operations && plans[3].open_operations);
  EXPECT_FALSE(plans[2].open_operations) << "it never entered";
  EXPECT_FALSE(plans[0].long_stall) << "ten operations completed before";

  const auto begin = CutInstant(**capture, "hang:0"), middle = CutInstant(**capture, "hang:0.5"),
             end = CutInstant(**capture, "hang:1");
  ASSERT_TRUE(begin.ok() && middle.ok() && end.ok());
  EXPECT_LT(*begin, *middle);
  EXPECT_LT(*middle, *end);
  EXPECT_EQ(*end, (*capture)->last_t);
  // Operation 10 is the eleventh; rank 0 was the first to enter it.
  std::vector<uint64_t> entered;
  for (const Process& process : (*capture)->processes) {
    const std::vector<Operation> operations = OperationsOf(process, 0);
    if (operations.size() > 10) entered.push_back(operations[10].entered_t);
  }
  EXPECT_EQ(entered.size(), 3u);
  EXPECT_EQ(*begin, *std::min_element(entered.begin(), entered.end()));
  for (const ProcessPlan& plan : MakePlans(**capture, *middle)) EXPECT_LE(plan.last_t, *middle);
  EXPECT_EQ(*CutInstant(**capture, "1.5"), (*capture)->first_t + 1'500'000'000);
  EXPECT_EQ(*CutInstant(**capture, "1296389798999"), 1296389798999u);
  for (const char* wrong : {"", "x", "hang:", "hang:2", "hang:-1", "-3", "1s"}) {
    EXPECT_FALSE(CutInstant(**capture, wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace ringscope::replay
