// The NVSwitch fabric as GPUs show it: not registered, refused, unhealthy; and a fabric manager that does not fit the driver.
// CUDA's own word for it (802) and NVLS that fails after a restart of the fabric manager: cuda_error_finder, nvls_finder.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

bool Told(std::string_view value) {
  return !value.empty() && value != "N/A" && value != "[N/A]" && value != "Not Supported" && value != "[Not Supported]";
}

struct Bad {
  const GpuView* gpu;
  const model::Reading* reading;
};

struct Fabric {
  std::vector<Bad> unregistered, failed, unhealthy;
  size_t good = 0;
};

Fabric Look(const std::vector<GpuView>& views) {
  Fabric fabric;
  for (const GpuView& view : views) {
    const model::Reading *state = view.Latest("fabric.state"), *status = view.Latest("fabric.status");
    const bool completed = state == nullptr || state->value == "Completed";
    if (state != nullptr && Told(state->value) && !completed) {
      fabric.unregistered.push_back({&view, state});
    } else if (status != nullptr && completed && Told(status->value) && status->value != "Success") {
      fabric.failed.push_back({&view, status});
    } else if (const model::Reading* summary = view.Latest("fabric.health.summary");
               summary != nullptr && summary->value == "Unhealthy") {
      fabric.unhealthy.push_back({&view, summary});
    } else if (const model::Reading* bandwidth = view.Latest("fabric.health.bandwidth");
               bandwidth != nullptr && Told(bandwidth->value) && bandwidth->value != "Full") {
      fabric.unhealthy.push_back({&view, bandwidth});
    } else {
      fabric.good += state != nullptr && completed;
    }
  }
  return fabric;
}

void CiteGpus(const model::Job& job, const std::vector<Bad>& bad, Finding* finding) {
  for (size_t i = 0; i < bad.size() && i < 8; ++i) {
    NameGpu(job, *bad[i].gpu, finding);
    if (i >= 4) continue;
    Cite(job, bad[i].reading->where, absl::StrCat(bad[i].gpu->Name(), ": Fabric ", bad[i].reading->quote), finding);
    for (const char* key : {"fabric.cliqueId", "fabric.clusterUuid"}) {
      const model::Reading* reading = bad[i].gpu->Latest(key);
      if (reading != nullptr && i == 0) CiteReading(job, *reading, finding);
    }
  }
}

// What speaks of the fabric manager itself.
size_t CiteManager(const model::Job& job, Finding* finding) {
  size_t cited = 0;
  for (const model::ToolVerdict& verdict : job.evidence.hardware.verdicts) {
    if (verdict.tool != "systemctl" || verdict.result.starts_with("active")) continue;
    Cite(job, verdict.where, verdict.quote, finding);
    ++cited;
  }
  for (const model::Event* event : EventsOf(job, {"fm-driver-mismatch", "fm-service-failed", "fm-error"})) {
    if (cited++ < 5) Cite(job, *event, finding);
  }
  return cited;
}

std::string Hosts(const std::vector<Bad>& bad) {
  std::set<std::string> hosts;
  for (const Bad& b : bad) {
    if (!b.gpu->host.empty()) hosts.insert(b.gpu->host);
  }
  return hosts.empty() ? "" : absl::StrCat(" on ", absl::StrJoin(hosts, ", "));
}

std::string Count(const std::vector<Bad>& bad, size_t good) {
  return bad.size() == 1 ? bad[0].gpu->Name()
                         : absl::StrCat(bad.size(), good > 0 ? absl::StrCat(" of ", bad.size() + good) : "", " GPUs");
}

void NextFabric(Finding* finding) {
  SetNext(
      "Start or repair the fabric manager (its release must be the driver's), wait until every GPU shows State Completed and "
      "Status Success, "
      "then start the job. A GPU that stays behind needs a reset or a reboot of the node.",
      "systemctl status nvidia-fabricmanager; tail -50 /var/log/fabricmanager.log; nvidia-smi -q | grep -A8 Fabric", finding);
  finding->set_refuted_by("State Completed and Status Success on all GPUs when the job starts");
}

