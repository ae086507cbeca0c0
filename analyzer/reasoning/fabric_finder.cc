// The NVSwitch fabric: GPUs that are not registered with it, a fabric manager that does not run or does not fit the driver, and
// one that was restarted under GPUs that stayed up.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/op_text.h"
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
  if (!fabric.unregistered.empty() || !not_ready.empty() || !mismatch.empty()) {
    const bool state = !fabric.unregistered.empty();
    std::string title =
        state ? absl::StrCat(Count(fabric.unregistered, fabric.good), Hosts(fabric.unregistered),
                             " not registered with the NVLink fabric (state ", std::string(fabric.unregistered[0].reading->value),
                             "): the fabric manager has not finished with them")
        : !mismatch.empty()
            ? "The fabric manager is of another release than the driver and does not run: CUDA cannot start on an NVSwitch system"
            : "CUDA says that the system is not ready (802): the fabric manager does not run or has not finished";
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

// ---- restarted under running GPUs

bool SpeaksOfNvlsFailure(const model::Event& event) {
  const std::string low = absl::AsciiStrToLower(Absl(event.text));
  return (Contains(low, "nvls") || Contains(low, "nvlink sharp") || Contains(low, "multicast")) &&
         (Contains(low, " warn ") || Contains(low, "fail") || Contains(low, "error"));
}

std::vector<Candidate> FindRestart(const model::Job& job) {
  const auto stopped = EventsOf(job, {"fm-service-stopped"});
  const auto started = EventsOf(job, {"fm-service-started"});
  const model::Event* stop = nullptr;
  const model::Event* start = nullptr;
  for (const model::Event* a : stopped) {
    for (const model::Event* b : started) {
      if (a->where.file == b->where.file && a->where.line < b->where.line && a->by.host == b->by.host) {
        stop = a;
        start = b;
      }
    }
  }
  if (start == nullptr) return {};
  std::vector<const model::Event*> failures;
  for (const model::Event& event : job.evidence.events) {
    const bool same_host = event.by.host.empty() || start->by.host.empty() || event.by.host == start->by.host;
    if (same_host && SpeaksOfNvlsFailure(event)) failures.push_back(&event);
  }
  if (failures.empty()) return {};
  Candidate c =
      Say(Kind::error_reported, Confidence::probable, Layer::kDriver,
          absl::StrCat(
              "The fabric manager", start->by.host.empty() ? "" : absl::StrCat(" on ", start->by.host),
              " was restarted while the GPUs stayed up: NVLink SHARP (NVLS) multicast cannot be set up until the GPUs are reset"),
          "FB-01");
  c.stops_job = true;
  c.state = State::init_failure;
  Finding& f = c.finding;
  if (!start->by.host.empty()) f.mutable_who()->add_hosts(start->by.host);
  Cite(job, *stop, &f);
  Cite(job, *start, &f);
  CiteAll(job, failures, 4, &f);
  const std::set<int> ranks = RanksOf(failures);
  AddRanks(ranks, f.mutable_collateral()->mutable_ranks());
  f.set_refuted_by("the same failure after the GPUs were reset, or on a node whose fabric manager was never stopped");
  SetNext(
      "Stop all jobs of the node, stop the fabric manager, reset the GPUs (or reboot), start the fabric manager, then the jobs. "
      "NCCL_NVLS_ENABLE=0 "
      "gets by without NVLS.",
      "systemctl stop nvidia-fabricmanager; nvidia-smi -r; systemctl start nvidia-fabricmanager; nvidia-smi -q | grep -A4 Fabric",
      &f);
  return {c};
}

const Register kFabric("fabric state", FindFabric);
const Register kRestart("fabric manager restart", FindRestart);

}  // namespace
}  // namespace ringscope::reasoning
