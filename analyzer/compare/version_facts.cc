// Releases of NCCL, CUDA, drivers, frameworks.
#include <absl/strings/str_join.h>

#include <map>
#include <set>

#include "analyzer/compare/compare.h"

namespace ringscope::compare {
namespace {

std::vector<Fact> Facts(const model::Job& job) {
  std::map<std::string, std::set<std::string>> releases;
  std::map<std::string, std::string> sources;
  for (const model::Process& p : job.processes) {
    for (const auto& library : p.trace.process().libraries()) {
      if (library.version().empty() || library.name() == "ringscope") continue;
      releases[library.name()].insert(library.version());
      sources.emplace(library.name(), RecordSource(p));
    }
  }
  for (const model::Version& v : job.evidence.versions) {
    if (v.version.empty()) continue;
    // "2.28.9+cuda12.9" of a banner and "2.28.9" of a record are one.
    releases[v.component].insert(v.version.substr(0, v.version.find('+')));
    sources.emplace(v.component, job.evidence.PlaceText(v.where));
  }
  for (const model::HardwareSnapshot& s : job.evidence.hardware.snapshots) {
    if (s.driver.empty()) continue;
    releases["driver"].insert(s.driver);
    sources.emplace("driver", job.evidence.PlaceText(s.where));
  }
  std::vector<Fact> facts;
  for (const auto& [component, versions] : releases) {
    const bool core = component == "nccl" || component == "driver" || component == "cuda driver" || component == "cuda";
    facts.push_back({component, "", absl::StrJoin(versions, ", "), sources.at(component), 0,
                     core ? Change::can_explain : Change::worth_a_look, "Another release plans, tunes and fails otherwise.",
                     "The bad run with the good release, nothing else changed."});
  }
  return facts;
}

const RegisterFacts kRegister({Change::version, "versions", "give its traces, or a log with NCCL_DEBUG=VERSION", Facts,
                               /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
