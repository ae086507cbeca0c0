// NVLinks, their error counters and peer access, from NVML, in the shapes of nvidia-smi (driver 570): `nvlink -s`, `nvlink -e`,
// `topo -p2p`. NVML and not nvidia-smi: the tool is often not in a container, and it gives up at the first GPU that does not
// answer.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include "supervisor/collector.h"
#include "supervisor/nvml.h"

namespace ringscope::supervisor {
namespace {

constexpr unsigned kMostLinks = 72;  // NVML answers "invalid argument" behind the last one; 36 are the most so far

// What goes wrong with single GPUs is in the file; the phrase says that something is.
class Missing {
 public:
  void Gpu(const Nvml& nvml, const NvmlGpu& gpu) {
    absl::StrAppend(&text_, text_.empty() ? "" : ", ", "GPU ", gpu.index, ": ", nvml.Words(gpu.result));
  }
  absl::Status status() const { return text_.empty() ? absl::OkStatus() : absl::UnavailableError(text_); }

 private:
  std::string text_;
};

// Calls `of_gpu` for each GPU; what it returns is written at once, so that a GPU that hangs does not take the others along.
template <typename OfGpu>
absl::Status ForEachGpu(const CollectOptions& options, const char* command, Output* out, OfGpu of_gpu) {
  const absl::StatusOr<Nvml> nvml = Nvml::Open(options.nvml);
  if (!nvml.ok()) return nvml.status();
  unsigned count = 0;
  if (const int result = nvml->count(&count); result != kNvmlSuccess) return absl::UnavailableError(nvml->Words(result));
  // With the first GPU: a driver that answers for none leaves no file.
  std::string head = Prompt(options, command);
  Missing missing;
  for (unsigned i = 0; i < count; ++i) {
    NvmlGpu gpu = LookAtGpu(*nvml, i, options.procfs);
    const std::string text = gpu.result == kNvmlSuccess ? of_gpu(*nvml, &gpu) : LostLine(*nvml, gpu);
    if (gpu.result != kNvmlSuccess) missing.Gpu(*nvml, gpu);
    out->Write(head + text);
    head.clear();
  }
  return missing.status();
}

std::string Head(const NvmlGpu& gpu) { return absl::StrCat("GPU ", gpu.index, ": ", gpu.name, " (UUID: ", gpu.uuid, ")\n"); }

// GB/s in one direction; 0: not told.
double Speed(const Nvml& nvml, NvmlDevice device, unsigned link) {
  for (const unsigned field : {kNvmlNvlinkGetSpeed, kNvmlNvlinkSpeedCommon}) {
    NvmlFieldValue value = {};
    value.field = field;
    value.scope = field == kNvmlNvlinkGetSpeed ? link : 0;
    if (nvml.field_values(device, 1, &value) == kNvmlSuccess && value.result == kNvmlSuccess && value.value.ui > 0)
      return value.value.ui / 1e3;
  }
  return 0;
}

std::string States(const Nvml& nvml, NvmlGpu* gpu) {
  std::string text = Head(*gpu);
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    const int result = nvml.link_state(gpu->device, link, &active);
    if (result == kNvmlInvalidArgument || result == kNvmlFunctionNotFound) break;
    if (result == kNvmlNotSupported) continue;
    if (result != kNvmlSuccess) {
      // Half of its links would look like a GPU that has no more.
      gpu->result = result;
      return LostLine(nvml, *gpu);
    }
    const double speed = active == 0 ? 0 : Speed(nvml, gpu->device, link);
    // No speed is made up: a line without one is no statement of the link's state to the analyzer, but one to people.
    absl::StrAppend(&text, "\t Link ", link, ": ",
                    active == 0 ? "<inactive>"
                    : speed > 0 ? absl::StrFormat("%g GB/s", speed)
                                : "<active>",
                    "\n");
  }
  return text;
}

std::string Errors(const Nvml& nvml, NvmlGpu* gpu) {
  const struct {
    unsigned counter;
    const char* name;
  } counters[] = {{kNvmlReplay, "Replay"}, {kNvmlRecovery, "Recovery"}, {kNvmlCrc, "CRC"}};
  std::string text = Head(*gpu);
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    const int result = nvml.link_state(gpu->device, link, &active);
    if (result == kNvmlInvalidArgument || result == kNvmlFunctionNotFound) break;
    for (const auto& counter : counters) {
      unsigned long long value = 0;
      if (result == kNvmlSuccess && nvml.link_errors(gpu->device, link, counter.counter, &value) == kNvmlSuccess)
        absl::StrAppend(&text, "\t Link ", link, ": ", counter.name, " Errors: ", value, "\n");
    }
  }
  return text;
}

absl::Status LinkStates(const CollectOptions& options, Output* out) {
  return ForEachGpu(options, "nvidia-smi nvlink -s", out, States);
}
absl::Status LinkErrors(const CollectOptions& options, Output* out) {
  return ForEachGpu(options, "nvidia-smi nvlink -e", out, Errors);
}

// nvmlGpuP2PStatus_t in nvidia-smi's letters.
const char* Cell(int result, unsigned status) {
  static constexpr const char* kCells[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS"};
  return result == kNvmlSuccess && status < std::size(kCells) ? kCells[status] : "U";
}

absl::Status PeerAccess(const CollectOptions& options, Output* out) {
  const absl::StatusOr<Nvml> nvml = Nvml::Open(options.nvml);
  if (!nvml.ok()) return nvml.status();
  unsigned count = 0;
  if (const int result = nvml->count(&count); result != kNvmlSuccess) return absl::UnavailableError(nvml->Words(result));
  std::vector<NvmlGpu> gpus;
  Missing missing;
  for (unsigned i = 0; i < count; ++i) {
    gpus.push_back(LookAtGpu(*nvml, i, options.procfs));
    if (gpus[i].result != kNvmlSuccess) missing.Gpu(*nvml, gpus[i]);
  }
  const struct {
    const char* letter;
    unsigned index;
  } capabilities[] = {{"r", kNvmlP2pRead}, {"n", kNvmlP2pNvlink}};
  for (const auto& capability : capabilities) {
    std::string text = Prompt(options, absl::StrCat("nvidia-smi topo -p2p ", capability.letter));
    for (const NvmlGpu& gpu : gpus) absl::StrAppend(&text, "\tGPU", gpu.index);
    text += "\n";
    for (const NvmlGpu& a : gpus) {
      absl::StrAppend(&text, " GPU", a.index);
      for (const NvmlGpu& b : gpus) {
        unsigned status = 0;
        const bool both = a.result == kNvmlSuccess && b.result == kNvmlSuccess;
        const int result =
            both && a.index != b.index ? nvml->p2p_status(a.device, b.device, capability.index, &status) : kNvmlUnknown;
        absl::StrAppend(&text, "\t", a.index == b.index ? "X" : Cell(result, status));
      }
      text += "\n";
    }
    out->Write(text + "\n");
  }
  return missing.status();
}

const RegisterCollector kStates({"nvlink-s", WantedOfHost, LinkStates});
const RegisterCollector kErrors({"nvlink-e", WantedOfHost, LinkErrors});
const RegisterCollector kPeerAccess({"topo-p2p", WantedOfHost, PeerAccess});

}  // namespace
}  // namespace ringscope::supervisor
