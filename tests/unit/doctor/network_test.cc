// Checks of adapters, GIDs and interfaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/adapters.h"
#include "tests/unit/doctor/seen.h"

namespace ringscope::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

node::Node WithPorts(int count) {
  node::Node node = Gpus(2, 0);
  for (int i = 0; i < count; ++i) AddPort(&node, absl::StrCat("mlx5_", i));
  return node;
}

TEST(NameList, AsNcclReadsIt) {
  const auto takes = [](const char* list, const char* name, int port = 1) { return doctor::NameList(list).Takes(name, port); };
  EXPECT_TRUE(takes("", "mlx5_0"));
  EXPECT_TRUE(takes("mlx5", "mlx5_10"));
  EXPECT_TRUE(takes("mlx5_1", "mlx5_10"));  // a prefix
  EXPECT_FALSE(takes("=mlx5_1", "mlx5_10"));
  EXPECT_TRUE(takes("=mlx5_0,mlx5_1:1", "mlx5_1", 1));
  EXPECT_FALSE(takes("=mlx5_0,mlx5_1:1", "mlx5_1", 2));
  EXPECT_FALSE(takes("^mlx5_1", "mlx5_1"));
  EXPECT_TRUE(takes("^=mlx5_1", "mlx5_10"));
  EXPECT_FALSE(takes("^docker,lo", "lo"));
}

TEST(PortsCheck, States) {
  node::Node node = WithPorts(2);
  const node::Node before = node;
  EXPECT_THAT(Said("ports", node), IsEmpty());
  node::Port* port = node.mutable_ports(1);
  port->set_state("1: DOWN");
  port->set_physical_state("3: Disabled");  // somebody's decision
  EXPECT_THAT(Said("ports", node), IsEmpty());
  EXPECT_THAT(Said("ports", node, &before), ElementsAre("failed ports: mlx5_1:1: 1: DOWN, 3: Disabled [4: ACTIVE]"));
  port->set_physical_state("2: Polling");
  EXPECT_THAT(Said("ports", node), ElementsAre("warning ports: mlx5_1:1: 1: DOWN, 2: Polling"));
  const node::Node unplugged = node;
  EXPECT_THAT(Said("ports", node, &unplugged), IsEmpty());
  port->set_state("2: INIT");
  port->set_physical_state("5: LinkUp");
  EXPECT_THAT(Said("ports", node), ElementsAre("failed ports: mlx5_1:1: 2: INIT, 5: LinkUp"));
}

TEST(PortsCheck, WhatNcclIsTold) {
  node::Node node = WithPorts(2);
  node.mutable_ports(1)->set_state("1: DOWN");
  node.mutable_ports(1)->set_physical_state("3: Disabled");
  (*node.mutable_settings())["NCCL_IB_HCA"] = "=mlx5_0,mlx5_1";
  EXPECT_THAT(Said("ports", node), ElementsAre("failed ports: mlx5_1:1: 1: DOWN, 3: Disabled, and NCCL_IB_HCA names it"));
  (*node.mutable_settings())["NCCL_IB_HCA"] = "^mlx5_1";
  EXPECT_THAT(Said("ports", node), IsEmpty());
  (*node.mutable_settings())["NCCL_IB_HCA"] = "mlx5_0,ibp12s0";
  EXPECT_THAT(Said("ports", node), ElementsAre("failed ports: NCCL_IB_HCA names ibp12s0, which is not there"));
}

TEST(PortsCheck, NoneIsActive) {
  node::Node node = WithPorts(1);
  node.mutable_ports(0)->set_state("1: DOWN");
  node.mutable_ports(0)->set_physical_state("3: Disabled");
  EXPECT_THAT(Said("ports", node), ElementsAre("failed ports: none of 1 RDMA port is active"));
  node.clear_gpus();
  EXPECT_THAT(Said("ports", node), IsEmpty());
}

