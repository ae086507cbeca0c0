// The entries of a dump, taken out of the value tree. Internal to the flight recorder's reader.
#ifndef RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_ENTRIES_H_
#define RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_ENTRIES_H_

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/value_tree.h"
#include "analyzer/readers/flight_recorder_names.h"

namespace ringscope::ingest {

// Names and call sites that occur, each once; numbered from 1 (Operation.name, Operation.site).
class TextTable {
 public:
  uint32_t Of(std::string_view text);  // keeps a copy that can be printed: no control characters, bounded
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  std::vector<std::string> texts_;
};

struct DumpEntry {
  int64_t record = -1;
  int64_t group_id = -1;   // pg_id: number of the process group inside its process
  std::string_view group;  // name of the process group
  std::string_view description;
  int64_t collective = -1;  // collective_seq_id; format 1: seq_id, which counts messages too
  int64_t message = -1;     // p2p_seq_id
  bool p2p = false;
  bool p2p_told = false;
  DumpOp op;
  uint32_t name = 0, site = 0;
  uint64_t in = 0, out = 0;  // elements of all inputs and outputs
  bool sized = false;        // sizes were told
  trace::DataType type = trace::TYPE_UNKNOWN;
  enum class State : uint8_t { kScheduled, kStarted, kCompleted } state = State::kScheduled;
  int64_t created = 0, started = 0, completed = 0;  // ns since 1970; 0 not
  int64_t timeout_ms = 0;
  bool retired = false;
};

class EntryReader {
 public:
  explicit EntryReader(const ValueTree& tree) : tree_(tree), field_of_(tree.size(), 0), frame_of_(tree.size(), 0) {
    budget_ = 1000 + 64 * static_cast<uint64_t>(tree.size());
  }
  // False when it is no entry.
  bool Read(ValueTree::Id id, DumpEntry* entry);
  // Entries refer to the same values more often than any dump does: the rest is not looked at.
  bool exhausted() const { return budget_ == 0; }

  TextTable names, sites;

 private:
  enum Field : uint8_t;
  Field FieldOf(ValueTree::Id key);
  bool Spend(uint64_t n);
  uint64_t Elements(ValueTree::Id sizes, bool* told);
  void SetName(ValueTree::Id id, DumpEntry* entry);
  void SetGroup(ValueTree::Id id, DumpEntry* entry);
  uint32_t SiteOf(ValueTree::Id frames);

  const ValueTree& tree_;
  std::vector<uint8_t> field_of_;   // by key; 0 not looked at yet
  std::vector<uint32_t> frame_of_;  // by frame: 0 not looked at yet, 1 of a library, else 1 + number in `sites`
  absl::flat_hash_map<std::string_view, std::pair<DumpOp, uint32_t>> known_names_;
  uint64_t budget_;
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_ENTRIES_H_
