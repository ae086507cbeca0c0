// What NCCL's RAS answered, one snapshot a query (text since 2.24, JSON since 2.28.7).
//
// RAS counts launches, not completions, and neither sends and receives nor captured graphs. A text answer lists a communicator
// only when something about it differs; JSON lists every rank of every communicator.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_RAS_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_RAS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// A rank as RAS names it. `rank` counts inside the communicator.
struct RasRank {
  int rank = -1;
  int cuda_device = -1, nvml_device = -1;
  int64_t pid = -1;  // -1: "[process information not found]"
  std::string node;  // an address, never a name
  // Only for missing ranks:
  bool answered = false;  // the process answered, but has no such communicator (not made yet, or already destroyed)
  bool dead = false;      // JSON: considered dead
  Where where;
};

struct RasProcess {
  int64_t pid = -1;
  std::string node;
  std::vector<int> gpus;
  Where where;
};

// Ranks that agree on something. `ranks` of them; text names the outliers only.
struct RasShare {
  uint64_t count = 0;  // operations launched; of RasCounts
  std::string value;   // a status ("RUNNING", "NOCOMM") or an error ("Remote process error")
  int ranks = 0;
  std::vector<RasRank> named;
  Where where;
};

// "Communicator ranks have different AllReduce operation counts".
struct RasCounts {
  std::string function;  // empty: all functions together, before 2.26
  std::vector<RasShare> shares;
  Where where;
};

struct RasCommunicator {
  int group = -1, index = -1;  // "#0-1"
  std::string hash;            // 16 hexadecimal digits; empty when the lines stood without their head
  int size = -1;
  bool incomplete = false, error = false, mismatch = false;
  bool every_rank = false;  // JSON: `counts` holds all functions and all ranks that answered
  std::vector<RasCounts> counts;
  std::vector<RasShare> statuses;  // where they differ; JSON: always
  std::vector<RasShare> init_errors, async_errors;
  int missing = 0;  // ranks without an answer
  std::vector<RasRank> missing_ranks;
  Where where;
};

// One row of the table below "Communicators...": communicators that look alike.
struct RasGroup {
  int number = -1, communicators = 0, nodes = 0;
  int ranks_per_communicator = 0, ranks = 0;
  std::string status, errors;  // as written: "RUNNING", "INCOMPLETE,MISMATCH"
  Where where;
};

struct RasSnapshot {
  Where where;
  Stamp time;  // JSON only
  bool json = false;
  std::string nccl_version;
  int nodes = -1, processes = -1, gpus = -1;
  std::vector<RasGroup> groups;
  std::vector<RasCommunicator> communicators;
  int missing_processes = 0, dead_processes = 0;
  std::vector<RasProcess> missing, dead;
  int timeouts = 0;
  bool no_communicators = false;  // "No communicator data collected!"
  // Somebody wrote below it that a later answer was the same ("identical 10 minutes later").
  Where said_unchanged;
};

struct RasFacts {
  std::vector<RasSnapshot> snapshots;  // by file and line
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_RAS_H_
