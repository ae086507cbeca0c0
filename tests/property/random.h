// A small generator of random numbers whose sequence is the same everywhere: a job is named by its
// seed.
#ifndef RINGSCOPE_TESTS_PROPERTY_RANDOM_H_
#define RINGSCOPE_TESTS_PROPERTY_RANDOM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringscope::property {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // SplitMix64 (S. Vigna, public domain).
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // 0 to n - 1.
  int Below(int n) { return n <= 1 ? 0 : static_cast<int>(Next() % static_cast<uint64_t>(n)); }
  // low to high, both included.
  int From(int low, int high) { return low + Below(high - low + 1); }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  double Between(double low, double high) { return low + (high - low) * Unit(); }
  // Small values as likely as large ones.
  double Spread(double low, double high) { return low * std::pow(high / low, Unit()); }
  bool Chance(double p) { return Unit() < p; }
  template <typename T>
  const T& Pick(const std::vector<T>& of) {
    return of[static_cast<size_t>(Below(static_cast<int>(of.size())))];
  }

 private:
  uint64_t state_;
};

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_RANDOM_H_
