// Every collective with every type and reduction against a reference, as one rank; for tests with threads and with processes.
#ifndef RINGSCOPE_TESTS_SIM_PROGRAMS_CHECK_H_
#define RINGSCOPE_TESTS_SIM_PROGRAMS_CHECK_H_

#include <string>

#include "tests/sim/include/nccl.h"

namespace ringscope::sim {

// Runs all checks of this rank with `count` elements; the first thing that is wrong in words, empty when nothing is.
std::string CheckCollectives(ncclComm_t comm, int rank, int n, size_t count);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_PROGRAMS_CHECK_H_
