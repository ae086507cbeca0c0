#include "tests/sim/setup/job.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tests/sim/setup/number.h"
#include "tests/sim/setup/workloads.h"

namespace ringscope::sim {
namespace {

std::string Count(uint64_t n, const std::string& what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

// Numbers as in "0 to 3", of what is counted from 0.
std::string Those(uint64_t n) { return n == 1 ? "only 0" : "0 to " + std::to_string(n - 1); }

std::string Limits(const char* what, int least, int most) {
  return std::string("there must be ") + std::to_string(least) + " to " + std::to_string(most) + " " + what;
}

// What a fault asks of the job and it does not have, or "".
std::string NotInJob(const PlannedFault& fault, const JobSetup& job) {
  const int n = job.hosts * job.ranks_per_host;
  if (fault.rank >= n) return "rank=" + std::to_string(fault.rank) + ": this job has ranks " + Those(static_cast<uint64_t>(n));
  const uint64_t calls = CallsInStep(job.workload, fault.rank, n) * static_cast<uint64_t>(job.steps);
  if (fault.op > calls) {
    return "op=" + std::to_string(fault.op) + ": rank " + std::to_string(fault.rank) + " makes " + Count(calls, "call") + " in " +
           Count(static_cast<uint64_t>(job.steps), "step") + " of " + job.workload + "; more steps make more calls";
  }
  if (fault.init > CommunicatorsOf(job.workload)) {
    return "init=" + std::to_string(fault.init) + ": a rank of " + job.workload + " creates " +
           Count(CommunicatorsOf(job.workload), "communicator");
  }
  if (fault.what == "gather" && n > 64) return "do=gather: only in jobs of up to 64 ranks";
  if (OnNetworkEdge(fault)) {
    if (fault.to >= n) return "to=" + std::to_string(fault.to) + ": this job has ranks " + Those(static_cast<uint64_t>(n));
    if (fault.to == fault.rank) return "to=" + std::to_string(fault.to) + ": a rank has no edge to itself";
    if (job.hosts == 1) return "do=" + fault.what + ": a job of one host has no network edges; ask for more hosts";
    if (fault.to >= 0 && fault.to / job.ranks_per_host == fault.rank / job.ranks_per_host)
      return "to=" + std::to_string(fault.to) + ": it is on the same host, which no network edge joins";
  }
  if (fault.what == "proxy" && job.hosts == 1) return "do=proxy: in a job of one host it has nothing to move; ask for more hosts";
  if (OnMachine(fault) && job.machine.empty())
    return "do=" + fault.what + ": hosts are made of nothing that could break; name a machine (tests/sim/machines)";
  return "";
}

// Faults that one and the same call would have to carry.
std::string Twice(const std::vector<PlannedFault>& faults) {
  std::map<std::string, const PlannedFault*> seen;
  for (const PlannedFault& fault : faults) {
    const auto [known, fresh] = seen.insert({fault.text, &fault});
    if (!fresh) return Name(fault) + ": the same as fault " + std::to_string(known->second->number);
  }
  return "";
}

SetupMistake CheckFaults(const JobSetup& job, const Machine& machine) {
  std::string error;
  const std::vector<PlannedFault> faults = ParseFaults(job.faults, &error);
  if (error.empty()) error = Twice(faults);
  if (!error.empty()) return {"faults", error};
  for (const PlannedFault& fault : faults) {
    std::string wrong = NotInJob(fault, job);
    if (wrong.empty() && !job.machine.empty()) {
      wrong = NotOnMachine(fault, machine);
      if (wrong.empty() && fault.what == "port" && job.hosts == 1)
        wrong = "do=port: nothing of a job of one host passes an adapter; ask for more hosts";
    }
    if (!wrong.empty()) return {"faults", Name(fault) + ": " + wrong};
  }
  return {};
}

}  // namespace

std::string NotOnMachine(const PlannedFault& fault, const Machine& machine) {
  const uint64_t gpus = machine.gpus.size(), nics = machine.nics.size();
  if (fault.gpu >= static_cast<int>(gpus)) return "gpu=" + std::to_string(fault.gpu) + ": a machine has GPUs " + Those(gpus);
  if (fault.what == "port" && fault.nic >= static_cast<int>(nics))
    return "nic=" + std::to_string(fault.nic) + ": a machine has " + (nics == 0 ? "no adapters" : "adapters " + Those(nics));
  if (fault.what != "lanes" && fault.what != "nvlink") return "";
  if (fault.to >= static_cast<int>(gpus)) return "to=" + std::to_string(fault.to) + ": a machine has GPUs " + Those(gpus);
  if (fault.to >= 0 && fault.to == fault.gpu) return "to=" + std::to_string(fault.to) + ": no lanes lead from a GPU to itself";
  if (machine.nvswitch && fault.to >= 0) return "to=: lanes lead to NVSwitches on this machine; leave it out";
  if (!machine.nvswitch && fault.to < 0) return "lanes join pairs on this machine: to=GPU is needed";
  if (fault.link >= machine.product_lanes || fault.left > machine.product_lanes)
    return "link=, left=: a GPU of this machine has " + Count(static_cast<uint64_t>(machine.product_lanes), "NVLink");
  return "";
}

SetupMistake CheckJob(const JobSetup& job) {
  if (job.hosts < 1 || job.hosts > kMostRanks) return {"hosts", Limits("hosts", 1, kMostRanks)};
  if (job.ranks_per_host < 1 || job.ranks_per_host > kMostRanksPerHost)
    return {"ranks_per_host", Limits("ranks on a host, one on each GPU", 1, kMostRanksPerHost)};
  const int n = job.hosts * job.ranks_per_host;
  if (n > kMostRanks) return {"hosts", std::to_string(n) + " ranks in all; " + Limits("of them", 1, kMostRanks)};
  if (job.steps < 1 || job.steps > kMostSteps) return {"steps", Limits("steps", 1, kMostSteps)};
  if (!IsWorkload(job.workload)) return {"workload", "there is no \"" + Shown(job.workload) + "\"; there are " + AllWorkloads()};
  Machine machine;
  if (!job.machine.empty()) {
    std::string error;
    machine = ReadMachine(job.machine, "", &error);
    if (!error.empty()) return {"machine", error, 65};
    if (job.ranks_per_host > static_cast<int>(machine.gpus.size())) {
      return {"ranks_per_host",
              std::to_string(job.ranks_per_host) + " ranks on a host, but this machine has " + Count(machine.gpus.size(), "GPU")};
    }
  }
  for (const auto& [host, file] : job.before) {
    const std::string prefix = "node";
    const auto number =
        host.rfind(prefix, 0) == 0 ? Whole(host.substr(prefix.size()), 0, job.hosts - 1) : std::optional<int64_t>();
    if (!number) return {"before", Shown(host) + ": no host of this job; they are node0 to node" + std::to_string(job.hosts - 1)};
    if (job.machine.empty()) return {"before", Shown(host) + ": hosts have no machine that something could have happened to"};
    std::string error;
    ReadMachine(job.machine, file, &error);
    if (!error.empty()) return {"before", error, 65};
  }
  return CheckFaults(job, machine);
}

}  // namespace ringscope::sim
