// Nodes as probes would have seen them, for tests of single checks.
#ifndef RINGSCOPE_TESTS_UNIT_DOCTOR_SEEN_H_
#define RINGSCOPE_TESTS_UNIT_DOCTOR_SEEN_H_

#include <absl/strings/str_cat.h>

#include <string>
#include <vector>

#include "doctor/doctor.h"
#include "proto/node.pb.h"
#include "tests/unit/doctor/stand_in.h"

namespace ringscope::testing {

// GPUs in order, with as many active NVLinks.
inline node::Node Gpus(int count, int links, uint32_t product = 0) {
  node::Node node;
  node.set_host("node7");
  node.set_architecture("x86_64");
  node::Asked* asked = node.add_asked();
  asked->set_name("nvml");
  asked->set_answered(true);
  for (int i = 0; i < count; ++i) {
    node::Gpu* gpu = node.add_gpus();
    gpu->set_index(i);
    gpu->set_bus_id(absl::StrCat("0000:", i + 1, "1:00.0"));
    gpu->set_name("GPU");
    gpu->set_uuid(absl::StrCat("GPU-", i));
    gpu->set_product(product == 0 ? 0 : product << 16 | 0x10de);
    for (int link = 0; link < links; ++link) {
      node::Gpu::Link* l = gpu->add_links();
      l->set_index(link);
      l->set_active(true);
    }
    for (int other = i + 1; other < count; ++other) {
      node::PeerPair* pair = node.add_peers();
      pair->set_a(i);
      pair->set_b(other);
      pair->set_read("OK");
      pair->set_nvlink(links > 0 ? "OK" : "NS");
    }
  }
  return node;
}

inline node::Port* AddPort(node::Node* node, const std::string& device, const std::string& rate = "400 Gb/sec (4X NDR)",
                           const std::string& link_layer = "InfiniBand") {
  node::Port* port = node->add_ports();
  port->set_device(device);
  port->set_port(1);
  port->set_state("4: ACTIVE");
  port->set_physical_state("5: LinkUp");
  port->set_rate(rate);
  port->set_link_layer(link_layer);
  port->set_board("MT_0000000838");
  return port;
}
inline void AddGid(node::Port* port, int index, const std::string& gid, const std::string& type) {
  node::Port::Gid* g = port->add_gids();
  g->set_index(index);
  g->set_gid(gid);
  g->set_type(type);
}

inline std::vector<std::string> Said(const std::string& check, const node::Node& node, const node::Node* before = nullptr) {
  return Problems(doctor::Judge(node, before, {check}, {}));
}
inline std::string SeenBy(const std::string& check, const node::Node& node) {
  return Named(doctor::Judge(node, nullptr, {check}, {}), check).seen();
}
inline node::Report::Status StatusOf(const std::string& check, const node::Node& node) {
  return Named(doctor::Judge(node, nullptr, {check}, {}), check).status();
}

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_DOCTOR_SEEN_H_
