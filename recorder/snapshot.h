// Writing traces: <dir>/<job>.<restart>/<host>/rank<R>-pid<P>-<seq>-<reason>.trace, under another
// name first, renamed when complete. Only our own thread does this: it may meet a full disk or a
// file system that hangs.
#ifndef RINGSCOPE_RECORDER_SNAPSHOT_H_
#define RINGSCOPE_RECORDER_SNAPSHOT_H_

#include <stdint.h>

#include "recorder/state.h"

namespace ringscope::recorder {

enum class Written { kYes, kNotWanted, kOverLimit, kFailed };

class SnapshotWriter {
 public:
  // `scratch`: flight::kEncodeScratchBytes, aligned to 8 bytes.
  void Init(Runtime* runtime, unsigned char* scratch);

  // Writes one trace. Traces of kFinalize and kExit are not counted against RINGSCOPE_TRACES; a
  // later one of these replaces an earlier one. A failure is counted, said on stderr once, and
  // leaves no partial file.
  Written Write(flight::Reason reason, uint64_t now_ticks);

  // Path of the last trace written; "" before.
  const char* path() const { return path_; }
  // Directory of the traces of this run, below which all hosts of the job lie.
  void AddRunRoot(Text& out) const;

 private:
  void ChooseName(flight::Reason reason, Text* path);
  bool WriteFile(flight::Reason reason, uint64_t now_ticks, const char* path);

  Runtime* runtime_;
  unsigned char* scratch_;
  uint32_t sequence_;  // of the last trace
  uint32_t counted_;   // traces counted against the limit
  bool said_failure_;
  char path_[1280];
  char last_slot_[1280];  // the finalize or exit trace, to be replaced by the next
};

// What an errno of a write means, for the few that happen; nullptr for the others. (strerror is not ours to call from a
// thread of a foreign process: it may allocate.)
const char* ErrorText(int error);

// "stall", "finalize", ...: as in file names.
const char* ReasonName(flight::Reason reason);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_SNAPSHOT_H_
