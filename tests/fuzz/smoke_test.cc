// A few thousand mutated seeds through every fuzz target on every build: finds the shallow crashes
// without libFuzzer. RINGSCOPE_FUZZ_ROUNDS runs more of them.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "tests/fuzz/targets.h"

namespace ringscope::fuzz {
namespace {

using Random = std::mt19937_64;

std::string Mutated(std::string bytes, const std::string& other, Random& random) {
  for (uint64_t n = 1 + random() % 4; n > 0; --n) {
    const size_t at = bytes.empty() ? 0 : random() % bytes.size();
    switch (random() % 6) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(
            at, std::string(random() % 12, static_cast<char>(random() % 3 == 0 ? 0xff : random())));
        break;
      case 4:
        bytes.erase(at, random() % 16);
        break;
      default:
        if (!other.empty()) bytes.insert(at, other, random() % other.size(), random() % 64);
    }
  }
  return bytes;
}

// Readers of text take all that people have: each gets a while of its own. RINGSCOPE_FUZZ_SECONDS changes it.
void ForSeconds(const Target& target, const std::vector<std::string>& seeds) {
  const char* given = getenv("RINGSCOPE_FUZZ_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(given != nullptr ? atoi(given) : 5);
  Random random(11);
  std::string bytes;
  for (int round = 0; std::chrono::steady_clock::now() < end; ++round) {
    if (round % 8 == 0 || bytes.size() > 100000) bytes = seeds[random() % seeds.size()];
    bytes = Mutated(bytes, seeds[random() % seeds.size()], random);
    target.run(bytes);
  }
}

class Smoke : public ::testing::TestWithParam<size_t> {};

TEST_P(Smoke, SurvivesMutatedSeeds) {
  const Target& target = Targets()[GetParam()];
  const std::vector<std::string> seeds = target.seeds();
  ASSERT_FALSE(seeds.empty()) << "no seed: put an input of this reader into tests/fuzz/seeds/" << target.name << "/";
  for (const std::string& seed : seeds) target.run(seed);
  const char* more = getenv("RINGSCOPE_FUZZ_ROUNDS");
  if (target.name.starts_with("text-") && more == nullptr) return ForSeconds(target, seeds);
  // The flight target copies an image of 2.7 MiB each time.
  const int rounds = more != nullptr                        ? atoi(more)
                     : target.name == "flight" ? 60
                                                            : 1500;
  Random random(11);
  std::string bytes;
  for (int round = 0; round < rounds; ++round) {
    if (round % 8 == 0 || bytes.size() > 100000) bytes = seeds[random() % seeds.size()];
    bytes = Mutated(bytes, seeds[random() % seeds.size()], random);
    target.run(bytes);
  }
}

std::string NameOf(const ::testing::TestParamInfo<size_t>& info) {
  std::string name = Targets()[info.param].name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Targets, Smoke, ::testing::Range<size_t>(0, Targets().size()), NameOf);

}  // namespace
}  // namespace ringscope::fuzz
