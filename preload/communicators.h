// Communicators by their pointers, for processes in which no profiler plugin tells of them (NCCL before 2.23, or the variable is
// not set). A fixed table; what finds no room is not recorded, and counted.
#ifndef RINGSCOPE_PRELOAD_COMMUNICATORS_H_
#define RINGSCOPE_PRELOAD_COMMUNICATORS_H_

#include <stdint.h>

#include "preload/details.h"

namespace ringscope::preload {

// Some NCCL of this process calls a profiler plugin of ours: its events are the record.
bool PluginTells();

// Opens a communicator of the recorder for what an init made. `rank` -1: asked of NCCL at its first operation.
void Opened(Image* image, void* comm, uint64_t comm_id, int n_ranks, int rank);
void Closed(Image* image, void* comm);
// The recorder's context; 0: not ours.
uint64_t ContextOf(void* comm);
// Learns rank and size from NCCL where they are not known yet; `caller` as for Find().
void Learn(Image* image, void* comm, uint64_t context, const void* caller);

// An id that is the same on all ranks: of the unique id; of a split, by the parent's and how many came before.
uint64_t IdOf(const NcclId& id);
uint64_t IdOfSplit(void* parent, int color);

}  // namespace ringscope::preload

#endif  // RINGSCOPE_PRELOAD_COMMUNICATORS_H_
