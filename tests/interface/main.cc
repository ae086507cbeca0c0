// See README.md; `interface_model --help`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/scratch.h"
#include "plugin/abi.h"
#include "recorder/clock.h"
#include "recorder/runtime.h"
#include "tests/interface/hostile.h"
#include "tests/interface/invariants.h"
#include "tests/interface/world.h"

namespace ringscope::interface_model {
namespace {

constexpr char kHelp[] =
    R"(usage: interface_model [--callbacks N] [--seed N]
Drives the plugin's tables with legal and with hostile callbacks, about N in all (default 10,000,000), and holds the flight
image against a model and against what must always hold. The same seed (default 1) makes the same callbacks, except for the
part in which several threads run at once. Exit status 1 at the first violation, which is printed with its seed.
)";
constexpr long kMaxGrowthKb =
    16 << 10;  // of the model itself and of the heap's gaps; a leak of one byte a callback is more
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kJudgeMemory = false;
#else
constexpr bool kJudgeMemory = true;
#endif

uint64_t Number(const char* text) {
  char* end = nullptr;
  const unsigned long long value = text == nullptr ? 0 : std::strtoull(text, &end, 10);
  if (value == 0 || *end != '\0') {
    std::fputs(kHelp, stderr);
    std::exit(64);
  }
  return value;
}

long ResidentKb() {
  long pages = 0, resident = 0;
  if (FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(f);
  }
  return resident * 4;
}

int Run(uint64_t callbacks, uint64_t seed) {
  bench::Scratch scratch(true);
  g_place.seed = seed;
  Door first(6, seed);
  first.Finalize(first.Init({~uint64_t{0}, "first", 1, 2, 0}));  // the recorder starts
  // The nonce is in every handle and so in the hash of foreign ones: the seed decides it too.
  recorder::Image& image = *recorder::Current();
  image.nonce = 1 + static_cast<uint32_t>(seed % 16383);
  void* context = first.Init({~uint64_t{0}, "second", 1, 2, 0});
  uint64_t made = 0, worlds = 0, hostile = 0;
  long settled = 0;
  Dice dice(seed);
  const auto begin = [&](const char* part) {
    g_place.part = part;
    return g_place.part_seed = dice.Next();
  };
  while (made < callbacks) {
    const int version = g_place.version = 1 + static_cast<int>(dice.Below(6));
    const uint64_t length = dice.OneIn(6) ? 400000 : dice.Between(2000, 60000);
    if (dice.OneIn(3)) {
      const uint64_t done = Hostile(image, version, begin("hostile callbacks"), length);
      made += done;
      hostile += done;
    } else {
      World world(image, version, begin("legal callbacks"));
      world.Run(length);
      made += world.callbacks();
    }
    if (++worlds % 16 == 0) CheckEncoding(image);
    if (settled == 0 && made > callbacks / 4) settled = ResidentKb();
  }
  const long growth = ResidentKb() - settled;
  const uint64_t parallel = HostileThreads(image, begin("several threads"), callbacks / 10);
  ManyCommunicators(image, begin("10,000 communicators"));
  CheckTables(image, recorder::Ticks(), false);
  const uint64_t trace = CheckEncoding(image);
  first.Finalize(context);
  if (kJudgeMemory && growth > kMaxGrowthKb)
    Violation("resident memory grew by " + std::to_string(growth) + " KiB");
  std::printf(
      "interface: passed; %llu callbacks in turns, %llu of them hostile, and %llu of several "
      "threads at once; %llu worlds; "
      "seed %llu; last trace %llu bytes; resident memory %+ld KiB\n",
      static_cast<unsigned long long>(made), static_cast<unsigned long long>(hostile),
      static_cast<unsigned long long>(parallel), static_cast<unsigned long long>(worlds),
      static_cast<unsigned long long>(seed), static_cast<unsigned long long>(trace), growth);
  return 0;
}

}  // namespace

}  // namespace ringscope::interface_model

int main(int argc, char** argv) {
  uint64_t callbacks = 10000000, seed = 1;
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (std::strcmp(argv[i], "--callbacks") == 0) {
      callbacks = ringscope::interface_model::Number(value), ++i;
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      seed = ringscope::interface_model::Number(value), ++i;
    } else {
      std::fputs(ringscope::interface_model::kHelp,
                 std::strcmp(argv[i], "--help") == 0 ? stdout : stderr);
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 64;
    }
  }
  return ringscope::interface_model::Run(callbacks, seed);
}
