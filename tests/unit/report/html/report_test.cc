// The report as a whole: its parts, its size, its manners with what it is given.
#include "analyzer/report/html/report.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "analyzer/report/html/page.h"
#include "analyzer/report/html/sha256.h"
#include "tests/unit/report/html/page_reader.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::report::html {
namespace {

using ringscope::testing::CommRef;
using ringscope::testing::JobBuilder;
using ringscope::testing::PageReader;
using ::testing::HasSubstr;
using ::testing::Not;

Diagnosis Parse(const std::string& text) {
  Diagnosis d;
  if (!google::protobuf::TextFormat::ParseFromString(text, &d)) abort();
  return d;
}

// Rank 2 of 4, on two hosts, stays out of operation 11.
JobBuilder MissingRank() {
  JobBuilder b(4);
  b.RanksPerHost(2);
  const CommRef w = b.Comm("world", {0, 1, 2, 3}, 0x1f2e3d4c5b6a7988);
  b.Finish(w, 10);
  for (int r : {0, 1, 3}) b.Coll(w, r, 11).Running();
  b.Stalled(w, 0, 11, 11, 71);
  return b;
}

constexpr char kMissing[] = R"pb(
  state: hang
  summary: "Three wait for one."
  ranks_seen: 4
  ranks_total: 4
  findings {
    kind: missing_rank
    confidence: established
    title: "rank 2 has not entered all-reduce #11"
    who { ranks: 2 hosts: "host1" communicators: "world (0x1f2e3d4c)" }
    cause { id: "UC-01" confidence: possible }
    collateral { ranks: 0 ranks: 1 ranks: 3 }
    evidence { text: "its newest is #10" source: "rank 2 on host1 (/tmp/rank2.flight)" rank: 2 row: 9 }
    evidence { text: "a line of its log" source: "rank2.log" line: 5 rank: -1 }
    refuted_by: "a stack of rank 2 inside NCCL"
    next { text: "See where rank 2 is." command: "py-spy dump --pid 1002" }
    explains: 1
    rivals { text: "it is only slow" told_apart_by: "a second stack" finding: -1 }
    checks { expects: "rank 3 received nothing" outcome: holds seen: "0 of 8 steps" }
  }
  findings {
    kind: edge_stalled
    confidence: possible
    title: "edge 1 -> 2 does not move"
    who { edges { from: 1 to: 2 } }
  }
  not_seen: "no kernel log"
)pb";

std::vector<std::string> Ids(const PageReader& page) {
  std::vector<std::string> ids;
  for (const auto& e : page.elements) {
    if (const auto id = e.attributes.find("id"); e.name == "section" && id != e.attributes.end()) ids.push_back(id->second);
  }
  return ids;
}

