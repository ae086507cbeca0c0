#include "analyzer/readers/smi_keys.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <map>

#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

using Keys = std::map<std::string_view, std::string_view>;

// Headings and leaves as driver releases 390 to 590 print them, text and XML.
const Keys& Anywhere() {
  static const auto& keys = *new Keys{
      {"product_name", "name"},
      {"gpu_uuid", "uuid"},
      {"uuid", "uuid"},
      {"bus_id", "pci.bus_id"},
      {"pci_bus_id", "pci.bus_id"},
      {"minor_number", "minor"},
      {"performance_state", "pstate"},
      {"gpu_current_temp", "temperature.gpu"},
      {"gpu_temp", "temperature.gpu"},
      {"memory_current_temp", "temperature.memory"},
      {"memory_temp", "temperature.memory"},
      {"gpu_slowdown_temp", "temperature.slowdown"},
      {"gpu_temp_slow_threshold", "temperature.slowdown"},
      {"gpu_temp_max_threshold", "temperature.shutdown"},
      {"gpu_shutdown_temp", "temperature.shutdown"},
      {"gpu_t_limit_temp", "temperature.tlimit"},
      {"gpu_temp_tlimit", "temperature.tlimit"},
      {"power_draw", "power.draw"},
      {"average_power_draw", "power.draw"},
      {"instantaneous_power_draw", "power.draw.instant"},
      {"instant_power_draw", "power.draw.instant"},
      {"power_limit", "power.limit"},
      {"current_power_limit", "power.limit"},
      {"enforced_power_limit", "power.limit.enforced"},
      {"default_power_limit", "power.limit.default"},
      {"max_power_limit", "power.limit.max"},
      {"replays_since_reset", "pcie.replay"},
      {"replay_counter", "pcie.replay"},
      {"cliqueid", "fabric.cliqueId"},
      {"clique_id", "fabric.cliqueId"},
      {"clusteruuid", "fabric.clusterUuid"},
      {"cluster_uuid", "fabric.clusterUuid"},
      {"remapping_failure_occurred", "remapped_rows.failure"},
      {"remapped_row_failure", "remapped_rows.failure"},
      {"remapped_row_pending", "remapped_rows.pending"},
      {"remapped_row_unc", "remapped_rows.uncorrectable"},
      {"remapped_row_corr", "remapped_rows.correctable"},
      {"pending_page_blacklist", "retired_pages.pending"},
      {"pending_retirement", "retired_pages.pending"},
      {"gpu_recovery_action", "recovery_action"},
      {"recovery_action", "recovery_action"},
      {"reset_required", "reset_required"},
      {"drain_and_reset_recommended", "drain_and_reset_recommended"},
      {"compute_mode", "compute_mode"},
      {"persistence_mode", "persistence_mode"},
      {"max_link_gen", "pcie.link.gen.max"},
      {"current_link_gen", "pcie.link.gen.current"},
      {"device_current_link_gen", "pcie.link.gen.gpucurrent"},
      {"max_device_link_gen", "pcie.link.gen.gpumax"},
      {"max_host_link_gen", "pcie.link.gen.hostmax"},
      {"max_link_width", "pcie.link.width.max"},
      {"current_link_width", "pcie.link.width.current"},
      {"channel_repair_pending", "channel_repair_pending"},
      {"tpc_repair_pending", "tpc_repair_pending"},
  };
  return keys;
}

// Reasons that lower clocks; "clocks_event_reason_" and the like are taken off first.
const Keys& Reasons() {
  static const auto& keys = *new Keys{
      {"gpu_idle", "gpu_idle"},
      {"idle", "gpu_idle"},
      {"applications_clocks_setting", "applications_clocks_setting"},
      {"sw_power_cap", "sw_power_cap"},
      {"sw_power_capping", "sw_power_cap"},
      {"hw_slowdown", "hw_slowdown"},
      {"hw_thermal_slowdown", "hw_thermal_slowdown"},
      {"hw_power_brake", "hw_power_brake_slowdown"},
      {"hw_power_brake_slowdown", "hw_power_brake_slowdown"},
      {"hw_power_braking", "hw_power_brake_slowdown"},
      {"hw_thermal_slowdown_events", "hw_thermal_slowdown"},
      {"sync_boost", "sync_boost"},
      {"sw_thermal_slowdown", "sw_thermal_slowdown"},
      {"display_clock_setting", "display_clock_setting"},
      {"display_clocks_setting", "display_clock_setting"},
  };
  return keys;
}

