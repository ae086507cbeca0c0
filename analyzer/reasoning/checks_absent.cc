// A rank that has not entered an operation has sent nothing of it, and all others are in it or wait elsewhere.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/reasoning/checks.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

bool WaitsSomewhere(const model::Job& job, const model::Member& who) {
  for (const model::Communicator& c : job.communicators) {
    for (const model::Member& m : c.members) {
      if (m.has_record() && SameRank(m, who) &&
          std::any_of(m.ops.begin(), m.ops.end(), [](const model::Op& op) { return Open(op); }))
        return true;
    }
  }
  return false;
}

void OthersAreThere(const CheckedPlace& place, std::vector<Check>* checks) {
  size_t there = 0, elsewhere = 0, unseen = 0;
  const model::Member* idle = nullptr;
  for (const model::Member& m : place.communicator.members) {
    if (place.Names(m)) continue;
    if (!m.has_record() || place.job.processes[static_cast<size_t>(m.process)].life != model::Life::kRunning) {
      ++unseen;
    } else if (m.collectives >= place.position) {
      ++there;
    } else if (WaitsSomewhere(place.job, m)) {
      ++elsewhere;
    } else {
      idle = &m;
    }
  }
  const std::string expects = absl::StrCat("every other rank has entered ", PlaceText(place.communicator, place.position),
                                           elsewhere > 0 ? " or waits in another communicator" : "");
  if (idle != nullptr) {
    checks->push_back(Fails(expects, absl::StrCat(RankText(place.communicator, *idle), " has not, and waits for nothing"),
                            SourceText(place.job, *idle)));
  } else if (unseen == 0) {
    checks->push_back(Holds(expects,
                            elsewhere > 0 ? absl::StrCat(there, " have, ", elsewhere, " wait elsewhere")
                            : there == 1  ? std::string("the other one has")
                                          : absl::StrCat("all ", there, " have"),
                            "records of all ranks"));
  } else {
    checks->push_back(
        NotSeen(expects, absl::StrCat("so have the ", there, " that left a whole record; collect the other ", unseen)));
  }
}

void NothingCameFromIt(const CheckedPlace& place, std::vector<Check>* checks) {
  for (const model::Member* m : place.who) {
    const std::vector<EdgeAt> edges = EdgesAt(place, *m, /*out=*/true, /*neighbour=*/true);
    if (edges.empty()) continue;
    const auto more = [](const EdgeAt& a, const EdgeAt& b) { return a.side->raw->transmitted() < b.side->raw->transmitted(); };
    const EdgeAt& most = *std::max_element(edges.begin(), edges.end(), more);
    const std::string expects = absl::StrCat(RankText(place.communicator, *most.recorded_by), ", which follows ",
                                             RankText(place.communicator, *m), ", has received nothing of the operation from it");
    const std::string seen = absl::StrCat(EdgeText(place, *most.edge), ": ", most.side->raw->transmitted(), " of ",
                                          most.side->raw->n_steps(), " steps arrived");
    checks->push_back(
        (most.side->raw->transmitted() == 0 ? Holds : Fails)(expects, seen, SourceText(place.job, *most.recorded_by)));
    return;  // one of several absent ranks is enough to read
  }
}

void Absent(const CheckedPlace& place, std::vector<Check>* checks) {
  OthersAreThere(place, checks);
  NothingCameFromIt(place, checks);
}

const RegisterChecks kRegister({Kind::missing_rank}, Absent);

}  // namespace
}  // namespace ringscope::reasoning
