// Readers beside writers that reuse rows as fast as they can, on the real atomics: every entry that a reader accepts must be of
// one piece, its fields being a function of its number.
//
//   live_reader READS
//
// Operations: an API thread opens and launches, a proxy thread runs kernels (with late second stops), over a ring of 4 rows.
// Edges: two progress threads share 8 rows. Communicators: opened and closed over 2 rows. Chain: position and hash.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "recorder/flight/chain.h"
#include "recorder/flight/op_view.h"
#include "recorder/hot_comm.h"
#include "recorder/hot_edge.h"
#include "recorder/hot_op.h"

namespace ringscope::manners {
namespace {

using flight::CommRow;
using flight::EdgeRow;
using flight::Load;
using flight::OpRow;

// Any number from another one (SplitMix64).
uint64_t Derive(uint64_t seed, uint64_t what) {
  uint64_t h = seed * 0x9e3779b97f4a7c15u + what * 0xd1342543de82ef95u;
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
  h = (h ^ h >> 27) * 0x94d049bb133111ebu;
  return h ^ h >> 31;
}

// Tables of the sizes that a test wants, aligned as in the file.
struct Tables {
  explicit Tables(uint32_t comm_rows, uint32_t op_rows)
      : memory(std::make_unique<Memory>()), image{&memory->header, memory->counters, nullptr,
                                                  memory->threads, memory->comms,    memory->ops,
                                                  memory->edges,   nullptr,          77,
                                                  comm_rows,       op_rows,          7,
                                                  nullptr,         nullptr} {
    std::memset(static_cast<void*>(memory.get()), 0, sizeof(Memory));
    memory->header.pid = 4711;
  }
  // A communicator whose ring has `rows` rows.
  uint64_t Comm(uint32_t index, uint64_t rows) {
    CommRow& row = memory->comms[index];
    row.ranks = uint64_t{2} << 32;
    row.flags = flight::kCommApiEvents | flight::kCommCompletionVisible;
    row.ring = (rows - 1) << 32;
    row.stamp = 1 | uint64_t{5} << 32 | uint64_t{1} << 63;
    return flight::MakeHandle(77, flight::HandleKind::kContext, index | uint64_t{1} << 16);
  }
  struct alignas(128) Memory {
    flight::FileHeader header;
    alignas(128) flight::Word counters[flight::kCounterWords];
    alignas(128) flight::ThreadRow threads[flight::kThreadRows];
    alignas(128) CommRow comms[4];
    alignas(128) OpRow ops[64];
    alignas(128) EdgeRow edges[8];
  };
  std::unique_ptr<Memory> memory;
  recorder::Image image;
};

std::atomic<bool> g_stop;
std::atomic<uint64_t> g_torn;

void Torn(const char* what) {
  if (g_torn.fetch_add(1) < 5) std::fprintf(stderr, "live_reader: torn: %s\n", what);
}

struct Figures {
  uint64_t accepted = 0;
  uint64_t distinct = 0;  // accepted ones that were another entry than the one accepted before in that row
};
constexpr uint64_t kNotYet = ~uint64_t{0};
constexpr uint64_t kEnoughToRace = 8;
constexpr std::chrono::seconds kPatience{60};

// Runs writers, and `read` until `reads` entries were accepted and the writers were seen to write meanwhile: on a busy machine
// a reader can be done before they have run at all. `read` returns the entry's number, 0 for none, kNotYet when there is nothing
// to read yet.
template <typename Read>
Figures Race(const char* name, uint64_t reads, std::vector<std::thread> writers, Read read) {
  const auto begin = std::chrono::steady_clock::now();
  Figures figures;
  uint64_t looks = 0, last[8] = {};
  while (figures.accepted < reads ||
         (figures.distinct <= kEnoughToRace && std::chrono::steady_clock::now() - begin < kPatience)) {
    const uint64_t row = looks % 8, number = read(looks++);
    // Where the writers have no core of their own, they need ours now and then.
    if (looks % 4096 == 0 || number == kNotYet || figures.accepted > reads) std::this_thread::yield();
    if (number == 0 || number == kNotYet) continue;
    ++figures.accepted;
    figures.distinct += number != last[row];
    last[row] = number;
  }
  g_stop = true;
  for (auto& t : writers) t.join();
  g_stop = false;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%-14s %llu of %llu looks accepted, %llu times another entry than before, %.1f s\n", name,
              static_cast<unsigned long long>(figures.accepted), static_cast<unsigned long long>(looks),
              static_cast<unsigned long long>(figures.distinct), seconds);
  return figures;
}

// ---- operations

recorder::OpCall CallOf(uint64_t n) {
  return {static_cast<flight::Func>(1 + Derive(n, 1) % 5),
          static_cast<flight::DataType>(1 + Derive(n, 2) % 10),
          Derive(n, 3),
          static_cast<int>(Derive(n, 4) % 1000),
          Derive(n, 5) & 0xffffffffffff,
          0};
}

// What the API thread has launched, for the proxy thread: as NCCL hands handles over, with a lock-like pair of orders.
struct Queue {
  static constexpr uint64_t kSize = 8;
  std::atomic<uint64_t> head{0}, tail{0};
  uint64_t handles[kSize];
};

Figures Operations(uint64_t reads) {
  Tables tables(1, 4);
  recorder::Image* image = &tables.image;
  const uint64_t context = tables.Comm(0, 4);
  Queue queue;
  std::vector<std::thread> writers;
  writers.emplace_back([&] {
    for (uint64_t n = 1; !g_stop; ++n) {
      const recorder::OpCall call = CallOf(n);
      const uint64_t api = recorder::ApiStart(image, context, call);
      recorder::ApiStop(image, api);
      const uint64_t launched = recorder::LaunchStart(image, context, api, call,
                                                      {static_cast<flight::Algo>(1 + Derive(n, 6) % 7), flight::Proto::kSimple, 1,
                                                       8, static_cast<uint32_t>(Derive(n, 7)), -1});
      recorder::LaunchStop(image, launched);
      while (queue.head.load(std::memory_order_relaxed) - queue.tail.load(std::memory_order_acquire) == Queue::kSize) {
        if (g_stop) return;
        std::this_thread::yield();
      }
      const uint64_t head = queue.head.load(std::memory_order_relaxed);
      queue.handles[head % Queue::kSize] = launched;
      queue.head.store(head + 1, std::memory_order_release);
    }
  });
  writers.emplace_back([&] {
    uint64_t late = 0;
    for (uint64_t n = 1; !g_stop; ++n) {
      const uint64_t tail = queue.tail.load(std::memory_order_relaxed);
      while (queue.head.load(std::memory_order_acquire) == tail) {
        if (g_stop) return;
        std::this_thread::yield();
      }
      const uint64_t kernel = recorder::KernelStart(image, queue.handles[tail % Queue::kSize], 0, Derive(n, 8) | 1);
      queue.tail.store(tail + 1, std::memory_order_release);
      recorder::KernelGpuStop(image, kernel, ~uint64_t{0} - (Derive(n, 8) >> 32));
      recorder::KernelStop(image, kernel);
      if (n % 3 == 0) recorder::KernelStop(image, late);
      late = kernel;
    }
  });
  flight::OpView op;
  return Race("operations", reads, std::move(writers), [&](uint64_t look) -> uint64_t {
    const flight::CommFacts facts = flight::FactsOf(tables.memory->comms[0], 0, 4);
    if (!flight::ReadOp(tables.memory->ops[look % 4], static_cast<uint32_t>(look % 4), facts, &op)) return 0;
    const uint64_t n = op.position;
    const recorder::OpCall call = CallOf(n);
    if (op.func != static_cast<uint8_t>(call.func) || op.datatype != static_cast<uint8_t>(call.type)) Torn("stamp");
    if (op.count != call.count || op.root != static_cast<uint32_t>(call.root) || op.stream != call.stream) Torn("identity");
    if (op.launched && (op.algo != 1 + Derive(n, 6) % 7 || op.sequence != static_cast<uint32_t>(Derive(n, 7))))
      Torn("launch lane");
    if (op.kernels_started && op.gpu_started != (Derive(n, 8) | 1)) Torn("kernel lane: start");
    if (op.kernels_started && op.started < op.entered) Torn("kernel lane: start before entry");
    if (op.kernels_stopped && (op.gpu_finished != ~uint64_t{0} - (Derive(n, 8) >> 32) || op.finished < op.started))
      Torn("kernel lane: end");
    return n;
  });
}

// ---- edges

Figures Edges(uint64_t reads) {
  Tables tables(2, 16);
  recorder::Image* image = &tables.image;
  const uint64_t contexts[] = {tables.Comm(0, 4), tables.Comm(1, 4)};
  std::vector<std::thread> writers;
  for (uint64_t t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      for (uint64_t n = 0; !g_stop; ++n) {
        const auto peer = static_cast<uint32_t>(Derive(n, t) % 1000);
        const auto rank = static_cast<uint32_t>(1000 + t);
        const auto steps = static_cast<uint32_t>(Derive(peer, rank) % 10000);
        const uint64_t handle =
            recorder::ProxyOpStart(image, {contexts[t], 0, 4711, rank, peer, static_cast<uint32_t>(peer % 200), steps,
                                           static_cast<uint32_t>(Derive(peer, rank + 1)), true});
        if (handle == 0) continue;  // the other thread has all rows
        recorder::ProxyOpStop(image, handle);
      }
    });
  }
  EdgeRow edge;
  return Race("edges", reads, std::move(writers), [&](uint64_t look) -> uint64_t {
    if (!flight::CopyRow(tables.memory->edges[look % 8], &edge)) return 0;
    const uint64_t stamp = Load(edge.stamp);
    if (stamp >> 63 == 0) return 0;
    const uint64_t peer = Load(edge.peer) & 0xffffffff, rank = Load(edge.peer) >> 32;
    const uint64_t comm = stamp >> 32 & 0xffff;
    if (rank != 1000 + comm || (stamp >> 16 & 0xff) != peer % 200) Torn("edge's key");
    const uint64_t chunk = Load(edge.chunk);
    if (Load(edge.queued) != 0 && chunk != 0 &&
        chunk != (static_cast<uint32_t>(Derive(peer, rank + 1)) | (Derive(peer, rank) % 10000) << 32))
      Torn("edge's operation");
    const uint64_t ops = Load(edge.ops);
    if ((ops >> 32) > (ops & 0xffffffff)) Torn("edge's counts");
    return 1 + (rank << 32 | peer);
  });
}