bool Under(const std::vector<std::string>& sections, std::string_view name) {
  return std::any_of(sections.begin(), sections.end(), [&](const std::string& s) { return s == name; });
}

// "clocks_event_reasons_counters" of release 550 and later counts microseconds: not the same as a reason in force.
std::string Reason(const std::vector<std::string>& sections, std::string_view key) {
  if (Under(sections, "clocks_event_reasons_counters") || Under(sections, "clocks_event_reason_counters")) {
    const auto found = Reasons().find(key);
    return found == Reasons().end() ? "" : "throttle_us." + std::string(found->second);
  }
  for (const std::string_view prefix :
       {"clocks_event_reasons_", "clocks_event_reason_", "clocks_throttle_reasons_", "clocks_throttle_reason_"}) {
    if (key.starts_with(prefix)) key.remove_prefix(prefix.size());
  }
  const auto found = Reasons().find(key);
  if (found == Reasons().end() || key == "idle") {
    const bool inside = Under(sections, "clocks_event_reasons") || Under(sections, "clocks_throttle_reasons");
    if (found == Reasons().end() || !inside) return "";
  }
  return "throttle." + std::string(found->second);
}

std::string Fabric(const std::vector<std::string>& sections, std::string_view key) {
  if (!Under(sections, "fabric")) return "";
  if (key == "state" || key == "status") return "fabric." + std::string(key);
  if (Under(sections, "health") || key == "summary" || key == "bandwidth" || key == "route_unhealthy" ||
      key == "route_recovery_in_progress" || key == "access_timeout_recovery" || key == "incorrect_configuration")
    return "fabric.health." + std::string(key);
  return "";
}

std::string Pcie(const std::vector<std::string>& sections, std::string_view key) {
  const bool gen = Under(sections, "pcie_generation"), width = Under(sections, "link_width");
  if (!gen && !width) return "";
  const std::string base = gen ? "pcie.link.gen." : "pcie.link.width.";
  if (key == "max" || key == "current") return base + std::string(key);
  if (key == "device_current") return base + "gpucurrent";
  if (key == "device_max") return base + "gpumax";
  if (key == "host_max") return base + "hostmax";
  return "";
}

std::string Clocks(const std::vector<std::string>& sections, std::string_view key) {
  if (key == "graphics_clock") key = "graphics";
  if (key == "sm_clock") key = "sm";
  if (key == "mem_clock") key = "memory";
  if (key != "sm" && key != "graphics" && key != "memory") return "";
  // Outside any heading: an excerpt. "Memory" alone could be anything.
  if (sections.empty()) return key == "memory" ? "" : "clocks." + std::string(key);
  const std::string& last = sections.back();
  if (last == "clocks") return "clocks." + std::string(key);
  if (last == "max_clocks") return "clocks.max." + std::string(key);
  if (last == "applications_clocks") return "clocks.applications." + std::string(key);
  return "";
}

std::string Ecc(const std::vector<std::string>& sections, std::string_view key) {
  const bool is_volatile = Under(sections, "volatile"), aggregate = Under(sections, "aggregate");
  if (is_volatile || aggregate) {
    const std::string when = is_volatile ? "volatile" : "aggregate";
    const bool uncorrected = Contains(key, "uncorrect") || Under(sections, "double_bit");
    const bool corrected = !uncorrected && (Contains(key, "correct") || Under(sections, "single_bit"));
    if (key == "sram_threshold_exceeded") return "ecc.sram_threshold_exceeded";
    if (!uncorrected && !corrected) return "";
    return std::string("ecc.errors.") + (uncorrected ? "uncorrected." : "corrected.") + when + "." + std::string(key);
  }
  if (Under(sections, "remapped_rows")) {
    if (key == "pending") return "remapped_rows.pending";
    if (key == "correctable_error") return "remapped_rows.correctable";
    if (key == "uncorrectable_error") return "remapped_rows.uncorrectable";
  }
  if (Under(sections, "retired_pages") && (key == "double_bit_ecc" || key == "single_bit_ecc"))
    return "retired_pages." + std::string(key);
  if (Under(sections, "ecc_mode") || Under(sections, "mig_mode")) {
    if (key == "current" || key == "pending" || key == "current_ecc" || key == "current_mig")
      return (Under(sections, "ecc_mode") ? "ecc.mode." : "mig.mode.") + std::string(key.substr(0, key.find('_')));
  }
  return "";
}

