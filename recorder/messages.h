// What the recorder says on stderr about the job: one line each, capped by Say().
#ifndef RINGSCOPE_RECORDER_MESSAGES_H_
#define RINGSCOPE_RECORDER_MESSAGES_H_

#include <stdint.h>

#include "recorder/snapshot.h"
#include "recorder/state.h"

namespace ringscope::recorder {

// "rank 3 (host): AllReduce #11 of communicator world (0x1234) has made no progress for 60 s; wrote
// PATH. Next: ..." `slot`: index into FileHeader::stalls.
void SayStall(const Runtime& runtime, const SnapshotWriter& snapshots, Written written,
              uint32_t slots, uint64_t now_ticks);
void SayRecovered(const Runtime& runtime, uint32_t slot);

// All ranks of a communicator on one node, yet its data goes through network proxies.
void SayFallback(const Runtime& runtime, uint32_t comm_row);

// NCCL's name of a function, by the number in the tables.
const char* FuncName(uint32_t func);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_MESSAGES_H_