// ---- communicators

Figures Communicators(uint64_t reads) {
  Tables tables(2, 64);
  recorder::Image* image = &tables.image;
  std::vector<std::thread> writers;
  writers.emplace_back([&] {
    for (uint64_t n = 1; !g_stop; ++n) {
      const std::string name = "comm" + std::to_string(n);
      recorder::CloseCommunicator(
          image, recorder::OpenCommunicator(
                     image, {Derive(n, 1), name.c_str(), static_cast<int>(n % 100), static_cast<int>(Derive(n, 2) % 10000),
                             static_cast<int>(n & 0x7fffffff), 6, (n & 1) != 0, (n & 2) != 0}));
    }
  });
  CommRow comm;
  return Race("communicators", reads, std::move(writers), [&](uint64_t look) -> uint64_t {
    if (!flight::CopyRow(tables.memory->comms[look % 2], &comm)) return 0;
    const uint64_t n = Load(comm.ranks) & 0xffffffff;
    if (Load(comm.comm_id) != Derive(n, 1) || Load(comm.ranks) >> 32 != Derive(n, 2) % 10000) Torn("communicator's id");
    if (std::string(comm.name, strnlen(comm.name, sizeof(comm.name))) != "comm" + std::to_string(n)) Torn("communicator's name");
    if (Load(comm.nodes) >> 32 != n - 1 || (Load(comm.flags) & 3) != ((n & 1) | (n & 2))) Torn("communicator's facts");
    if (Load(comm.finalized) != 0 && Load(comm.finalized) < Load(comm.created)) Torn("communicator's life");
    return n;
  });
}

