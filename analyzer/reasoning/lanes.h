// Which NVLinks a machine lacks, told by its own symmetry and by its siblings: there is no list of what a machine should have.
#ifndef RINGSCOPE_ANALYZER_REASONING_LANES_H_
#define RINGSCOPE_ANALYZER_REASONING_LANES_H_

#include <string>
#include <vector>

#include "analyzer/reasoning/machines.h"

namespace ringscope::reasoning {

struct ShortGpu {
  int gpu = -1;
  int lanes = 0, expected = 0;
};

struct MissingLink {
  int a = -1, b = -1;  // GPUs; a < b
  int lanes = 0, expected = 0;
};

struct LaneReport {
  std::vector<ShortGpu> gpus;      // fewer lanes than their siblings, not explained by another GPU that lost all
  std::vector<MissingLink> links;  // between two GPUs, where the machine joins GPUs directly
  bool none_at_all = false;        // a board with NVLink on which no GPU has one
  int expected = 0;                // lanes of one GPU; 0 unknown
  std::string why;                 // what `expected` rests on: "on the other 7 GPUs of hostA"
  std::string product;             // of none_at_all: "H100 SXM5"
  bool switched = false;           // none_at_all: such boards join their GPUs by NVSwitch
  bool empty() const { return gpus.empty() && links.empty() && !none_at_all; }
  bool Dead(int gpu) const;  // has none of its lanes
};

// For each machine.
std::vector<LaneReport> LaneReports(const Machines& machines);

// NVLink would carry a to b if what `report` misses were there.
bool WouldReach(const Machine& machine, const LaneReport& report, int a, int b);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_LANES_H_
