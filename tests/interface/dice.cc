#include "tests/interface/dice.h"

#include <unistd.h>

#include <cstdio>

namespace ringscope::interface_model {

Place g_place;

void Violation(const std::string& what) {
  std::fprintf(stderr, "interface: FAILED in %s, table v%d, --seed %llu (this part: %llu): %s\n",
               g_place.part, g_place.version, static_cast<unsigned long long>(g_place.seed),
               static_cast<unsigned long long>(g_place.part_seed), what.c_str());
  std::fflush(stderr);
  _exit(1);
}

}  // namespace ringscope::interface_model
