// The readers of NIC tools: ports, counters, GIDs, interfaces, adapters' settings, filesystems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

model::Evidence Read(std::initializer_list<std::pair<const char*, const char*>> files) {
  model::Evidence evidence;
  for (const auto& [path, text] : files) EXPECT_TRUE(ingest::ReadTextBytes(path, text, &evidence).ok());
  return evidence;
}

TEST(RdmaPorts, Ibstat) {
  const model::Evidence e = Read({{"ibstat.txt",
                                   "root@node7:~# ibstat\n"
                                   "CA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: "
                                   "Down\n\t\tPhysical state: Polling\n\t\tRate: 10\n"
                                   "\t\tBase lid: 65535\n\t\tLink layer: InfiniBand\n"
                                   "CA 'mlx5_1'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 200\n"
                                   "Traceback (most recent call last):\nState: Down\n"}});
  ASSERT_EQ(e.network.ports.size(), 2u);
  EXPECT_EQ(e.network.ports[0].device, "mlx5_0");
  EXPECT_TRUE(e.network.ports[0].Down());
  EXPECT_EQ(e.network.ports[0].by.host, "node7");
  EXPECT_EQ(e.network.ports[0].link_layer, "InfiniBand");
  EXPECT_FALSE(e.network.ports[1].Down());  // what stands behind the end of the output is not its
  EXPECT_EQ(e.network.ports[1].rate, "200");
}

TEST(RdmaPorts, IbstatusDevinfoRdmaLinkAndDigests) {
  const model::Evidence e =
      Read({{"a.txt",
             "Infiniband device 'mlx5_bond_0' port 1 status:\n\tdefault gid:\t fe80::1\n\tstate:\t\t 4: ACTIVE\n\tphys "
             "state:\t 5: LinkUp\n"
             "\trate:\t\t 25 Gb/sec (1X EDR)\n\tlink_layer:\t Ethernet\n"
             "\n"
             "hca_id:\tmlx5_2\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE "
             "(4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n"
             "\t\tport:\t2\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n"
             "link mlx5_3/1 state DOWN physical_state DISABLED netdev ens3\n"
             "rn-a: mlx5_0 port 1 state PORT_ACTIVE max_mtu 4096 (5) active_mtu 4096 (5) link_layer Ethernet\n"
             "rn-b: mlx5_0 port 1 state PORT_ACTIVE max_mtu 4096 (5) active_mtu 1024 (3) link_layer Ethernet\n"
             "mlx5_9 port 1 ==> ens9 (Down)\n"}});
  ASSERT_EQ(e.network.ports.size(), 7u);
  EXPECT_EQ(e.network.ports[0].rate, "25 Gb/sec (1X EDR)");
  EXPECT_EQ(e.network.ports[1].active_mtu, 1024);
  EXPECT_EQ(e.network.ports[2].port, 2);
  EXPECT_TRUE(e.network.ports[2].Down());
  EXPECT_TRUE(e.network.ports[3].Down());
  EXPECT_EQ(e.network.ports[3].interface, "ens3");
  EXPECT_EQ(e.network.ports[4].by.host, "rn-a");
  EXPECT_EQ(e.network.ports[4].active_mtu, 4096);
  EXPECT_EQ(e.network.ports[5].active_mtu, 1024);
  EXPECT_EQ(e.network.ports[5].mtu_where.line, 18u);
  EXPECT_TRUE(e.network.ports[6].Down());
}

TEST(NetworkCounters, TwoSnapshotsOfAFileEach) {
  const model::Evidence e = Read({{"counters.after.txt",
                                   "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:7\n"
                                   "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence:10\n"},
                                  {"counters.before.txt",
                                   "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:5\n"
                                   "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence:90\n"}});
  const auto changes = model::CounterChanges(e);
  ASSERT_EQ(changes.size(), 1u);  // the other one fell: a reset
  EXPECT_EQ(changes[0].delta, 2u);
  EXPECT_EQ(changes[0].before->value, 5u);
}

TEST(NetworkCounters, NaturalOrderOfNames) {
  const model::Evidence e = Read({{"snap10.txt", "mlx5_0/ports/1/counters/symbol_error 30\n"},
                                  {"snap9.txt", "mlx5_0/ports/1/counters/symbol_error 10\n"}});
  const auto changes = model::CounterChanges(e);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].delta, 20u);
}

