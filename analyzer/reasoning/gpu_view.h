// GPUs as all outputs of all tools together show them: one view a GPU, its readings in the order of time.
#ifndef RINGSCOPE_ANALYZER_REASONING_GPU_VIEW_H_
#define RINGSCOPE_ANALYZER_REASONING_GPU_VIEW_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::reasoning {

struct GpuView {
  std::string host;  // empty: unknown
  int index = -1;
  std::optional<model::BusId> bus_id;
  std::string uuid, product;
  struct At {
    const model::HardwareSnapshot* snapshot;
    const model::GpuReading* gpu;
  };
  std::vector<At> readings;  // earliest first, as far as labels, times and places in a file tell

  // The latest reading of a value; nullptr when no output has it.
  const model::Reading* Latest(std::string_view key) const;
  std::string_view Value(std::string_view key) const;
  double Number(std::string_view key, double otherwise) const;
  // "GPU 3", "GPU 0000:41:00.0", "one GPU".
  std::string Name() const;
  // "GPU 3 on node7".
  std::string NameOnHost() const;
};

// By host and index. Outputs of a host that is not named are one host's.
std::vector<GpuView> GpuViews(const model::Job& job);

// Job rank that drives it: by the notes and benchmark headers, by NCCL's init lines; -1 unknown.
int RankOfView(const model::Job& job, const GpuView& gpu);

// Adds GPU, host and rank, as far as known, to who.
void NameGpu(const model::Job& job, const GpuView& gpu, Finding* finding);
void CiteReading(const model::Job& job, const model::Reading& reading, Finding* finding);

// Clocks held down by heat or by the power supply, as hardware does it to protect itself; the readings that say so. Power capping
// by software is normal under load and not among them.
std::vector<const model::Reading*> ForcedSlowdowns(const GpuView& gpu);

// "HW Thermal Slowdown" of the line that says so.
std::string QuoteReason(const model::Reading& reading);

// Where a product's NVLinks go.
struct NvlinkProduct {
  int links = -1;         // that are active in a healthy machine; -1 unknown
  bool bridge = false;    // a card that has NVLink only through a bridge between two cards
  bool no_nvlink = false; // never has any
};
NvlinkProduct NvlinkOf(std::string_view product);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_GPU_VIEW_H_
