// Data before a fault piles up, data behind it is missed: what the edges around a GPU or an edge must show.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/reasoning/checks.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

bool Ring(const CheckedPlace& place) {
  return std::all_of(place.communicator.members.begin(), place.communicator.members.end(), [&](const model::Member& m) {
    const model::Op* op = m.Collective(place.position);
    return op == nullptr || op->raw.algo() == trace::RING;
  });
}

bool Waits(const EdgeAt& at, trace::StepState state) { return at.side->raw->state() == state; }

std::string Steps(const EdgeAt& at) {
  const trace::Edge& e = *at.side->raw;
  return absl::StrCat(e.transmitted(), " of ", e.n_steps(), e.send() ? " steps sent" : " steps arrived", ", ", e.done(), " done");
}

// A GPU that stands still takes nothing of what arrives, and fills nothing of what it has to send.
void StalledGpu(const CheckedPlace& place, std::vector<Check>* checks) {
  if (place.who.size() != 1 || !place.finding.who().hosts().empty() || !Ring(place)) return;
  const model::Member& m = *place.who.front();
  const std::string name = RankText(place.communicator, m);
  if (const auto in = EdgesAt(place, m, /*out=*/false, /*neighbour=*/false); !in.empty()) {
    const std::string expects = absl::StrCat("data for ", name, " has arrived and its GPU does not take it");
    const auto full = std::find_if(in.begin(), in.end(), [](const EdgeAt& at) { return Waits(at, trace::RECV_GPU_WAIT); });
    const auto& shown = full == in.end() ? in.front() : *full;
    const bool starved = std::all_of(in.begin(), in.end(), [](const EdgeAt& at) { return Waits(at, trace::RECV_WAIT); });
    const std::string seen = absl::StrCat(EdgeText(place, *shown.edge), ": ", Steps(shown));
    if (full != in.end()) {
      checks->push_back(Holds(expects, seen, SourceText(place.job, m)));
    } else if (starved) {
      checks->push_back(Fails(expects, absl::StrCat(seen, ", and it waits for more"), SourceText(place.job, m)));
    }
  }
  if (const auto out = EdgesAt(place, m, /*out=*/true, /*neighbour=*/false); !out.empty()) {
    const std::string expects = absl::StrCat("what ", name, " has to send is not there: its GPU owes it");
    const auto wire = std::find_if(out.begin(), out.end(), [](const EdgeAt& at) { return Waits(at, trace::SEND_WAIT); });
    const auto owes = std::find_if(out.begin(), out.end(), [](const EdgeAt& at) { return Waits(at, trace::SEND_GPU_WAIT); });
    if (wire != out.end()) {
      checks->push_back(Fails(expects,
                              absl::StrCat(EdgeText(place, *wire->edge), ": ", Steps(*wire), ", and the network has the next"),
                              SourceText(place.job, m)));
    } else if (owes != out.end()) {
      checks->push_back(Holds(expects, absl::StrCat(EdgeText(place, *owes->edge), ": ", Steps(*owes)), SourceText(place.job, m)));
    }
  }
}

// The receiver of an edge that does not move waits with its receive posted, and whoever follows it waits too.
void StalledEdge(const CheckedPlace& place, std::vector<Check>* checks) {
  for (const EdgeName& edge : place.finding.who().edges()) {
    const auto at = [&](int job_rank) {
      const auto it = std::find_if(place.who.begin(), place.who.end(), [&](const auto* m) { return m->job_rank == job_rank; });
      return it == place.who.end() ? nullptr : *it;
    };
    const model::Member *from = at(edge.from()), *to = at(edge.to());
    if (from == nullptr || to == nullptr) continue;
    const std::string waits = absl::StrCat(RankText(place.communicator, *to), " waits for data with its receive posted");
    bool told = false;
    for (const EdgeAt& end : EdgesAt(place, *from, /*out=*/true, /*neighbour=*/true)) {
      if (end.edge->to != to->rank || told) continue;
      const bool posted = Waits(end, trace::RECV_WAIT) && end.side->raw->posted() > end.side->raw->transmitted();
      if (posted || Waits(end, trace::RECV_FLUSH_WAIT)) {
        checks->push_back(Holds(waits, absl::StrCat(EdgeText(place, *end.edge), ": ", Steps(end)), SourceText(place.job, *to)));
        told = true;
      }
    }
    if (!told)
      checks->push_back(
          NotSeen(waits, absl::StrCat("the record of ", RankText(place.communicator, *to), " with this operation in it")));
    if (!Ring(place)) continue;
    for (const EdgeAt& end : EdgesAt(place, *to, /*out=*/true, /*neighbour=*/false)) {
      if (!Waits(end, trace::SEND_GPU_WAIT)) continue;
      checks->push_back(Holds(
          absl::StrCat("behind it nothing is left to send: ", RankText(place.communicator, *to), " owes its next rank data"),
          absl::StrCat(EdgeText(place, *end.edge), ": ", Steps(end)), SourceText(place.job, *to)));
      break;
    }
    return;  // the first edge speaks for the others
  }
}

const RegisterChecks kGpu({Kind::gpu_stalled}, StalledGpu);
const RegisterChecks kEdge({Kind::edge_stalled, Kind::edge_failed}, StalledEdge);

}  // namespace
}  // namespace ringscope::reasoning