TEST(NetworkCounters, ToolsAndDigests) {
  const model::Evidence e =
      Read({{"c.txt",
             "# Port extended counters: Lid 12 port 1 (CapMask: "
             "0x5300)\nPortSelect:......................1\nCounterSelect:...................0x0000\n"
             "LinkDownedCounter:...............3\nSymbolErrorCounter:..............65535\n"
             "Errors for \"sw7\"\n   GUID 0xb8599f0300fc6de4 port 12: [SymbolErrorCounter == 12] [LinkDownedCounter == 9]\n"
             "root@n4:~# ethtool -S ens5\nNIC statistics:\n     rx_prio3_pause: 44\n     [0]: rx_discards_phy: 2\nsomething "
             "else\n     rx_prio4_pause: 1\n"
             "roce-2 mlx5_2 hw_counters: local_ack_timeout_err 812  packet_seq_err 1204\n"}});
  std::map<std::string, uint64_t> values;
  for (const auto& c : e.network.counters) values[c.by.host + "/" + c.device + "/" + c.name] = c.value;
  EXPECT_EQ(values["/lid 12/link_downed"], 3u);
  EXPECT_EQ(values["/lid 12/symbol_error"], 65535u);
  EXPECT_EQ(values["/sw7/link_downed"], 9u);
  EXPECT_EQ(values["n4/ens5/rx_prio3_pause"], 44u);
  EXPECT_EQ(values["n4/ens5/rx_discards_phy"], 2u);
  EXPECT_EQ(values.count("n4/ens5/rx_prio4_pause"), 0u);  // the table had ended
  EXPECT_EQ(values["roce-2/mlx5_2/packet_seq_err"], 1204u);
}

TEST(GidTables, RowsWithAndWithoutAddresses) {
  const model::Evidence e = Read({{"show_gids.txt",
                                   "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\n"
                                   "mlx5_0\t1\t0\tfe80:0000:0000:0000:0e42:a1ff:fe00:0001\t\t\tv1\teth0\n"
                                   "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a4d:0814\t10.77.8.20  \tv2\teth0\n"
                                   "n_gids_found=2\n"
                                   "/sys/class/infiniband/mlx5_1/ports/1/gids/5:0000:0000:0000:0000:0000:0000:0000:0000\n"}});
  ASSERT_EQ(e.network.gids.size(), 2u);
  EXPECT_TRUE(e.network.gids[0].LinkLocal());
  EXPECT_EQ(e.network.gids[0].version, 1);
  EXPECT_EQ(e.network.gids[1].index, 3);
  EXPECT_EQ(e.network.gids[1].ipv4, "10.77.8.20");
  EXPECT_EQ(e.network.gids[1].interface, "eth0");
}

TEST(Interfaces, IpAndIfconfig) {
  const model::Evidence e =
      Read({{"ip.node3.txt",
             "2: eth0@if7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000\n    "
             "link/ether 02:42:ac:11:00:02 brd ff:ff:ff:ff:ff:ff\n"
             "    inet 10.0.0.3/24 brd 10.0.0.255 scope global eth0\n       valid_lft forever preferred_lft forever\n    inet6 "
             "fe80::1/64 scope link\n"
             "3: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 4092 state DOWN\n"
             "docker0: flags=4099<UP,BROADCAST,MULTICAST>  mtu 1500\n        inet 172.17.0.1  netmask 255.255.0.0\n"
             "eth9      Link encap:Ethernet  HWaddr 00:11:22:33:44:55\n          inet addr:192.168.1.7  Bcast:192.168.1.255  "
             "Mask:255.255.255.0\n          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n"}});
  ASSERT_EQ(e.network.interfaces.size(), 4u);
  EXPECT_EQ(e.network.interfaces[0].name, "eth0");
  EXPECT_EQ(e.network.interfaces[0].mtu, 9000);
  EXPECT_THAT(e.network.interfaces[0].addresses, testing::ElementsAre("10.0.0.3", "fe80::1"));
  EXPECT_FALSE(e.network.interfaces[1].carrier);
  EXPECT_FALSE(e.network.interfaces[2].carrier);
  EXPECT_THAT(e.network.interfaces[3].addresses, testing::ElementsAre("192.168.1.7"));
  EXPECT_EQ(e.network.interfaces[3].mtu, 1500);
}

