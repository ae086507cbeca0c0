// The network interface for NCCL's bootstrap and sockets.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "doctor/adapters.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

bool Up(const node::Interface& one) { return one.state() == "up" || one.state() == "unknown"; }
bool Ordinary(const node::Interface& one) { return one.name() != "lo" && !absl::StartsWith(one.name(), "docker"); }

std::string Candidates(const node::Node& node) {
  std::string names;
  for (const node::Interface& one : node.interfaces()) {
    if (one.physical() && Up(one)) absl::StrAppend(&names, names.empty() ? "" : ", ", one.name());
  }
  return names.empty() ? "none is up" : names;
}

void OfVariable(const node::Node& node, const std::string& variable, const std::string& value, bool whole_names,
                Verdict* verdict) {
  const NameList list(whole_names ? "=" + value : value);
  const node::Interface* first = nullptr;
  const node::Interface* down = nullptr;
  for (const node::Interface& one : node.interfaces()) {
    if (!list.Takes(one.name())) continue;
    if (Up(one) && first == nullptr) first = &one;
    if (!Up(one)) down = &one;
  }
  const char* why = "Ranks of this node cannot be reached: the job waits at its start, or ends with an unreachable address.";
  const std::string fix = absl::StrCat("ip -br addr; ", variable, "=NAME; up here: ", Candidates(node));
  if (first == nullptr && down != nullptr && !list.others())
    verdict->Failed(absl::StrCat(variable, "=", value, ": ", down->name(), " is ", down->state()), {why, fix, "NET-07"});
  else if (first == nullptr)
    verdict->Failed(absl::StrCat(variable, "=", value, ": there is no such interface"), {why, fix, "NET-07"});
  else if (!list.others() &&
           (first->name() == "lo" || absl::StartsWith(first->name(), "docker") || absl::StartsWith(first->name(), "virbr")))
    verdict->Warning(absl::StrCat(variable, "=", value, " takes ", first->name()),
                     {"Other nodes cannot reach that address; only jobs on one node work.", fix, "NET-07"});
}

void Look(const Question& question, Verdict* verdict) {
  const node::Node& now = question.now;
  if (now.interfaces_size() == 0) return verdict->CouldNotTell("the network interfaces cannot be read here");
  std::string set;
  for (const char* variable : {"NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME"}) {
    const std::string value = Setting(now, variable);
    if (value.empty()) continue;
    OfVariable(now, variable, value, false, verdict);
    absl::StrAppend(&set, set.empty() ? "" : "; ", variable, "=", value);
  }
  // Gloo takes whole names.
  if (const std::string gloo = Setting(now, "GLOO_SOCKET_IFNAME"); !gloo.empty())
    OfVariable(now, "GLOO_SOCKET_IFNAME", gloo, true, verdict);
  if (!set.empty()) return verdict->Seen(set);
  // Unset: interfaces whose name begins with "ib", else the first besides lo and docker (NCCL's ncclFindInterfaces).
  const node::Interface* first = nullptr;
  const node::Interface* physical = nullptr;
  for (const bool ib : {true, false}) {
    for (const node::Interface& one : now.interfaces()) {
      if (!Ordinary(one) || !Up(one) || (ib && !absl::StartsWith(one.name(), "ib"))) continue;
      if (first == nullptr) first = &one;
      if (physical == nullptr && one.physical()) physical = &one;
    }
  }
  if (first == nullptr) return verdict->Seen("no interface besides lo and docker is up: jobs on this node only");
  if (!first->physical() && physical != nullptr && HasGpu(now)) {
    verdict->Warning(absl::StrCat("NCCL would take ", first->name(), " (virtual) before ", physical->name()),
                     {"A bridge of containers or virtual machines is not reached from other nodes.",
                      absl::StrCat("NCCL_SOCKET_IFNAME=", physical->name()), "NET-07"});
  }
  verdict->Seen(absl::StrCat("NCCL would take ", first->name()));
}

const RegisterCheck kRegister({"interface", "the interface that NCCL's sockets use exists and is reached from other nodes",
                               Look});

}  // namespace
}  // namespace ringscope::doctor
