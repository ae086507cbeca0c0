// Explores every scenario with the recorder as it is, then with each acquire, release, cleared stamp and second look taken
// away, one at a time.
//
//   protocol_test [--quick]     --quick: without the mutants
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "tests/protocol/model.h"
#include "tests/protocol/scenarios.h"

namespace ringscope::protocol {
namespace {

int Run(bool quick) {
  std::set<Mutant> mutants;
  int failed = 0;
  for (size_t i = 0; i < kScenarioCount; ++i) {
    const Result r = Explore(kScenarios[i], {});
    std::printf("%-34s %8llu executions, %7llu memories, %9llu readings, %9llu accepted: %s\n", kScenarios[i].name,
                static_cast<unsigned long long>(r.executions), static_cast<unsigned long long>(r.memories),
                static_cast<unsigned long long>(r.readings), static_cast<unsigned long long>(r.accepted),
                r.violation.empty() ? "right" : r.violation.c_str());
    failed += !r.violation.empty() || r.accepted == 0;
    mutants.insert(r.mutants.begin(), r.mutants.end());
  }
  if (quick) return failed ? 1 : 0;
  for (const Mutant& mutant : mutants) {
    std::string found;
    for (size_t i = 0; i < kScenarioCount && found.empty(); ++i) {
      const Result r = Explore(kScenarios[i], mutant);
      if (!r.violation.empty()) found = std::string(kScenarios[i].name) + ": " + r.violation;
    }
    std::printf("%s:%d, %s: %s\n", mutant.file.c_str(), mutant.line, NameOf(mutant.weakening),
                found.empty() ? "SURVIVES" : found.c_str());
    failed += found.empty();
  }
  std::printf("%zu mutants, %d problems\n", mutants.size(), failed);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace ringscope::protocol

int main(int argc, char** argv) {
  return ringscope::protocol::Run(argc > 1 && std::strcmp(argv[1], "--quick") == 0);
}
