// One line of host_calls.def as a wrapper; for the files that expand the list.
#ifndef RINGSCOPE_PRELOAD_WRAP_H_
#define RINGSCOPE_PRELOAD_WRAP_H_

#include "preload/details.h"

#define RINGSCOPE_EXPORT extern "C" __attribute__((visibility("default")))

// The list speaks of these.
using namespace ringscope;           // NOLINT
using namespace ringscope::preload;  // NOLINT
using flight::kCopyMemset;
using flight::kCopyOnDevice;
using flight::kCopyPeer;
using flight::kCopyToDevice;
using flight::kCopyToHost;
using flight::kCopyUnknown;

#define RINGSCOPE_WRAP(library, number, name, parameters, arguments, detail)                     \
  static_assert(number < kMostNumbers);                                                          \
  RINGSCOPE_EXPORT int name parameters {                                                         \
    const void* const caller = __builtin_return_address(0);                                      \
    const auto real = reinterpret_cast<int(*) parameters>(                                       \
        Find(&g_targets[number], library, #name, caller, reinterpret_cast<const void*>(&name))); \
    if (__builtin_expect(real == nullptr, 0)) return NotFound(library);                          \
    return Around(library, number, caller, detail, [&] { return real arguments; });              \
  }

#endif  // RINGSCOPE_PRELOAD_WRAP_H_
