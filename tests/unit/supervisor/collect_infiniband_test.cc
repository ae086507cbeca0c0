#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "supervisor/collect.h"
#include "tests/unit/supervisor/collecting.h"

namespace ringscope::supervisor {
namespace {

using ::testing::HasSubstr;
using testing::Named;
using ::testing::Not;
using testing::TempDir;
using testing::TextOf;

TEST(CollectInfiniBand, PortsAndCounters) {
  TempDir dir;
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  dir.Write(port + "state", "1: DOWN\n");
  dir.Write(port + "phys_state", "2: Polling\n");
  dir.Write(port + "rate", "400 Gb/sec (4X NDR)\n");
  dir.Write(port + "link_layer", "InfiniBand\n");
  dir.Write(port + "gids/0", "fe80:0000:0000:0000:0c42:a103:0000:0001\n");
  dir.Write(port + "counters/link_downed", "3\n");
  dir.Write(port + "counters/unreadable", "N/A (no PMA)\n");
  dir.Write(port + "hw_counters/out_of_sequence", "1204\n");
  dir.Write("sys/class/infiniband/mlx5_0/device/net/ib0/x", "");
  dir.Write("sys/class/infiniband/mlx5_10/ports/1/state", "4: ACTIVE\n");
  dir.Write("sys/class/net/ib0/carrier_down_count", "2\n");
  const Collected got = Named(CollectEvidence(testing::OptionsOf(dir)), "infiniband");
  EXPECT_EQ("", got.why_not);
  const std::string text = TextOf(got.file);
  EXPECT_THAT(text,
              HasSubstr("Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:0c42:a103:0000:0001\n"
                        "\tstate:\t\t 1: DOWN\n\tphys state:\t 2: Polling\n\trate:\t\t 400 Gb/sec (4X NDR)\n"
                        "\tlink_layer:\t InfiniBand\n\tnetdev:\t\t ib0\n"));
  EXPECT_THAT(text, HasSubstr("Infiniband device 'mlx5_10' port 1 status:\n\tstate:\t\t 4: ACTIVE\n"));
  EXPECT_THAT(text, HasSubstr("\n/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:3\n"
                              "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence:1204\n"
                              "/sys/class/net/ib0/carrier_down_count:2\n"));
  EXPECT_THAT(text, Not(HasSubstr("unreadable")));
}

TEST(CollectInfiniBand, NoAdapter) {
  TempDir dir;
  const Collected got = Named(CollectEvidence(testing::OptionsOf(dir)), "infiniband");
  EXPECT_EQ("no RDMA adapter is visible here (/sys/class/infiniband)", got.why_not);
  EXPECT_EQ("", got.file);
}

}  // namespace
}  // namespace ringscope::supervisor
