#include "tests/replay/deliver.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/replay/descriptor.h"
#include "tests/replay/release.h"
#include "tests/replay/shim.h"

namespace ringscope::replay {
namespace {

void* Pointer(uint64_t value) { return reinterpret_cast<void*>(value); }

}  // namespace

Deliverer::Deliverer(const Capture& capture, size_t process, PluginTable& plugin, Shared& shared,
                     DeliveryObserver* observer)
    : capture_(capture),
      process_(capture.processes[process]),
      index_(process),
      plugin_(plugin),
      shared_(shared),
      observer_(observer != nullptr ? observer : &silent_),
      failed_contexts_(process_.contexts.size(), false) {}

absl::Status Deliverer::Deliver(const Event& event) {
  switch (event.callback) {
    case Callback::kInit:
      return Init(event);
    case Callback::kStart:
      Start(event);
      break;
    case Callback::kState:
    case Callback::kStop:
      StateOrStop(event);
      break;
    case Callback::kFinalize:
      Finalize(event);
      break;
  }
  return absl::OkStatus();
}

bool Deliverer::Given(int32_t slot) const {
  return slot != kNone &&
         shared_.handle(index_, slot).state.load(std::memory_order_acquire) == SharedHandle::kGiven;
}

uint64_t Deliverer::Handle(int32_t slot) const {
  return Given(slot) ? shared_.handle(index_, slot).value.load(std::memory_order_relaxed) : 0;
}

bool Deliverer::Await(SharedHandle& handle, uint64_t* value) const {
  for (int turn = 0; turn < 500; ++turn) {
    const uint32_t state = handle.state.load(std::memory_order_acquire);
    if (state == SharedHandle::kGiven) {
      *value = handle.value.load(std::memory_order_relaxed);
      return true;
    }
    if (state == SharedHandle::kNotDelivered) {  // the owner's plugin did not want it: NCCL has a
                                                 // NULL parent there
      *value = 0;
      return true;
    }
    const timespec pause = {0, 200'000};
    nanosleep(&pause, nullptr);
  }
  return false;
}

absl::Status Deliverer::Init(const Event& event) {
  const Context& context = process_.contexts[static_cast<size_t>(event.context)];
  if (absl::Status status = plugin_.Load(); !status.ok()) return status;
  // The name is the caller's own buffer: gone after the call.
  char name[256] = "";
  if (context.name != nullptr) std::snprintf(name, sizeof name, "%s", context.name);
  void* pointer = nullptr;
  observer_->Entering(event);
  const int result =
      plugin_.Init(&pointer, context.comm_id, &mask_, context.name != nullptr ? name : nullptr,
                   context.n_nodes, context.n_ranks, context.rank);
  observer_->Returned(event);
  std::memset(name, 0x5A, sizeof name);
  if (result != 0) {
    std::fprintf(stderr, "replay: init of the plugin returned %d; NCCL goes on without a context\n",
                 result);
    failed_contexts_[static_cast<size_t>(event.context)] = true;
    pointer = nullptr;
  }
  SharedHandle& given = shared_.context(index_, event.context);
  given.value.store(reinterpret_cast<uint64_t>(pointer), std::memory_order_relaxed);
  given.state.store(SharedHandle::kGiven, std::memory_order_release);
  return absl::OkStatus();
}

bool Deliverer::NcclStarts(const Event& event) const {
  if (!plugin_.loaded()) return false;
  if (!Starts(capture_.release, mask_, event.type)) return false;
  if (event.context != kNone && failed_contexts_[static_cast<size_t>(event.context)] &&
      FailedInitDropsTable(capture_.release)) {
    return false;
  }
  if ((event.type == kColl || event.type == kP2p) &&
      NullGroupSilencesOperations(capture_.release)) {
    const int32_t group = capture_.api <= 4 ? event.parent : event.parent_group;
    return group == kNone || Handle(group) != 0;
  }
  if (event.type == kProxyStep && NullProxyOpSilencesSteps(capture_.release)) {
    return event.parent != kNone && Handle(event.parent) != 0;
  }
  return true;
}

uint64_t Deliverer::ParentHandle(const Event& event) const {
  if (event.foreign_parent == 0) return Handle(event.parent);
  uint64_t value = 0;
  if (event.owner_process != kNone && event.owner_slot != kNone &&
      Await(shared_.handle(static_cast<size_t>(event.owner_process), event.owner_slot), &value)) {
    return value;
  }
  return event
      .foreign_parent;  // a pointer that means nothing here, as to a plugin of the relaying process
}

uint64_t Deliverer::ContextPointer(const Event& event) const {
  if (event.context != kNone)
    return shared_.context(index_, event.context).value.load(std::memory_order_relaxed);
  uint64_t value = 0;
  if (event.owner_process != kNone && event.owner_context != kNone &&
      Await(shared_.context(static_cast<size_t>(event.owner_process), event.owner_context),
            &value)) {
    return value;
  }
  return event.foreign_context;
}

int32_t Deliverer::ProxyPid(const Event& event) const {
  if (event.own_pid) return getpid();
  if (event.owner_process != kNone) {
    const int32_t pid = shared_.process(static_cast<size_t>(event.owner_process))
                            .pid.load(std::memory_order_acquire);
    if (pid != 0) return pid;
  }
  return event.pid;
}

void Deliverer::Start(const Event& event) {
  SharedHandle& given = shared_.handle(index_, event.slot);
  if (!TableHas(capture_.as_api, event.type) || !NcclStarts(event)) {
    given.state.store(SharedHandle::kNotDelivered, std::memory_order_release);
    shared_.process(index_).left_out.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  DescriptorPointers pointers;
  // Through the shim of v1 to v4 an operation's parent is its Group.
  const bool by_group =
      capture_.api >= 5 && capture_.as_api <= 4 && (event.type == kColl || event.type == kP2p);
  pointers.parent = by_group ? Handle(event.parent_group) : ParentHandle(event);
  pointers.channels_unset = capture_.as_api == 4 && NativeApi(capture_.release) > 4;
  pointers.parent_group = Handle(event.parent_group);
  pointers.pid = event.type == kProxyOp ? ProxyPid(event) : 0;
  const uint64_t context = ContextPointer(event);
  Descriptor descriptor;
  BuildDescriptor(capture_.as_api, event, pointers, descriptor);
  void* handle = Pointer(event.hin);
  observer_->Entering(event);
  plugin_.Start(Pointer(context), &handle, descriptor.bytes);
  observer_->Returned(event);
  given.value.store(reinterpret_cast<uint64_t>(handle), std::memory_order_relaxed);
  given.state.store(SharedHandle::kGiven, std::memory_order_release);
  // Strings live in NCCL, but the descriptor was on its stack.
  std::memset(&descriptor, kGarbage, sizeof descriptor);
}

void Deliverer::StateOrStop(const Event& event) {
  const auto leave_out = [this] {
    shared_.process(index_).left_out.fetch_add(1, std::memory_order_relaxed);
  };
  if (!plugin_.loaded()) return leave_out();
  uint64_t handle = event.garbage_handle ? event.hin : Handle(event.slot);
  if (handle == 0) {
    // NCCL looks before it calls, but for network plugins, and for the stops of operations up to
    // 2.25; and only if it had made the start.
    const bool stop = event.callback == Callback::kStop &&
                      (event.type == kColl || event.type == kP2p) && capture_.release <= 225;
    const bool unchecked =
        (event.type == kNetPlugin && (event.slot == kNone || Given(event.slot))) ||
        (stop && Given(event.slot));
    if (!unchecked || !Starts(capture_.release, mask_, event.type)) return leave_out();
  }
  if (event.callback == Callback::kStop) {
    observer_->Entering(event);
    plugin_.Stop(Pointer(handle));
    observer_->Returned(event);
    return;
  }
  if (!TableGets(capture_.release, capture_.as_api, event.state)) return leave_out();
  if (event.type == kProxyStep && event.slot != kNone) {
    // From 2.28 a step without a recorded operation starts and stops, but tells no states.
    const int32_t op = process_.slots[static_cast<size_t>(event.slot)].parent;
    if (op != kNone && Handle(op) == 0) return leave_out();
  }
  StateArgs args;
  if (!event.args_null) {
    BuildStateArgs(capture_.as_api, event,
                   ArgumentsLost(capture_.release, capture_.as_api, event.state), args);
  }
  observer_->Entering(event);
  plugin_.RecordState(Pointer(handle), event.state, event.args_null ? nullptr : args.bytes);
  observer_->Returned(event);
}

void Deliverer::Finalize(const Event& event) {
  const auto context = static_cast<size_t>(event.context);
  if (!plugin_.loaded()) return;
  if (!failed_contexts_[context]) {
    observer_->Entering(event);
    plugin_.Finalize(
        Pointer(shared_.context(index_, event.context).value.load(std::memory_order_relaxed)));
    observer_->Returned(event);
  }
  plugin_.Unload();
}

}  // namespace ringscope::replay
