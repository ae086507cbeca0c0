// The kernel's log: Xid errors, PCIe errors, killed and hung processes. In the form of `journalctl -k -o short-iso-precise`,
// which names the host in every line.
#include <absl/strings/str_join.h>

#include "supervisor/collector.h"
#include "supervisor/kernel_log.h"

namespace ringscope::supervisor {
namespace {

absl::Status Kernel(const CollectOptions& options, Output* out) {
  const auto lines = KernelLog(options);
  if (!lines.ok()) return lines.status();
  if (!lines->empty()) out->Write(absl::StrJoin(*lines, "\n") + "\n");
  return absl::OkStatus();
}

const RegisterCollector kRegister({"kernel", WantedOfHost, Kernel});

}  // namespace
}  // namespace ringscope::supervisor
