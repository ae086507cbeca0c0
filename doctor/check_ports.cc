// RDMA ports: state, rate, link layer.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <map>
#include <set>

#include "doctor/adapters.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

const node::Port* SamePort(const node::Node* node, const node::Port& port) {
  for (int i = 0; node != nullptr && i < node->ports_size(); ++i) {
    if (node->ports(i).device() == port.device() && node->ports(i).port() == port.port()) return &node->ports(i);
  }
  return nullptr;
}

std::string Look(const node::Port& port) {
  if (IsRoce(port))
    return absl::StrCat("ethtool ", port.interface().empty() ? "INTERFACE" : port.interface(), "; cable and switch port");
  return absl::StrCat("ibstat ", port.device(), "; ibdiagnet; cable and switch port");
}

const char* const kDownWhy = "NCCL leaves a port that is not active out; the node is slower, or ranks plan differently and fail.";

void NotActive(const node::Port& port, const node::Port* before, bool named, Verdict* verdict) {
  const std::string seen = absl::StrCat(PortName(port), ": ", port.state(), ", ", port.physical_state());
  if (before != nullptr && IsActive(*before)) {
    verdict->Failed(seen, {kDownWhy, Look(port), "NET-01"}, before->state());
  } else if (absl::StrContains(port.state(), "INIT")) {
    verdict->Failed(seen, {"The link is there, and no subnet manager has configured it.",
                           "sminfo; ibstat; start the subnet manager", "NET-01"});
  } else if (named) {
    verdict->Failed(absl::StrCat(seen, ", and NCCL_IB_HCA names it"), {kDownWhy, Look(port), "NET-01"});
  } else if (absl::StrContains(port.physical_state(), "LinkErrorRecovery")) {
    verdict->Failed(seen, {"The link fails and is trained again and again.", Look(port), "NET-01"});
  } else if (before == nullptr && absl::StrContains(port.physical_state(), "Polling")) {
    // Nobody may have plugged a cable in.
    verdict->Warning(seen, {"No cable, or a link that does not come up. A baseline tells which.", Look(port), "NET-01"});
  }
}

void Rates(const std::vector<const node::Port*>& active, const node::Node* before, Verdict* verdict) {
  std::map<std::string, std::map<double, std::vector<const node::Port*>>> kinds;
  for (const node::Port* port : active) {
    const node::Port* old = SamePort(before, *port);
    if (old != nullptr && IsActive(*old)) {
      if (Gigabits(*port) < Gigabits(*old))
        verdict->Failed(absl::StrCat(PortName(*port), ": ", port->rate()),
                        {"All ranks that send through it wait for it.", Look(*port), "NET-09"}, old->rate());
      if (port->link_layer() != old->link_layer())
        verdict->Warning(absl::StrCat(PortName(*port), ": ", port->link_layer()),
                         {"The port was configured for another network.", Look(*port), "NET-08"}, old->link_layer());
      continue;
    }
    if (Gigabits(*port) > 0) kinds[absl::StrCat(port->board(), "/", port->link_layer())][Gigabits(*port)].push_back(port);
  }
  for (const auto& [kind, rates] : kinds) {
    if (rates.size() < 2) continue;
    const double best = rates.rbegin()->first;
    for (const auto& [rate, slow] : rates) {
      if (rate == best) break;
      std::string names;
      for (const node::Port* port : slow) absl::StrAppend(&names, names.empty() ? "" : ", ", PortName(*port));
      verdict->Warning(absl::StrFormat("%s: %s, adapters of the same kind run at %g Gb/s", names, slow[0]->rate(), best),
                       {"NCCL plans for the slowest, and ranks behind it hold up all others.", Look(*slow[0]), "NET-09"});
    }
  }
}

void Ports(const Question& question, Verdict* verdict) {
  const node::Node& now = question.now;
  for (int i = 0; question.before != nullptr && i < question.before->ports_size(); ++i) {
    const node::Port& old = question.before->ports(i);
    if (SamePort(&now, old) == nullptr)
      verdict->Failed(absl::StrCat(PortName(old), " is not there"),
                      {"Nodes with different adapters plan differently.",
                       "lspci | grep -i -E 'mellanox|infiniband'; lsmod | grep mlx5", "NET-08"},
                      old.state());
  }
  if (now.ports_size() == 0) {
    if (question.before == nullptr || question.before->ports_size() == 0) verdict->NotPresent("no RDMA adapter");
    return;
  }
  const NameList list(Setting(now, "NCCL_IB_HCA"));
  std::vector<const node::Port*> active;
  std::set<std::string> layers;
  for (const node::Port& port : now.ports()) {
    const bool chosen = list.Takes(port.device(), port.port());
    if (IsActive(port)) {
      active.push_back(&port);
      if (chosen) layers.insert(port.link_layer());
    } else if (chosen) {
      NotActive(port, SamePort(question.before, port), !list.empty() && !list.others(), verdict);
    }
  }
  for (const NameList::Name& word : list.names()) {
    bool found = false;
    for (const node::Port& port : now.ports()) found |= list.Fits(word, port.device(), port.port());
    if (!found && !list.others())
      verdict->Failed(
          absl::StrCat("NCCL_IB_HCA names ", word.name, ", which is not there"),
          {"NCCL finds fewer adapters than meant, or none and goes over sockets.", "ibstat -l; correct NCCL_IB_HCA", "NET-08"});
  }
  if (active.empty() && HasGpu(now))
    verdict->Failed(absl::StrCat("none of ", Count(static_cast<size_t>(now.ports_size()), "RDMA port"), " is active"),
                    {"NCCL goes over sockets without a word.", "ibstat; rdma link; cables and switch ports", "NET-01"});
  Rates(active, question.before, verdict);
  std::map<std::string, int> rates;
  for (const node::Port* port : active) ++rates[absl::StrFormat("%g Gb/s %s", Gigabits(*port), port->link_layer())];
  std::string line;
  for (const auto& [rate, count] : rates) absl::StrAppend(&line, line.empty() ? "" : ", ", count, "x ", rate);
  if (layers.size() > 1) line += "; NCCL_IB_HCA does not choose one";
  verdict->Seen(line.empty() ? "no port is active" : line);
}

const RegisterCheck kRegister({"ports", "RDMA ports are active and run at one rate", Ports});

}  // namespace
}  // namespace ringscope::doctor
