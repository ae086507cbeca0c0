// A capture folder in memory: what NCCL called in each process, and how each process ended.
#ifndef RINGSCOPE_TESTS_REPLAY_CAPTURE_H_
#define RINGSCOPE_TESTS_REPLAY_CAPTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/replay/app_log.h"
#include "tests/replay/event.h"

namespace ringscope::replay {

// One init of the recording: a communicator as one rank sees it.
struct Context {
  uint32_t load = 0;
  uint64_t number = 0;   // the recording's own
  uint64_t comm_id = 0;  // v1 to v3: what the communicator's operations said
  const char* name = nullptr;
  int n_nodes = 0;
  int n_ranks = 0;
  int rank = 0;
};

struct Slot {
  uint32_t type = 0;
  int32_t parent = kNone;  // slot
  int32_t context = kNone;
  int32_t owner_context = kNone;  // PXN: the communicator of the process that owns the operation
  int32_t owner_process = kNone;
};

struct Process {
  int index = 0;  // the N of rank<N>.jsonl
  bool has_events = false;
  uint32_t pid = 0;  // in the recording
  std::string host;
  int local_index = 0;  // among the processes of its host
  std::vector<int>
      ranks;  // job ranks it holds, as delivered; more than one where a process drives several GPUs
  AppEnd end;
  std::vector<Event> events;  // callbacks, ordered by (load, n): the order in which they entered
                              // the recording plugin
  std::vector<Context> contexts;
  std::vector<Slot> slots;
  std::map<uint32_t, std::string> thread_names;
};

struct Capture {
  std::string folder;
  std::string name;     // last part of the folder
  std::string nccl;     // "2.30.7"
  Release release = 0;  // 230
  int number = 0;       // as NCCL counts: 23007
  int api = 0;          // version of the table that the callbacks went through
  int as_api = 0;       // version of the plugin's table they are played to: api, or an older one
  int job_size = 0;     // ranks of the whole job
  bool several_ranks_per_process = false;
  std::vector<Process> processes;
  std::unordered_set<std::string> texts;  // owns every const char* above
  uint64_t first_t = 0;                   // of the job's first and last callback
  uint64_t last_t = 0;

  const char* Intern(absl::string_view text);
};

// Reads FOLDER. Errors name the file, the line and what to do. From expected.json only the layout
// is taken: release, table version, processes, hosts, ranks per process.
absl::StatusOr<std::unique_ptr<Capture>> ReadCapture(const std::string& folder);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_CAPTURE_H_