TEST(Report, ItsParts) {
  model::Job job = MissingRank().Build();
  job.evidence.files.emplace_back().path = "rank2.log";
  const Diagnosis d = Parse(kMissing);
  EXPECT_EQ(LinesWanted(d, job), (LineNumbers{{"rank2.log", {2, 3, 4, 5, 6, 7, 8}}}));
  const std::string page = RenderReport(d, job, {{"rank2.log", {{4, "before"}, {5, "<cited> line"}, {6, "behind"}}}});
  const PageReader read(page);
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(Ids(read), (std::vector<std::string>{"ring", "progress", "timeline", "evidence", "findings", "catalogue", "inputs"}));
  for (const char* part : {"HANG", "rank 2 has not entered all-reduce #11", "py-spy dump --pid 1002",
                           "a stack of rank 2 inside NCCL", "it is only slow", "a second stack", "rank 3 received nothing",
                           "edge 1 -&gt; 2 does not move", "no kernel log", "ranks 0,1,3", "&lt;cited&gt; line", "rank2.log:5",
                           "#10 all-reduce of 1024 FLOAT32", "The order of the ring is not known"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_EQ(page, RenderReport(d, job, {{"rank2.log", {{4, "before"}, {5, "<cited> line"}, {6, "behind"}}}}));
}

TEST(Report, WhoIsBehindIsInTheData) {
  const model::Job job = MissingRank().Build();
  const PageReader read(RenderReport(Parse(kMissing), job, {}));
  ASSERT_EQ(read.error, "");
  nlohmann::json map, line;
  for (const auto& e : read.elements) {
    const auto id = e.attributes.find("id");
    if (e.name != "script" || id == e.attributes.end()) continue;
    (id->second == "map-data" ? map : line) = nlohmann::json::parse(e.raw);
  }
  ASSERT_EQ(map["maps"].size(), 1u);
  const auto state = [&](int rank) { return map["texts"][map["maps"][0][rank].get<size_t>()].get<std::string>(); };
  EXPECT_EQ(state(0), "entered #11 all-reduce, running");
  EXPECT_EQ(state(2), "entered #10 all-reduce, finished");
  EXPECT_EQ(map["hosts"][map["host"][2].get<size_t>()], "host1");
  ASSERT_EQ(line["ranks"].size(), 4u);
  EXPECT_EQ(line["accused"], nlohmann::json({2}));
  EXPECT_EQ(line["ranks"][0]["n"].back(), 11);
  EXPECT_EQ(line["ranks"][0]["k"].back(), 1);   // open
  EXPECT_EQ(line["ranks"][0]["d"].back(), -1);  // no end
  EXPECT_EQ(line["ranks"][2]["n"].back(), 10);
  EXPECT_EQ(line["ranks"][2]["k"].back(), 0);
  // Operation 11 was entered at second 11, when the stall began.
  EXPECT_EQ(line["stall"], line["ranks"][0]["e"].back());
}

TEST(Report, OfNothing) {
  const model::Job job;
  for (const char* d : {"state: healthy", "state: unknown summary: \"?\"", "state: hang findings { kind: undetermined }",
                        "findings { kind: none }"}) {
    const PageReader read(RenderReport(Parse(d), job, {}));
    EXPECT_EQ(read.error, "") << d;
  }
}

TEST(Report, RanksAndEdgesThatDoNotExist) {
  Diagnosis d = Parse(kMissing);
  Finding& f = *d.mutable_findings(0);
  for (const int rank : {-1, 4, 2147483647, -2147483647 - 1}) {
    f.mutable_who()->add_ranks(rank);
    f.mutable_collateral()->add_ranks(rank);
    EdgeName& e = *f.mutable_who()->add_edges();
    e.set_from(rank);
    e.set_to(1);
  }
  f.add_explains(4000000000);
  f.mutable_rivals(0)->set_finding(77);
  f.mutable_evidence(0)->set_row(4294967295u);
  f.mutable_evidence(1)->set_line(4294967295u);
  model::Job job = MissingRank().Build();
  job.evidence.files.emplace_back().path = "rank2.log";
  LinesWanted(d, job);
  EXPECT_EQ(PageReader(RenderReport(d, job, {})).error, "");
}

TEST(Report, ARankThatCannotBe) {
  JobBuilder b(2);
  b.Finish(b.Comm("world", {0, 1}), 3);
  b.Record(1).mutable_process()->set_rank(1000000);
  const std::string page = RenderReport(Parse("state: unknown"), b.Build(), {});
  EXPECT_EQ(PageReader(page).error, "");
  EXPECT_LT(page.size(), 1u << 20);
}

// -------------------------------------------------------------------------------------------------- hostile text

constexpr char kHostile[] =
    "\"'></title></textarea></style></script><script>window.pwned=1</script><img src=x onerror=window.pwned=2><svg "
    "onload=window.pwned=3><!-- ${1} "
    "{{2}} javascript:x "
    "\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6 \xff\xc0\xbc \x01\x1b[31m ]]> &lt; \\";

void FillStrings(google::protobuf::Message* m, int depth) {
  const auto* of = m->GetReflection();
  const auto* descriptor = m->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
      if (field->is_repeated()) {
        of->AddString(m, field, kHostile);
      } else {
        of->SetString(m, field, kHostile);
      }
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE && depth > 0) {
      FillStrings(field->is_repeated() ? of->AddMessage(m, field) : of->MutableMessage(m, field), depth - 1);
    }
  }
}

