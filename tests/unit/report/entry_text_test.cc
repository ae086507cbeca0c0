#include "analyzer/report/entry_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ringscope::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

catalog::Entry Example() {
  catalog::Entry e;
  e.set_id("XX-01");
  e.set_name("A cable is out");
  e.set_layer(catalog::Layer::user_code);
  e.set_quick_answer("Put it back.");
  e.set_mechanism("Somebody pulled it.");
  auto* check = e.add_confirm();
  check->set_what("Whether it is out");
  check->set_command("ssh {host} " + std::string(200, 'x'));
  check->set_answer("Yes: this.");
  auto* fix = e.add_fixes();
  fix->set_what("Put it in");
  fix->set_cost("A walk.");
  e.add_refutes("The light is on.");
  auto* symptom = e.add_symptoms();
  symptom->set_seen("Nothing moves");
  symptom->set_really_shows("That something is out.");
  e.mutable_perspectives()->set_on_call("Walk.");
  auto* setting = e.add_settings();
  setting->set_where("Slurm");
  setting->set_snippet("first line\nsecond line");
  e.add_related("XX-02");
  return e;
}

TEST(EntryText, WhatToDoStandsBeforeWhy) {
  const std::string text = RenderEntry(Example(), {});
  EXPECT_THAT(text, HasSubstr("XX-01  A cable is out\nuser code\nPut it back.\n"));
  EXPECT_LT(text.find("Put it in"), text.find("Somebody pulled it"));
  EXPECT_LT(text.find("Whether it is out"), text.find("Put it in"));
  EXPECT_THAT(text, HasSubstr("costs: A walk."));
  EXPECT_THAT(text, HasSubstr("Related: XX-02"));
}

TEST(EntryText, CommandsAreNotBroken) {
  EXPECT_THAT(RenderEntry(Example(), {}), HasSubstr("    ssh {host} " + std::string(200, 'x') + "\n"));
}

TEST(EntryText, TheRestOnlyWhenAskedFor) {
  EXPECT_THAT(RenderEntry(Example(), {}), Not(HasSubstr("Walk.")));
  const std::string all = RenderEntry(Example(), {.all = true});
  EXPECT_THAT(all, HasSubstr("On call: Walk."));
  EXPECT_THAT(all, HasSubstr("    first line\n    second line\n"));
}

TEST(EntryText, WhatIsNotEstablishedSaysSo) {
  catalog::Entry e = Example();
  e.set_status(catalog::Status::not_established);
  auto* claim = e.add_claims();
  claim->set_claim("It heals itself.");
  claim->set_verdict(catalog::Claim::unsupported);
  claim->set_truth("It does not.");
  const std::string text = RenderEntry(e, {});
  EXPECT_THAT(text, HasSubstr("not established"));
  EXPECT_THAT(text, HasSubstr("unsupported: It heals itself."));
}

TEST(EntryText, AnEmptyEntryIsAPageToo) { EXPECT_THAT(RenderEntry(catalog::Entry(), {}), HasSubstr("What to do")); }

}  // namespace
}  // namespace ringscope::report
