// Lines of the kernel's log since boot that name a fault of hardware or a process that hung, one of a kind.
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <map>
#include <tuple>

#include "doctor/probe.h"
#include "supervisor/kernel_log.h"

namespace ringscope::doctor {
namespace {

constexpr size_t kMostKinds = 200;
constexpr size_t kMostColumns = 400;

struct Kind {
  node::KernelLine::Kind kind;
  RE2 pattern;  // device, then a number where there is one
};
const auto& Kinds() {
  static const Kind kinds[] = {
      {node::KernelLine::xid, R"(NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+))"},
      {node::KernelLine::sxid, R"(SXid \(PCI:([0-9a-fA-F:.]+)\): (\d+))"},
      {node::KernelLine::hung_task, R"(INFO: task ([^:]+):\d+ blocked for more than (\d+) seconds)"},
      {node::KernelLine::pcie, R"(pcieport ([0-9a-f:.]+): .*(?:AER|PCIe Bus Error).*[Uu]ncorrect)"},
      {node::KernelLine::oom, R"(Out of memory: Killed process \d+ \(([^)]*)\))"},
  };
  return kinds;
}

absl::Status Kernel(const Place& place, node::Node* node) {
  supervisor::CollectOptions options;
  options.kernel_log = place.dev + "/kmsg";
  options.procfs = place.procfs;
  options.host = "-";
  const auto lines = supervisor::KernelLog(options);
  if (!lines.ok()) return lines.status();
  std::map<std::tuple<int, int, std::string>, node::KernelLine> found;
  for (const std::string& line : *lines) {
    for (const Kind& kind : Kinds()) {
      std::string device;
      int number = 0;
      const bool matches = kind.pattern.NumberOfCapturingGroups() == 2 ? RE2::PartialMatch(line, kind.pattern, &device, &number)
                                                                       : RE2::PartialMatch(line, kind.pattern, &device);
      if (!matches) continue;
      if (kind.kind == node::KernelLine::hung_task) number = 0;
      const auto key = std::make_tuple(static_cast<int>(kind.kind), number, device);
      if (found.size() == kMostKinds && found.count(key) == 0) break;
      node::KernelLine& k = found[key];
      k.set_kind(kind.kind);
      k.set_number(number);
      k.set_device(device);
      k.set_count(k.count() + 1);
      k.set_time(line.substr(0, line.find(' ')));
      const size_t text = line.find(" kernel: ");
      k.set_line(line.substr(text == line.npos ? 0 : text + 9, kMostColumns));
      break;
    }
  }
  for (auto& [key, line] : found) *node->add_kernel() = std::move(line);
  return absl::OkStatus();
}

const RegisterProbe kRegister({"kernel-log", Kernel});

}  // namespace
}  // namespace ringscope::doctor
