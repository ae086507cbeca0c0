// NCCL's debug logs of a capture, rewritten into those of the replayed job.
#ifndef RINGSCOPE_TESTS_REPLAY_NCCL_LOG_H_
#define RINGSCOPE_TESTS_REPLAY_NCCL_LOG_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/replay/capture.h"
#include "tests/replay/permute.h"

namespace ringscope::replay {

struct LogRewrite {
  const Process* process = nullptr;
  int32_t pid = 0;  // in the replay; 0: the process was never started, its number stays
  const Permutation* permutation = nullptr;
  bool permuted = false;
  int finalizes = 0;     // communicators that the process finalized in this replay
  uint64_t until_t = 0;  // lines stamped later than this (captured clock) are left out; 0: none are
  int64_t wall_offset_ns = 0;  // captured wall clock minus captured monotonic clock; 0: unknown
};

// Rewrites the host and pid of every line's prefix and, where asked, ranks. Lines of communicators'
// ends that the process does not reach in this replay, and what follows them, are left out.
std::string RewriteLog(absl::string_view text, const LogRewrite& rewrite);

// The captured wall clock minus the monotonic one, from kernel timers; 0 where the capture has
// none.
int64_t WallOffset(const Capture& capture);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_NCCL_LOG_H_
