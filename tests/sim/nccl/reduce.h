// Reductions on host memory, with NCCL's types.
#ifndef RINGSCOPE_TESTS_SIM_NCCL_REDUCE_H_
#define RINGSCOPE_TESTS_SIM_NCCL_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "tests/sim/include/nccl.h"

namespace ringscope::sim {

size_t SizeOf(ncclDataType_t type);  // 0: no such type

// What a rank does to data: the plain operations; averages divide at the end; a scaled sum multiplies its own input first.
struct Reduction {
  ncclRedOp_t op = ncclSum;
  bool scaled = false;
  double scale = 1;
  int n_ranks = 1;
};
// The types whose reductions are computed: integers of all sizes, float16, bfloat16, float32, float64.
bool Reducible(ncclDataType_t type);
// into[i] = into[i] op from[i]
void Reduce(const Reduction& reduction, ncclDataType_t type, void* into, const void* from, size_t count);
// Of a rank's own input before, of the result after all reductions.
void Before(const Reduction& reduction, ncclDataType_t type, void* data, size_t count);
void After(const Reduction& reduction, ncclDataType_t type, void* data, size_t count);

float FromHalf(uint16_t half);
uint16_t ToHalf(float value);
float FromBfloat(uint16_t bits);
uint16_t ToBfloat(float value);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_REDUCE_H_
