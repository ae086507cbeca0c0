// usage: shifted_clocks FOLDER...
//
// Reads the records of one job and diagnoses them again and again, with wall clocks of its hosts that are up to 5 s apart and boots of
// other times: fails when anybody else, or somebody for another reason, is accused. The processes of one machine are taken for those of
// several, two on each, so that there are clocks to shift.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/collect.h"
#include "analyzer/reasoning/finder.h"
#include "tests/unit/testing/clock_shift.h"

namespace ringscope {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kRounds = 9;

void PutOnHosts(std::vector<model::Record>* records) {
  std::set<std::string> hosts;
  for (const model::Record& r : *records) hosts.insert(r.trace.process().host());
  for (model::Record& r : *records) {
    trace::Process& p = *r.trace.mutable_process();
    if (hosts.size() == 1) p.set_host(absl::StrCat(p.host(), "-", p.rank() / 2));
    p.set_boot_id(absl::StrCat("boot of ", p.host()));
    if (hosts.size() > 1) continue;
    // Whom it saw on other machines now, it cannot have seen.
    auto& siblings = *r.trace.mutable_siblings();
    for (int i = siblings.size(); i-- > 0;) {
      if (siblings[i].rank() / 2 != p.rank() / 2) siblings.DeleteSubrange(i, 1);
    }
  }
}

std::vector<std::string> SaidOf(std::vector<model::Record> records) {
  return testing::Said(reasoning::Diagnose(model::BuildJob(std::move(records))));
}

int Main(const std::vector<std::string>& folders) {
  std::vector<model::Record> records = ingest::Collect(folders).records;
  if (records.empty()) return std::fprintf(stderr, "no records\n"), 2;
  PutOnHosts(&records);
  const std::vector<std::string> expected = SaidOf(records);
  std::mt19937 random(7);
  int changed = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<model::Record> shifted = records;
    if (round % 3 != 1) testing::ShiftWallClocks(testing::Offsets(records, 5 * kSecond / 2, &random), &shifted);
    if (round % 3 != 0) testing::ShiftBoots(testing::Offsets(records, 900 * kSecond, &random), &shifted);
    const std::vector<std::string> got = SaidOf(std::move(shifted));
    if (got == expected) continue;
    ++changed;
    std::printf("round %d: %s\n   else: %s\n", round, absl::StrJoin(got, "; ").c_str(), absl::StrJoin(expected, "; ").c_str());
  }
  std::printf("%zu records, %d of %d rounds say something else (%s)\n", records.size(), changed, kRounds,
              absl::StrJoin(expected, "; ").c_str());
  return changed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ringscope

int main(int argc, char** argv) { return ringscope::Main(std::vector<std::string>(argv + 1, argv + argc)); }
