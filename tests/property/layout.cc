// Hosts, ranks and communicators.
#include <algorithm>
#include <numeric>

#include "tests/property/world.h"

namespace ringscope::property {
namespace {

// Ring order of one channel: the members host by host, as NCCL plans it, since crossing hosts is
// dear. Inside a host each channel enters and leaves at other GPUs, so that each uses another
// network adapter.
std::vector<int> RingOf(const World& w, const Comm& comm, int channel) {
  std::vector<std::vector<int>> by_host;
  std::vector<int> hosts;
  for (int i = 0; i < comm.n(); ++i) {
    const int host = w.host_of[static_cast<size_t>(comm.ranks[static_cast<size_t>(i)])];
    const auto at = std::find(hosts.begin(), hosts.end(), host);
    if (at == hosts.end()) {
      hosts.push_back(host);
      by_host.push_back({i});
    } else {
      by_host[static_cast<size_t>(at - hosts.begin())].push_back(i);
    }
  }
  std::vector<int> ring;
  for (auto& members : by_host) {
    std::rotate(members.begin(), members.begin() + channel % static_cast<int>(members.size()),
                members.end());
    ring.insert(ring.end(), members.begin(), members.end());
  }
  return ring;
}

void AddComm(Random* random, World* w, const std::string& name, const std::vector<int>& ranks,
             bool tree) {
  if (ranks.size() < 2) return;  // NCCL reports nothing of communicators of one rank
  Comm comm;
  comm.name = name;
  comm.ranks = ranks;
  comm.id = random->Next() | 1;
  for (int r : ranks) comm.over_network |= !w->SameHost(r, ranks[0]);
  comm.tree = tree && comm.over_network;
  comm.slices = random->Chance(0.75) ? 2 : 1;
  const int channels = comm.n() > 64 ? 1 : random->From(1, 4);
  for (int c = 0; c < channels; ++c) comm.rings.push_back(RingOf(*w, comm, c));
  w->comms.push_back(std::move(comm));
}

// Every group of `size` ranks that are `stride` apart.
void AddGroups(Random* random, World* w, const std::string& name, int size, int stride,
               bool tree = false) {
  for (int block = 0; block < w->ranks; block += size * stride) {
    for (int first = 0; first < stride; ++first) {
      std::vector<int> ranks;
      for (int i = 0; i < size; ++i) ranks.push_back(block + first + i * stride);
      AddComm(random, w, name, ranks, tree);
    }
  }
}

}  // namespace

void MakeLayout(Random* random, World* w) {
  static const std::vector<int> kPerHost = {1, 1, 2, 4, 8};
  w->layout = static_cast<Layout>(random->Below(5));
  const int per_host = random->Pick(kPerHost);
  // Small jobs are the usual ones here: what a large one shows is mostly the same, many times.
  int most = random->Chance(0.04) ? 256 : random->Chance(0.15) ? 64 : 16;
  int tp = 1, pp = 1;
  if (w->layout == Layout::kTpDp) tp = random->Chance(0.5) ? 2 : 4;
  if (w->layout == Layout::kPpTpDp) {
    tp = random->Chance(0.5) ? 1 : 2;
    pp = random->Chance(0.5) ? 2 : 4;
  }
  const int ep = w->layout == Layout::kEp ? (random->Chance(0.5) ? 2 : 4) : 1;
  const int block = std::max(tp * pp, ep);
  most = std::max(most, block);
  const int blocks = std::max(1, static_cast<int>(random->Spread(1, most / block + 0.99)));
  w->ranks = std::max(2, block * blocks);
  if (block == 1) w->ranks = std::max(2, static_cast<int>(random->Spread(2, most + 0.99)));
  for (int r = 0; r < w->ranks; ++r) w->host_of.push_back(r / per_host);
  w->hosts = w->host_of.back() + 1;
  std::vector<int> all(static_cast<size_t>(w->ranks));
  std::iota(all.begin(), all.end(), 0);
  const bool tree = false;
  AddComm(random, w, "world", all, tree && w->layout == Layout::kDp);
  switch (w->layout) {
    case Layout::kDp:
    case Layout::kFsdp:
      if (random->Chance(0.3)) AddComm(random, w, "extra", all, false);
      break;
    case Layout::kTpDp:
      AddGroups(random, w, "tp", tp, 1);
      AddGroups(random, w, "dp", w->ranks / tp, tp);
      break;
    case Layout::kPpTpDp:
      AddGroups(random, w, "tp", tp, 1);
      AddGroups(random, w, "pp", pp, w->ranks / pp);
      if (w->ranks / pp / tp > 1) AddGroups(random, w, "dp", w->ranks / pp / tp, tp);
      break;
    case Layout::kEp:
      AddGroups(random, w, "ep", ep, 1);
      break;
  }
}

}  // namespace ringscope::property
