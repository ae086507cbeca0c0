// Processes that the kernel found asleep beyond the reach of signals (state D), or processors held by kernel code.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using model::HungTask;

enum class Waits { kUnknown, kStorage, kDriver, kNetwork };

// By prefixes of kernel functions of file systems, of the GPU driver, of the RDMA stack.
Waits For(const HungTask& task) {
  static constexpr const char* kStorage[] = {"nfs",   "rpc_wait", "__rpc",       "ll_",   "lov_",    "ptlrpc",       "cl_io",
                                             "osc_",  "ceph",     "fuse_",       "gpfs",  "kxMutex", "beegfs",       "xfs_",
                                             "ext4_", "btrfs_",   "io_schedule", "blk_",  "cifs_",   "wait_on_page", "folio_wait",
                                             "jbd2",  "zfs",      "zio_",        "nvme_", "filemap"};
  static constexpr const char* kDriver[] = {"_nv0", "nv_", "nvidia", "uvm_", "os_acquire", "rm_", "nvkms", "portSync"};
  static constexpr const char* kRdma[] = {"ib_", "mlx5_", "rdma_", "ucma_", "uverbs"};
  const auto any = [&](const auto& names) {
    return std::any_of(task.frames.begin(), task.frames.end(), [&](const std::string& frame) {
      return std::any_of(std::begin(names), std::end(names), [&](const char* name) { return absl::StartsWith(frame, name); });
    });
  };
  if (any(kDriver)) return Waits::kDriver;
  if (any(kRdma)) return Waits::kNetwork;
  return any(kStorage) ? Waits::kStorage : Waits::kUnknown;
}

std::vector<Candidate> FindHungTask(const model::Job& job) {
  const auto& tasks = job.evidence.kernel.hung_tasks;
  if (tasks.empty()) return {};
  // Where the GPU itself failed, tasks hang because of it.
  const Incident incident = FindIncident(job);
  const bool gpu_fault = incident.root >= 0 && incident.faults[incident.root].part != catalog::XidEntry::program;
  // A rank's process first, then a Python one, then any (a flush thread of the kernel still tells of storage).
  const HungTask* chosen = nullptr;
  int best = -1, rank = -1;
  for (const HungTask& task : tasks) {
    const int of = RankOfProcess(job, task.by.host, task.pid);
    const bool python = ContainsIgnoringCase(task.process, "python") || absl::StartsWith(task.process, "pt_");
    const int score = (of >= 0 ? 4 : 0) + (python ? 2 : 0) + (For(task) != Waits::kUnknown ? 1 : 0);
    if (score > best) {
      best = score;
      chosen = &task;
      rank = of;
    }
  }
  const bool of_job = best >= 2;
  const Waits waits = For(*chosen);
  if (gpu_fault && waits != Waits::kStorage) return {};
  const char* what = waits == Waits::kStorage   ? "waits for storage (file system functions on its kernel stack)"
                     : waits == Waits::kDriver  ? "is stuck inside the GPU driver"
                     : waits == Waits::kNetwork ? "is stuck inside the RDMA driver"
                                                : "sleeps in the kernel, the reason is not told";
  const std::string_view cause = waits == Waits::kStorage ? "UC-06" : waits == Waits::kDriver ? "HW-07" : "";
  Candidate c = Say(Kind::host_blocked, rank >= 0 && waits != Waits::kUnknown ? Confidence::probable : Confidence::possible,
                    waits == Waits::kDriver ? Layer::kDriver : Layer::kHost,
                    absl::StrCat(rank >= 0 ? absl::StrCat("Rank ", rank) : absl::StrCat("Process ", chosen->process), " (pid ",
                                 chosen->pid, chosen->by.host.empty() ? "" : " on ", chosen->by.host,
                                 ") has been blocked for more than ", chosen->seconds, " s: it ", what),
                    cause, "kernel-hung-task");
  Finding& finding = c.finding;
  if (rank >= 0) finding.mutable_who()->add_ranks(rank);
  if (!chosen->by.host.empty()) finding.mutable_who()->add_hosts(chosen->by.host);
  std::string quote = chosen->quote;
  if (!chosen->frames.empty()) {
    const size_t n = std::min<size_t>(chosen->frames.size(), 8);
    absl::StrAppend(&quote, " [", absl::StrJoin(chosen->frames.begin(), chosen->frames.begin() + static_cast<long>(n), " < "),
                    "]");
  }
  Cite(job, chosen->where, quote, &finding);
  for (const HungTask& task : tasks) {
    if (&task != chosen && finding.evidence_size() < 4) Cite(job, task.where, task.quote, &finding);
  }
  CiteAll(job, EventsOf(job, {"kernel-lockup"}), 2, &finding);
  c.order = of_job ? Class::kStall : Class::kPlan;
  c.stops_job = of_job && waits != Waits::kUnknown;
  c.state = State::hang;
  c.when = chosen->time;
  if (of_job) OthersWaited(job, &finding);
  finding.set_refuted_by("the process went on before the job gave up, or it is none of the job's");
  if (waits == Waits::kDriver)
    SetNext("What the driver waits for: Xid lines, the same call of nvidia-smi; a reboot frees the process.",
            "dmesg -T | grep -E 'NVRM|Xid'; timeout 20 nvidia-smi", &finding);
  if (waits == Waits::kStorage)
    SetNext("Whether the file system that this host mounts answers: server, network to it, other clients.",
            "dmesg -T | grep -iE 'nfs|lustre|ceph|gpfs|not responding'; cat /proc/mounts; timeout 20 ls <mount point>", &finding);
  return {c};
}

const Register kRegister("hung_task", FindHungTask);

}  // namespace
}  // namespace ringscope::reasoning
