#ifndef RINGSCOPE_SUPERVISOR_KERNEL_LOG_H_
#define RINGSCOPE_SUPERVISOR_KERNEL_LOG_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "supervisor/collect.h"

namespace ringscope::supervisor {

// The kernel's log from `options.since_ns` on, the last lines where there are very many, as `journalctl -k -o short-iso-precise`
// prints it: from `options.kernel_log`, else by dmesg, else by journalctl. Empty: there is a log, and nothing new in it.
// PermissionDenied, with what was tried: it cannot be read here. May block as long as those programs may.
absl::StatusOr<std::vector<std::string>> KernelLog(const CollectOptions& options);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_KERNEL_LOG_H_
