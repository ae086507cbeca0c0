// How fast things went by their own account: step times that a program logged, results of benchmarks.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_SPEED_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_SPEED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// One duration of one step: "step 60 rank 11 fwd+bwd 1.92 s".
struct StepTime {
  // What the time was spent on, by the word that the log uses for it.
  enum class Part : uint8_t { kTotal, kInput, kCompute, kWait, kSave, kOther };
  enum class Scope : uint8_t {
    kRank,     // of `rank` alone
    kOthers,   // "other ranks", "others"
    kAll,      // "rank 0..15", first to last
    kUnnamed,  // of whoever wrote the line, rank unknown; often the job as a whole
  };
  int64_t step = -1;
  Scope scope = Scope::kUnnamed;
  int rank = -1;              // kRank
  int first = -1, last = -1;  // kAll
  Part part = Part::kOther;
  std::string name;           // as written: "fwd+bwd", "data"
  double seconds = 0;         // smallest one where a range is given
  Where where;
  Speaker by;
  std::string quote;
};

// One run of a benchmark, or one job, on some nodes.
struct NodeTrial {
  std::vector<std::string> nodes;  // written out: "n1..n3" is n1, n2, n3
  double value = 0;
  bool more_is_better = true;      // false for times
  std::string unit;                // the column's name, "busbw_gbps"
  Where where;
  std::string quote;
};

// A row of nccl-tests: the out-of-place half and, where printed, the in-place half.
struct NcclTestRow {
  int table = 0;           // rows of one run; several runs in a file have several tables
  std::string operation;   // of the header or the command, where known
  uint64_t bytes = 0;
  double micros = 0, algbw = 0, busbw = 0;  // out of place; GB/s
  double in_place_busbw = -1;
  int64_t wrong = -1;      // elements that are wrong, both halves; -1 not checked
  Where where;
  Speaker by;
};

struct SpeedFacts {
  std::vector<StepTime> steps;
  std::vector<NodeTrial> trials;
  std::vector<NcclTestRow> nccl_tests;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_SPEED_H_
