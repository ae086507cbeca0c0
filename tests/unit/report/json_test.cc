// The JSON that other tools rely on (docs/verdicts.md).
#include "analyzer/report/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proto/diagnosis.pb.h"

namespace ringscope::report {
namespace {

TEST(Json, NamesAndTypesOfAFinding) {
  Diagnosis d;
  d.set_state(State::hang);
  Finding& f = *d.add_findings();
  f.set_kind(Kind::missing_rank);
  f.set_confidence(Confidence::established);
  f.mutable_who()->add_ranks(0);
  auto& e = *f.mutable_who()->add_edges();
  e.set_from(1);
  e.set_to(0);
  f.mutable_cause()->set_id("UC-01");
  f.add_evidence()->set_rank(2);
  f.add_explains(3);
  const auto text = ToJson(d);
  ASSERT_TRUE(text.ok());
  const auto j = nlohmann::json::parse(*text);
  EXPECT_EQ(j["state"], "hang");
  EXPECT_TRUE(j["not_seen"].is_array());
  const auto& finding = j["findings"][0];
  EXPECT_EQ(finding["kind"], "missing_rank");
  EXPECT_EQ(finding["confidence"], "established");
  EXPECT_EQ(finding["who"]["ranks"], nlohmann::json::array({0}));
  EXPECT_EQ(finding["who"]["edges"][0]["from"], 1);
  EXPECT_EQ(finding["who"]["edges"][0]["to"], 0);
  EXPECT_EQ(finding["cause"]["id"], "UC-01");
  EXPECT_EQ(finding["cause"]["confidence"], "not_established");
  EXPECT_EQ(finding["evidence"][0]["rank"], 2);
  EXPECT_EQ(finding["evidence"][0]["row"], 0);
  EXPECT_EQ(finding["explains"][0], 3);
  EXPECT_EQ(finding["refuted_by"], "");
  EXPECT_EQ(finding["past"], false);
}

TEST(Json, AnEmptyDiagnosisHasItsListsToo) {
  const auto j = nlohmann::json::parse(*ToJson(Diagnosis()));
  EXPECT_EQ(j["state"], "unknown");
  EXPECT_TRUE(j["findings"].is_array());
  EXPECT_TRUE(j["summary"].is_string());
}

}  // namespace
}  // namespace ringscope::report
