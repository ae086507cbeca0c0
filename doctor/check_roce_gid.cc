// The GID with which NCCL addresses a RoCE port: there, and of RoCE v2.
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include "doctor/adapters.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

const char* const kShow = "show_gids, or grep . /sys/class/infiniband/*/ports/*/gid_attrs/types/* 2>/dev/null";

bool IsV2(const node::Port::Gid& gid) { return absl::StrContains(gid.type(), "v2"); }
// "0000:0000:0000:0000:0000:ffff:0a01:0203"
bool IsIpv4(const node::Port::Gid& gid) { return absl::StartsWith(gid.gid(), "0000:0000:0000:0000:0000:ffff:"); }

void Chosen(const node::Port& port, int index, const node::Port* before, Verdict* verdict) {
  const node::Port::Gid* gid = nullptr;
  for (const node::Port::Gid& g : port.gids()) {
    if (g.index() == index) gid = &g;
  }
  std::string was;
  for (int i = 0; before != nullptr && i < before->gids_size(); ++i) {
    if (before->gids(i).index() == index && (gid == nullptr || before->gids(i).type() != gid->type()))
      was = before->gids(i).type();
  }
  std::string better;
  for (const node::Port::Gid& g : port.gids()) {
    if (better.empty() && IsV2(g) && IsIpv4(g))
      better = absl::StrCat("NCCL_IB_GID_INDEX=", g.index(), ", or leave it unset (NCCL 2.21 and later)");
  }
  const std::string fix = better.empty() ? std::string(kShow) : better;
  if (gid == nullptr) {
    verdict->Failed(absl::StrCat(PortName(port), ": GID ", index, " (NCCL_IB_GID_INDEX) is empty"),
                    {"Connections cannot be made, or every transfer ends with status 12 after its retries.", fix, "NET-03"}, was);
  } else if (!IsV2(*gid)) {
    verdict->Failed(
        absl::StrCat(PortName(port), ": GID ", index, " (NCCL_IB_GID_INDEX) is ", gid->type(), ", not RoCE v2"),
        {"RoCE v1 is not routed: ranks in other subnets are not reached, and switches treat it otherwise.", fix, "NET-03"}, was);
  }
}

void Any(const node::Port& port, bool ipv6, Verdict* verdict) {
  bool v2 = false, family = false;
  for (const node::Port::Gid& gid : port.gids()) {
    v2 |= IsV2(gid);
    family |= IsV2(gid) && IsIpv4(gid) != ipv6;
  }
  if (!v2)
    verdict->Failed(
        absl::StrCat(PortName(port), ": no GID of RoCE v2", port.gids_size() == 0 ? " (none at all)" : ""),
        {"NCCL has no address with which other nodes reach this port.",
         absl::StrCat("give ", port.interface().empty() ? "its interface" : port.interface(), " an address; ", kShow), "NET-03"});
  else if (!family)
    verdict->Warning(
        absl::StrCat(PortName(port), ": no GID of RoCE v2 with an IPv", ipv6 ? 6 : 4, " address"),
        {"NCCL looks for one of that family, and takes another one that may not be routed.",
         absl::StrCat("ip addr show ", port.interface(), "; give it an address, or set NCCL_IB_ADDR_FAMILY"), "NET-03"});
}

void Look(const Question& question, Verdict* verdict) {
  const node::Node& now = question.now;
  const bool ipv6 = Setting(now, "NCCL_IB_ADDR_FAMILY") == "AF_INET6";
  const std::string set = Setting(now, "NCCL_IB_GID_INDEX");
  int index = -1;
  const bool chosen = absl::SimpleAtoi(set, &index) && index >= 0;
  size_t ports = 0;
  for (const node::Port* port : UsedPorts(now)) {
    if (!IsRoce(*port)) continue;
    ++ports;
    const node::Port* before = nullptr;
    for (int i = 0; question.before != nullptr && i < question.before->ports_size(); ++i) {
      if (PortName(question.before->ports(i)) == PortName(*port)) before = &question.before->ports(i);
    }
    if (chosen)
      Chosen(*port, index, before, verdict);
    else
      Any(*port, ipv6, verdict);
  }
  if (ports == 0) return verdict->NotPresent("no active RoCE port that NCCL would use");
  verdict->Seen(absl::StrCat("RoCE v2", chosen ? absl::StrCat(" at index ", index) : "", " on ", Count(ports, "port")));
}

const RegisterCheck kRegister({"roce-gid", "RoCE ports have the GID that NCCL takes, of RoCE v2", Look});

}  // namespace
}  // namespace ringscope::doctor
