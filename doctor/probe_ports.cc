// RDMA ports and their GIDs, from sysfs.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "doctor/probe.h"
#include "supervisor/collector.h"

namespace ringscope::doctor {
namespace {

using supervisor::FirstLine;
using supervisor::Names;

constexpr size_t kMostGids = 256;  // of a port; NCCL looks at as many as there are, and an adapter has 256 at most

bool Empty(const std::string& gid) {
  return gid.empty() || std::all_of(gid.begin(), gid.end(), [](char c) { return c == '0' || c == ':'; });
}

absl::Status Ports(const Place& place, node::Node* node) {
  const std::string root = place.sysfs + "/class/infiniband";
  for (const std::string& device : Names(root)) {
    const std::string folder = absl::StrCat(root, "/", device);
    std::string board = FirstLine(folder + "/board_id");
    if (board.empty()) board = FirstLine(folder + "/hca_type");
    for (const std::string& number : Names(folder + "/ports")) {
      const std::string at = absl::StrCat(folder, "/ports/", number);
      node::Port* port = node->add_ports();
      int value = 0;
      if (absl::SimpleAtoi(number, &value)) port->set_port(value);
      port->set_device(device);
      port->set_state(FirstLine(at + "/state"));
      port->set_physical_state(FirstLine(at + "/phys_state"));
      port->set_rate(FirstLine(at + "/rate"));
      port->set_link_layer(FirstLine(at + "/link_layer"));
      port->set_board(board);
      const std::vector<std::string> interfaces = Names(folder + "/device/net");
      if (interfaces.size() == 1) port->set_interface(interfaces[0]);
      const std::vector<std::string> gids = Names(at + "/gids");
      for (size_t i = 0; i < gids.size() && i < kMostGids; ++i) {
        const std::string gid = FirstLine(absl::StrCat(at, "/gids/", gids[i]));
        if (Empty(gid) || !absl::SimpleAtoi(gids[i], &value)) continue;
        node::Port::Gid* g = port->add_gids();
        g->set_index(value);
        g->set_gid(gid);
        g->set_type(FirstLine(absl::StrCat(at, "/gid_attrs/types/", gids[i])));
        g->set_interface(FirstLine(absl::StrCat(at, "/gid_attrs/ndevs/", gids[i])));
      }
    }
  }
  return node->ports_size() > 0 ? absl::OkStatus() : absl::NotFoundError("no RDMA adapter is visible here");
}

absl::Status Interfaces(const Place& place, node::Node* node) {
  const std::string root = place.sysfs + "/class/net";
  for (const std::string& name : Names(root)) {
    const std::string folder = absl::StrCat(root, "/", name);
    node::Interface one;
    int value = 0;
    if (!absl::SimpleAtoi(FirstLine(folder + "/ifindex"), &value)) continue;  // not an interface: bonding_masters
    one.set_name(name);
    one.set_index(value);
    one.set_state(FirstLine(folder + "/operstate"));
    if (absl::SimpleAtoi(FirstLine(folder + "/mtu"), &value)) one.set_mtu(value);
    // A bond, a team and a VLAN have a "lower_…" link to what they are made of; so has a bridge, which has a folder of its own.
    bool made_of = false;
    const std::vector<std::string> parts = Names(folder);
    for (const std::string& part : parts) made_of |= part.rfind("lower_", 0) == 0;
    const auto has = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
    one.set_physical(has("device") || (made_of && !has("bridge")));
    *node->add_interfaces() = one;
  }
  std::stable_sort(node->mutable_interfaces()->begin(), node->mutable_interfaces()->end(),
                   [](const node::Interface& a, const node::Interface& b) { return a.index() < b.index(); });
  return node->interfaces_size() > 0 ? absl::OkStatus() : absl::NotFoundError("no network interface is visible here");
}

const RegisterProbe kPorts({"ports", Ports});
const RegisterProbe kInterfaces({"interfaces", Interfaces});

}  // namespace
}  // namespace ringscope::doctor
