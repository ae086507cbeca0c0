// What NVML tells of each GPU besides its links, as an excerpt of `nvidia-smi -q` (driver 570): PCIe, clocks, ECC, fabric.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include "supervisor/collector.h"
#include "supervisor/nvml.h"

namespace ringscope::supervisor {
namespace {

class Query {
 public:
  Query(const Nvml& nvml, const NvmlGpu& gpu) : nvml_(nvml), device_(gpu.device) {
    text_ = absl::StrCat("\nGPU ", gpu.bus_id, "\n");
    Line(1, "Product Name", gpu.name);
    State();
    if (!gpu.uuid.empty()) Line(1, "GPU UUID", gpu.uuid);
    unsigned minor = 0;
    if (nvml_.minor_number(device_, &minor) == kNvmlSuccess) Line(1, "Minor Number", absl::StrCat(minor));
    Pcie(gpu.bus_id);
    Reasons();
    Memory();
    Ecc();
    Rows();
    Sensors();
    Fabric();
  }
  std::string text() && { return std::move(text_); }

 private:
  void Line(int depth, absl::string_view key, absl::string_view value) {
    absl::StrAppend(&text_, std::string(static_cast<size_t>(depth) * 4, ' '));
    absl::StrAppendFormat(&text_, "%-*s: %s\n", 42 - depth * 4, key, value);
  }
  void Section(int depth, absl::string_view name) {
    absl::StrAppend(&text_, std::string(static_cast<size_t>(depth) * 4, ' '), name, "\n");
  }

  // nvidia-smi's words where a value cannot be had; the analyzer takes the last two for a GPU that is lost.
  static std::string Or(int result, const std::string& value) {
    if (result == kNvmlSuccess) return value;
    return result == kNvmlGpuIsLost ? "GPU is lost" : result == kNvmlUnknown ? "Unknown Error" : "N/A";
  }
  template <typename Call>
  void Number(int depth, absl::string_view key, const Call& call, absl::string_view before = "", absl::string_view behind = "") {
    unsigned value = 0;
    const int result = call(device_, &value);
    if (result != kNvmlFunctionNotFound) Line(depth, key, Or(result, absl::StrCat(before, value, behind)));
  }

  void State() { Number(1, "Performance State", nvml_.performance_state, "P"); }

  void Pcie(const std::string& bus_id) {
    Section(1, "PCI");
    Line(2, "Bus Id", bus_id);
    Section(2, "GPU Link Info");
    Section(3, "PCIe Generation");
    Number(4, "Max", nvml_.pcie_generation_max);
    Number(4, "Current", nvml_.pcie_generation);
    Section(3, "Link Width");
    Number(4, "Max", nvml_.pcie_width_max, "", "x");
    Number(4, "Current", nvml_.pcie_width, "", "x");
    Number(2, "Replays Since Reset", nvml_.pcie_replays);
  }

  // Bits of nvmlClocksEventReason….
  void Reasons() {
    unsigned long long reasons = 0;
    int result = nvml_.event_reasons(device_, &reasons);
    if (result == kNvmlFunctionNotFound) result = nvml_.throttle_reasons(device_, &reasons);
    if (result != kNvmlSuccess) return;
    const struct {
      int depth;
      const char* name;
      unsigned long long bit;
    } names[] = {{2, "Idle", 0x1},        {2, "Applications Clocks Setting", 0x2}, {2, "SW Power Cap", 0x4},
                 {2, "HW Slowdown", 0x8}, {3, "HW Thermal Slowdown", 0x40},        {3, "HW Power Brake Slowdown", 0x80},
                 {2, "Sync Boost", 0x10}, {2, "SW Thermal Slowdown", 0x20},        {2, "Display Clock Setting", 0x100}};
    Section(1, "Clocks Event Reasons");
    for (const auto& name : names) Line(name.depth, name.name, (reasons & name.bit) != 0 ? "Active" : "Not Active");
  }

  void Memory() {
    NvmlMemory memory = {};
    if (nvml_.memory(device_, &memory) != kNvmlSuccess) return;
    Section(1, "FB Memory Usage");
    Line(2, "Total", absl::StrCat(memory.total >> 20, " MiB"));
    Line(2, "Used", absl::StrCat(memory.used >> 20, " MiB"));
    Line(2, "Free", absl::StrCat(memory.free >> 20, " MiB"));
  }

