#include "doctor/check.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

namespace ringscope::doctor {
namespace {

std::vector<Check>& Registry() {
  static auto& registry = *new std::vector<Check>;
  return registry;
}

}  // namespace

void Verdict::Add(node::Report::Status status, const std::string& seen, const Advice& advice, const std::string& before) {
  node::Problem* problem = check_->add_problems();
  problem->set_status(status);
  problem->set_seen(seen);
  problem->set_baseline(before);
  problem->set_why(advice.why);
  problem->set_fix(advice.fix);
  problem->set_entry(advice.entry);
}

RegisterCheck::RegisterCheck(Check check) { Registry().push_back(std::move(check)); }

const std::vector<Check>& Checks() {
  std::vector<Check>& all = Registry();
  std::sort(all.begin(), all.end(), [](const Check& a, const Check& b) { return a.name < b.name; });
  return all;
}

const node::Asked* AskedOf(const node::Node& node, const std::string& name) {
  for (const node::Asked& asked : node.asked()) {
    if (asked.name() == name) return &asked;
  }
  return nullptr;
}

bool HasGpu(const node::Node& node) {
  const node::Asked* nvml = AskedOf(node, "nvml");
  return node.gpus_size() > 0 || !node.driver().kernel_version().empty() || (nvml != nullptr && nvml->late()) ||
         std::any_of(node.pci().begin(), node.pci().end(), [](const auto& d) { return d.kind() == node::PciDevice::gpu; });
}

bool GpusTold(const Question& question, Verdict* verdict) {
  if (question.now.gpus_size() > 0) return true;
  if (!HasGpu(question.now)) {
    verdict->NotPresent("no GPU here");
    return false;
  }
  const node::Asked* asked = AskedOf(question.now, "nvml");
  verdict->CouldNotTell(asked == nullptr ? "the driver was not asked" : absl::StrCat("NVML: ", asked->why_not()));
  return false;
}

std::string Label(const node::Gpu& gpu) {
  return absl::StrCat("GPU ", gpu.index(), gpu.bus_id().empty() ? "" : absl::StrCat(" (", gpu.bus_id(), ")"));
}

const node::Gpu* Same(const node::Node* node, const node::Gpu& gpu) {
  if (node == nullptr) return nullptr;
  for (const node::Gpu& other : node->gpus()) {
    const bool by_index = gpu.bus_id().empty() || other.bus_id().empty();
    if (by_index ? other.index() == gpu.index() : other.bus_id() == gpu.bus_id()) return &other;
  }
  return nullptr;
}

bool OfThisNode(const Question& question) { return question.before != nullptr && question.before->host() == question.now.host(); }

std::string Setting(const node::Node& node, const std::string& name) {
  const auto found = node.settings().find(name);
  return found == node.settings().end() ? "" : found->second;
}

std::string Bytes(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30) return absl::StrFormat("%.3g GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= uint64_t{1} << 20) return absl::StrFormat("%.4g MiB", static_cast<double>(bytes) / (1 << 20));
  return absl::StrFormat("%.4g KiB", static_cast<double>(bytes) / 1024);
}

std::string Count(size_t n, const std::string& one) { return absl::StrCat(n, " ", one, n == 1 ? "" : "s"); }

}  // namespace ringscope::doctor
