#include "analyzer/reasoning/gpu_view.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

// "before" < "t0" < "t60" < "during" < "after"; no label: between.
double LabelOrder(const std::string& label) {
  if (label == "before" || label == "pre" || label == "baseline" || label == "start" || label == "first" || label == "earlier")
    return 0;
  if (label == "after" || label == "post" || label == "end" || label == "second" || label == "later") return 1e12;
  double t = 0;
  if (label.size() > 1 && label[0] == 't' && absl::SimpleAtod(label.substr(1), &t)) return 1 + t;
  return 1e11;
}

bool Earlier(const GpuView::At& a, const GpuView::At& b) {
  const model::HardwareSnapshot &x = *a.snapshot, &y = *b.snapshot;
  if (!x.label.empty() && !y.label.empty() && LabelOrder(x.label) != LabelOrder(y.label))
    return LabelOrder(x.label) < LabelOrder(y.label);
  if (x.time.known() && x.time.clock == y.time.clock && x.time.ns != y.time.ns) return x.time.ns < y.time.ns;
  return a.gpu->where < b.gpu->where;
}

bool RealUuid(const std::string& uuid) { return uuid.size() > 12; }

bool SameGpu(const GpuView& view, const std::string& host, const model::GpuReading& gpu) {
  if (RealUuid(view.uuid) && RealUuid(gpu.uuid)) return view.uuid == gpu.uuid;
  if (view.host != host) return false;
  if (view.bus_id && gpu.bus_id) return view.bus_id == gpu.bus_id;
  return view.index >= 0 && view.index == gpu.index;
}

}  // namespace

const model::Reading* GpuView::Latest(std::string_view key) const {
  for (auto at = readings.rbegin(); at != readings.rend(); ++at) {
    if (const model::Reading* found = at->gpu->Find(key); found != nullptr) return found;
  }
  return nullptr;
}

std::string_view GpuView::Value(std::string_view key) const {
  const model::Reading* reading = Latest(key);
  return reading == nullptr ? std::string_view() : std::string_view(reading->value);
}

double GpuView::Number(std::string_view key, double otherwise) const {
  double value = 0;
  return absl::SimpleAtod(Absl(Value(key)), &value) ? value : otherwise;
}

std::string GpuView::Name() const {
  if (index >= 0) return absl::StrCat("GPU ", index);
  if (bus_id) return absl::StrCat("GPU ", model::BusIdText(*bus_id));
  return "one GPU";
}

std::string GpuView::NameOnHost() const { return host.empty() ? Name() : absl::StrCat(Name(), " on ", host); }

std::vector<GpuView> GpuViews(const model::Job& job) {
  std::vector<GpuView> views;
  std::map<std::pair<std::string, int>, size_t> by_index;
  std::map<std::string, size_t> by_uuid;
  std::map<std::pair<std::string, model::BusId>, size_t> by_bus;
  for (const model::HardwareSnapshot& snapshot : job.evidence.hardware.snapshots) {
    for (const model::GpuReading& gpu : snapshot.gpus) {
      const std::string& host = snapshot.by.host;
      size_t at = views.size();
      const auto consider = [&](const auto& index, const auto& key) {
        const auto found = index.find(key);
        if (at == views.size() && found != index.end() && SameGpu(views[found->second], host, gpu)) at = found->second;
      };
      if (RealUuid(gpu.uuid)) consider(by_uuid, gpu.uuid);
      if (gpu.bus_id) consider(by_bus, std::make_pair(host, *gpu.bus_id));
      if (gpu.index >= 0) consider(by_index, std::make_pair(host, gpu.index));
      if (at == views.size()) {
        views.emplace_back();
        views.back().host = host;
      }
      GpuView& view = views[at];
      if (view.index < 0) view.index = gpu.index;
      if (!view.bus_id) view.bus_id = gpu.bus_id;
      if (!RealUuid(view.uuid)) view.uuid = gpu.uuid;
      if (view.product.empty()) view.product = gpu.product;
      if (view.host.empty()) view.host = host;
      view.readings.push_back({&snapshot, &gpu});
      if (RealUuid(view.uuid)) by_uuid[view.uuid] = at;
      if (view.bus_id) by_bus[{host, *view.bus_id}] = at;
      if (view.index >= 0) by_index[{host, view.index}] = at;
    }
  }
  for (GpuView& view : views) std::stable_sort(view.readings.begin(), view.readings.end(), Earlier);
  std::stable_sort(views.begin(), views.end(),
                   [](const GpuView& a, const GpuView& b) { return std::tie(a.host, a.index) < std::tie(b.host, b.index); });
  return views;
}

int RankOfView(const model::Job& job, const GpuView& gpu) {
  std::set<int> ranks;
  for (const model::RankPlace& place : job.evidence.hardware.places) {
    const bool host = place.host.empty() || gpu.host.empty() || place.host == gpu.host;
    const bool device = (place.bus_id && gpu.bus_id) ? place.bus_id == gpu.bus_id : place.gpu >= 0 && place.gpu == gpu.index;
    if (host && device) ranks.insert(place.rank);
  }
  if (ranks.size() == 1) return *ranks.begin();
  if (ranks.size() > 1) return -1;
  if (gpu.bus_id) {
    if (const int rank = model::RankOfGpu(job.evidence, gpu.host, *gpu.bus_id); rank >= 0) return rank;
  }
  if (gpu.index < 0) return -1;
  return model::RankOfDevice(job.evidence, gpu.host, gpu.index);
}

