// One function per reader of foreign bytes: takes any bytes, must return. libFuzzer calls them
// (fuzz_main.cc), and so does the smoke test with mutated seeds, on every build.
#ifndef RINGSCOPE_TESTS_FUZZ_TARGETS_H_
#define RINGSCOPE_TESTS_FUZZ_TARGETS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ringscope::fuzz {

struct Target {
  std::string name;
  std::function<void(std::string_view bytes)> run;
  std::function<std::vector<std::string>()> seeds;
};

// trace   the container
// stream  stream files, and single chunks behind a right checksum
// flight  patches on a good image (offset, length, bytes), so that a mutation reaches the tables
// instead of the magic
// job     serialized traces, through the model, the finders and the reports
// scrub   a text and a record through `ringscope scrub`: valid UTF-8 stays so, seeded secrets go, twice is once
// text-…  one a reader of text (reader_targets.cc), through all readers, the finders and the reports
const std::vector<Target>& Targets();
// The text targets among them; the seeds are what lies in tests/corpus and tests/fuzz/seeds.
std::vector<Target> ReaderTargets();
Target ScrubTarget();

}  // namespace ringscope::fuzz

#endif  // RINGSCOPE_TESTS_FUZZ_TARGETS_H_
