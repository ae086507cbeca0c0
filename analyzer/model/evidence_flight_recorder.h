// What PyTorch's own analyzer of flight recorder dumps (torchfrtrace, fr_trace.py) printed.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_FLIGHT_RECORDER_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_FLIGHT_RECORDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/model/evidence_place.h"
#include "proto/trace.pb.h"

namespace ringscope::model {

// One rank that differs from the one that the analyzer compared with: the first it read, whoever that is.
struct AnalyzerCulprit {
  int rank = -1;
  std::string error;     // "SIZE_OR_SYNTAX_MISMATCH"
  std::string what;      // "input sizes"
  std::string expected;  // of the rank that was compared with
  std::string found;     // of this one
};

// One operation that the analyzer complains about.
struct AnalyzerReport {
  enum class Problem : uint8_t {
    kMissing,  // not all ranks have called it
    kDiffers,  // ranks have called it differently
    kTotals,   // all-to-all: what is sent is not what is received
    kNoDumps,  // could not be judged without the dumps of `missing`
    kUntold,   // the heading is not in the text
  };
  Problem problem = Problem::kUntold;
  int64_t sequence = -1;  // collective_seq_id: same on all ranks
  int64_t entry = -1;     // place in one rank's ring: means nothing elsewhere
  std::string group, collective, state;
  trace::Func func = trace::FUNC_UNKNOWN;
  std::string input_sizes, output_sizes;
  std::vector<int> expected, missing;
  int world = 0;  // number of expected ranks, also where they are not listed; 0 unknown
  std::vector<AnalyzerCulprit> culprits;
  std::string site;  // innermost frame of the printed stack that is not PyTorch's
  Where where;       // its first line
  // Lines that are worth quoting, in their order.
  std::vector<std::pair<Where, std::string>> lines;
};

struct FlightRecorderFacts {
  std::vector<AnalyzerReport> reports;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_FLIGHT_RECORDER_H_
