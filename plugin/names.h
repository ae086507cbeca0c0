// NCCL's names (functions, data types, algorithms, protocols: strings since profiler API v2) to
// numbers of our own. Unknown or NULL names give kUnknown; ncclUint8 is not in NCCL's own table and
// arrives as "Unknown" (2.23-2.30).
#ifndef RINGSCOPE_PLUGIN_NAMES_H_
#define RINGSCOPE_PLUGIN_NAMES_H_

#include "recorder/flight/format.h"

namespace ringscope::plugin {

flight::Func FuncOf(const char* name);
flight::DataType DataTypeOf(const char* name);
flight::Algo AlgoOf(const char* name);
flight::Proto ProtoOf(const char* name);

// The same from NCCL's own numbers: those of profiler API v1 (NCCL 2.23, and later ones through a
// shim). Numbers that it does not have give kUnknown.
flight::Func FuncOf(uint8_t number);
flight::DataType DataTypeOf(uint8_t number);
flight::Algo AlgoOf(uint8_t number);
flight::Proto ProtoOf(uint8_t number);

}  // namespace ringscope::plugin

#endif  // RINGSCOPE_PLUGIN_NAMES_H_