model::Job HostileJob() {
  JobBuilder b(4);
  const CommRef w = b.Comm(kHostile, {0, 1, 2, 3}, 0x77);
  b.Finish(w, 5);
  b.Coll(w, 0, 6).Running();
  b.EdgeOf(w, 0, 1).Send(6, 8, trace::SEND_WAIT, 1).Recv(6, 8, trace::RECV_WAIT, 1);
  for (int r = 0; r < 4; ++r) {
    b.Record(r).mutable_process()->set_host(absl::StrCat(kHostile, r / 2));
    b.InCall(r, trace::CallInFlight::NONE, 3);
    auto& call = *b.Record(r).mutable_calls(0);
    call.set_host_function(kHostile);
    call.set_host_since_ns(call.since_ns());
  }
  model::Job job = b.Build();
  job.left_out = {kHostile};
  auto& e = job.evidence;
  e.files.emplace_back().path = kHostile;
  const model::Where where{0, 1};
  model::Speaker by;
  by.host = absl::StrCat(kHostile, 0);
  model::TopologySystem system;
  system.nvswitch = true;
  system.where = where;
  system.by = by;
  for (uint64_t bus : {0x1b000, 0x43000}) {
    model::TopologyGpu gpu;
    gpu.bus_id = bus;
    gpu.parent = bus - 0x1000;
    system.gpus.push_back(gpu);
  }
  system.nics.push_back({kHostile, 0, 0x1c000, 0x1a000, -1, -1, 50, where});
  e.plan.systems.push_back(system);
  for (int r = 0; r < 4; ++r) {
    model::RankPlan plan;
    plan.rank = r;
    plan.n_ranks = 4;
    plan.communicator = "0x77";
    plan.where = where;
    plan.by = by;
    plan.rings.push_back({0, (r + 3) % 4, (r + 1) % 4, {}});
    e.plan.plans.push_back(plan);
  }
  model::TransportLine line;
  line.from = 0;
  line.to = 1;
  line.via = kHostile;
  line.plan = 0;
  e.plan.transports.push_back(line);
  model::TopologyMatrix matrix;
  matrix.columns = {kHostile};
  matrix.rows.push_back({kHostile, {kHostile}, "", "", where});
  matrix.legend[kHostile] = kHostile;
  matrix.where = where;
  matrix.by = by;
  e.plan.matrices.push_back(matrix);
  for (const double value : {1.0, 2.0}) {
    model::HardwareSnapshot s;
    s.by = by;
    s.label = value < 2 ? "before" : "after";
    model::GpuReading gpu;
    gpu.index = 0;
    gpu.product = kHostile;
    model::LinkReading link;
    link.link = 1;
    link.state = model::LinkReading::State::kActive;
    link.counters[kHostile] = value;
    gpu.links.push_back(link);
    s.gpus.push_back(gpu);
    e.hardware.snapshots.push_back(s);
    model::NetworkCounter counter;
    counter.device = kHostile;
    counter.name = kHostile;
    counter.value = static_cast<uint64_t>(value);
    counter.where = {0, static_cast<uint32_t>(value)};
    counter.by = by;
    e.network.counters.push_back(counter);
  }
  model::RdmaPort port;
  port.device = kHostile;
  port.state = kHostile;
  port.by = by;
  e.network.ports.push_back(port);
  return job;
}

Diagnosis HostileDiagnosis() {
  Diagnosis d;
  FillStrings(&d, 3);
  d.set_state(State::hang);
  Finding& f = *d.mutable_findings(0);
  f.set_kind(Kind::missing_rank);
  f.mutable_who()->add_ranks(1);
  EdgeName& e = *f.mutable_who()->add_edges();
  e.set_from(0);
  e.set_to(1);
  f.mutable_who()->set_hosts(0, absl::StrCat(kHostile, 0));
  f.mutable_who()->set_communicators(0, absl::StrCat(kHostile, " (0x77)"));
  f.mutable_evidence(0)->set_line(2);
  f.mutable_evidence(0)->set_rank(-1);
  *f.add_evidence() = f.evidence(0);
  f.mutable_evidence(1)->set_line(0);
  f.mutable_evidence(1)->set_rank(1);
  return d;
}

TEST(HostileText, StaysTextWhereverItStands) {
  const model::Job job = HostileJob();
  const Diagnosis d = HostileDiagnosis();
  const std::string page = RenderReport(d, job, {{kHostile, {{1, kHostile}, {2, std::string(5000, '<') + kHostile}}}});
  if (const char* path = getenv("RINGSCOPE_HOSTILE_PAGE"); path != nullptr) std::ofstream(path) << page;  // tests/browser
  const PageReader read(page);
  ASSERT_EQ(read.error, "");
  const std::set<std::string> elements = {
      "html",   "head", "meta",   "title", "style", "body",    "main",    "header", "nav",     "section", "div",
      "span",   "p",    "h1",     "h2",    "h3",    "ul",      "ol",      "li",     "b",       "i",       "a",
      "br",     "code", "pre",    "table", "tr",    "th",      "td",      "svg",    "g",       "path",    "rect",
      "circle", "text", "button", "input", "label", "details", "summary", "script", "noscript"};
  const std::set<std::string> attributes = {"lang",
                                            "charset",
                                            "http-equiv",
                                            "content",
                                            "name",
                                            "class",
                                            "id",
                                            "href",
                                            "type",
                                            "aria-label",
                                            "aria-labelledby",
                                            "role",
                                            "viewBox",
                                            "width",
                                            "height",
                                            "x",
                                            "y",
                                            "cx",
                                            "cy",
                                            "r",
                                            "rx",
                                            "d",
                                            "data-map",
                                            "tabindex",
                                            "open",
                                            "transform",
                                            "aria-live",
                                            "aria-hidden",
                                            "size",
                                            "autocomplete",
                                            "spellcheck"};
  int scripts = 0;
  for (const auto& e : read.elements) {
    EXPECT_TRUE(elements.contains(e.name)) << e.name;
    for (const auto& [name, value] : e.attributes) {
      EXPECT_TRUE(attributes.contains(name)) << e.name << " " << name;
      if (name == "href") {
        EXPECT_EQ(value[0], '#') << value;
      }
    }
    if (e.name != "script") continue;
    ++scripts;
    if (e.attributes.contains("type")) {
      EXPECT_EQ(e.attributes.at("type"), "application/json");
      EXPECT_TRUE(nlohmann::json::accept(e.raw));
    } else {
      EXPECT_TRUE(e.raw == assets::PageJs() || e.raw == assets::ReportJs());
    }
  }
  EXPECT_EQ(scripts, 4);
  for (const char* bytes : {"\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa6", "\xff", "\xc0", "\x1b", "\x01"})
    EXPECT_THAT(page, Not(HasSubstr(bytes)));
  EXPECT_EQ(Ids(read),
            (std::vector<std::string>{"ring", "progress", "timeline", "counters", "evidence", "fabric", "findings", "inputs"}));
}

