// What the recorder says on stderr about the job: one line each, capped by Say().
#ifndef RINGSCOPE_RECORDER_MESSAGES_H_
#define RINGSCOPE_RECORDER_MESSAGES_H_

#include <stdint.h>

#include "recorder/snapshot.h"
#include "recorder/state.h"

namespace ringscope::recorder {

// The lines of one process. Lives in zeroed memory.
class Speaker {
 public:
  // "rank 3 (host): AllReduce #11 of communicator world (0x1234) has made no progress for 60 s;
  // wrote PATH. Next: ..." `slots`: bit per index into FileHeader::stalls.
  void Stall(const Runtime& runtime, const SnapshotWriter& snapshots, Written written,
             uint32_t slots, uint64_t now_ticks);
  void Recovered(const Runtime& runtime, uint32_t slot);

  // All ranks of a communicator on one node, yet its data goes through network proxies.
  void Fallback(const Runtime& runtime, uint32_t comm_row);

  // Stalls and recoveries: so many lines a process, the last of which says that more are in the
  // traces. A job that stops and goes on all day must not fill its log.
  static constexpr uint32_t kMostLines = 8;

 private:
  void SayOnce(Text* line);

  uint32_t lines_;
};

// NCCL's name of a function, by the number in the tables.
const char* FuncName(uint32_t func);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_MESSAGES_H_
