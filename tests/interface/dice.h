// Numbers that one seed decides: the same seed gives the same callbacks on every machine.
#ifndef RINGSCOPE_TESTS_INTERFACE_DICE_H_
#define RINGSCOPE_TESTS_INTERFACE_DICE_H_

#include <cstdint>
#include <string>

namespace ringscope::interface_model {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  // SplitMix64 (S. Vigna, public domain).
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>((Next() >> 32) * n >> 32); }
  uint32_t Between(uint32_t low, uint32_t high) { return low + Below(high - low + 1); }
  bool OneIn(uint32_t n) { return Below(n) == 0; }
  template <typename T, size_t n>
  const T& Of(const T (&choices)[n]) {
    return choices[Below(n)];
  }

 private:
  uint64_t state_;
};

// What runs now; printed with a violation.
struct Place {
  const char* part = "start";
  int version = 6;  // of the table
  uint64_t seed = 0, part_seed = 0;
};
extern Place g_place;

// A property that did not hold: ends the program. `what` says what was seen and what was expected.
// (No exception: the code under test is built without them, and so is what links it.)
[[noreturn]] void Violation(const std::string& what);

inline void Require(bool holds, const char* what) {
  if (!holds) Violation(what);
}
inline void RequireEqual(uint64_t got, uint64_t want, const char* what) {
  if (got != want)
    Violation(std::string(what) + ": is " + std::to_string(got) + ", should be " +
              std::to_string(want));
}

}  // namespace ringscope::interface_model

#endif  // RINGSCOPE_TESTS_INTERFACE_DICE_H_