void NameGpu(const model::Job& job, const GpuView& gpu, Finding* finding) {
  Who& who = *finding->mutable_who();
  std::string name = gpu.Name();
  if (gpu.index >= 0 && gpu.bus_id) absl::StrAppend(&name, " (", model::BusIdText(*gpu.bus_id), ")");
  const auto add = [](const std::string& text, auto* list) {
    if (!text.empty() && std::find(list->begin(), list->end(), text) == list->end()) *list->Add() = text;
  };
  if (gpu.index >= 0 || gpu.bus_id) add(name, who.mutable_gpus());
  add(gpu.host, who.mutable_hosts());
  const int rank = RankOfView(job, gpu);
  if (rank >= 0 && std::find(who.ranks().begin(), who.ranks().end(), rank) == who.ranks().end()) who.add_ranks(rank);
}

void CiteReading(const model::Job& job, const model::Reading& reading, Finding* finding) {
  Cite(job, reading.where, reading.quote, finding);
}

std::vector<const model::Reading*> ForcedSlowdowns(const GpuView& gpu) {
  std::vector<const model::Reading*> found;
  // HW Slowdown is the sum of the two below it in newer drivers, alone in older ones.
  for (const char* key : {"throttle.hw_thermal_slowdown", "throttle.sw_thermal_slowdown", "throttle.hw_power_brake_slowdown",
                          "throttle.hw_slowdown"}) {
    const model::Reading* reading = gpu.Latest(key);
    if (reading != nullptr && absl::AsciiStrToLower(reading->value) == "active") found.push_back(reading);
  }
  return found;
}

std::string QuoteReason(const model::Reading& reading) {
  const std::string& quote = reading.quote;
  const size_t key = quote.find("throttle.");
  if (key == quote.npos) return quote.substr(0, quote.find(" : "));
  // A column's name: "throttle.hw_thermal_slowdown".
  std::string words = quote.substr(key + 9, quote.find(' ', key) - key - 9);
  bool first = true;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == '_') words[i] = ' ';
    if (first) words[i] = absl::ascii_toupper(static_cast<unsigned char>(words[i]));
    first = words[i] == ' ';
  }
  if (words.size() > 2 && words[2] == ' ') words[1] = absl::ascii_toupper(static_cast<unsigned char>(words[1]));
  return words;
}

NvlinkProduct NvlinkOf(std::string_view product) {
  struct Row {
    const char* word;
    NvlinkProduct is;
  };
  // Board specifications; order matters (a more special name first). H100 NVL: 12 links a card lead to its bridges; tools list
  // 18 (NVIDIA/nccl issue 1608). A800 and H800 have 8 of their chip's links.
  static constexpr Row kRows[] = {
      {"h100 nvl", {12, true}},
      {"h200 nvl", {18, true}},
      {"h800 pcie", {8, true}},
      {"h800", {8, false}},
      {"a800 80gb pcie", {8, true}},
      {"a800 40gb", {8, true}},
      {"a800", {8, false}},
      {"h100 pcie", {12, true}},
      {"h100", {18, false}},
      {"h200", {18, false}},
      {"h20", {18, false}},
      {"gb200", {18, false}},
      {"gb300", {18, false}},
      {"b200", {18, false}},
      {"b300", {18, false}},
      {"a100-pcie", {12, true}},
      {"a100 80gb pcie", {12, true}},
      {"a100-sxm", {12, false}},
      {"a30", {4, true}},
      {"v100-sxm", {6, false}},
      {"v100-pcie", {0, false, true}},
      {"v100s-pcie", {0, false, true}},
      {"p100-sxm", {4, false}},
      {"p100-pcie", {0, false, true}},
      {"a40", {4, true}},
      {"a6000", {4, true}},
      {"a5500", {4, true}},
      {"a5000", {4, true}},
      {"a4500", {4, true}},
      {"rtx 3090", {4, true}},
      {"titan rtx", {2, true}},
      {"quadro rtx", {2, true}},
      {"rtx 8000", {2, true}},
      {"rtx 6000 ada", {0, false, true}},
      {"2080", {2, true}},
      {"l40", {0, false, true}},
      {"l4", {0, false, true}},
      {"a10", {0, false, true}},
      {"t4", {0, false, true}},
      {"a16", {0, false, true}},
      {"a2", {0, false, true}},
      {"rtx 4090", {0, false, true}},
      {"rtx 5090", {0, false, true}},
      {"rtx pro", {0, false, true}},
  };
  const std::string low = absl::AsciiStrToLower(Absl(product));
  for (const Row& row : kRows) {
    const size_t at = low.find(row.word);
    if (at == low.npos) continue;
    // "a10" is no "a100".
    const size_t end = at + std::string_view(row.word).size();
    if (end < low.size() && absl::ascii_isdigit(static_cast<unsigned char>(low[end])) &&
        absl::ascii_isdigit(static_cast<unsigned char>(low[end - 1])))
      continue;
    return row.is;
  }
  NvlinkProduct other;
  other.bridge = Contains(low, "pcie");
  return other;
}

}  // namespace ringscope::reasoning
