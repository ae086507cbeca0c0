// What the proxy progress threads do: kernels seen, proxy operations, network steps.
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "recorder/flight/rows.h"
#include "tests/interface/world.h"
#include "tests/interface/world_inl.h"

namespace ringscope::interface_model {

using flight::Counter;
using flight::Load;

void World::AppendProxyOps(const TaskPtr& task) {
  CommSim* sim = task->comm;
  const Comm& comm = *sim->model;
  const auto append = [&](uint32_t channel, bool send, int peer) {
    auto op = std::make_shared<ProxyOpSim>();
    op->task = task;
    op->channel = channel;
    op->send = send;
    op->peer = peer;
    op->rank = comm.rank;
    op->pid = getpid();
    op->n_steps = dice_.OneIn(200) ? static_cast<int>(dice_.Between(100, 400))
                                   : static_cast<int>(dice_.Between(1, 6));
    op->chunk = 1 << 20;
    op->context = comm.context;
    op->parent = task->launch;
    if (dice_.OneIn(20) && send) {  // PXN: the operation of another process
      ++op->pid;
      op->rank = static_cast<int>(dice_.Below(static_cast<uint32_t>(comm.ranks)));
      const uint32_t nonce = image_.nonce == 77 ? 78 : 77;
      op->context = reinterpret_cast<void*>(flight::MakeHandle(nonce, flight::HandleKind::kContext,
                                                               comm.serial << 8 | dice_.Below(4)));
      op->parent =
          reinterpret_cast<void*>(flight::MakeHandle(nonce, flight::HandleKind::kOp, dice_.Next()));
    }
    if (op->pid == getpid()) ++(send ? task->sends_left : task->recvs_left);
    sim->to_append.push_back(op);
  };
  if (task->p2p) {
    for (uint32_t c = 0; c < task->channels; ++c) append(c, task->send, task->peer);
    return;
  }
  const bool tree = dice_.OneIn(3);
  for (uint32_t c = 0; c < task->channels; ++c) {
    const int next = tree ? static_cast<int>(dice_.Below(static_cast<uint32_t>(comm.ranks)))
                          : (comm.rank + 1) % comm.ranks;
    append(c, true, next);
    append(c, false, (comm.rank + comm.ranks - 1) % comm.ranks);
  }
}

void World::Proxy(CommSim* comm) {
  const uint32_t choice = dice_.Below(8);
  if (choice < 3 && !comm->kernels.empty()) {
    Kernel(comm);
  } else if (choice < 5 && !comm->to_append.empty()) {
    AppendOne(comm);
  } else if (!comm->edges.empty()) {
    // Any of them: the nearest to a key made up.
    const EdgeKey from(comm->model->row, 0, 0,
                       dice_.Below(static_cast<uint32_t>(comm->model->ranks)), dice_.Below(64), 0);
    auto place = dice_.OneIn(4) ? comm->edges.begin() : comm->edges.lower_bound(from);
    if (place == comm->edges.end()) place = comm->edges.begin();
    Network(comm, &place->second);
    if (place->second.empty()) comm->edges.erase(place);
  }
}

void World::Kernel(CommSim* sim) {
  const TaskPtr task = sim->kernels.front();
  if (sim->channels.empty()) sim->channels.assign(task->channels, {0, nullptr});
  uint32_t c = dice_.Below(task->channels);
  while (sim->channels[c].first == 3) c = (c + 1) % task->channels;
  auto& [state, handle] = sim->channels[c];
  Operation& op = *task->op;
  gpu_clock_ += dice_.Between(1, 100);
  const bool kept = model_.Holds(task->op), lost = flight::OpRowOf(op.handle) == flight::kNoOpRow;
  if (!door_.kernels()) {  // nobody sees it
    if (task->recvs_left != 0 || (sim->last_task != nullptr && sim->last_task->sends_left != 0))
      return;
    state = 3;
  } else if (state == 0) {
    Event e;
    e.type = abi::kKernelCh;
    e.parent = task->launch;
    e.channel = static_cast<uint8_t>(c);
    e.gpu_ns = gpu_clock_;
    const Moment now = Timed([&] { handle = door_.Start(sim->model->context, e); });
    RequireEqual(handle != nullptr, kept, "a KernelCh got a handle");
    if (!kept && !lost) model_.Expect(Counter::kStaleHandle);
    if (kept && op.kernels_started++ == 0) {
      op.started = now;
      op.gpu_started = door_.early() ? 0 : gpu_clock_;
    }
    state = kept ? 1 : 3;
  } else if (state == 1 && !door_.early()) {
    door_.State(handle, abi::kKernelChStop, gpu_clock_);
    if (kept) op.gpu_finished = gpu_clock_;
    if (!kept) model_.Expect(Counter::kStaleHandle);
    state = 2;
  } else {
    // A kernel ends when its data is here; what it sent may still be on its way, but not what the
    // one before sent.
    if (task->recvs_left != 0 || (sim->last_task != nullptr && sim->last_task->sends_left != 0))
      return;
    const Moment now = Timed([&] { door_.Stop(handle); });
    state = 3;
    sim->last_kernel = {handle, task->op};
    if (kept) {
      op.finished = now;
      if (++op.kernels_stopped == op.kernels_started && op.kernels_started >= op.channels) {
        ++op.comm->completed;
        if (op.entered_at > op.comm->done_entered) {
          op.comm->done_entered = op.entered_at;
          op.comm->done_group = op.group;
        }
      }
    } else {
      model_.Expect(Counter::kStaleHandle);
    }
  }
  if (std::any_of(sim->channels.begin(), sim->channels.end(),
                  [](const auto& ch) { return ch.first != 3; }))
    return;
  sim->channels.clear();
  sim->last_task = task;
  sim->kernels.pop_front();
  const auto& [last, stopped] = sim->last_kernel;
  if (last != nullptr && dice_.OneIn(100) &&
      (!model_.Holds(stopped) || stopped->kernels_started == stopped->kernels_stopped)) {
    // NCCL <= 2.30: a stop without its start, with the handle that was stopped before.
    door_.Stop(last);
    model_.Expect(model_.Holds(stopped) ? Counter::kKernelStopTwice : Counter::kStaleHandle);
  }
}

void World::BeginOperation(Edge* edge, uint64_t handle, Moment now) {
  edge->steps_total += edge->reached[3];
  edge->reached = {};
  edge->current = handle;
  edge->changed = now;
  edge->changed.low &= ~uint64_t{1};
  edge->refused = false;
}

void World::AppendOne(CommSim* sim) {
  const ProxyPtr op = sim->to_append.front();
  sim->to_append.pop_front();
  Comm& comm = *sim->model;
  const bool foreign = op->pid != getpid();
  const OperationPtr& parent = op->task->op;
  Event e;
  e.type = abi::kProxyOp;
  e.parent = op->parent;
  e.rank = op->rank;
  e.pid = op->pid;
  e.channel = static_cast<uint8_t>(op->channel);
  e.peer = op->peer;
  e.n_steps = op->n_steps;
  e.chunk = op->chunk;
  e.send = op->send;
  const Moment now = Timed([&] { op->handle = door_.Start(op->context, e); });
  if (foreign) model_.Expect(Counter::kForeignContext);
  if (op->handle == nullptr) {
    model_.Expect(Counter::kEdgeNoRow);
    if (!foreign) --(op->send ? op->task->sends_left : op->task->recvs_left);
    if (door_.api_events()) {  // NCCL >= 2.28 starts the steps all the same
      Event step;
      step.type = abi::kProxyStep;
      Require(door_.Start(op->context, step) == nullptr, "a step without a parent got a handle");
      model_.Expect(Counter::kNullHandle);
    }
    return;
  }
  if (!foreign) {
    if (model_.Holds(parent)) {
      ++parent->proxy_started;
    } else if (flight::OpRowOf(parent->handle) != flight::kNoOpRow) {
      model_.Expect(Counter::kStaleHandle);
    }
  }
  const bool p2p = (HandleOf(op->parent) & flight::kOpIsP2p) != 0;
  op->key = EdgeKey(foreign ? 0xffff : comm.row, foreign ? HandleOf(op->context) : 0,
                    static_cast<uint32_t>(op->rank), static_cast<uint32_t>(op->peer), op->channel,
                    (op->send ? flight::kEdgeSend : 0u) | (p2p ? flight::kEdgeP2p : 0u) |
                        (foreign ? flight::kEdgeForeign : 0u));
  const uint64_t handle = HandleOf(op->handle);
  Edge* edge = model_.TakeEdge(op->key, flight::ProxyOpEdge(handle));
  edge->comm = foreign ? nullptr : &comm;
  edge->send = op->send;
  if (edge->started == 0) BeginOperation(edge, 0, now);
  const bool idle = edge->started == edge->stopped;
  ++edge->started;
  edge->chunk = static_cast<uint32_t>(op->chunk);
  edge->n_steps = static_cast<uint32_t>(op->n_steps);
  if (foreign) edge->foreign = HandleOf(op->parent);
  if (idle) BeginOperation(edge, handle, now);
  op->edge = edge;
  sim->edges[op->key].push_back(op);
}

void World::Reach(ProxyOpSim* op, uint32_t field) {
  static constexpr uint32_t kSend[] = {abi::kStepSendGpuWait, abi::kStepSendPeerWait,
                                       abi::kStepSendWait};
  static constexpr uint32_t kRecv[] = {abi::kStepRecvWait, abi::kStepRecvFlushWait,
                                       abi::kStepRecvGpuWait};
  Edge* edge = op->edge;
  const uint32_t step = op->reached[field]++;
  void* handle = op->steps[step % 8];
  const bool sized = !door_.early() && (op->send ? field == 2 : field == 1);
  const uint64_t bytes = sized ? dice_.Between(1, 1 << 20) : 0;
  Moment now = Timed([&] {
    if (field == 3) {
      door_.Stop(handle);
    } else {
      // What the other states carry in transSize is not reliable.
      door_.State(handle, op->send ? kSend[field] : kRecv[field], sized ? bytes : dice_.Next());
    }
  });
  now.low &= ~uint64_t{1};
  // What was accepted at the first attempt was handed over when it was attempted.
  if (op->send && field == 2 && !edge->refused) now = edge->changed;
  edge->entered[field].low += now.low;
  edge->entered[field].high += now.high;
  edge->changed = now;
  edge->refused = false;
  ++edge->reached[field];
  edge->bytes += bytes;
  if (edge->comm != nullptr) edge->comm->has_steps = true;
}

// NCCL 2.23-2.26: the operation's state counts the step first; what the step's own callback says is
// known by then.
void World::OpReach(ProxyOpSim* op, uint32_t field) {
  Edge* edge = op->edge;
  const uint32_t step = op->reached[field]++;
  const bool sized = op->send ? field == 2 : field == 1;
  if (sized) op->bytes += dice_.Between(1, 1 << 20);
  Moment now = Timed([&] {
    door_.OpState(op->handle, (op->send ? 0 : 4) + field, static_cast<int>(step + 1), op->bytes);
  });
  now.low &= ~uint64_t{1};
  edge->entered[field].low += now.low;
  edge->entered[field].high += now.high;
  edge->changed = now;
  edge->refused = false;
  ++edge->reached[field];
  if (sized && step + 1 == static_cast<uint32_t>(op->n_steps)) edge->bytes += op->bytes;
  if (edge->comm != nullptr) edge->comm->has_steps = true;
  static constexpr uint32_t kSend[] = {abi::kStepSendGpuWait, 0, abi::kStepSendWait};
  static constexpr uint32_t kRecv[] = {abi::kStepRecvWait, abi::kStepRecvFlushWait,
                                       abi::kStepRecvGpuWait};
  void* handle = op->steps[step % 8];
  if (field == 3) {
    door_.Stop(handle);
  } else if (!op->send || field != 1) {
    door_.State(handle, op->send ? kSend[field] : kRecv[field]);
  }
}

// The network does not take the oldest step that it was offered.
void World::RefuseSend(ProxyOpSim* op) {
  void* handle = op->steps[op->reached[2] % 8];
  for (uint32_t times = dice_.OneIn(3000) ? 20000 : dice_.Between(1, 4); times > 0; --times) {
    if (door_.early()) {
      door_.OpState(op->handle, 1, static_cast<int>(op->reached[1]), op->bytes);
    } else {
      door_.State(handle, abi::kStepSendPeerWait, dice_.Next());
    }
  }
  op->edge->refused = true;
}

// A state that never came: entered together with the next one, and counted.
void World::SkipPeerWait(ProxyOpSim* op) {
  Edge* edge = op->edge;
  Moment now = Timed([&] { door_.State(op->steps[op->reached[1] % 8], abi::kStepSendWait, 7); });
  now.low &= ~uint64_t{1};
  model_.Expect(Counter::kStepGap);
  for (const uint32_t field : {1u, 2u}) {
    edge->entered[field].low += now.low;
    edge->entered[field].high += now.high;
    ++edge->reached[field];
    ++op->reached[field];
  }
  edge->changed = now;
  edge->refused = false;
  if (!door_.early()) edge->bytes += 7;
  if (edge->comm != nullptr) edge->comm->has_steps = true;
}

void World::Finish(ProxyOpSim* op) {
  Edge* edge = op->edge;
  Moment now = Timed([&] { door_.Stop(op->handle); });
  ++edge->stopped;
  now.low &= ~uint64_t{1};
  edge->changed = now;
  edge->refused = false;
  if (edge->comm == nullptr) return;
  --(op->send ? op->task->sends_left : op->task->recvs_left);
  // The handle has room for the row of its operation, not for "none": where operations were lost,
  // the one that lies in another's place gets the stop, if it waits for any. Known: a count of
  // stops is a bound then, never more than the starts.
  const uint64_t ring = Load(image_.comms[edge->comm->row].ring);
  const uint32_t row =
      flight::ProxyOpRowLow(HandleOf(op->handle)) & static_cast<uint32_t>(ring >> 32);
  Operation* told = model_.Holds(op->task->op) ? op->task->op.get()
                                               : model_.At(static_cast<uint32_t>(ring) + row);
  if (told != nullptr && told->proxy_started > told->proxy_stopped) ++told->proxy_stopped;
}

void World::Network(CommSim* sim, std::deque<ProxyPtr>* queue) {
  ProxyOpSim* op = queue->front().get();
  if (!op->begun && !door_.early()) {
    op->begun = true;
    const Moment now = Timed([&] { door_.State(op->handle, abi::kOpInProgress, 0); });
    if (op->edge->current != HandleOf(op->handle))
      BeginOperation(op->edge, HandleOf(op->handle), now);
    return;
  }
  const uint32_t all = static_cast<uint32_t>(op->n_steps);
  if (op->reached[3] == all) {
    Finish(op);
    queue->pop_front();
    return;
  }
  const uint32_t choice = dice_.Below(5);
  // A receive is started again and again while it cannot be posted.
  const bool again = !op->send && op->started > op->reached[0] && dice_.OneIn(10);
  if (again || (op->started < all && op->started - op->reached[3] < 8 &&
                (choice == 4 || op->started == op->reached[3]))) {
    if (!again) ++op->started;
    Event e;
    e.type = abi::kProxyStep;
    e.parent = op->handle;
    e.rank = op->rank;
    e.step = static_cast<int>(op->started - 1);
    void* handle = nullptr;
    const Moment now = Timed([&] { handle = door_.Start(op->context, e); });
    if (op->edge->current != HandleOf(op->handle))
      BeginOperation(op->edge, HandleOf(op->handle), now);
    Require(handle != nullptr, "a step of a running operation got a NULL handle");
    op->steps[(op->started - 1) % 8] = handle;
    return;
  }
  const bool shim = door_.early() && sim->shim;
  if (op->send && op->reached[1] > op->reached[2] && !shim && dice_.OneIn(6)) return RefuseSend(op);
  // Rare, but under a shim for the early tables nothing tells of a send that waits.
  const bool offered =
      op->send && op->reached[0] > op->reached[1] && op->reached[1] == op->reached[2];
  if (offered && (shim || (!door_.early() && dice_.OneIn(500)))) return SkipPeerWait(op);
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t field = (choice + i) & 3;
    if (op->reached[field] >= (field == 0 ? op->started : op->reached[field - 1])) continue;
    return door_.early() && !shim ? OpReach(op, field) : Reach(op, field);
  }
}

}  // namespace ringscope::interface_model