TEST(PortsCheck, MixedRates) {
  node::Node node = WithPorts(3);
  const node::Node before = node;
  node.mutable_ports(1)->set_rate("100 Gb/sec (4X EDR)");
  EXPECT_THAT(Said("ports", node),
              ElementsAre("warning ports: mlx5_1:1: 100 Gb/sec (4X EDR), adapters of the same kind run at 400 Gb/s"));
  EXPECT_THAT(Said("ports", node, &before), ElementsAre("failed ports: mlx5_1:1: 100 Gb/sec (4X EDR) [400 Gb/sec (4X NDR)]"));
  // Adapters of another kind, for storage.
  node.mutable_ports(1)->set_board("MT_0000000223");
  EXPECT_THAT(Said("ports", node), IsEmpty());
  EXPECT_EQ("1x 100 Gb/s InfiniBand, 2x 400 Gb/s InfiniBand", SeenBy("ports", node));
}

TEST(PortsCheck, AnAdapterOfTheBaselineIsGone) {
  const node::Node before = WithPorts(2);
  EXPECT_THAT(Said("ports", WithPorts(1), &before), ElementsAre("failed ports: mlx5_1:1 is not there [4: ACTIVE]"));
  EXPECT_THAT(Said("ports", Gpus(2, 0), &before),
              ElementsAre("failed ports: mlx5_0:1 is not there [4: ACTIVE]", "failed ports: mlx5_1:1 is not there [4: ACTIVE]"));
}

constexpr char kLocal[] = "fe80:0000:0000:0000:0c42:a103:0000:0001", kIpv4[] = "0000:0000:0000:0000:0000:ffff:0a00:0001";

TEST(RoceGidCheck, TheChosenIndex) {
  node::Node node = Gpus(1, 0);
  node::Port* port = AddPort(&node, "mlx5_0", "400 Gb/sec (4X NDR)", "Ethernet");
  AddGid(port, 0, kLocal, "IB/RoCE v1");
  AddGid(port, 1, kLocal, "RoCE v2");
  AddGid(port, 2, kIpv4, "IB/RoCE v1");
  AddGid(port, 3, kIpv4, "RoCE v2");
  const auto with = [&](const char* index) {
    (*node.mutable_settings())["NCCL_IB_GID_INDEX"] = index;
    return Said("roce-gid", node);
  };
  EXPECT_THAT(with("3"), IsEmpty());
  EXPECT_THAT(with("-1"), IsEmpty());
  EXPECT_THAT(with("2"), ElementsAre("failed roce-gid: mlx5_0:1: GID 2 (NCCL_IB_GID_INDEX) is IB/RoCE v1, not RoCE v2"));
  EXPECT_THAT(with("5"), ElementsAre("failed roce-gid: mlx5_0:1: GID 5 (NCCL_IB_GID_INDEX) is empty"));
  const node::Report report = doctor::Judge(node, nullptr, {"roce-gid"}, {});
  EXPECT_EQ("NCCL_IB_GID_INDEX=3, or leave it unset (NCCL 2.21 and later)", report.checks(0).problems(0).fix());
  // Ports that NCCL would not use do not matter.
  (*node.mutable_settings())["NCCL_IB_HCA"] = "^mlx5_0";
  EXPECT_THAT(with("5"), IsEmpty());
  EXPECT_EQ(node::Report::not_present, StatusOf("roce-gid", node));
}

TEST(RoceGidCheck, WithoutAnIndex) {
  node::Node node = Gpus(1, 0);
  node::Port* port = AddPort(&node, "mlx5_0", "400 Gb/sec (4X NDR)", "Ethernet");
  EXPECT_THAT(Said("roce-gid", node), ElementsAre("failed roce-gid: mlx5_0:1: no GID of RoCE v2 (none at all)"));
  AddGid(port, 0, kLocal, "IB/RoCE v1");
  EXPECT_THAT(Said("roce-gid", node), ElementsAre("failed roce-gid: mlx5_0:1: no GID of RoCE v2"));
  AddGid(port, 1, kLocal, "RoCE v2");
  EXPECT_THAT(Said("roce-gid", node), ElementsAre("warning roce-gid: mlx5_0:1: no GID of RoCE v2 with an IPv4 address"));
  (*node.mutable_settings())["NCCL_IB_ADDR_FAMILY"] = "AF_INET6";
  EXPECT_THAT(Said("roce-gid", node), IsEmpty());
  port->set_link_layer("InfiniBand");
  EXPECT_EQ(node::Report::not_present, StatusOf("roce-gid", node));
}

