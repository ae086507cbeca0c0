// One name for each thing that nvidia-smi prints, whichever of its forms printed it. Internal to analyzer/readers.
#ifndef RINGSCOPE_ANALYZER_READERS_SMI_KEYS_H_
#define RINGSCOPE_ANALYZER_READERS_SMI_KEYS_H_

#include <string>
#include <string_view>
#include <vector>

namespace ringscope::ingest {

// The key under which GpuReading::values keeps a "Key : value" line of `nvidia-smi -q` or a leaf of its XML; empty when nobody
// needs it. `sections`: the headings above, outermost first, normalised (NormalKey), as is `key`.
std::string SmiKey(const std::vector<std::string>& sections, std::string_view key);

// The same for a column of --query-gpu ("clocks_event_reasons.hw_slowdown [..]"), without its unit.
std::string SmiColumnKey(std::string_view column);

// Reasons in a bit mask as "clocks_throttle_reasons.active" and DCGM's field 112 give it (nvml.h, nvmlClocksEventReason*).
std::vector<std::string> ThrottleReasons(unsigned long long mask);

// One of them as evidence: "GPU 3: throttle.hw_slowdown Active (mask 0x48)".
std::string ReasonQuote(const std::string& gpu, const std::string& reason, std::string_view mask);

// "585 MHz" -> "585", "16x" -> "16"; other values stay as they are.
std::string_view WithoutUnit(std::string_view value);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_SMI_KEYS_H_
