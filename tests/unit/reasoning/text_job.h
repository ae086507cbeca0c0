// A job out of texts, for tests of finders: from files as people attach them to findings.
#ifndef RINGSCOPE_TESTS_UNIT_REASONING_TEXT_JOB_H_
#define RINGSCOPE_TESTS_UNIT_REASONING_TEXT_JOB_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {

using Files = std::vector<std::pair<std::string, std::string>>;  // name, content

inline model::Job JobOfTexts(const Files& files) {
  model::Job job;
  for (const auto& [name, content] : files) EXPECT_TRUE(ingest::ReadTextBytes(name, content, &job.evidence).ok()) << name;
  model::ResolveSpeakers(&job.evidence);
  return job;
}
inline Diagnosis DiagnoseTexts(const Files& files) { return Diagnose(JobOfTexts(files)); }

inline std::string AllText(const Finding& f) {
  std::string text = f.title() + "\n" + f.next().text() + "\n" + f.next().command() + "\n" + f.refuted_by();
  for (const Evidence& e : f.evidence()) text += "\n" + e.source() + ":" + std::to_string(e.line()) + " " + e.text();
  return text;
}

// Of the first finding.
inline Kind::Value FirstKind(const Diagnosis& d) { return d.findings().empty() ? Kind::none : d.findings(0).kind(); }
inline std::vector<int> FirstRanks(const Diagnosis& d) {
  if (d.findings().empty()) return {};
  return {d.findings(0).who().ranks().begin(), d.findings(0).who().ranks().end()};
}
inline std::vector<int> FirstCollateral(const Diagnosis& d) {
  if (d.findings().empty()) return {};
  return {d.findings(0).collateral().ranks().begin(), d.findings(0).collateral().ranks().end()};
}
inline std::string FirstCause(const Diagnosis& d) { return d.findings().empty() ? "" : d.findings(0).cause().id(); }
// All the words of the first finding.
inline std::string FirstText(const Diagnosis& d) { return d.findings().empty() ? "" : d.findings(0).ShortDebugString(); }

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_TESTS_UNIT_REASONING_TEXT_JOB_H_
