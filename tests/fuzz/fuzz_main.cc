// The entry point of libFuzzer for the target named by RINGSCOPE_FUZZ_TARGET (a compile
// definition).
#include <cstdlib>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  for (const auto& target : ringscope::fuzz::Targets()) {
    if (target.name == RINGSCOPE_FUZZ_TARGET)
      target.run({reinterpret_cast<const char*>(data), size});
  }
  return 0;
}
