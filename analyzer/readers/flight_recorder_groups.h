// Process groups of a dump: who is in them, and which of their members wrote the dump. Internal to the flight recorder's reader.
#ifndef RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_GROUPS_H_
#define RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_GROUPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/value_tree.h"

namespace ringscope::ingest {

struct DumpGroup {
  std::string_view name, description;
  std::vector<int32_t> ranks;  // of the job, by rank in the group; empty: not told
  int own = -1;                // rank in the group of who wrote the dump
  bool configured = false;     // pg_config has it
  // pg_status: newest collective that was handed to NCCL; -1 not told.
  int64_t last_enqueued = -1;
  int64_t id = -1;            // pg_id of its entries
  uint64_t Hash() const;      // equal for equal name and members
  std::string Label() const;  // "default_pg", "1:TP"
};

// pg_config of any format.
std::vector<DumpGroup> ReadGroups(const ValueTree& tree, ValueTree::Id config);

// Rank in the job of who wrote the dump: a number in the file's name that is a member of every group, else the only rank that
// is. -1 when that does not tell.
int OwnRank(const std::vector<DumpGroup>& groups, std::string_view path, int told);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_GROUPS_H_
