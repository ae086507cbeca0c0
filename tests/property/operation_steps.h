// The steps of one operation of a job: what ring_steps.h needs to know, put together from the job,
// its faults and how far its ranks came.
#ifndef RINGSCOPE_TESTS_PROPERTY_OPERATION_STEPS_H_
#define RINGSCOPE_TESTS_PROPERTY_OPERATION_STEPS_H_

#include <cstdint>
#include <vector>

#include "tests/property/ring_steps.h"
#include "tests/property/simulate.h"

namespace ringscope::property {

inline constexpr int kMessageDepth = 8;              // NCCL_STEPS
inline constexpr double kUsualStepSeconds = 1.5e-4;  // that a healthy step is on the wire at most
// Steps of a message of so many floats: 128 KiB each.
inline int MessageSteps(uint64_t count) { return static_cast<int>((count * 4 + 131071) / 131072); }

StepRules RulesOf(const World& w, const Comm& comm, trace::Func func);
StepRules MessageRules(const World& w, uint64_t count);

// Connections of one channel, with what the faults do to them at this operation.
std::vector<StepLink> LinksOf(const World& w, int comm, uint64_t position, int channel);
// Where the faults, and the end of processes, stop a member's kernel. `members` by rank in the
// communicator.
void LimitMembers(const World& w, const Played& played, int comm, uint64_t position,
                  std::vector<StepMember>* members);

// By rank in the communicator: its kernel comes to its end although others' do not. All members run
// the operation.
std::vector<bool> FinishersOf(const World& w, const Played& played, int comm, uint64_t position,
                              trace::Func func, int channel, std::vector<StepMember> members);

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_OPERATION_STEPS_H_
