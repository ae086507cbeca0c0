// How the NCCL stand-in joins the GPUs of machines: plan MACHINE_FILE..., one file a host, a rank on every GPU. Prints one JSON
// object: ring, channels, and the transport of every pair of ranks.
#include "tests/sim/nccl/plan.h"

#include <stdio.h>
#include <string.h>

using namespace ringscope::sim;

namespace {

const char* Name(Transport t) {
  switch (t) {
    case Transport::kDirect:
      return "direct";
    case Transport::kNvlink:
      return "nvlink";
    case Transport::kIndirect:
      return "indirect";
    case Transport::kPcie:
      return "pcie";
    case Transport::kShm:
      return "shm";
    default:
      return "net";
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Peer> peers;
  for (int host = 1; host < argc; ++host) {
    std::string error;
    const Machine machine = ReadMachine(argv[host], "", &error);
    if (!error.empty()) {
      fprintf(stderr, "plan: %s\n", error.c_str());
      return 65;
    }
    for (size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
      Peer peer;
      peer.rank = static_cast<int32_t>(peers.size());
      peer.device = static_cast<int32_t>(gpu);
      peer.pid = peer.rank;
      snprintf(peer.host, sizeof(peer.host), "host%d", host);
      Describe(machine, &peer);
      peers.push_back(peer);
    }
  }
  if (peers.empty()) {
    fprintf(stderr, "usage: plan MACHINE_FILE...\n");
    return 64;
  }
  const Plan plan = MakePlan(peers);
  printf("{\"channels\": %d, \"refused\": [%d, %d], \"type\": \"%s\", \"bandwidth\": %g, \"ring\": [", plan.channels,
         plan.refused_a, plan.refused_b, plan.local[0].type.c_str(), plan.local[0].bandwidth);
  for (size_t i = 0; i < plan.ring.size(); ++i) printf("%s%d", i == 0 ? "" : ", ", plan.ring[i]);
  printf("], \"transports\": {");
  for (const Peer& a : peers) {
    for (const Peer& b : peers) {
      if (a.rank != b.rank)
        printf("%s\"%d-%d\": \"%s\"", a.rank + b.rank == 1 && a.rank == 0 ? "" : ", ", a.rank, b.rank,
               Name(Between(peers, a.rank, b.rank)));
    }
  }
  printf("}}\n");
  return 0;
}