std::string Utilization(const std::vector<std::string>& sections, std::string_view key) {
  if (key == "gpu_util" || (key == "gpu" && !sections.empty() && sections.back() == "utilization")) return "utilization.gpu";
  const bool fb = Under(sections, "fb_memory_usage");
  if (fb && (key == "total" || key == "used" || key == "free")) return "memory." + std::string(key);
  return "";
}

}  // namespace

std::string SmiKey(const std::vector<std::string>& sections, std::string_view key) {
  using Part = std::string (*)(const std::vector<std::string>&, std::string_view);
  for (const Part part : {Part{Reason}, Part{Fabric}, Part{Pcie}, Part{Ecc}, Part{Utilization}, Part{Clocks}}) {
    if (std::string found = part(sections, key); !found.empty()) return found;
  }
  const auto found = Anywhere().find(key);
  return found == Anywhere().end() ? "" : std::string(found->second);
}

std::string SmiColumnKey(std::string_view column) {
  while (!column.empty() && column.front() == ' ') column.remove_prefix(1);
  column = column.substr(0, column.find(" ["));
  std::string name = absl::AsciiStrToLower(absl::string_view(column.data(), column.size()));
  absl::StripTrailingAsciiWhitespace(&name);
  for (const std::string_view prefix : {"clocks_event_reasons.", "clocks_throttle_reasons."}) {
    if (!name.starts_with(prefix)) continue;
    const std::string reason = name.substr(prefix.size());
    if (reason == "active" || reason == "supported") return "throttle_mask." + reason;
    const auto found = Reasons().find(reason);
    return found == Reasons().end() ? "throttle." + reason : "throttle." + std::string(found->second);
  }
  static const auto& aliases = *new Keys{
      {"gpu_name", "name"},
      {"gpu_uuid", "uuid"},
      {"gpu_bus_id", "pci.bus_id"},
      {"clocks.gr", "clocks.graphics"},
      {"clocks.current.graphics", "clocks.graphics"},
      {"clocks.current.sm", "clocks.sm"},
      {"clocks.current.memory", "clocks.memory"},
      {"clocks.mem", "clocks.memory"},
      {"clocks.max.gr", "clocks.max.graphics"},
      {"clocks.max.mem", "clocks.max.memory"},
      {"pcie.link.gen.gpucurrent", "pcie.link.gen.current"},
      {"pcie.link.gen.gpumax", "pcie.link.gen.gpumax"},
      {"power.draw.average", "power.draw"},
      {"enforced.power.limit", "power.limit.enforced"},
      {"power.default_limit", "power.limit.default"},
      {"power.max_limit", "power.limit.max"},
      {"fabric.cliqueid", "fabric.cliqueId"},
      {"fabric.clusteruuid", "fabric.clusterUuid"},
      {"pci.bus", "pci.bus"},
      {"retired_pages.double_bit.count", "retired_pages.double_bit_ecc"},
      {"retired_pages.dbe", "retired_pages.double_bit_ecc"},
      {"retired_pages.single_bit_ecc.count", "retired_pages.single_bit_ecc"},
  };
  const auto found = aliases.find(name);
  return found == aliases.end() ? name : std::string(found->second);
}

std::vector<std::string> ThrottleReasons(unsigned long long mask) {
  static constexpr const char* kBits[] = {"gpu_idle",
                                          "applications_clocks_setting",
                                          "sw_power_cap",
                                          "hw_slowdown",
                                          "sync_boost",
                                          "sw_thermal_slowdown",
                                          "hw_thermal_slowdown",
                                          "hw_power_brake_slowdown",
                                          "display_clock_setting"};
  std::vector<std::string> reasons;
  for (size_t bit = 0; bit < std::size(kBits); ++bit) {
    if (mask >> bit & 1) reasons.push_back(kBits[bit]);
  }
  return reasons;
}

std::string ReasonQuote(const std::string& gpu, const std::string& reason, std::string_view mask) {
  return gpu + (gpu.empty() ? "" : ": ") + "throttle." + reason + " Active (mask " + std::string(mask.substr(0, 20)) + ")";
}

std::string_view WithoutUnit(std::string_view value) {
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  size_t digits = 0;
  while (digits < value.size() && (absl::ascii_isdigit(static_cast<unsigned char>(value[digits])) || value[digits] == '.'))
    ++digits;
  if (digits == 0 || digits == value.size()) return value;
  const std::string_view unit = value.substr(digits);
  for (const std::string_view known : {" MHz", " W", " C", " %", " MiB", "x", " ms", " KB/s", " MB/s", " us"}) {
    if (unit == known) return value.substr(0, digits);
  }
  return value;
}

}  // namespace ringscope::ingest
