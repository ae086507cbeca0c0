// The situations that the checker explores (scenarios.cc). Built against shim/atomic.
#ifndef RINGSCOPE_TESTS_PROTOCOL_SCENARIOS_H_
#define RINGSCOPE_TESTS_PROTOCOL_SCENARIOS_H_

#include "tests/protocol/hooks.h"

namespace ringscope::protocol {

extern const Scenario kScenarios[];
extern const size_t kScenarioCount;

}  // namespace ringscope::protocol

#endif  // RINGSCOPE_TESTS_PROTOCOL_SCENARIOS_H_
