// Which NCCL calls us, and what to ask of it.
#ifndef RINGSCOPE_PLUGIN_RELEASE_H_
#define RINGSCOPE_PLUGIN_RELEASE_H_

#include <stdint.h>

namespace ringscope::plugin {

// Version (22605 is 2.26.5) of the NCCL whose code holds `address`; 0 where it cannot be told: a
// NCCL linked statically and without its symbols, say. Loads nothing. Not for callbacks of
// operations: takes the dynamic loader's lock.
uint32_t NcclVersionAt(const void* address);

// Event bits to ask for through a table of version `api` (1-6). `setting` is RINGSCOPE_EVENTS,
// recorder::kEventsByRelease where it is not set. Bits that the table does not know are never asked
// for: a shim of a later NCCL would make the events, and drop them.
uint32_t EventsFor(uint64_t setting, uint32_t api, uint32_t nccl_version);

}  // namespace ringscope::plugin

#endif  // RINGSCOPE_PLUGIN_RELEASE_H_
