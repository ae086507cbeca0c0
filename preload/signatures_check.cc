// The list's signatures against the real headers: compiled where CMake finds them, runs never.
#include <cuda.h>
#include <cuda_runtime_api.h>
// nccl.h would bring C++ overloads of the runtime's functions, which no library exports.
#define __CUDA_RUNTIME_H__
#include <nccl.h>
#include <stddef.h>

#include <type_traits>

#include "preload/details.h"

namespace {

using ringscope::preload::NcclId;

template <typename Ours, typename Real>
constexpr bool Alike() {
  using A = std::remove_reference_t<Ours>;
  using B = std::remove_reference_t<Real>;
  if (sizeof(A) != sizeof(B)) return false;
  if (std::is_pointer_v<A> != std::is_pointer_v<B>) return false;
  return std::is_class_v<A> == std::is_class_v<B>;
}
template <typename Ours, typename Real>
struct Same : std::false_type {};
template <typename... A, typename R, typename... B>
struct Same<int(A...), R(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B) && sizeof(R) == sizeof(int)) {
      return (Alike<A, B>() && ...);
    } else {
      return false;
    }
  }();
};

#define RINGSCOPE_CHECK(name, parameters) \
  static_assert(Same<int parameters, decltype(::name)>::value, "the signature of " #name " is not the header's");
#define RINGSCOPE_CHECK_NCCL(number, name, parameters, ...) RINGSCOPE_CHECK(name, parameters)
#define RINGSCOPE_CHECK_CUDART(number, name, parameters, ...) RINGSCOPE_CHECK(name, parameters)
#define RINGSCOPE_CHECK_CUDA(number, name, parameters, ...) RINGSCOPE_CHECK(name, parameters)
#if NCCL_VERSION_CODE >= 22807
#define RINGSCOPE_CHECK_NCCL_NEW(number, name, parameters, ...) RINGSCOPE_CHECK(name, parameters)
#else
#define RINGSCOPE_CHECK_NCCL_NEW(...)
#endif
#define RINGSCOPE_CALL(library, ...) RINGSCOPE_CHECK_##library(__VA_ARGS__)
#define RINGSCOPE_VARIANT(...)
#include "recorder/flight/host_calls.def"

}  // namespace
