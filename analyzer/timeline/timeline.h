// What each rank did when, on the job's common clock: slices on lanes, and flows between them.
#ifndef RINGSCOPE_ANALYZER_TIMELINE_TIMELINE_H_
#define RINGSCOPE_ANALYZER_TIMELINE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::timeline {

enum class Category : uint8_t { kCall, kKernel, kStep, kHost, kStall };
const char* CategoryName(Category category);

struct Slice {
  int lane = 0;                      // in Timeline::lanes
  int64_t begin_ns = 0, end_ns = 0;  // the job's time; end >= begin
  Category category = Category::kCall;
  std::string name;
  std::vector<std::pair<const char*, std::string>> details;
  uint64_t flow_out = 0, flow_in = 0;  // 0 none: begins, ends here
};

// Slices of one lane do not overlap: what overlaps in one group (a stream, a channel) lies on lanes side by side.
struct Lane {
  int process = 0;  // in Timeline::processes
  std::string name;
};

struct Track {
  std::string name;  // "rank 3 on host-2"
  int job_rank = -1;
  bool assumed_clock = false;  // nothing bounds its clock against the others'
};

struct Timeline {
  std::vector<Track> processes;  // by job rank, those without one last
  std::vector<Lane> lanes;       // by process, then by what they hold
  std::vector<Slice> slices;     // by lane, then by time
  uint64_t left_out = 0;         // older slices beyond the limit
  std::vector<std::string> notes;
};

// `streams`: files of processes of the job (others are named in `notes`). At most `most` slices, the newest.
Timeline Build(const model::Job& job, const std::vector<std::string>& streams, size_t most);

}  // namespace ringscope::timeline

#endif  // RINGSCOPE_ANALYZER_TIMELINE_TIMELINE_H_
