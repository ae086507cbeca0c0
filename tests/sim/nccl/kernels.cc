// What runs on the "GPU": rings over the channels of a communicator, messages to and from many peers at once.
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "tests/sim/nccl/communicator.h"

namespace ringscope::sim {
namespace {

// One message over one fifo, slice by slice.
struct Sending {
  FifoPtr fifo;
  const char* data = nullptr;
  size_t bytes = 0, at = 0;
  bool Done() const { return at == bytes; }
  bool Step() {
    if (Done()) return false;
    const size_t slice = std::min(kSliceBytes, bytes - at);
    if (!fifo->TryPut(data + at, slice)) return false;
    at += slice;
    return true;
  }
};
struct Receiving {
  FifoPtr fifo;
  size_t bytes = 0, at = 0;
  std::function<void(size_t offset, const char* data, size_t size)> take;
  bool Done() const { return at >= bytes; }
  bool Step() {
    if (Done()) return false;
    return fifo->TryTake([&](const char* data, size_t size) {
      // A sender with another count: what does not fit is lost, as in NCCL's buffers.
      const size_t fits = std::min(size, bytes - at);
      take(at, data, fits);
      at += size;
    });
  }
};

class Ring {
 public:
  Ring(ncclComm* comm, int32_t tag) : comm_(comm) {
    out_ = comm->Out(comm->plan.Next(comm->rank), tag);
    in_ = comm->In(comm->plan.Before(comm->rank), tag);
  }
  bool ok() const { return out_ != nullptr; }

  // Sends one part to the next rank while another comes from the one before.
  bool Exchange(const char* give, size_t give_bytes, size_t get_bytes, std::function<void(size_t, const char*, size_t)> take) {
    Sending sending{out_, give, give_bytes};
    Receiving receiving{in_, get_bytes, 0, std::move(take)};
    return comm_->Wait([&] {
      while (sending.Step() || receiving.Step()) {
      }
      return sending.Done() && receiving.Done();
    });
  }
  // Passes on what comes, changed by `change`; the first only sends, the last only receives.
  bool Pass(bool first, bool last, size_t bytes, const std::function<void(size_t, char*, size_t)>& change) {
    size_t at = 0;
    std::vector<char> slice;
    while (at < bytes) {
      if (first) {
        slice.assign(std::min(kSliceBytes, bytes - at), 0);
      } else if (!comm_->Wait(
                     [&] { return in_->TryTake([&](const char* data, size_t size) { slice.assign(data, data + size); }); })) {
        return false;
      }
      const size_t fits = std::min(slice.size(), bytes - at);
      change(at, slice.data(), fits);
      if (!last && !comm_->Wait([&] { return out_->TryPut(slice.data(), slice.size()); })) return false;
      at += slice.size();
    }
    return true;
  }

