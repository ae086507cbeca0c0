// libringscope-newer.so: wrappers of functions that came after NCCL 2.18. A library of its own, so that a program that probes for
// them (dlsym with RTLD_DEFAULT) finds them only where it would without us: `ringscope run` preloads it when that NCCL has them.
#include <dlfcn.h>

#include "preload/door.h"
#include "preload/wrap.h"

namespace {

// nullptr: libringscope.so is not there, and calls go straight on.
const Door* TheDoor() {
  static std::atomic<const Door*> door{nullptr};
  const Door* known = door.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  known = static_cast<const Door*>(dlsym(RTLD_DEFAULT, "ringscope_newer_v1"));
  door.store(known, std::memory_order_release);
  return known;
}

Told TellIn(const Door& door, const Op& d) { return door.tell_of_op(d); }
Told TellIn(const Door&, const Create& d) { return TellOf(d); }
Told TellIn(const Door&, const Split& d) { return TellOf(d); }
Told TellIn(const Door&, const Of& d) { return TellOf(d); }
void BeforeIn(const Door& door, Frame* f, const Op& d) { door.before_op(f, d); }
template <typename Detail>
void BeforeIn(const Door&, Frame*, const Detail&) {}
void AfterIn(const Door& door, Frame* f, const Op& d, int result) { door.after_op(f, d, result); }
void AfterIn(const Door& door, Frame* f, const Create& d, int result) { door.after_create(f, d, result); }
void AfterIn(const Door& door, Frame* f, const Split& d, int result) { door.after_split(f, d, result); }
void AfterIn(const Door&, Frame*, const Of&, int) {}

template <typename Detail, typename CallReal>
int Through(const Door& door, uint32_t number, const void* caller, const Detail& detail, CallReal call) {
  Frame frame;
  frame.number = number;
  frame.library = Library::kNccl;
  frame.caller = caller;
  if (!door.enter(&frame, TellIn(door, detail))) return call();
  BeforeIn(door, &frame, detail);
  const int result = call();
  AfterIn(door, &frame, detail, result);
  door.leave(&frame, result);
  return result;
}

}  // namespace

#define RINGSCOPE_NEW_NCCL(...)
#define RINGSCOPE_NEW_CUDART(...)
#define RINGSCOPE_NEW_CUDA(...)
#define RINGSCOPE_NEW_NCCL_NEW(number, name, parameters, arguments, detail)                                                      \
  RINGSCOPE_EXPORT int name parameters {                                                                                         \
    const void* const caller = __builtin_return_address(0);                                                                      \
    const Door* door = TheDoor();                                                                                                \
    void* found =                                                                                                                \
        door != nullptr ? door->find(number, #name, caller, reinterpret_cast<const void*>(&name)) : dlsym(RTLD_NEXT, "p" #name); \
    const auto real = reinterpret_cast<int(*) parameters>(found);                                                                \
    if (real == nullptr) return NotFound(Library::kNccl);                                                                        \
    if (door == nullptr) return real arguments;                                                                                  \
    return Through(*door, number, caller, detail, [&] { return real arguments; });                                               \
  }
#define RINGSCOPE_CALL(library, ...) RINGSCOPE_NEW_##library(__VA_ARGS__)
#include "recorder/flight/host_calls.def"
