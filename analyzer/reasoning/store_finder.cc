// torch's rendezvous: clients that never came to the store, a store that cannot be reached, a port that another run holds.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

void CiteRest(const model::Job& job, Finding* finding) {
  for (const model::Event* event : EventsOf(job, {"torch-store-get-error", "torch-store-unreachable", "torch-store-connection-lost"})) {
    if (finding->evidence_size() < 6) Cite(job, *event, finding);
  }
}

std::vector<Candidate> FindStore(const model::Job& job) {
  const auto taken = EventsOf(job, {"torch-store-port-in-use"});
  const auto missing = EventsOf(job, {"torch-store-clients-missing"});
  const auto unreachable = EventsOf(job, {"torch-store-unreachable"});
  if (!taken.empty()) {
    Candidate candidate =
        Say(Kind::misconfigured, Confidence::probable, Layer::kConfiguration,
            "Another process holds the rendezvous port (address already in use): an earlier run or a second job on this host", "FW-08",
            "torch-store-port-in-use");
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    CiteAll(job, taken, 3, &candidate.finding);
    candidate.finding.set_refuted_by("no listener on that port before the job starts");
    return {candidate};
  }
  if (!missing.empty()) {
    const model::Event& event = *missing.back();
    const int64_t joined = event.Number("joined").value_or(-1), expected = event.Number("expected").value_or(-1);
    Candidate candidate = Say(Kind::init_incomplete, Confidence::possible, Layer::kReport,
                              absl::StrCat(expected > joined && joined >= 0 ? expected - joined : 0, " of ", expected,
                                           " clients are missing from the rendezvous (", joined, "/", expected,
                                           " clients joined): they never reached the store, and nothing here says why"),
                              "NC-05", "torch-store-clients-missing");
    candidate.state = State::init_failure;
    CiteAll(job, missing, 3, &candidate.finding);
    CiteRest(job, &candidate.finding);
    candidate.finding.set_refuted_by("the missing processes' logs, when they show that they connected");
    return {candidate};
  }
  if (!unreachable.empty()) {
    const model::Event& event = *unreachable.front();
    Candidate candidate =
        Say(Kind::init_incomplete, Confidence::possible, Layer::kReport,
            absl::StrCat("The rendezvous store at ", Absl(event.Field("host").substr(0, 100)), ":", Absl(event.Field("port")),
                         " could not be reached: its process is not there, or name, port or firewall are wrong"),
            "NC-05", "torch-store-unreachable");
    candidate.state = State::init_failure;
    CiteAll(job, unreachable, 4, &candidate.finding);
    CiteRest(job, &candidate.finding);
    candidate.finding.set_refuted_by("a connection by hand to that address and port from the same host");
    return {candidate};
  }
  const auto waited = EventsOf(job, {"torch-store-get-error"});
  if (waited.empty()) return {};
  Candidate candidate =
      Say(Kind::undetermined, Confidence::possible, Layer::kReport,
          absl::StrCat("The first rank of the group never gave the others the communicator's id; its own log tells why (",
                       waited.size() == 1 ? "one rank waited" : "several ranks waited", " at the store)"),
          "");
  candidate.state = State::init_failure;
  CiteAll(job, waited, 4, &candidate.finding);
  for (const int rank : RanksOf(waited)) candidate.finding.mutable_collateral()->add_ranks(rank);
  candidate.finding.set_refuted_by("the first rank's log, when it shows that the id was published");
  SetNext(
      "The log of the first rank of the group (rank 0 for the default group), with NCCL_DEBUG=INFO: it failed or was late before it "
      "could publish the id.",
      "NCCL_DEBUG=INFO, then that rank's log; py-spy dump --pid <pid of rank 0>", &candidate.finding);
  return {candidate};
}

const Register kRegister("rendezvous store", FindStore);

}  // namespace
}  // namespace ringscope::reasoning
