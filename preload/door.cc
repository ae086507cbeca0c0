#include "preload/door.h"

namespace ringscope::preload {
namespace {

void* FindReal(uint32_t number, const char* name, const void* caller, const void* own) {
  return number < kMostNumbers ? Find(&g_targets[number], Library::kNccl, name, caller, own) : nullptr;
}
Told TellOfOp(const Op& d) { return TellOf(d); }
void BeforeOp(Frame* f, const Op& d) { Before(f, d); }
void AfterOp(Frame* f, const Op& d, int result) { After(f, d, result); }
void AfterCreate(Frame* f, const Create& d, int result) { After(f, d, result); }
void AfterSplit(Frame* f, const Split& d, int result) { After(f, d, result); }

}  // namespace
}  // namespace ringscope::preload

extern "C" __attribute__((visibility("default"))) const ringscope::preload::Door ringscope_newer_v1 = {
    ringscope::preload::FindReal, ringscope::preload::Enter,   ringscope::preload::Leave,       ringscope::preload::TellOfOp,
    ringscope::preload::BeforeOp, ringscope::preload::AfterOp, ringscope::preload::AfterCreate, ringscope::preload::AfterSplit};
