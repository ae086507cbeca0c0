// GPUs, their links and counters, the fabric: what nvidia-smi, DCGM and the like show at one moment.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_HARDWARE_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_HARDWARE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/model/bus_id.h"
#include "analyzer/model/evidence_place.h"
#include "analyzer/model/evidence_speed.h"

namespace ringscope::model {

// A value as the tool printed it, and the line that says so.
struct Reading {
  std::string value;
  Where where;
  std::string quote;  // the line, shortened
};

// One NVLink of one GPU.
struct LinkReading {
  enum class State : uint8_t { kUnknown, kActive, kInactive, kDisabled };
  int link = -1;
  State state = State::kUnknown;
  double gbps = 0;       // GB/s in one direction; 0 not told
  std::string remote;    // PCI address of the other end, as written
  std::map<std::string, double> counters;  // "replay", "recovery", "crc", "crc_data", …: lifetime totals
  Where where;           // of the state, or of the first counter
  std::string quote;
  std::map<std::string, Reading> counter_lines;
};

// What one run of a tool showed of one GPU.
//
// Keys of `values` are those of `nvidia-smi --query-gpu`, whatever the form they were read in: "temperature.gpu", "clocks.sm",
// "clocks.max.sm", "power.draw", "power.limit", "pcie.link.gen.current", "pcie.link.width.max", "pstate", "utilization.gpu",
// "memory.used", "ecc.errors.uncorrected.volatile.total", "remapped_rows.pending", "retired_pages.pending", "fabric.state",
// "fabric.status", "fabric.cliqueId", "fabric.clusterUuid", "fabric.health.summary", and "throttle.REASON" for each reason that
// lowers clocks ("throttle.hw_thermal_slowdown": "Active").
struct GpuReading {
  int index = -1;               // nvidia-smi's index on its host: neither a rank nor a CUDA device
  std::optional<BusId> bus_id;
  std::string uuid, product;
  std::map<std::string, Reading, std::less<>> values;
  std::vector<LinkReading> links;  // by number
  bool all_links_inactive = false;  // the tool says so instead of listing them
  bool lost = false;            // ERR! where values belong, "GPU is lost", handle cannot be had
  Where where;
  std::string quote;            // the line that names the GPU
  // The value, empty when it was not printed.
  std::string_view Value(std::string_view key) const {
    const auto found = values.find(key);
    return found == values.end() ? std::string_view() : std::string_view(found->second.value);
  }
  const Reading* Find(std::string_view key) const {
    const auto found = values.find(key);
    return found == values.end() ? nullptr : &found->second;
  }
};

// A process that nvidia-smi lists on a GPU.
struct GpuProcess {
  int gpu = -1;
  int64_t pid = -1;
  std::string name;
  Where where;
};

// One output of one tool.
struct HardwareSnapshot {
  std::string tool;             // "nvidia-smi nvlink", "dcgmi nvlink", …
  Speaker by;                   // host: of the prompt, the heading or the file's name
  Stamp time;
  std::string label;            // "before", "after", "t0", … of the heading or the file's name; lower case
  std::vector<GpuReading> gpus;
  std::vector<GpuProcess> processes;
  bool whole = false;           // lists every GPU that the driver has (the table, -L, -q without filter)
  std::string driver, cuda;
  Where where;
};

// A verdict that a tool itself gives: a row of `dcgmi diag` or of `dcgmi health`.
struct ToolVerdict {
  std::string tool, test;       // "dcgmi diag", "PCIe"
  std::string result;           // "Fail", "Pass", "Warn", "Skip", …
  std::string detail;
  std::vector<int> gpus;
  Where where;
  Speaker by;
  std::string quote;
};

// "rank 11 = node2 GPU 3": which GPU a rank drives, by people's notes and by headers of benchmarks.
struct RankPlace {
  int rank = -1;
  std::string host;
  int gpu = -1;
  std::optional<BusId> bus_id;
  Where where;
  std::string quote;
};

struct HardwareFacts {
  std::vector<HardwareSnapshot> snapshots;  // as read
  std::vector<ToolVerdict> verdicts;
  std::vector<RankPlace> places;
  SpeedFacts speed;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_HARDWARE_H_
