// A plugin that does nothing, called through pointers like every other one.
#ifndef RINGSCOPE_BENCH_EMPTY_TABLE_H_
#define RINGSCOPE_BENCH_EMPTY_TABLE_H_

#include "bench/plugin.h"

namespace ringscope::bench {

extern const Table kEmptyTable;  // v5

}  // namespace ringscope::bench

#endif  // RINGSCOPE_BENCH_EMPTY_TABLE_H_