TEST(Lspci, WholeSearchedAndCounted) {
  const model::Evidence e = Read(
      {{"lspci.txt",
        "00:03.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] GPP Bridge\n\t\tLnkSta:\tSpeed 16GT/s (ok), Width x16 (ok)\n"
        "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
        "0000:c1:00.0 Infiniband controller: Mellanox Technologies MT28908\n\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x16\n"
        "end\n     11 \t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"}});
  ASSERT_EQ(e.network.pci.size(), 3u);
  EXPECT_TRUE(e.network.pci[0].acs_redirects && e.network.pci[0].Bridge());
  EXPECT_EQ(model::BusIdText(*e.network.pci[0].bus_id), "0000:00:03.1");
  EXPECT_TRUE(e.network.pci[1].link_downgraded);
  EXPECT_FALSE(e.network.pci[1].has_acs);
  EXPECT_EQ(e.network.pci[2].count, 11u);
}

TEST(MlxConfigAndDf, Values) {
  const model::Evidence e = Read({{"x.txt",
                                   "         PCI_WR_ORDERING                             force_relax(1)\n*        SRIOV_EN   "
                                   "False(0)   True(1)   False(0)\n"
                                   "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   64M     0 100% "
                                   "/dev/shm\ntmpfs           126G  8.0K  126G   1% /run\nnothing\n"}});
  ASSERT_EQ(e.network.adapter_settings.size(), 2u);
  EXPECT_EQ(e.network.adapter_settings[0].value, "force_relax(1)");
  EXPECT_EQ(e.network.adapter_settings[1].value, "True(1)");
  ASSERT_EQ(e.network.filesystems.size(), 2u);
  EXPECT_EQ(e.network.filesystems[0].size, uint64_t{64} << 20);
  EXPECT_EQ(e.network.filesystems[0].available, 0u);
}

TEST(NcclNetwork, AdaptersAddressesPairs) {
  const model::Evidence e =
      Read({{"nccl.log",
             "n1:5:6 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB ib0:10.77.31.3<0>\n"
             "n1:5:6 [0] NCCL INFO Using network IBext_v8\n"
             "n2:5:6 [0] NCCL INFO Bootstrap : Using [0]eth0:10.77.8.20<0>\n"
             "n1:5:6 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 1084 mtu 5 GID 3 (0/CE01C1AFFFF0000) "
             "fifoRkey=0x1fef00 fifoLkey=0x1fef00\n"
             "n1:5:6 [0] NCCL INFO NET/IB: Dev 1 Port 1 qpn 9 mtu 3 GID 0 (80FE/1000FEFFA1420E)\n"
             "n1:5:6 [0] NCCL INFO NET/IB: Dev 0 Port 1 qpn 12 mtu 5 LID 7\n"}});
  ASSERT_EQ(e.network.adapters.size(), 2u);
  EXPECT_TRUE(e.network.adapters[1].roce);
  ASSERT_EQ(e.network.choices.size(), 1u);
  EXPECT_EQ(e.network.choices[0].network, "IBext_v8");
  EXPECT_EQ(model::HostOfAddress(e, "10.77.31.3"), "n1");
  EXPECT_EQ(model::HostOfAddress(e, "::ffff:10.77.8.20"), "n2");
  EXPECT_EQ(model::HostOfAddress(e, "10.1.1.1"), "");
  ASSERT_EQ(e.network.queue_pairs.size(), 3u);
  EXPECT_FALSE(e.network.queue_pairs[0].link_local);
  EXPECT_TRUE(e.network.queue_pairs[1].link_local);
  EXPECT_EQ(e.network.queue_pairs[2].lid, 7);
}

// Nothing of it is what it looks like at first; and numbers beyond all bounds.
TEST(NetworkReaders, Hostile) {
  const model::Evidence e =
      Read({{"x.txt",
             "CA '\nCA ''\nhca_id:\nPort 99999999999999999999:\nState: Active\n"
             "Infiniband device 'a' port 999999999999 status:\nhca_id: b\nactive_mtu: 99999999999999999999999\n"
             "/sys/class/infiniband/x/ports/1/counters/y:99999999999999999999999\nNIC statistics:\n: : :\n     a: "
             "99999999999999999999999\n"
             "mlx5_0 1 99999 ::::::::\nFilesystem Mounted on\na b c d e\nFilesystem 1K-blocks Used Available Use% Mounted "
             "on\nx 99999999999999999 1 1 9% /\n"
             "eth0: <UP> mtu 99999999999999999999\n=== ===\n#\n@ $\nUsing network \nDev 99999999999 Port 1 qpn 1 mtu 9\n"}});
  for (const auto& q : e.network.queue_pairs) EXPECT_EQ(model::MtuOfCode(q.mtu_code), 0);
  EXPECT_EQ(model::MtuOfCode(-1), 0);
}

}  // namespace
}  // namespace ringscope
