// Lines that look like faults and are none: said so, never blamed. They stand last, and alone where nothing is wrong.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

void Say(const model::Job& job, const std::vector<const model::Event*>& events, const char* title, const char* refuted_by,
         const char* next, const char* command, std::vector<Candidate>* found) {
  if (events.empty()) return;
  Candidate candidate = reasoning::Say(Kind::none, Confidence::probable, Layer::kUnset, title, "");
  candidate.order = Class::kPlan;
  candidate.finding.mutable_cause()->clear_id();
  CiteAll(job, events, 2, &candidate.finding);
  CiteAll(job, EventsOf(job, {"nccl-tests-ok"}), 1, &candidate.finding);
  candidate.finding.set_refuted_by(refuted_by);
  SetNext(next, command, &candidate.finding);
  found->push_back(std::move(candidate));
}

std::vector<Candidate> FindNoise(const model::Job& job) {
  std::vector<Candidate> found;
  Say(job, EventsOf(job, {"nccl-nvls-unavailable"}),
      "0 NVLS channels and \"NVLS multicast support is not available\" are normal on GPUs without NVSwitch multicast: no fault",
      "the GPUs are of the Hopper generation or later and hang on NVSwitches",
      "Nothing to do, unless these GPUs hang on NVSwitches: then the fabric's state.",
      "nvidia-smi topo -m; nvidia-smi -q | grep -A4 Fabric", &found);
  Say(job, EventsOf(job, {"nccl-net-plugin-missing", "nccl-no-libibverbs", "nccl-ib-no-device", "nccl-profiler-failed"}),
      "A network plugin or libibverbs that is not there is no error: NCCL uses what it has built in",
      "the host has InfiniBand, RoCE or EFA adapters that this job was meant to use",
      "Nothing to do on a single host, or where there is no such adapter.", "ls /sys/class/infiniband", &found);
  Say(job, EventsOf(job, {"nccl-p2p-not-used"}),
      "\"P2P is disabled between connected GPUs\" is information: these GPUs have no peer access, NCCL goes through host memory; "
      "it stops nothing",
      "the GPUs are connected by NVLink (then NCCL warns of NVLINK connected GPUs)",
      "Nothing to do for correctness; for speed see the peer matrix.", "nvidia-smi topo -m; nvidia-smi topo -p2p r", &found);
  if (found.empty()) {
    Say(job, EventsOf(job, {"nccl-tests-ok"}),
        "NCCL's test ran to its end and every value was right (out of bounds values: 0 OK)",
        "the same test with a wrong value, or a bandwidth far below that of like machines", "Nothing to do.",
        "nvidia-smi topo -m", &found);
  }
  return found;
}

const Register kRegister("noise", FindNoise);

}  // namespace
}  // namespace ringscope::reasoning