// GPUs of one host that talk over shared memory or the network.
const model::TransportLine* SlowPath(const model::Job& job) {
  for (const model::TransportLine& line : job.evidence.plan.transports) {
    if (line.via.starts_with("SHM") || Contains(line.via, "shared memory")) return &line;
  }
  return nullptr;
}

std::vector<Candidate> FindFabric(const model::Job& job) {
  std::vector<Candidate> found;
  const std::vector<GpuView> views = GpuViews(job);
  const Fabric fabric = Look(views);
  const auto not_ready = EventsOf(job, {"cuda-system-not-ready"});
  const auto mismatch = EventsOf(job, {"fm-driver-mismatch"});
  if (!fabric.unregistered.empty() || !mismatch.empty()) {
    const bool state = !fabric.unregistered.empty();
    std::string title =
        state
            ? absl::StrCat(Count(fabric.unregistered, fabric.good), Hosts(fabric.unregistered),
                           fabric.unregistered.size() == 1 ? " is" : " are", " not registered with the NVLink fabric (state ",
                           std::string(fabric.unregistered[0].reading->value), "): the fabric manager has not finished with them")
            : "The fabric manager is of another release than the driver and does not run: CUDA cannot start on an NVSwitch "
              "system";
    Candidate c = Say(mismatch.empty() ? Kind::error_reported : Kind::misconfigured, Confidence::probable, Layer::kDriver,
                      std::move(title), "FB-01");
    Finding& f = c.finding;
    CiteGpus(job, fabric.unregistered, &f);
    CiteAll(job, not_ready, 2, &f);
    const size_t manager = CiteManager(job, &f);
    if ((state ? 1 : 0) + (not_ready.empty() ? 0 : 1) + (manager > 0 ? 1 : 0) >= 2) {
      f.set_confidence(Confidence::established);
      f.mutable_cause()->set_confidence(Confidence::established);
    }
    c.stops_job = true;
    c.state = State::init_failure;
    NextFabric(&f);
    found.push_back(std::move(c));
  } else if (!fabric.failed.empty()) {
    const model::TransportLine* slow = SlowPath(job);
    Candidate c =
        Say(slow != nullptr ? Kind::fallback_path : Kind::degraded_plan,
            slow != nullptr ? Confidence::established : Confidence::probable, Layer::kDriver,
            absl::StrCat("The NVLink fabric took ", Count(fabric.failed, fabric.good), Hosts(fabric.failed), " with status \"",
                         fabric.failed[0].reading->value, "\": their links are up, and yet they may not talk over them"),
            "FB-02");
    c.order = Class::kPlan;
    c.state = State::slow;
    CiteGpus(job, fabric.failed, &c.finding);
    if (slow != nullptr) {
      Cite(job, slow->where, absl::StrCat("Channel ", slow->channel, ": ", slow->from, " -> ", slow->to, " via ", slow->via),
           &c.finding);
    }
    CiteManager(job, &c.finding);
    NextFabric(&c.finding);
    found.push_back(std::move(c));
  }
  if (!fabric.unhealthy.empty()) {
    Candidate c = Say(Kind::degraded_plan, Confidence::probable, Layer::kHardware,
                      absl::StrCat("The NVLink fabric reports ", Count(fabric.unhealthy, fabric.good), Hosts(fabric.unhealthy),
                                   " as unhealthy"),
                      "FB-03");
    c.order = Class::kPlan;
    CiteGpus(job, fabric.unhealthy, &c.finding);
    for (const char* key :
         {"fabric.health.bandwidth", "fabric.health.route_unhealthy", "fabric.health.route_recovery_in_progress",
          "fabric.health.access_timeout_recovery", "fabric.health.incorrect_configuration"}) {
      const model::Reading* reading = fabric.unhealthy[0].gpu->Latest(key);
      if (reading != nullptr && Told(reading->value)) CiteReading(job, *reading, &c.finding);
    }
    c.finding.set_refuted_by("health summary Healthy while the job runs");
    SetNext(
        "The state of the NVLink domain as its fabric manager and IMEX see it; compare the clique and cluster ids of all nodes.",
        "nvidia-imex-ctl -N; nvidia-smi -q | grep -A14 Fabric", &c.finding);
    found.push_back(std::move(c));
  }
  return found;
}

const Register kFabric("fabric state", FindFabric);

}  // namespace
}  // namespace ringscope::reasoning
