// What the engineer reads, as whole pages.
#include "analyzer/report/text.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::report {
namespace {

using testing::CommRef;
using ::testing::HasSubstr;
using testing::JobBuilder;
using ::testing::Not;

Diagnosis Parse(const std::string& text) {
  Diagnosis d;
  if (!google::protobuf::TextFormat::ParseFromString(text, &d)) abort();
  return d;
}

model::Job MissingRank() {
  JobBuilder b(4);
  b.RanksPerHost(2);
  const CommRef w = b.Comm("world", {0, 1, 2, 3}, 0x1f2e3d4c5b6a7988);
  b.Finish(w, 10);
  for (int r : {0, 1, 3}) b.Coll(w, r, 11).Running();
  return b.Build();
}

constexpr char kMissingRank[] = R"pb(
  state: hang
  summary: "Ranks 0,1,3 wait in all-reduce #11 for rank 2, which is alive and has not called it."
  ranks_seen: 4
  ranks_total: 4
  findings {
    kind: missing_rank
    confidence: established
    title: "rank 2 has not entered all-reduce #11 of world, the others are in it"
    who { ranks: 2 hosts: "host1" communicators: "world (0x1f2e3d4c5b6a7988)" }
    cause { id: "not established" }
    collateral { ranks: 0 ranks: 1 ranks: 3 }
    evidence {
      text: "its newest collective is #10, finished 60.0 s before the end of the record"
      source: "rank 2 on host1 (/tmp/job/rank2.flight)"
      rank: 2
      row: 9
    }
    evidence { text: "ranks 0,1,3 run #11" rank: 0 row: 10 }
    refuted_by: "a stack of rank 2 inside NCCL"
    next { text: "See where rank 2 is." command: "py-spy dump --pid 1002" }
    explains: 1
  }
  findings {
    kind: edge_stalled
    confidence: possible
    title: "edge 1 -> 2 does not move"
    who { edges { from: 1 to: 2 } }
  }
  not_seen: "no kernel log"
)pb";

TEST(Text, AHang) {
  EXPECT_EQ(RenderText(Parse(kMissingRank), MissingRank(), {}),
            R"(HANG  Rank 2 has not entered all-reduce #11 of world, the others are in it
  Ranks 0,1,3 wait in all-reduce #11 for rank 2, which is alive and has not
  called it.
  records of 4 of 4 ranks, 2 hosts, 1 communicator, 4 files

who     rank 2, on host1, in world (0x1f2e3d4c5b6a7988)
what    missing_rank, established
why     not established
waits   ranks 0,1,3 (collateral)

Next
  See where rank 2 is.
  $ py-spy dump --pid 1002

Evidence
  - its newest collective is #10, finished 60.0 s before the end of the record
    [rank 2 on host1, table entry 9]
  - ranks 0,1,3 run #11 [rank 0, table entry 10]
    rank 2: /tmp/job/rank2.flight

What would refute it
  a stack of rank 2 inside NCCL

Other findings
  2. Edge 1 -> 2 does not move (edge_stalled, possible); explained by finding 1

Communicators: who has entered, enqueued, started, finished what
  world (0x1f2e3d4c), 4 ranks
    ranks 0,1,3   entered #11 all-reduce, running
    rank 2        entered #10 all-reduce, finished

Not seen
  - no kernel log
)");
}

// Forty lines for the tired; what is left out is named, and --verbose has it.
TEST(Text, WhatDoesNotFitIsNamed) {
  Diagnosis d = Parse(kMissingRank);
  for (int i = 0; i < 60; ++i) {
    d.mutable_findings(0)->add_evidence()->set_text("evidence number " + std::to_string(i));
    d.add_not_seen("not seen number " + std::to_string(i));
  }
  const std::string text = RenderText(d, MissingRank(), {});
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
  EXPECT_THAT(text, HasSubstr("More with --verbose: communicators, what was not seen"));
  EXPECT_THAT(text, HasSubstr("$ py-spy dump --pid 1002"));
  EXPECT_THAT(text, HasSubstr("its newest collective is #10"));
  EXPECT_THAT(text, Not(HasSubstr("evidence number 59")));
  TextOptions everything;
  everything.lines = 0;
  const std::string all = RenderText(d, MissingRank(), everything);
  EXPECT_THAT(all, HasSubstr("evidence number 59"));
  EXPECT_THAT(all, HasSubstr("not seen number 59"));
  EXPECT_THAT(all, Not(HasSubstr("--verbose")));
}

TEST(Text, TheWayThatTheWaitingTakesIsDrawn) {
  Diagnosis d = Parse(kMissingRank);
  Finding& f = *d.mutable_findings(0);
  f.clear_evidence();
  for (int rank : {0, 1}) {
    Evidence& e = *f.add_evidence();
    e.set_text("rank " + std::to_string(rank) + " waits");
    e.set_rank(rank);
    f.add_chain(static_cast<uint32_t>(rank));
  }
  const std::string text = RenderText(d, MissingRank(), {});
  EXPECT_THAT(text, HasSubstr("Who waits for whom: rank 0 -> rank 1 -> rank 2\n"
                              "  1. rank 0 waits [rank 0, table entry 0]\n"
                              "  2. rank 1 waits [rank 1, table entry 0]\n"));
}

