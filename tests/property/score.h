// Holds a diagnosis against the label of its job, and counts.
#ifndef RINGSCOPE_TESTS_PROPERTY_SCORE_H_
#define RINGSCOPE_TESTS_PROPERTY_SCORE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/property/sufficiency.h"

namespace ringscope::property {

enum class Verdict { kRight, kAbstained, kWrong };

struct Outcome {
  uint64_t seed = 0;
  Label label;
  Verdict verdict = Verdict::kRight;
  bool established_wrong = false;  // some finding is called established and is not true
  bool accused_healthy = false;
  int findings = 0, true_findings = 0;  // that are at least probable and accuse
  std::string said;                     // the findings, in short
};

Outcome Score(uint64_t seed, const Label& label, const Diagnosis& diagnosis);
std::string Brief(const Finding& finding);
std::string Brief(const Label& label);

struct Row {
  int jobs = 0, sufficient = 0, right = 0, abstained = 0, wrong = 0;
  int insufficient = 0,
      misled = 0;  // misled: without sufficient evidence something untrue was said
  int findings = 0, true_findings = 0;
  int established_wrong = 0, accused = 0;
};

class Tally {
 public:
  void Add(const Outcome& outcome);
  std::string Table() const;
  const Row& Of(FaultKind kind) const { return rows_[static_cast<size_t>(kind)]; }
  Row Total() const;

 private:
  std::array<Row, static_cast<size_t>(FaultKind::kCount)> rows_;
};

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_SCORE_H_
