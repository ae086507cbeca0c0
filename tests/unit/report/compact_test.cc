#include "analyzer/report/compact.h"

#include <gtest/gtest.h>

namespace ringscope::report {
namespace {

Diagnosis One() {
  Diagnosis d;
  d.set_state(State::hang);
  Finding* f = d.add_findings();
  f->set_kind(Kind::missing_rank);
  f->set_confidence(Confidence::probable);
  f->set_title("rank 2 has not entered AllReduce #11");
  f->mutable_who()->add_ranks(2);
  Evidence* e = f->add_evidence();
  e->set_text("rank 2 is outside NCCL");
  e->set_source("rank 2 on node-2 (a.trace)");
  e->set_rank(2);
  e->set_row(9);
  e = f->add_evidence();
  e->set_text("Watchdog caught\na timeout\x1b[31m");
  e->set_source("job.log");
  e->set_line(412);
  e->set_rank(-1);
  f->mutable_next()->set_text("look at rank 2");
  f->mutable_next()->set_command("py-spy dump --pid 1");
  return d;
}

TEST(Compact, AFindingStandsAtItsFirstLineOfAFile) {
  EXPECT_EQ(
      "job.log:412: error: rank 2 has not entered AllReduce #11 [missing_rank, probable] (ranks 2)\n"
      "ringscope: note: rank 2 is outside NCCL [rank 2 on node-2, table entry 9]\n"
      "job.log:412: note: Watchdog caught a timeout?[31m\n"
      "ringscope: note: next: look at rank 2 (py-spy dump --pid 1)\n",
      RenderCompact(One()));
}

TEST(Compact, WhatIsUnsureOrOverIsAWarning) {
  Diagnosis d = One();
  d.mutable_findings(0)->mutable_evidence()->Clear();
  d.mutable_findings(0)->set_confidence(Confidence::possible);
  EXPECT_EQ(0u, RenderCompact(d).find("ringscope: warning: ")) << RenderCompact(d);
  d.mutable_findings(0)->set_confidence(Confidence::established);
  EXPECT_EQ(0u, RenderCompact(d).find("ringscope: error: "));
  d.mutable_findings(0)->set_past(true);
  EXPECT_NE(std::string::npos, RenderCompact(d).find("warning: rank 2 has not entered AllReduce #11 [missing_rank, established, over]"));
  d.mutable_findings(0)->set_kind(Kind::undetermined);
  d.mutable_findings(0)->set_past(false);
  EXPECT_EQ(0u, RenderCompact(d).find("ringscope: warning: "));
}

TEST(Compact, WithoutAFindingTheStateIsSaid) {
  Diagnosis d;
  d.set_state(State::healthy);
  d.set_summary("Nothing\nwrong.");
  d.add_not_seen("x: damaged");
  EXPECT_EQ("ringscope: note: healthy: Nothing wrong.\nringscope: note: not seen: x: damaged\n", RenderCompact(d));
}

}  // namespace
}  // namespace ringscope::report