TEST(Text, NoLineIsWiderThanAsked) {
  Diagnosis d = Parse(kMissingRank);
  d.mutable_findings(0)->set_title(std::string(30, 'w') + " " + std::string(40, 'x') + " " + std::string(40, 'y'));
  d.mutable_findings(0)->mutable_next()->set_command("echo short");
  const std::string text = RenderText(d, MissingRank(), {});
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != text.npos; begin = end + 1, end = text.find('\n', begin))
    EXPECT_LE(end - begin, 80u) << text.substr(begin, end - begin);
}

TEST(Markdown, AHangForATicket) {
  const std::string text = RenderMarkdown(Parse(kMissingRank), MissingRank(), {});
  EXPECT_THAT(text, HasSubstr("### HANG: Rank 2 has not entered all-reduce \\#11 of world, the others are in it\n"));
  EXPECT_THAT(text, HasSubstr("- **who**: rank 2, on host1"));
  EXPECT_THAT(text, HasSubstr("  `py-spy dump --pid 1002`  \n"));
}

// What a record or a log holds cannot become markup, and a command stays code.
TEST(Markdown, TextOfARecordIsNoMarkup) {
  Diagnosis d = Parse(kMissingRank);
  Finding& f = *d.mutable_findings(0);
  f.set_title("<img src=x> [a](http://b) `c` # d\n# e");
  f.mutable_next()->set_command("echo `date` ``x``");
  const std::string text = RenderMarkdown(d, MissingRank(), {});
  EXPECT_THAT(text, HasSubstr("\\<img src=x\\> \\[a\\](http://b) \\`c\\` \\# d?\\# e"));
  EXPECT_THAT(text, HasSubstr("  ``` echo `date` ``x`` ```  \n"));
}

TEST(Text, AHealthyJob) {
  JobBuilder b(2);
  const CommRef w = b.Comm("", {0, 1}, 0xabc);
  b.Finish(w, 3);
  EXPECT_EQ(RenderText(Parse("state: healthy ranks_seen: 2 ranks_total: 2"), b.Build(), {}),
            R"(HEALTHY  Nothing wrong found
  records of 2 of 2 ranks, 1 host, 1 communicator, 2 files

Communicators: who has entered, enqueued, started, finished what
  communicator 0xabc, 2 ranks
    ranks 0,1     entered #3 all-reduce, finished
)");
}

TEST(Text, ColourOnlyWhenAsked) {
  TextOptions colour;
  colour.colour = true;
  EXPECT_THAT(RenderText(Parse(kMissingRank), MissingRank(), colour),
              HasSubstr("\x1b[1;31mHANG\x1b[0m"));
  EXPECT_THAT(RenderText(Parse(kMissingRank), MissingRank(), {}), Not(HasSubstr("\x1b")));
}

// Names come out of records: they must not be able to drive the terminal or to forge lines of the
// report.
TEST(Text, ControlCharactersOfARecordDoNotReachTheTerminal) {
  JobBuilder b(2);
  b.Comm("evil\x1b[2J\nHEALTHY", {0, 1});
  Diagnosis d = Parse(kMissingRank);
  d.mutable_findings(0)->set_title("title\x1b[31m\nx");
  d.mutable_findings(0)->mutable_next()->set_command("rm\r\n-rf\x07");
  d.mutable_findings(0)->mutable_evidence(0)->set_source("a\x1b]0;b");
  const std::string text = RenderText(d, b.Build(), {});
  for (char c : text)
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  EXPECT_THAT(text, Not(HasSubstr("\nHEALTHY")));
}

TEST(Text, SixteenThousandRanksStayReadable) {
  JobBuilder b(2);
  model::Job job = b.Build();
  model::Communicator c;
  c.n_ranks = 16384;
  trace::Communicator raw;
  raw.set_collectives(7);
  trace::Communicator behind;
  behind.set_collectives(6);
  for (int r = 0; r < 16384; ++r) {
    model::Member m;
    m.rank = m.job_rank = r;
    m.process = r % 1000 == 999 ? -1 : 0;
    m.raw = r == 5000 ? &behind : &raw;
    m.collectives = m.raw->collectives();
    c.members.push_back(std::move(m));
  }
  job.communicators.push_back(std::move(c));
  const std::string text = RenderText(Parse("state: hang"), job, {});
  EXPECT_LT(text.size(), 1500u) << text;
  EXPECT_THAT(text, HasSubstr("rank 5000     entered #6"));
  EXPECT_THAT(text, HasSubstr("999-15999/1000  no record"));
}

TEST(Text, ManyCommunicatorsShowThoseWithSomethingOpen) {
  JobBuilder b(2);
  for (int i = 0; i < 30; ++i) {
    const CommRef c = b.Comm("c" + std::to_string(i), {0, 1});
    b.Finish(c, 1);
    if (i == 29) b.Coll(c, 0, 2).Entered();
  }
  TextOptions options;
  options.communicators = 3;
  const std::string text = RenderText(Parse("state: hang"), b.Build(), options);
  EXPECT_THAT(text, HasSubstr("c29"));
  EXPECT_THAT(text, HasSubstr("rank 0        entered #2 all-reduce, inside the call"));
  EXPECT_THAT(text, HasSubstr("... and 27 more communicators, 0 of them with something open"));
}

}  // namespace
}  // namespace ringscope::report