 private:
  ncclComm* comm_;
  FifoPtr out_, in_;
};

// Part i of n of `count` elements.
struct Part {
  size_t from, size;  // elements
};
Part PartOf(size_t count, int i, int n) {
  const int k = ((i % n) + n) % n;
  const size_t from = count / static_cast<size_t>(n) * static_cast<size_t>(k) +
                      std::min<size_t>(static_cast<size_t>(k), count % static_cast<size_t>(n));
  return {from, count / static_cast<size_t>(n) + (static_cast<size_t>(k) < count % static_cast<size_t>(n) ? 1 : 0)};
}

// The part of whoever is `further` places behind this rank in the ring: parts belong to ranks, wherever these are in it.
Part PartAt(const ncclComm* comm, size_t count, int further) {
  const int n = comm->n, place = ((comm->plan.at[static_cast<size_t>(comm->rank)] + further) % n + n) % n;
  return PartOf(count, comm->plan.ring[static_cast<size_t>(place)], n);
}

// Reduces the parts around the ring: afterwards this rank has the whole of the part of who is `shift` places further.
bool ReduceParts(ncclComm* comm, Ring* ring, const Task& t, char* data, size_t count, int shift) {
  const size_t size = SizeOf(t.type);
  for (int step = 0; step < comm->n - 1; ++step) {
    const Part give = PartAt(comm, count, shift - 1 - step), get = PartAt(comm, count, shift - 2 - step);
    char* const into = data + get.from * size;
    if (!ring->Exchange(data + give.from * size, give.size * size, get.size * size,
                        [&](size_t offset, const char* from, size_t bytes) {
                          Reduce(t.reduction, t.type, into + offset, from, bytes / size);
                        }))
      return false;
  }
  return true;
}

// Every rank has the part of who is `shift` places further, and gets all.
bool GatherParts(ncclComm* comm, Ring* ring, char* data, size_t count, size_t size, int shift) {
  for (int step = 0; step < comm->n - 1; ++step) {
    const Part give = PartAt(comm, count, shift - step), get = PartAt(comm, count, shift - 1 - step);
    char* const into = data + get.from * size;
    if (!ring->Exchange(data + give.from * size, give.size * size, get.size * size,
                        [&](size_t offset, const char* from, size_t bytes) { memcpy(into + offset, from, bytes); }))
      return false;
  }
  return true;
}

void Copy(void* to, const void* from, size_t bytes) {
  if (to != from && bytes != 0) memmove(to, from, bytes);
}

bool AllReduce(ncclComm* comm, Ring* ring, const Task& t) {
  char* const data = static_cast<char*>(t.receive);
  Copy(data, t.send, t.count * SizeOf(t.type));
  Before(t.reduction, t.type, data, t.count);
  if (comm->n > 1 &&
      (!ReduceParts(comm, ring, t, data, t.count, 1) || !GatherParts(comm, ring, data, t.count, SizeOf(t.type), 1)))
    return false;
  After(t.reduction, t.type, data, t.count);
  return true;
}

// Sums go up the tree, slice by slice; the whole comes down again.
bool TreeAllReduce(ncclComm* comm, const Task& t) {
  const Plan::Branch& branch = comm->plan.tree[static_cast<size_t>(comm->rank)];
  const size_t size = SizeOf(t.type), bytes = t.count * size;
  char* const data = static_cast<char*>(t.receive);
  Copy(data, t.send, bytes);
  Before(t.reduction, t.type, data, t.count);
  const auto take = [&](int from, const std::function<void(char*, const char*, size_t)>& change, size_t at) {
    const FifoPtr in = comm->In(from, TagOf(t));
    return comm->Wait(
        [&] { return in->TryTake([&](const char* slice, size_t n) { change(data + at, slice, std::min(n, bytes - at)); }); });
  };
  const auto give = [&](int to, size_t at) {
    const FifoPtr out = comm->Out(to, TagOf(t));
    return out != nullptr && comm->Wait([&] { return out->TryPut(data + at, std::min(kSliceBytes, bytes - at)); });
  };
  for (size_t at = 0; at < bytes; at += kSliceBytes) {
    for (const int child : branch.children) {
      if (!take(
              child, [&](char* into, const char* from, size_t n) { Reduce(t.reduction, t.type, into, from, n / size); }, at))
        return false;
    }
    if (branch.parent >= 0 && !give(branch.parent, at)) return false;
  }
  for (size_t at = 0; at < bytes; at += kSliceBytes) {
    if (branch.parent >= 0 && !take(
                                  branch.parent, [](char* into, const char* from, size_t n) { memcpy(into, from, n); }, at))
      return false;
    for (const int child : branch.children) {
      if (!give(child, at)) return false;
    }
  }
  After(t.reduction, t.type, data, t.count);
  return true;
}

bool ReduceScatter(ncclComm* comm, Ring* ring, const Task& t) {
  const size_t size = SizeOf(t.type), all = t.count * static_cast<size_t>(comm->n);
  std::vector<char> work(all * size);
  Copy(work.data(), t.send, work.size());
  Before(t.reduction, t.type, work.data(), all);
  if (comm->n > 1 && !ReduceParts(comm, ring, t, work.data(), all, 0)) return false;
  char* const own = work.data() + t.count * size * static_cast<size_t>(comm->rank);
  After(t.reduction, t.type, own, t.count);
  Copy(t.receive, own, t.count * size);
  return true;
}

bool AllGather(ncclComm* comm, Ring* ring, const Task& t) {
  const size_t size = SizeOf(t.type);
  char* const data = static_cast<char*>(t.receive);
  Copy(data + t.count * size * static_cast<size_t>(comm->rank), t.send, t.count * size);
  return comm->n == 1 || GatherParts(comm, ring, data, t.count * static_cast<size_t>(comm->n), size, 0);
}

bool Broadcast(ncclComm* comm, Ring* ring, const Task& t) {
  const size_t bytes = t.count * SizeOf(t.type);
  const bool root = comm->rank == t.root;
  if (root) Copy(t.receive, t.send, bytes);
  if (comm->n == 1) return true;
  return ring->Pass(root, comm->plan.Next(comm->rank) == t.root, bytes, [&](size_t offset, char* slice, size_t size) {
    if (root) {
      memcpy(slice, static_cast<const char*>(t.send) + offset, size);
    } else {
      memcpy(static_cast<char*>(t.receive) + offset, slice, size);
    }
  });
}

bool ReduceToRoot(ncclComm* comm, Ring* ring, const Task& t) {
  const size_t size = SizeOf(t.type), bytes = t.count * size;
  std::vector<char> own(bytes);
  Copy(own.data(), t.send, bytes);
  Before(t.reduction, t.type, own.data(), t.count);
  const bool root = comm->rank == t.root, first = comm->plan.Next(t.root) == comm->rank;
  if (comm->n > 1 && !ring->Pass(first, root, bytes, [&](size_t offset, char* slice, size_t n) {
        if (first) {
          memcpy(slice, own.data() + offset, n);
        } else {
          Reduce(t.reduction, t.type, own.data() + offset, slice, n / size);
          memcpy(slice, own.data() + offset, n);
        }
      }))
    return false;
  if (!root) return true;
  After(t.reduction, t.type, own.data(), t.count);
  Copy(t.receive, own.data(), bytes);
  return true;
}

// Messages of one direction to one peer keep their order; all others move side by side.
bool Messages(ncclComm* comm, const Task& t) {
  std::map<int, std::vector<Sending>> sends;
  std::map<int, std::vector<Receiving>> receives;
  std::vector<const Task::Message*> to_self, from_self;
  for (const Task::Message& m : t.messages) {
    if (m.bytes == 0) continue;
    if (m.peer == comm->rank) {
      (m.send ? to_self : from_self).push_back(&m);
    } else if (m.send) {
      const FifoPtr out = comm->Out(m.peer, kMessages);
      if (out == nullptr) return false;
      sends[m.peer].push_back({out, m.data, m.bytes});
    } else {
      char* const into = m.data;
      receives[m.peer].push_back({comm->In(m.peer, kMessages), m.bytes, 0,
                                  [into](size_t offset, const char* data, size_t size) { memcpy(into + offset, data, size); }});
    }
  }
  for (size_t i = 0; i < std::min(to_self.size(), from_self.size()); ++i)
    Copy(from_self[i]->data, to_self[i]->data, std::min(to_self[i]->bytes, from_self[i]->bytes));
  const auto advance = [](auto* of_peer) {  // true: all of them are done
    bool done = true;
    for (auto& [peer, list] : *of_peer) {
      for (auto& one : list) {
        while (one.Step()) {
        }
        if (one.Done()) continue;
        done = false;
        break;
      }
    }
    return done;
  };
  return comm->Wait([&] {
    const bool sent = advance(&sends), received = advance(&receives);
    return sent && received;
  });
}

}  // namespace

int SlicesOf(size_t bytes) { return static_cast<int>((bytes + kSliceBytes - 1) / kSliceBytes); }

Task::Algorithm ChooseAlgorithm(const ncclComm* comm, const Task& t) {
  if (t.kind != Task::kAllReduce || comm->n < 2) return Task::kRing;
  if (comm->nvls && t.reduction.op == ncclSum) return Task::kNvls;
  constexpr int kMany = 32;
  constexpr size_t kSmall = size_t{256} << 10;
  const char* asked = getenv("NCCL_ALGO");
  const bool tree =
      asked != nullptr ? strcasestr(asked, "tree") != nullptr : comm->n >= kMany && t.count * SizeOf(t.type) <= kSmall;
  return tree ? Task::kTree : Task::kRing;
}

std::vector<EdgeSteps> StepsOf(const ncclComm* comm, const Task& t) {
  if (comm->n == 1 || t.kind == Task::kMessages) return {};
  const size_t size = SizeOf(t.type);
  std::vector<EdgeSteps> edges;
  if (t.algorithm == Task::kTree) {
    const Plan::Branch& branch = comm->plan.tree[static_cast<size_t>(comm->rank)];
    const int steps = SlicesOf(t.count * size);
    for (const int child : branch.children) edges.push_back({child, false, steps});
    if (branch.parent >= 0) edges.push_back({branch.parent, true, steps});
    for (const int child : branch.children) edges.push_back({child, true, steps});
    if (branch.parent >= 0) edges.push_back({branch.parent, false, steps});
    return edges;
  }
  int sends = 0, receives = 0;
  if (t.kind == Task::kBroadcast || t.kind == Task::kReduce) {
    const int first = t.kind == Task::kBroadcast ? t.root : comm->plan.Next(t.root), last = comm->plan.Before(first);
    sends = comm->rank == last ? 0 : SlicesOf(t.count * size);
    receives = comm->rank == first ? 0 : SlicesOf(t.count * size);
  }
  const auto around = [&](size_t count, int shift) {
    for (int step = 0; step < comm->n - 1; ++step) {
      sends += SlicesOf(PartAt(comm, count, shift - step).size * size);
      receives += SlicesOf(PartAt(comm, count, shift - 1 - step).size * size);
    }
  };
  const size_t all = t.count * static_cast<size_t>(comm->n);
  if (t.kind == Task::kAllReduce) {
    around(t.count, 0);  // reducing
    around(t.count, 1);  // gathering
  } else if (t.kind == Task::kReduceScatter || t.kind == Task::kAllGather) {
    around(all, t.kind == Task::kReduceScatter ? -1 : 0);
  }
  return {{comm->plan.Before(comm->rank), false, receives}, {comm->plan.Next(comm->rank), true, sends}};
}

bool RunTask(ncclComm* comm, const Task& t) {
  if (t.kind == Task::kMessages) return Messages(comm, t);
  std::unique_ptr<Ring> ring;
  if (t.algorithm == Task::kTree) return TreeAllReduce(comm, t);
  if (comm->n > 1) {
    ring = std::make_unique<Ring>(comm, TagOf(t));
    if (!ring->ok()) return false;
  }
  switch (t.kind) {
    case Task::kAllReduce:
      return AllReduce(comm, ring.get(), t);
    case Task::kReduce:
      return ReduceToRoot(comm, ring.get(), t);
    case Task::kBroadcast:
      return Broadcast(comm, ring.get(), t);
    case Task::kAllGather:
      return AllGather(comm, ring.get(), t);
    case Task::kReduceScatter:
      return ReduceScatter(comm, ring.get(), t);
    default:
      return false;
  }
}

}  // namespace ringscope::sim
