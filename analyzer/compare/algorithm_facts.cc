// The algorithm, protocol and channels that NCCL chose for each kind and size of collective, by the records.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <map>
#include <tuple>

#include "analyzer/compare/compare.h"
#include "analyzer/compare/op_words.h"

namespace ringscope::compare {
namespace {

std::vector<Fact> Facts(const model::Job& job) {
  // Of each kind of call the choice that was made most often.
  std::map<std::string, std::map<std::string, size_t>> choices;
  std::map<std::string, std::string> sources;
  for (const model::Communicator& c : job.communicators) {
    for (const model::Member& m : c.members) {
      for (const model::Op& op : m.ops) {
        if (op.p2p() || op.raw.algo() == trace::ALGO_UNKNOWN) continue;
        const std::string kind = absl::StrCat(CallText(op.raw), " in ", GroupText(c));
        ++choices[kind]
                 [absl::StrCat(absl::AsciiStrToLower(trace::Algo_Name(op.raw.algo())), ", ",
                               absl::AsciiStrToLower(trace::Proto_Name(op.raw.proto())), ", ", op.raw.channels(), " channels")];
        sources.emplace(kind, RecordSource(job.processes[static_cast<size_t>(m.process)]));
      }
      if (!m.ops.empty()) break;  // all ranks choose alike
    }
  }
  std::vector<Fact> facts;
  for (const auto& [kind, counts] : choices) {
    const auto* most = &*counts.begin();
    for (const auto& entry : counts) {
      if (entry.second > most->second) most = &entry;
    }
    facts.push_back({kind, "", most->first, sources.at(kind), 0, Change::can_explain,
                     "Another algorithm, protocol or number of channels has another speed.",
                     "NCCL_ALGO, NCCL_PROTO, NCCL_MIN_NCHANNELS, tuner plugins, the topology that NCCL found "
                     "(NCCL_DEBUG_SUBSYS=GRAPH,TUNING)."});
  }
  return facts;
}

const RegisterFacts kRegister({Change::plan, "algorithms", "give its traces or flight files", Facts, /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
