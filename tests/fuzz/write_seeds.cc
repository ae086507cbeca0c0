// write_seeds DIR: the seeds of every target as files DIR/<target>/<n>, for libFuzzer to begin
// with.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/targets.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: write_seeds DIR\n");
    return 64;
  }
  for (const auto& target : ringscope::fuzz::Targets()) {
    const std::filesystem::path dir = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(dir);
    int n = 0;
    for (const std::string& seed : target.seeds())
      std::ofstream(dir / std::to_string(n++), std::ios::binary) << seed;
  }
}
