// Collects what the readers of nvidia-smi's and DCGM's outputs find into snapshots: whose host, which moment, which GPU a line
// speaks of. Internal to analyzer/readers.
#ifndef RINGSCOPE_ANALYZER_READERS_GPU_SNAPSHOTS_H_
#define RINGSCOPE_ANALYZER_READERS_GPU_SNAPSHOTS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {

// What identifies a GPU in a heading; anything may be unknown.
struct GpuId {
  int index = -1;
  std::string_view bus_id, uuid, product;
};

class GpuSnapshots {
 public:
  explicit GpuSnapshots(const FileContext& context);

  // A line that may say whose output follows: a prompt with a command, "# before", "=== node7 ===". True if it does.
  bool Heading(const TextLine& line);
  // A new output begins.
  void Begin(std::string_view tool, const TextLine& line);
  // The lines that follow speak of this GPU. Begins a new snapshot when the tool changes or the GPU was listed already.
  model::GpuReading* Gpu(std::string_view tool, const GpuId& id, const TextLine& line);
  // The GPU that was named last; one without a name when the input is an excerpt that names none.
  model::GpuReading* Current(std::string_view tool, const TextLine& line);
  // Sets a value of the current GPU; a second value for the same key is another moment, or another GPU of an excerpt.
  void Put(std::string_view tool, const std::string& key, std::string_view value, const TextLine& line, std::string quote = "");
  model::LinkReading* Link(std::string_view tool, int link, const TextLine& line);
  // nullptr before anything was begun.
  model::HardwareSnapshot* Snapshot(const TextLine& line);

 private:
  // Lines of several hosts or tasks may be mixed.
  using Source = std::pair<std::string, int>;
  struct Open {
    int snapshot = -1;
    int gpu = -1;
  };
  static Source SourceOf(const TextLine& line) { return {line.by.host, line.by.rank}; }
  model::HardwareSnapshot& At(int index) { return context_.evidence->hardware.snapshots[index]; }

  const FileContext& context_;
  std::map<Source, Open> open_;
  // Of the last heading.
  std::string host_, label_;
  int gpu_ = -1;
  int file_gpu_ = -1;
  std::string file_label_;
  model::Stamp time_;
  size_t begun_ = 0;
};

// The line as evidence: trimmed, runs of blanks shortened, at most 200 bytes.
std::string QuoteLine(std::string_view text);
// "HW Thermal Slowdown" -> "hw_thermal_slowdown".
std::string NormalKey(std::string_view key);
// "before", "after", "t0", "t60" … in a heading or a file's name; empty when none.
std::string MomentLabel(std::string_view text);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_GPU_SNAPSHOTS_H_
