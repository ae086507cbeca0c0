#include "tests/interface/world.h"

#include <algorithm>

#include "recorder/clock.h"
#include "recorder/flight/rows.h"
#include "recorder/hot_comm.h"
#include "tests/interface/invariants.h"
#include "tests/interface/world_inl.h"

namespace ringscope::interface_model {

using flight::Counter;
using flight::Load;

namespace {

// Each simulated thread has a row of its own in the flight file, kept over all worlds.
std::array<recorder::ThreadSlot, 5> g_slots;
uint64_t g_next_id = 1;

}  // namespace

World::World(const recorder::Image& image, int version, uint64_t seed)
    : image_(image), dice_(seed), door_(version, seed ^ 0x6a7262a6e), model_(image) {
  const uint32_t comms = dice_.OneIn(8) ? dice_.Between(20, 60) : dice_.Between(1, 5);
  for (uint32_t i = 0; i < comms; ++i) Open();
}

void World::On(uint32_t thread) {
  static_assert(kThreads == std::tuple_size_v<decltype(g_slots)>);
  static uint32_t running = 0;
  g_slots[running] = recorder::t_slot;
  recorder::t_slot = g_slots[thread];
  running = thread;
}

void World::Open() {
  On(kLauncher);
  auto sim = std::make_unique<CommSim>();
  auto comm = std::make_shared<Comm>();
  static constexpr int kSizes[] = {1, 2, 2, 4, 8, 64, 4096};
  comm->id = comm->serial = ++g_next_id;
  comm->visible = door_.kernels();
  comm->identified = comm->sized = !door_.early();
  comm->version = door_.version();
  comm->ranks = dice_.Of(kSizes);
  comm->rank = static_cast<int>(dice_.Below(static_cast<uint32_t>(comm->ranks)));
  comm->nodes =
      comm->ranks == 1
          ? 1
          : static_cast<int>(dice_.Between(1, static_cast<uint32_t>(std::min(comm->ranks, 16))));
  const uint64_t lost = model_.Counter(Counter::kCommNoRow);
  comm->context = door_.Init(
      {comm->id, dice_.OneIn(2) ? "world" : nullptr, comm->nodes, comm->ranks, comm->rank});
  comm->kept = model_.Counter(Counter::kCommNoRow) == lost;
  if (comm->kept) {
    const uint64_t handle = HandleOf(comm->context);
    comm->row = flight::HandlePayload(handle) & 0xffff;
    Require(comm->row < image_.comm_rows, "a context names no row of the table");
    comm->stamp = Load(image_.comms[comm->row].stamp) & ~flight::kCommIdentified;
  } else {
    model_.Expect(Counter::kCommNoRow);
  }
  model_.Opened(comm);
  // A later NCCL's shim for the early tables leaves the hash and the traffic empty.
  sim->shim = door_.early() && dice_.OneIn(3);
  if (sim->shim) comm->id = 0;
  sim->model = comm;
  sim->thread = dice_.Below(kUserThreads);
  static constexpr uint32_t kQueued[] = {1, 8, 8, 40, 400};
  sim->most_queued = dice_.Of(kQueued);
  sim->network = comm->ranks > 1 && (comm->nodes > 1 || dice_.OneIn(4));
  if (comm->kept) comms_.push_back(std::move(sim));
}

// Nothing of it is under way, and nobody will call on it.
bool World::Quiet(const CommSim& comm) const {
  return comm.open_calls == 0 && comm.kernels.empty() && comm.to_append.empty() &&
         comm.edges.empty();
}

void World::Close(CommSim* sim) {
  On(dice_.Below(kUserThreads));
  Comm& comm = *sim->model;
  if (model_.OpenAtEnd(comm)) model_.Expect(Counter::kCommFinalizedOpen);
  door_.Finalize(comm.context);
  comm.finalized = true;
  if (dice_.OneIn(4)) {  // a shared proxy goes on with the context of its owner
    On(kProxy);
    Event control;
    control.type = abi::kProxyCtrl;
    Require(door_.Start(comm.context, control) == nullptr,
            "an event nobody asked for got a handle");
    model_.Expect(Counter::kUnaskedEvent);
  }
  comms_.erase(
      std::find_if(comms_.begin(), comms_.end(), [&](const auto& c) { return c.get() == sim; }));
}

void World::Turn() {
  const uint32_t choice = dice_.Below(16);
  if (choice < 6) {
    const uint32_t thread = dice_.Below(kUserThreads + 1);
    if (queues_[thread].empty()) {
      if (thread != kLauncher) NewGroup(thread);
      return;
    }
    On(thread);
    Step(thread, &queues_[thread]);
    return;
  }
  CommSim* comm = comms_[dice_.Below(static_cast<uint32_t>(comms_.size()))].get();
  On(kProxy);
  for (uint32_t turns = dice_.Between(1, 8); turns > 0; --turns) Proxy(comm);
  if (dice_.OneIn(3000) && Quiet(*comm)) {
    Close(comm);
    Open();
    if (comms_.empty()) Open();
  } else if (dice_.OneIn(200) && !comm->graphs.empty()) {
    On(kLauncher);
    Replay(comm);
  }
}

void World::Run(uint64_t callbacks) {
  const uint64_t end = door_.callbacks + callbacks;
  uint64_t next_compare = 0;
  while (door_.callbacks < end) {
    if (door_.callbacks >= next_compare) {
      model_.Compare();
      CheckTables(image_, recorder::Ticks(), true);
      next_compare = door_.callbacks + dice_.Between(1000, 60000);
    }
    for (int turns = 64; turns > 0; --turns) Turn();
  }
  if (dice_.OneIn(4)) {
    Abort();
  } else {
    Drain();
  }
  model_.Compare();
  while (!comms_.empty()) Close(comms_.back().get());
  model_.Compare();
  CheckTables(image_, recorder::Ticks(), true);
}

// Everything that was begun ends as it should.
void World::Drain() {
  for (bool busy = true; busy;) {
    busy = false;
    for (uint32_t thread = 0; thread < queues_.size(); ++thread) {
      On(thread);
      for (; !queues_[thread].empty(); busy = true) Step(thread, &queues_[thread]);
    }
    On(kProxy);
    for (auto& comm : comms_) {
      while (!comm->kernels.empty() || !comm->to_append.empty() || !comm->edges.empty()) {
        Proxy(comm.get());
        busy = true;
      }
    }
  }
}

// ncclCommAbort: what is open is never stopped.
void World::Abort() {
  for (auto& queue : queues_) queue.clear();
  for (auto& comm : comms_) {
    comm->kernels.clear();
    comm->to_append.clear();
    comm->edges.clear();
    comm->open_calls = 0;
  }
}

}  // namespace ringscope::interface_model