// ---- signature chain

Figures Chain(uint64_t reads) {
  constexpr uint64_t kLength = 1 << 20;
  std::vector<uint64_t> expected;  // by position; equal calls, so that it repeats with each new communicator
  Tables tables(1, 16);
  recorder::Image* image = &tables.image;
  std::atomic<bool> known{false};
  std::vector<std::thread> writers;
  writers.emplace_back([&] {
    for (bool first = true; !g_stop; first = false) {
      const uint64_t context = recorder::OpenCommunicator(image, {1, "chain", 1, 2, 0, 6, true, true});
      for (uint64_t n = 0; n < kLength && !g_stop; ++n) {
        const uint64_t group = recorder::GroupStart(image, context, 1, false);
        recorder::ApiStop(
            image, recorder::ApiStart(image, context, {flight::Func::kAllReduce, flight::DataType::kFloat32, 16, -1, 0, 0}));
        recorder::GroupStop(image, group);
        if (first) {
          if (expected.empty()) expected.reserve(kLength + 1);
          expected.push_back(flight::ReadChain(tables.memory->comms[0]).hash);
        }
      }
      known.store(true, std::memory_order_release);
      recorder::CloseCommunicator(image, context);
    }
  });
  return Race("chain", reads, std::move(writers), [&](uint64_t) -> uint64_t {
    if (!known.load(std::memory_order_acquire)) return kNotYet;
    const flight::ChainView chain = flight::ReadChain(tables.memory->comms[0]);
    if (chain.position == 0 || chain.position >= expected.size()) return 0;
    if (chain.hash == 0) return 0;  // told to be of two moments
    if (chain.hash != expected[chain.position]) Torn("chain");
    return chain.position;
  });
}

}  // namespace
}  // namespace ringscope::manners

int main(int argc, char** argv) {
  using namespace ringscope::manners;
  const uint64_t reads = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (reads == 0) {
    std::fputs("usage: live_reader READS\n", stderr);
    return 64;
  }
  bool raced = true;
  for (const Figures& figures : {Operations(reads / 2), Edges(reads / 4), Communicators(reads / 8), Chain(reads / 8)})
    raced &= figures.distinct > kEnoughToRace;  // the writers did write meanwhile
  std::printf("%llu torn\n", static_cast<unsigned long long>(g_torn.load()));
  return g_torn == 0 && raced ? 0 : 1;
}
