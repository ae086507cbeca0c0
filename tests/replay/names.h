// Names of event types and states as captures spell them.
#ifndef RINGSCOPE_TESTS_REPLAY_NAMES_H_
#define RINGSCOPE_TESTS_REPLAY_NAMES_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ringscope::replay {

uint32_t TypeByName(absl::string_view name);  // 0: unknown
const char* TypeName(uint32_t type);          // "?": unknown
int StateByName(absl::string_view name);      // -1: unknown
const char* StateName(uint32_t state);
uint32_t TypeOfState(uint32_t state);  // which event a state belongs to; 0: unknown

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_NAMES_H_
