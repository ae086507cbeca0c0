// What the user's threads and the launching thread do: groups, calls, launches.
#include <algorithm>

#include "recorder/flight/rows.h"
#include "tests/interface/world.h"
#include "tests/interface/world_inl.h"

namespace ringscope::interface_model {

using flight::Counter;
using flight::Load;

TaskPtr World::NewTask(CommSim* comm, bool p2p) {
  auto task = std::make_shared<Task>();
  const Comm& model = *comm->model;
  task->comm = comm;
  task->p2p = p2p || model.ranks == 1;  // a collective of one rank is a copy: no callback at all
  task->func = dice_.Below(kSendFunc);
  task->type = dice_.Below(std::size(kTypes));
  task->count = dice_.OneIn(20) ? dice_.Next() >> 20 : dice_.Between(1, 1 << 20);
  if (task->p2p) {
    task->send = dice_.OneIn(2);
    task->func = task->send ? kSendFunc : kRecvFunc;
    task->peer = static_cast<int>(dice_.Below(static_cast<uint32_t>(model.ranks)));
    task->channels = dice_.Between(1, 4);
  } else {
    static constexpr uint32_t kChannels[] = {1, 1, 2, 2, 8, 64};
    task->channels = dice_.Of(kChannels);
    task->root = kFuncs[task->func].value == flight::Func::kBroadcast ||
                         kFuncs[task->func].value == flight::Func::kReduce
                     ? static_cast<int>(dice_.Below(static_cast<uint32_t>(model.ranks)))
                     : 0;
    task->copy_engine = door_.version() == 6 && dice_.OneIn(40);
    task->silent =
        door_.api_events() &&
        dice_.OneIn(60);  // Broadcast since 2.29, symmetric kernels: the call is all there is
  }
  task->sequence = comm->sequences[task->func]++;
  return task;
}

void World::Push(std::deque<Act>* queue, Do what, const GroupPtr& group, const TaskPtr& task,
                 CommSim* comm) {
  if (comm != nullptr) ++comm->open_calls;
  queue->push_back({what, group, task, comm});
}

void World::NewGroup(uint32_t thread) {
  std::vector<CommSim*> free;
  for (auto& comm : comms_) {
    if (comm->thread == thread && comm->kernels.size() < comm->most_queued &&
        comm->to_append.size() < 2000)
      free.push_back(comm.get());
  }
  if (free.empty()) return;
  auto group = std::make_shared<GroupSim>();
  group->depth = dice_.OneIn(3) ? 2 : 1;
  group->captured = door_.api_events() && dice_.OneIn(50);
  std::vector<TaskPtr> tasks;
  if (group->depth == 1) {
    tasks.push_back(NewTask(free[dice_.Below(static_cast<uint32_t>(free.size()))], dice_.OneIn(3)));
  } else {
    const bool p2p = dice_.OneIn(2);
    const uint32_t largest = !p2p ? 4 : dice_.OneIn(400) ? 3000 : dice_.OneIn(4) ? 40 : 8;
    const uint32_t from = dice_.OneIn(4) ? static_cast<uint32_t>(free.size()) : 1;
    for (uint32_t n = dice_.Between(1, largest); n > 0; --n) {
      tasks.push_back(NewTask(free[dice_.Below(std::min<uint32_t>(from, 3))], p2p));
    }
  }
  for (const TaskPtr& task : tasks) task->captured = group->captured;
  std::deque<Act>* queue = &queues_[thread];
  CommSim* first = tasks.front()->comm;
  if (!door_.api_events()) return QueueLaunch(group, tasks, queue);
  Push(queue, Do::kGroupStart, group, nullptr, first);
  Push(queue, Do::kGroupStartStop, group, nullptr, first);
  for (const TaskPtr& task : tasks) {
    Push(queue, Do::kApiStart, group, task, task->comm);
    Push(queue, Do::kApiStop, group, task, task->comm);
  }
  Push(queue, Do::kGroupEndStart, group, nullptr, first);
  // A communicator that does not block launches from a helper thread, maybe long after the group
  // has ended.
  const bool helper = queues_[kLauncher].empty() && dice_.OneIn(10);
  if (!group->captured && !helper) QueueLaunch(group, tasks, queue);
  Push(queue, Do::kGroupStop, group, nullptr, first);
  if (helper && !group->captured) {
    // (It begins when the calls have returned: their handles are known then.)
    On(thread);
    while (!queue->empty()) Step(thread, queue);
    QueueLaunch(group, tasks, &queues_[kLauncher]);
  }
}

void World::QueueLaunch(const GroupPtr& group, const std::vector<TaskPtr>& tasks,
                        std::deque<Act>* queue) {
  std::vector<CommSim*> comms;
  for (const TaskPtr& task : tasks) {
    if (std::find(comms.begin(), comms.end(), task->comm) == comms.end())
      comms.push_back(task->comm);
  }
  for (CommSim* comm : comms) {
    std::vector<TaskPtr> plan;  // collectives first
    for (const bool p2p : {false, true}) {
      for (const TaskPtr& task : tasks) {
        if (task->comm == comm && task->p2p == p2p && !task->silent && !task->copy_engine)
          plan.push_back(task);
      }
    }
    for (const TaskPtr& task : tasks) {
      if (task->comm != comm || !task->copy_engine || task->silent) continue;
      Push(queue, Do::kLaunchStart, group, task, comm);
      Push(queue, Do::kLaunchStop, group, task, comm);
    }
    if (plan.empty()) continue;
    if (door_.api_events()) {
      Push(queue, Do::kKernelLaunch, group, nullptr, comm);
      Push(queue, Do::kKernelLaunchStop, group, nullptr, comm);
    }
    Push(queue, Do::kPlanStart, group, nullptr, comm);
    for (const TaskPtr& task : plan) Push(queue, Do::kLaunchStart, group, task, comm);
    for (const TaskPtr& task : plan) Push(queue, Do::kLaunchStop, group, task, comm);
    Push(queue, Do::kPlanStop, group, nullptr, comm);
  }
}

// A captured graph is launched once more: only the launch is seen, with the handle of the call that
// was captured.
void World::Replay(CommSim* comm) {
  if (!queues_[kLauncher].empty()) return;
  auto group = std::make_shared<GroupSim>();
  const TaskPtr& captured = comm->graphs[dice_.Below(static_cast<uint32_t>(comm->graphs.size()))];
  auto task = std::make_shared<Task>(*captured);
  std::deque<Act>* queue = &queues_[kLauncher];
  Push(queue, Do::kPlanStart, group, nullptr, comm);
  Push(queue, Do::kLaunchStart, group, task, comm);
  Push(queue, Do::kLaunchStop, group, task, comm);
  Push(queue, Do::kPlanStop, group, nullptr, comm);
}

void World::Step(uint32_t thread, std::deque<Act>* queue) {
  const Act act = queue->front();
  queue->pop_front();
  --act.comm->open_calls;
  void* context = act.comm->model->context;
  Event e;
  switch (act.what) {
    case Do::kGroupStart:
      e.type = abi::kGroupApi;
      e.depth = act.group->depth;
      e.captured = act.group->captured;
      act.group->api = door_.Start(context, e);
      threads_[thread] = {};
      break;
    case Do::kGroupStartStop:
      door_.State(act.group->api, abi::kGroupStartApiStop, 0, true);
      break;
    case Do::kApiStart:
      ApiStart(thread, act);
      break;
    case Do::kApiStop:
      ApiStop(act);
      break;
    case Do::kGroupEndStart:
      door_.State(act.group->api, abi::kGroupEndApiStart, 0, true);
      break;
    case Do::kGroupStop:
      door_.Stop(act.group->api);
      RequireEqual(recorder::t_slot.row->call.load() & 0xff, 0,
                   "call of a thread whose group has ended");
      break;
    case Do::kKernelLaunch:
      e.type = abi::kKernelLaunch;
      e.parent = act.group->api;
      e.stream = act.comm;
      act.group->kernel_launch = door_.Start(context, e);
      break;
    case Do::kKernelLaunchStop:
      door_.Stop(act.group->kernel_launch);
      break;
    case Do::kPlanStart:
      e.type = abi::kGroup;
      act.group->plan = door_.Start(context, e);
      Require(act.group->plan != nullptr,
              "a kernel plan got a NULL handle: NCCL <= 2.27 would drop its operations");
      break;
    case Do::kLaunchStart:
      LaunchStart(act);
      break;
    case Do::kLaunchStop:
      LaunchStop(act);
      break;
    case Do::kPlanStop:
      door_.Stop(act.group->plan);
      break;
  }
}

void World::NewOperation(const TaskPtr& task, uint64_t handle, uint32_t flags, void* stream,
                         const Moment& entered) {
  Comm& comm = *task->comm->model;
  auto op = std::make_shared<Operation>();
  op->comm = &comm;
  op->handle = handle & ~flight::kOpLaunched;
  const bool tail = flags & flight::kOpTail;
  op->func = tail ? flight::Func::kSendRecv : kFuncs[task->func].value;
  op->type = kTypes[task->type].value;
  op->count = tail ? task->count * kTypes[task->type].bytes : task->count;
  op->tasks = tail;
  op->root = task->p2p ? -1 : task->root;
  op->flags = flags;
  op->stream = HandleOf(stream);
  op->position = ++(task->p2p ? comm.p2ps : comm.collectives);
  op->entered = entered;
  model_.Resident(op);
  if (flight::OpRowOf(op->handle) != flight::kNoOpRow) {
    op->entered_at = Load(image_.ops[op->row].entered);
    op->group = Load(image_.ops[op->row].group) & 0xffffffffffff;
  }
  task->op = op;
}

void World::ApiStart(uint32_t thread, const Act& act) {
  const TaskPtr& task = act.task;
  Comm& comm = *task->comm->model;
  ThreadSim& caller = threads_[thread];
  Event e;
  e.type = task->p2p ? abi::kP2pApi : abi::kCollApi;
  e.parent = act.group->api;
  e.func = kFuncs[task->func].text;
  e.datatype = kTypes[task->type].text;
  e.count = task->count;
  e.root = task->root;
  e.stream = task->comm;
  e.captured = task->captured;
  const Moment entered = Timed([&] { task->api = door_.Start(comm.context, e); });
  Require(task->api != nullptr, "an API call got a NULL handle");
  const uint64_t call = recorder::t_slot.row->call.load();
  RequireEqual(call & 0xff,
               static_cast<uint64_t>(task->p2p ? flight::Call::kP2pApi : flight::Call::kCollApi),
               "call of the thread");
  RequireEqual(call >> 32, comm.row, "communicator of the thread's call");
  uint32_t flags = flight::kOpFromApi | (task->p2p ? flight::kOpP2p : 0u) |
                   (task->captured ? flight::kOpGraph : 0u) |
                   (act.group->depth > 1 ? flight::kOpGrouped : 0u);
  if (task->p2p && ++caller.p2p_tasks > 8) {
    if (caller.tail != nullptr && caller.tail->comm == &comm && model_.Holds(caller.tail)) {
      RequireEqual(HandleOf(task->api), caller.tail->handle,
                   "handle of a later task of a large group");
      model_.Expect(Counter::kGroupedTail);
      ++comm.p2ps;
      caller.tail->count += task->count * kTypes[task->type].bytes;
      ++caller.tail->tasks;
      caller.tail->returned = {};
      task->op = caller.tail;
      return;
    }
    flags |= flight::kOpTail;
  }
  NewOperation(task, HandleOf(task->api), flags, e.stream, entered);
  if (flags & flight::kOpTail) caller.tail = task->op;
}

void World::ApiStop(const Act& act) {
  const TaskPtr& task = act.task;
  const Moment returned = Timed([&] { door_.Stop(task->api); });
  if (model_.Holds(task->op)) {
    task->op->returned = returned;
  } else if (flight::OpRowOf(task->op->handle) != flight::kNoOpRow) {
    model_.Expect(Counter::kStaleHandle);
  }
  auto& graphs = task->comm->graphs;
  if (task->captured && !task->silent && graphs.size() < 16 && !(task->op->flags & flight::kOpTail))
    graphs.push_back(task);
}

void World::Messages(const Task& task) {
  const Comm& comm = *task.comm->model;
  Edge* edge = model_.TakeMessages(
      {comm.row, 0, static_cast<uint32_t>(comm.rank), static_cast<uint32_t>(task.peer), 255,
       flight::kEdgeP2p | flight::kEdgePseudo | (task.send ? flight::kEdgeSend : 0u)});
  edge->comm = task.comm->model.get();
  edge->pseudo = true;
  ++edge->messages;
  edge->bytes += task.count * kTypes[task.type].bytes;
}

// Below v4 the operation tells what init did not.
void World::Identify(const Task& task, Event* e) {
  Comm& comm = *task.comm->model;
  const flight::Func func = kFuncs[task.func].value;
  e->comm_id = comm.id;
  const uint64_t bytes = task.count * kTypes[task.type].bytes;
  e->traffic = task.comm->shim ? 0 : bytes * static_cast<uint64_t>(comm.ranks);
  comm.identified = true;
  // (NCCL 2.23-2.25, v1 and v2, count a rank's bytes once for each rank here.)
  if (door_.version() <= 2 && e->traffic != 0 &&
      kTypes[task.type].value != flight::DataType::kUnknown &&
      (func == flight::Func::kAllGather || func == flight::Func::kReduceScatter))
    comm.sized = true;
}

void World::LaunchStart(const Act& act) {
  const TaskPtr& task = act.task;
  CommSim* sim = task->comm;
  Comm& comm = *sim->model;
  const bool api = door_.api_events();
  // A call's handle may be missing: NCCL keeps it in a variable of the thread.
  const bool orphan =
      api && !task->captured && !(task->op->flags & flight::kOpTail) && dice_.OneIn(400);
  Event e;
  e.type = task->copy_engine ? abi::kCeColl : task->p2p ? abi::kP2p : abi::kColl;
  e.parent = orphan ? nullptr : api ? task->api : act.group->plan;
  e.parent_group = act.group->plan;
  e.rank = comm.rank;
  e.func = kFuncs[task->func].text;
  e.datatype = kTypes[task->type].text;
  e.count = task->count;
  e.root = task->root;
  e.peer = task->peer;
  e.sequence = task->sequence;
  e.channels = static_cast<uint8_t>(task->channels);
  e.algo = "RING";
  e.proto = "SIMPLE";
  if (door_.early()) Identify(*task, &e);
  const bool kept = api && !orphan && model_.Holds(task->op);
  const bool lost = api && !orphan && flight::OpRowOf(task->op->handle) == flight::kNoOpRow;
  const bool same = lost || (kept && (!task->op->launched || task->op->flags & flight::kOpTail));
  const uint64_t edges_lost = model_.Counter(Counter::kEdgeNoRow);
  const Moment now = Timed([&] { task->launch = door_.Start(comm.context, e); });
  const uint64_t handle = HandleOf(task->launch);
  Require((handle & flight::kOpLaunched) != 0, "a launch got no handle of a launch");
  if (!same) {
    if (api && !orphan && !kept) model_.Expect(Counter::kStaleHandle);
    NewOperation(task, handle,
                 (task->p2p ? flight::kOpP2p : 0u) |
                     (task->copy_engine ? flight::kOpCopyEngine : 0u) |
                     (api && !orphan ? flight::kOpGraph : 0u),
                 nullptr, now);
  } else {
    RequireEqual(handle & ~flight::kOpLaunched, task->op->handle, "handle of a launch");
    if (task->copy_engine) task->op->flags |= flight::kOpCopyEngine;
  }
  if (task->p2p) {
    if (model_.Counter(Counter::kEdgeNoRow) != edges_lost) {
      model_.Expect(Counter::kEdgeNoRow);
    } else {
      Messages(*task);
    }
  }
  if (model_.Holds(task->op)) {
    Operation& op = *task->op;
    const bool tail = op.flags & flight::kOpTail;
    op.launched = true;
    op.channels =
        tail || task->copy_engine || door_.early() || (task->p2p && !api) ? 0 : task->channels;
    op.peer = task->p2p && !tail ? static_cast<uint32_t>(task->peer) : 0xffffffff;
    op.sequence = task->p2p ? 0 : static_cast<uint32_t>(task->sequence);
  }
  const bool self = task->p2p && task->peer == comm.rank;
  if (task->copy_engine || self) return;  // no children
  sim->kernels.push_back(task);
  if (sim->network) AppendProxyOps(task);
}

void World::LaunchStop(const Act& act) {
  const TaskPtr& task = act.task;
  const Moment now = Timed([&] { door_.Stop(task->launch); });
  if (model_.Holds(task->op)) {
    task->op->enqueued = now;
    ++task->comm->model->launched;
    if (!(task->op->flags & flight::kOpFromApi)) task->op->returned = now;
  } else if (flight::OpRowOf(task->op->handle) != flight::kNoOpRow) {
    model_.Expect(Counter::kStaleHandle);
  }
}

}  // namespace ringscope::interface_model
