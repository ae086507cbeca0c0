// How NCCL serves a plugin that has only tables older than its own: what its shims leave out,
// change and leave unset (docs/nccl.md, "Older tables").
#ifndef RINGSCOPE_TESTS_REPLAY_SHIM_H_
#define RINGSCOPE_TESTS_REPLAY_SHIM_H_

#include "tests/replay/event.h"

namespace ringscope::replay {

// The newest table that a release looks for.
int NativeApi(Release release);

// Does the plugin get starts of this type through its table of version `api`? Where it does not,
// nobody writes *eHandle; what NCCL keeps there is zero from the beginning, so no state and no stop
// follow, and children have no parent.
bool TableHas(int api, uint32_t type);

// Does a state reach the plugin?
bool TableGets(Release release, int api, uint32_t state);

// Are the arguments of this state all zero although the event had some?
bool ArgumentsLost(Release release, int api, uint32_t state);

// v1's numbers of NCCL's names, as its shim maps them: what it does not know becomes Send, float64,
// PAT and SIMPLE.
int FuncNumber(const char* name);
int DatatypeNumber(const char* name);
int AlgoNumber(const char* name);
int ProtoNumber(const char* name);

// The reverse; nullptr for numbers that NCCL does not have.
const char* FuncName(int number);
const char* DatatypeName(int number);
const char* AlgoName(int number);
const char* ProtoName(int number);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_SHIM_H_
