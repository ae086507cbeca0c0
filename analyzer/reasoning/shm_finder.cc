// /dev/shm too small: NCCL's shared-memory transport cannot reserve what it needs.
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindShm(const model::Job& job) {
  const auto full = EventsOf(job, {"nccl-shm-no-space"});
  if (full.empty()) return {};
  Candidate candidate = Say(Kind::resource_exhausted, Confidence::probable, Layer::kHost,
                            "/dev/shm is too small: NCCL could not reserve shared memory", "NC-08", "nccl-shm-no-space");
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  Finding& finding = candidate.finding;
  for (const int rank : RanksOf(full)) finding.mutable_who()->add_ranks(rank);
  std::set<std::string> hosts;
  for (const model::Event* event : full) {
    if (!event->by.host.empty() && hosts.insert(event->by.host).second) finding.mutable_who()->add_hosts(event->by.host);
  }
  CiteAll(job, full, 4, &finding);
  finding.set_refuted_by("`df /dev/shm` on that host shows room while the job starts");
  return {candidate};
}

const Register kRegister("shm", FindShm);

}  // namespace
}  // namespace ringscope::reasoning
