#include "tests/sim/nccl/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ringscope::sim {
namespace {

template <typename T>
T Apply(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:  // sums, averages, scaled sums
      return static_cast<T>(a + b);
  }
}

// Integers wrap, as on the GPU.
template <typename T, typename U>
void Integers(ncclRedOp_t op, void* into, const void* from, size_t count) {
  T* a = static_cast<T*>(into);
  const T* b = static_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) {
    if (op == ncclMax || op == ncclMin) {
      a[i] = Apply<T>(op, a[i], b[i]);
    } else {
      a[i] = static_cast<T>(Apply<U>(op, static_cast<U>(a[i]), static_cast<U>(b[i])));
    }
  }
}
template <typename T>
void Floats(ncclRedOp_t op, void* into, const void* from, size_t count) {
  T* a = static_cast<T*>(into);
  const T* b = static_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) a[i] = Apply<T>(op, a[i], b[i]);
}
template <float (*From)(uint16_t), uint16_t (*To)(float)>
void Halves(ncclRedOp_t op, void* into, const void* from, size_t count) {
  uint16_t* a = static_cast<uint16_t*>(into);
  const uint16_t* b = static_cast<const uint16_t*>(from);
  for (size_t i = 0; i < count; ++i) a[i] = To(Apply<float>(op, From(a[i]), From(b[i])));
}

// Every element through `change(double) -> double`; integers by truncation, as NCCL's averages of integers.
template <typename Change>
void Each(ncclDataType_t type, void* data, size_t count, Change change) {
  const auto all = [&](auto* values) {
    using T = std::remove_pointer_t<decltype(values)>;
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(change(static_cast<double>(values[i])));
  };
  switch (type) {
    case ncclInt8:
      return all(static_cast<int8_t*>(data));
    case ncclUint8:
      return all(static_cast<uint8_t*>(data));
    case ncclInt32:
      return all(static_cast<int32_t*>(data));
    case ncclUint32:
      return all(static_cast<uint32_t*>(data));
    case ncclInt64:
      return all(static_cast<int64_t*>(data));
    case ncclUint64:
      return all(static_cast<uint64_t*>(data));
    case ncclFloat32:
      return all(static_cast<float*>(data));
    case ncclFloat64:
      return all(static_cast<double*>(data));
    case ncclFloat16: {
      uint16_t* values = static_cast<uint16_t*>(data);
      for (size_t i = 0; i < count; ++i) values[i] = ToHalf(static_cast<float>(change(FromHalf(values[i]))));
      return;
    }
    case ncclBfloat16: {
      uint16_t* values = static_cast<uint16_t*>(data);
      for (size_t i = 0; i < count; ++i) values[i] = ToBfloat(static_cast<float>(change(FromBfloat(values[i]))));
      return;
    }
    default:
      return;
  }
}

// 64-bit integers do not fit a double: their averages are divided as they are.
template <typename T>
void Divide(void* data, size_t count, int n) {
  T* values = static_cast<T*>(data);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] / static_cast<T>(n));
}

}  // namespace

size_t SizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

bool Reducible(ncclDataType_t type) { return SizeOf(type) != 0 && type != ncclFloat8e4m3 && type != ncclFloat8e5m2; }

void Reduce(const Reduction& r, ncclDataType_t type, void* into, const void* from, size_t count) {
  switch (type) {
    case ncclInt8:
      return Integers<int8_t, uint8_t>(r.op, into, from, count);
    case ncclUint8:
      return Integers<uint8_t, uint8_t>(r.op, into, from, count);
    case ncclInt32:
      return Integers<int32_t, uint32_t>(r.op, into, from, count);
    case ncclUint32:
      return Integers<uint32_t, uint32_t>(r.op, into, from, count);
    case ncclInt64:
      return Integers<int64_t, uint64_t>(r.op, into, from, count);
    case ncclUint64:
      return Integers<uint64_t, uint64_t>(r.op, into, from, count);
    case ncclFloat16:
      return Halves<FromHalf, ToHalf>(r.op, into, from, count);
    case ncclBfloat16:
      return Halves<FromBfloat, ToBfloat>(r.op, into, from, count);
    case ncclFloat32:
      return Floats<float>(r.op, into, from, count);
    case ncclFloat64:
      return Floats<double>(r.op, into, from, count);
    default:
      return;
  }
}

void Before(const Reduction& r, ncclDataType_t type, void* data, size_t count) {
  if (r.scaled) Each(type, data, count, [&](double v) { return v * r.scale; });
}

void After(const Reduction& r, ncclDataType_t type, void* data, size_t count) {
  if (r.op != ncclAvg || r.scaled) return;
  if (type == ncclInt64) return Divide<int64_t>(data, count, r.n_ranks);
  if (type == ncclUint64) return Divide<uint64_t>(data, count, r.n_ranks);
  const double n = r.n_ranks;
  const bool whole = type == ncclInt8 || type == ncclUint8 || type == ncclInt32 || type == ncclUint32;
  Each(type, data, count, [&](double v) { return whole ? std::trunc(v / n) : v / n; });
}

// IEEE 754 binary16, round to nearest even.
float FromHalf(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1f, fraction = h & 0x3ffu;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign != 0 ? -1.0f : 1.0f);
  const uint32_t bits = exponent == 31 ? sign | 0x7f800000u | fraction << 13 : sign | (exponent + 112) << 23 | fraction << 13;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

uint16_t ToHalf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return static_cast<uint16_t>(sign | 0x7c00u | (magnitude > 0x7f800000u ? 0x200u : 0));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                               // subnormal, or zero
    const float scaled = std::ldexp(std::fabs(value), 24);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}

float FromBfloat(uint16_t b) {
  const uint32_t bits = static_cast<uint32_t>(b) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

uint16_t ToBfloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace ringscope::sim
