// Recordings of a plugin that answered NULL, or nothing at all, to some starts. NCCL then sends
// neither states nor a stop for them and gives their children a NULL parent. A plugin that answers
// gets all of these; where they come is fixed by the code of NCCL: each kind has its bracket on the
// calling thread.
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/replay/plan.h"

namespace ringscope::replay {
namespace {

class Mender {
 public:
  Mender(Process& process, int api) : process_(process), api_(api) {}

  void Run() {
    for (const Event& event : process_.events) Take(event);
    for (auto& [tid, thread] : threads_) CloseGroupApi(thread);
    // Added events stand directly after the event that they follow.
    std::vector<Event> merged;
    merged.reserve(out_.size() + added_.size());
    size_t next = 0;
    std::stable_sort(added_.begin(), added_.end(),
                     [](const Added& a, const Added& b) { return a.after < b.after; });
    for (size_t i = 0; i < out_.size(); ++i) {
      merged.push_back(out_[i]);
      for (; next < added_.size() && added_[next].after == i; ++next) {
        Event event = added_[next].event;
        event.t = out_[i].t;
        merged.push_back(event);
      }
    }
    process_.events = std::move(merged);
  }

 private:
  struct Thread {
    uint32_t tid = 0;
    uint32_t load = 0;
    int32_t group_api = kNone;  // refused and still open
    bool group_end_sent = false;
    size_t api_calls_end = 0;  // out_ index after which state GroupEndApiStart comes
    int32_t group = kNone;
    std::deque<int32_t> calls;  // refused CollApi / P2pApi that have no operation yet
    size_t last = 0;            // out_ index of the thread's latest event
  };
  struct Added {
    size_t after;
    Event event;
  };

  void Add(size_t after, const Thread& thread, Callback callback, uint32_t type, int32_t slot,
           uint32_t state = 0) {
    Event event;
    event.callback = callback;
    event.made_up = true;
    event.type = type;
    event.slot = slot;
    event.state = state;
    event.args_null = callback == Callback::kState;  // GroupApi states have no arguments
    event.tid = thread.tid;
    event.load = thread.load;
    added_.push_back({after, event});
  }

  void EndApiCalls(Thread& thread) {
    if (thread.group_api == kNone || thread.group_end_sent || thread.api_calls_end == 0) return;
    Add(thread.api_calls_end, thread, Callback::kState, kGroupApi, thread.group_api,
        kGroupEndApiStart);
    thread.group_end_sent = true;
  }

  void CloseGroup(Thread& thread) {
    if (thread.group == kNone) return;
    Add(thread.last, thread, Callback::kStop, kGroup, thread.group);
    thread.group = kNone;
  }

  void CloseGroupApi(Thread& thread) {
    CloseGroup(thread);
    if (thread.group_api == kNone) return;
    EndApiCalls(thread);
    Add(thread.last, thread, Callback::kStop, kGroupApi, thread.group_api);
    thread.group_api = kNone;
  }

  void Take(Event event) {
    Thread& thread = threads_[event.tid];
    thread.tid = event.tid;
    if (event.callback == Callback::kInit || event.callback == Callback::kFinalize) {
      CloseGroupApi(thread);
    }
    if (event.callback != Callback::kStart) {
      // States and stops with a pointer that nobody handed out are what the missing ones became.
      if (event.garbage_handle) return;
      Push(thread, event);
      return;
    }
    if (event.type == kGroupApi) CloseGroupApi(thread);
    if (event.type == kKernelLaunch || event.type == kGroup) {
      CloseGroup(thread);
      EndApiCalls(thread);
    }
    Adopt(thread, event);
    thread.load = event.load;
    Push(thread, event);
    if (event.type == kCollApi || event.type == kP2pApi) thread.api_calls_end = thread.last;
    if (event.refused) Complete(thread, event);
  }

  // Gives a child the parent that it lost because the parent was refused.
  void Adopt(Thread& thread, Event& event) {
    if ((event.type == kCollApi || event.type == kP2pApi || event.type == kKernelLaunch) &&
        event.parent == kNone) {
      event.parent = thread.group_api;
    }
    if (event.type != kColl && event.type != kP2p) return;
    if (api_ <= 4) {
      if (event.parent == kNone) event.parent = thread.group;
      return;
    }
    if (event.parent_group == kNone) event.parent_group = thread.group;
    if (event.parent != kNone || thread.calls.empty()) return;
    event.parent = thread.calls.front();
    thread.calls.pop_front();
  }

  void Complete(Thread& thread, const Event& event) {
    switch (event.type) {
      case kGroupApi:
        thread.group_api = event.slot;
        thread.group_end_sent = false;
        thread.api_calls_end = 0;
        thread.calls.clear();
        Add(thread.last, thread, Callback::kState, kGroupApi, event.slot, kGroupStartApiStop);
        break;
      case kCollApi:
      case kP2pApi:
        thread.calls.push_back(event.slot);
        Add(thread.last, thread, Callback::kStop, event.type, event.slot);
        break;
      case kGroup:
        thread.group = event.slot;
        break;
      case kKernelLaunch:
      case kColl:
      case kP2p:
      case kProxyCtrl:
        Add(thread.last, thread, Callback::kStop, event.type, event.slot);
        break;
      default:  // when a kernel or a transfer ended cannot be known
        break;
    }
  }

  void Push(Thread& thread, const Event& event) {
    thread.last = out_.size();
    // A stop of a refused event's sibling belongs before the bracket closes: the bracket's end
    // follows the last event.
    if (event.callback == Callback::kStop && (event.type == kCollApi || event.type == kP2pApi)) {
      thread.api_calls_end = thread.last;
    }
    out_.push_back(event);
  }

  Process& process_;
  int api_;
  std::map<uint32_t, Thread> threads_;
  std::vector<Event> out_;
  std::vector<Added> added_;
};

}  // namespace

void MendRefused(Process& process, int api) {
  const bool refused = std::any_of(process.events.begin(), process.events.end(),
                                   [](const Event& event) { return event.refused; });
  if (refused) Mender(process, api).Run();
}

}  // namespace ringscope::replay
