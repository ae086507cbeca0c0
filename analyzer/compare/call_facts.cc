// Which collectives the program calls, by kind, size and group.
#include <absl/strings/str_cat.h>

#include <map>

#include "analyzer/compare/compare.h"
#include "analyzer/compare/op_words.h"

namespace ringscope::compare {
namespace {

std::vector<Fact> Facts(const model::Job& job) {
  std::map<std::string, std::string> calls;
  for (const model::Communicator& c : job.communicators) {
    for (const model::Member& m : c.members) {
      for (const model::Op& op : m.ops) {
        if (op.p2p() || op.raw.func() == trace::FUNC_UNKNOWN || op.raw.count_varies()) continue;
        calls.emplace(absl::StrCat(CallText(op.raw), " in ", GroupText(c)),
                      RecordSource(job.processes[static_cast<size_t>(m.process)]));
      }
      if (!m.ops.empty()) break;  // all ranks make the same calls
    }
  }
  std::vector<Fact> facts;
  for (const auto& [call, source] : calls)
    facts.push_back({call, "", "called", source, 0, Change::worth_a_look,
                     "Another program, model, batch or bucket size: other work, so other times.",
                     "The two command lines and configurations."});
  return facts;
}

const RegisterFacts kRegister({Change::calls, "calls", "give its traces or flight files", Facts});

}  // namespace
}  // namespace ringscope::compare