TEST(GpudirectCheck, ModulesAndDmaBuf) {
  node::Node node = WithPorts(1);
  EXPECT_EQ(node::Report::could_not_tell, StatusOf("gpudirect", node));
  node.mutable_driver()->set_kernel_version("570.86.10");
  EXPECT_EQ(node::Report::warning, StatusOf("gpudirect", node));
  node.mutable_driver()->set_open_modules(true);
  EXPECT_EQ("by DMA-BUF (open kernel modules)", SeenBy("gpudirect", node));
  node::Node before = node;
  before.mutable_driver()->set_peermem(true);
  node.mutable_driver()->set_open_modules(false);
  EXPECT_EQ(node::Report::failed, doctor::Judge(node, &before, {"gpudirect"}, {}).status());
  (*node.mutable_settings())["NCCL_IB_DISABLE"] = "1";
  EXPECT_EQ(node::Report::not_present, StatusOf("gpudirect", node));
}

void AddInterface(node::Node* node, const std::string& name, const std::string& state, bool physical) {
  node::Interface* one = node->add_interfaces();
  one->set_name(name);
  one->set_index(node->interfaces_size());
  one->set_state(state);
  one->set_physical(physical);
}

TEST(InterfaceCheck, WhatNcclWouldTake) {
  node::Node node = Gpus(1, 0);
  EXPECT_EQ(node::Report::could_not_tell, StatusOf("interface", node));
  AddInterface(&node, "lo", "unknown", false);
  AddInterface(&node, "docker0", "up", false);
  EXPECT_EQ("no interface besides lo and docker is up: jobs on this node only", SeenBy("interface", node));
  AddInterface(&node, "eno1", "up", true);
  EXPECT_EQ("NCCL would take eno1", SeenBy("interface", node));
  AddInterface(&node, "ib0", "up", true);
  EXPECT_EQ("NCCL would take ib0", SeenBy("interface", node));
  EXPECT_THAT(Said("interface", node), IsEmpty());
}

TEST(InterfaceCheck, ABridgeInFront) {
  node::Node node = Gpus(1, 0);
  AddInterface(&node, "virbr0", "up", false);
  AddInterface(&node, "eno1", "up", true);
  EXPECT_THAT(Said("interface", node), ElementsAre("warning interface: NCCL would take virbr0 (virtual) before eno1"));
  // In a container the only one is virtual, too.
  node.mutable_interfaces()->RemoveLast();
  EXPECT_THAT(Said("interface", node), IsEmpty());
}

TEST(InterfaceCheck, WhatIsSet) {
  node::Node node = Gpus(1, 0);
  AddInterface(&node, "lo", "unknown", false);
  AddInterface(&node, "docker0", "up", false);
  AddInterface(&node, "eth0", "up", true);
  AddInterface(&node, "eth1", "down", true);
  const auto with = [&](const char* value) {
    (*node.mutable_settings())["NCCL_SOCKET_IFNAME"] = value;
    return Said("interface", node);
  };
  for (const char* good : {"eth0", "=eth0", "eth", "^lo,docker", "^docker0,lo,eth1"}) EXPECT_THAT(with(good), IsEmpty()) << good;
  EXPECT_THAT(with("ens5"), ElementsAre("failed interface: NCCL_SOCKET_IFNAME=ens5: there is no such interface"));
  EXPECT_THAT(with("=eth"), ElementsAre("failed interface: NCCL_SOCKET_IFNAME==eth: there is no such interface"));
  EXPECT_THAT(with("eth1"), ElementsAre("failed interface: NCCL_SOCKET_IFNAME=eth1: eth1 is down"));
  EXPECT_THAT(with("lo"), ElementsAre("warning interface: NCCL_SOCKET_IFNAME=lo takes lo"));
  EXPECT_THAT(with("^eth,lo,docker"),
              ElementsAre("failed interface: NCCL_SOCKET_IFNAME=^eth,lo,docker: there is no such interface"));
  node.mutable_settings()->clear();
  (*node.mutable_settings())["GLOO_SOCKET_IFNAME"] = "eth";
  EXPECT_THAT(Said("interface", node), ElementsAre("failed interface: GLOO_SOCKET_IFNAME=eth: there is no such interface"));
}

}  // namespace
}  // namespace ringscope::testing
