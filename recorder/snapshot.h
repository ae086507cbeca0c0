// Writing traces: <dir>/<job>.<restart>/<host>/rank<R>-pid<P>-<seq>-<reason>.trace, under another
// name first, renamed when complete. Only our own thread does this: it may meet a full disk or a
// file system that hangs.
#ifndef RINGSCOPE_RECORDER_SNAPSHOT_H_
#define RINGSCOPE_RECORDER_SNAPSHOT_H_

#include <stdint.h>

#include "recorder/state.h"

namespace ringscope::recorder {

enum class Written { kYes, kNotWanted, kFailed };

// While one of these lives, the header says that our thread is in a file system call. On a network
// file system such a call may hang, and its heartbeat with it: readers must not take the process
// for a frozen one.
class InFileSystem {
 public:
  explicit InFileSystem(flight::FileHeader* header);
  ~InFileSystem();
  InFileSystem(const InFileSystem&) = delete;
  InFileSystem& operator=(const InFileSystem&) = delete;

 private:
  flight::FileHeader* header_;
};

class SnapshotWriter {
 public:
  // `scratch`: flight::kEncodeScratchBytes, aligned to 8 bytes.
  void Init(Runtime* runtime, unsigned char* scratch);

  // Writes one trace. Three kinds replace their predecessor instead of taking more room:
  //  * kFinalize and kExit, which are not counted against RINGSCOPE_TRACES;
  //  * kQuiet: a job that evaluates every hour would use up its traces with them;
  //  * kMarker without a job id: unrelated runs share the directory and its marker.
  // Beyond RINGSCOPE_TRACES the newest replaces the last one, counted as kTraceDropped: there is
  // always a last word. A failure is counted, said on stderr once, and leaves no partial file.
  Written Write(flight::Reason reason, uint64_t now_ticks);

  // Path of the last trace written; "" before.
  const char* path() const { return path_; }
  // Directory of the traces of this run, below which all hosts of the job lie.
  void AddRunRoot(Text& out) const;

 private:
  // Names a trace of ours that lies there; sequence 0: none.
  struct Kept {
    uint32_t sequence;
    flight::Reason reason;
  };

  void ChooseName(flight::Reason reason, Text* path);
  bool WriteFile(flight::Reason reason, uint64_t now_ticks, const char* path);
  // Where the predecessor stands that a trace of this kind replaces; nullptr for those that add.
  Kept* SlotOf(flight::Reason reason);
  void AddStem(Text* path) const;
  void Remove(const Kept& kept) const;
  void MakeRoom(flight::Reason reason);

  Runtime* runtime_;
  unsigned char* scratch_;
  uint32_t sequence_;  // of the last trace
  uint32_t counted_;   // traces counted against the limit that lie there
  bool said_failure_;
  Kept newest_;                // of those counted
  Kept end_, quiet_, marker_;  // replaced by the next of their kind
  char path_[1280];
};

// What an errno of a write means, for the few that happen; nullptr for the others. (strerror is not
// ours to call from a thread of a foreign process: it may allocate.)
const char* ErrorText(int error);

// "stall", "finalize", ...: as in file names.
const char* ReasonName(flight::Reason reason);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_SNAPSHOT_H_