  // Totals, in the shape that they have on GPUs before Ampere; later ones tell by kind of memory, which adds up to the same.
  void Ecc() {
    unsigned long long value = 0;
    if (nvml_.ecc_errors(device_, kNvmlUncorrected, kNvmlVolatile, &value) != kNvmlSuccess) return;
    Section(1, "ECC Errors");
    for (const unsigned when : {kNvmlVolatile, kNvmlAggregate}) {
      Section(2, when == kNvmlVolatile ? "Volatile" : "Aggregate");
      for (const unsigned type : {kNvmlCorrected, kNvmlUncorrected}) {
        Section(3, type == kNvmlCorrected ? "Single Bit" : "Double Bit");
        const int result = nvml_.ecc_errors(device_, type, when, &value);
        Line(4, "Total", Or(result, absl::StrCat(value)));
      }
    }
  }

  void Rows() {
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (nvml_.remapped_rows(device_, &corrected, &uncorrected, &pending, &failed) != kNvmlSuccess) return;
    Section(1, "Remapped Rows");
    Line(2, "Correctable Error", absl::StrCat(corrected));
    Line(2, "Uncorrectable Error", absl::StrCat(uncorrected));
    Line(2, "Pending", pending != 0 ? "Yes" : "No");
    Line(2, "Remapping Failure Occurred", failed != 0 ? "Yes" : "No");
  }

  void Sensors() {
    NvmlUtilization utilization = {};
    if (nvml_.utilization(device_, &utilization) == kNvmlSuccess) {
      Section(1, "Utilization");
      Line(2, "GPU", absl::StrCat(utilization.gpu, " %"));
      Line(2, "Memory", absl::StrCat(utilization.memory, " %"));
    }
    unsigned celsius = 0, milliwatts = 0;
    if (nvml_.temperature(device_, 0, &celsius) == kNvmlSuccess) {
      Section(1, "Temperature");
      Line(2, "GPU Current Temp", absl::StrCat(celsius, " C"));
    }
    if (nvml_.power(device_, &milliwatts) == kNvmlSuccess) {
      Section(1, "GPU Power Readings");
      Line(2, "Power Draw", absl::StrFormat("%.2f W", milliwatts / 1e3));
    }
  }

  void Fabric() {
    NvmlFabricInfo fabric = {};
    if (nvml_.fabric_info(device_, &fabric) != kNvmlSuccess || fabric.state == 0) return;
    static constexpr const char* kStates[] = {"N/A", "Not Started", "In Progress", "Completed"};
    Section(1, "Fabric");
    Line(2, "State", fabric.state < std::size(kStates) ? kStates[fabric.state] : absl::StrCat(static_cast<int>(fabric.state)));
    // Of the registration, so only when that is over.
    Line(2, "Status", fabric.state < 3 ? "N/A" : fabric.status == kNvmlSuccess ? "Success" : nvml_.Words(fabric.status));
    Line(2, "CliqueId", absl::StrCat(fabric.clique_id));
    std::string uuid;
    for (size_t i = 0; i < sizeof(fabric.cluster_uuid); ++i)
      absl::StrAppendFormat(&uuid, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", fabric.cluster_uuid[i]);
    Line(2, "ClusterUUID", uuid);
  }

  const Nvml& nvml_;
  NvmlDevice device_;
  std::string text_;
};

absl::Status QueryAll(const CollectOptions& options, Output* out) {
  const absl::StatusOr<Nvml> nvml = Nvml::Open(options.nvml);
  if (!nvml.ok()) {
    // Why no CUDA program can start here either; nvidia-smi's words for it.
    if (absl::IsFailedPrecondition(nvml.status()))
      out->Write(absl::StrCat("Failed to initialize NVML: ", nvml.status().message(), "\n"));
    return nvml.status();
  }
  unsigned count = 0;
  if (const int result = nvml->count(&count); result != kNvmlSuccess) return absl::UnavailableError(nvml->Words(result));
  char driver[96] = "";
  nvml->driver_version(driver, sizeof(driver) - 1);
  // With the first GPU: a driver that answers for none leaves no file.
  std::string head = absl::StrCat(Prompt(options, "nvidia-smi -q"), "\n==============NVSMI LOG==============\n\n");
  absl::StrAppendFormat(&head, "%-42s: %s\n\n%-42s: %u\n", "Driver Version", driver, "Attached GPUs", count);
  std::string missing;
  for (unsigned i = 0; i < count; ++i) {
    const NvmlGpu gpu = LookAtGpu(*nvml, i, options.procfs);
    if (gpu.result == kNvmlSuccess) {
      out->Write(absl::StrCat(head, Query(*nvml, gpu).text()));
    } else {
      out->Write(absl::StrCat(head, "\n", LostLine(*nvml, gpu)));
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", "GPU ", i, ": ", nvml->Words(gpu.result));
    }
    head.clear();
  }
  return missing.empty() ? absl::OkStatus() : absl::UnavailableError(missing);
}

const RegisterCollector kQuery({"smi-q", WantedOfHost, QueryAll});

}  // namespace
}  // namespace ringscope::supervisor