TEST(HostileText, EveryScriptAndStyleIsNamedByItsHash) {
  const PageReader read(RenderReport(HostileDiagnosis(), HostileJob(), {}));
  std::string policy;
  for (const auto& e : read.elements) {
    if (e.attributes.contains("http-equiv")) policy = e.attributes.at("content");
  }
  for (const auto& e : read.elements) {
    if (e.attributes.contains("type") || (e.name != "script" && e.name != "style")) continue;
    const auto digest = Sha256(e.raw);
    EXPECT_THAT(policy,
                HasSubstr(absl::StrCat(
                    "'sha256-",
                    absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size())), "'")));
  }
  EXPECT_THAT(policy, ::testing::StartsWith("default-src 'none'; "));
}

TEST(HostileText, LongLinesAreCutBetweenCharacters) {
  model::Job job = MissingRank().Build();
  std::string line(399, 'x');
  for (int i = 0; i < 50; ++i) line += "東";
  const std::string page = RenderReport(Parse(kMissing), job, {{"rank2.log", {{5, line}}}});
  EXPECT_THAT(page, HasSubstr("xxx<span class=\"cut\"> … 150 bytes more</span>"));
}

TEST(HostileText, NoCommandIsFilledWithWhatAShellWouldRun) {
  for (const std::string& host :
       std::vector<std::string>{"a; rm -rf ~", "$(reboot)", "-oProxyCommand=x", "a b", "a`b`", std::string(200, 'a')}) {
    Diagnosis d = Parse(kMissing);
    d.mutable_findings(0)->mutable_who()->set_hosts(0, host);
    d.mutable_findings(0)->mutable_cause()->set_id("HW-01");
    const std::string page = RenderReport(d, MissingRank().Build(), {});
    EXPECT_THAT(page, Not(HasSubstr("ssh " + host.substr(0, 8)))) << host;
    EXPECT_THAT(page, HasSubstr("ssh {host} ")) << host;
  }
  Diagnosis d = Parse(kMissing);
  d.mutable_findings(0)->mutable_cause()->set_id("HW-01");
  EXPECT_THAT(RenderReport(d, MissingRank().Build(), {}), HasSubstr("ssh host1 "));
}

// ---------------------------------------------------------------------------------------------------------- size

TEST(Report, AThousandRanksStaySmall) {
  constexpr int kRanks = 1024, kHost = 8;
  JobBuilder b(kRanks);
  b.RanksPerHost(kHost);
  std::vector<int> all;
  for (int r = 0; r < kRanks; ++r) all.push_back(r);
  const CommRef world = b.Comm("world", all);
  for (int r = 0; r < kRanks; ++r) {
    b.Finish(world, r, 60);
    if (r != 515) b.Coll(world, r, 61).Running();
  }
  for (int h = 0; h < kRanks / kHost; ++h) {
    std::vector<int> host;
    for (int r = 0; r < kHost; ++r) host.push_back(h * kHost + r);
    const CommRef tp = b.Comm("tp", host);
    b.Finish(tp, 60);
  }
  const model::Job job = b.Build();
  Diagnosis d = Parse(kMissing);
  Finding& f = *d.mutable_findings(0);
  f.mutable_who()->set_ranks(0, 515);
  f.mutable_who()->set_communicators(0, job.communicators[0].Label());
  f.clear_collateral();
  for (int r = 0; r < kRanks; ++r) {
    if (r != 515) f.mutable_collateral()->add_ranks(r);
  }
  const std::string page = RenderReport(d, job, {});
  EXPECT_LT(page.size(), 5u << 20);
  const PageReader read(page);
  EXPECT_EQ(read.error, "");
  EXPECT_LT(read.elements.size(), 3000u);  // what a browser must lay out
  EXPECT_THAT(page, HasSubstr("behind the others of its communicator: rank 515;"));
}

}  // namespace
}  // namespace ringscope::report::html
