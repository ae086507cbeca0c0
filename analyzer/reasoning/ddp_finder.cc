// DDP's comparison of the models, and its join: ranks that differ before any collective of the training loop is reached.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/views.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindDdp(const model::Job& job) {
  std::vector<Candidate> found;
  const auto differs = EventsOf(job, {"torch-ddp-model-differs"});
  if (!differs.empty()) {
    std::set<int> ranks;
    for (const model::Event* event : differs) {
      const auto told = event->Number("rank");
      const int rank = told && *told >= 0 && *told < (1 << 20) ? static_cast<int>(*told) : event->by.rank;
      if (rank > 0) ranks.insert(rank);  // rank 0 is what the others are compared with
    }
    Candidate candidate =
        Say(Kind::size_mismatch, Confidence::probable, Layer::kProgram,
            absl::StrCat(ranks.empty() ? "A rank" : model::RanksText({ranks.begin(), ranks.end()}),
                         " built another model than rank 0: DDP's parameters do not agree (which side is wrong the program tells)"),
            "UC-02", "torch-ddp-model-differs");
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    for (const int rank : ranks) candidate.finding.mutable_who()->add_ranks(rank);
    CiteAll(job, differs, 4, &candidate.finding);
    candidate.finding.set_refuted_by("the same list of parameters and shapes on all ranks");
    found.push_back(std::move(candidate));
  }
  const auto exhausted = EventsOf(job, {"torch-inputs-exhausted"});
  if (!exhausted.empty()) {
    Candidate candidate = Say(Kind::missing_rank, Confidence::probable, Layer::kProgram,
                              "Some rank ran out of inputs before the others (uneven batches); which, their loaders tell", "UC-04",
                              "torch-inputs-exhausted");
    candidate.stops_job = true;
    candidate.state = State::crashed;
    CiteAll(job, exhausted, 3, &candidate.finding);
    candidate.finding.set_refuted_by("the same number of batches on all ranks");
    found.push_back(std::move(candidate));
  }
  return found;
}

const Register kRegister("ddp", FindDdp);

}  // namespace
}  // namespace ringscope::reasoning
