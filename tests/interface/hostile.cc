#include "tests/interface/hostile.h"

#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "recorder/clock.h"
#include "recorder/flight/handles.h"
#include "recorder/flight/rows.h"
#include "tests/interface/dice.h"
#include "tests/interface/door.h"
#include "tests/interface/invariants.h"

namespace ringscope::interface_model {
namespace {

using flight::Counter;
using flight::HandleKind;
using flight::Load;

constexpr uint64_t kTypes[] = {0x1,    0x2,    0x4,    0x8,    0x8,        0x10,  0x10,  0x10,
                               0x20,   0x40,   0x40,   0x80,   0x100,      0x200, 0x400, 0x800,
                               0x1000, 0x2000, 0x4000, 0x8000, 1ull << 40, 0,     3,     ~0ull};
constexpr const char* kFuncs[] = {"AllReduce", "Send", "Recv", "Broadcast", "NoSuch", "", nullptr};
constexpr const char* kTypeNames[] = {"ncclFloat32", "ncclInt8", "Unknown", "nccl", "", nullptr};

// One caller's chaos: it remembers some of the handles that it was given, whoever they were for.
class Chaos {
 public:
  Chaos(const recorder::Image& image, int version, uint64_t seed)
      : image_(image), dice_(seed), door_(version, seed + 1) {
    handles_.assign(512, nullptr);
    for (uint32_t i = dice_.Between(1, 6); i > 0; --i) Open();
  }
  void One() {
    const uint32_t choice = dice_.Below(1000);
    if (choice < 2) {
      if (contexts_.size() < 12) Open();
    } else if (choice < 4) {
      door_.Finalize(Context());
    } else if (choice < 450) {
      Start();
    } else if (choice < 650) {
      door_.Stop(Handle());
    } else if (choice == 650) {
      void* handle = Handle();
      for (int i = 0; i < 500; ++i) door_.State(handle, abi::kStepSendPeerWait, dice_.Next());
    } else if (door_.early() && dice_.OneIn(3)) {
      door_.OpState(Handle(), dice_.Below(9), Any(12), dice_.Next());
    } else {
      door_.State(Handle(), dice_.OneIn(20) ? static_cast<uint32_t>(dice_.Next()) : dice_.Below(32),
                  dice_.Next(), dice_.OneIn(4));
    }
  }
  void Close() {
    for (void* context : contexts_) door_.Finalize(context);
  }
  uint64_t callbacks() const { return door_.callbacks; }

 private:
  void Open() {
    const int ranks =
        dice_.OneIn(10) ? static_cast<int>(dice_.Next()) : static_cast<int>(dice_.Between(1, 4096));
    contexts_.push_back(door_.Init(
        {dice_.Next(),
         dice_.OneIn(2) ? "a name that is longer than the forty-seven bytes there is room for"
                        : nullptr,
         dice_.OneIn(9) ? -1 : static_cast<int>(dice_.Below(600)), ranks,
         static_cast<int>(dice_.Below(64))}));
  }
  void* Garbage() {
    const uint64_t any = dice_.Next();
    switch (dice_.Below(7)) {
      case 0:
        return nullptr;
      case 1:
        return reinterpret_cast<void*>(any);
      case 2:
        return reinterpret_cast<void*>(any >> 17);  // looks like a pointer
      case 3:
        return reinterpret_cast<void*>(any & 0xffff);
      // A handle of this process that nobody gave out, or that was given out long ago.
      case 4:
        return reinterpret_cast<void*>(
            flight::MakeHandle(image_.nonce, static_cast<HandleKind>(dice_.Below(16)), any));
      case 5:
        return reinterpret_cast<void*>(flight::MakeHandle(
            image_.nonce, static_cast<HandleKind>(dice_.Below(16)), any & 0x3ffffff));
      default:
        return reinterpret_cast<void*>(flight::MakeHandle(
            dice_.Between(1, 16383), static_cast<HandleKind>(dice_.Below(16)), any));
    }
  }
  void* Handle() {
    return dice_.OneIn(12) ? Garbage()
                           : handles_[dice_.Below(static_cast<uint32_t>(handles_.size()))];
  }
  void* Context() {
    return dice_.OneIn(30) ? Garbage()
                           : contexts_[dice_.Below(static_cast<uint32_t>(contexts_.size()))];
  }
  int Any(uint32_t usual) {
    return static_cast<int>(dice_.OneIn(40) ? dice_.Next() : dice_.Below(usual));
  }

  void Start() {
    Event e;
    e.type = dice_.Of(kTypes);
    if (door_.version() < 5) e.type &= 0xff;
    e.parent = Handle();
    e.parent_group = Handle();
    e.rank = Any(8);
    e.func = dice_.Of(kFuncs);
    e.datatype = dice_.Of(kTypeNames);
    e.algo = dice_.OneIn(2) ? "RING" : nullptr;
    e.proto = dice_.OneIn(2) ? "LL" : nullptr;
    e.count = dice_.Next() >> dice_.Below(64);
    e.sequence = dice_.Next();
    e.comm_id = dice_.Next();
    e.traffic = dice_.OneIn(3) ? e.count * 8 : dice_.Next();
    e.gpu_ns = dice_.Next();
    e.root = Any(8);
    e.peer = Any(16);
    e.depth = Any(4);
    e.pid = dice_.OneIn(4) ? Any(100000) : getpid();
    e.n_steps = Any(40);
    e.chunk = Any(1 << 20);
    e.step = Any(12);
    e.channels = static_cast<uint8_t>(Any(64));
    e.channel = static_cast<uint8_t>(Any(4));
    e.send = dice_.OneIn(2);
    e.captured = dice_.OneIn(8);
    e.stream = Garbage();
    handles_[dice_.Below(static_cast<uint32_t>(handles_.size()))] = door_.Start(Context(), e);
  }

  const recorder::Image& image_;
  Dice dice_;
  Door door_;
  std::vector<void*> contexts_, handles_;
};

}  // namespace

uint64_t Hostile(const recorder::Image& image, int version, uint64_t seed, uint64_t callbacks) {
  Chaos chaos(image, version, seed);
  Dice dice(seed ^ 1);
  for (uint64_t next = 0; chaos.callbacks() < callbacks;) {
    if (chaos.callbacks() >= next) {
      CheckTables(image, recorder::Ticks(), true);
      next = chaos.callbacks() + dice.Between(1000, 60000);
    }
    for (int i = 0; i < 64; ++i) chaos.One();
  }
  chaos.Close();
  CheckTables(image, recorder::Ticks(), true);
  return chaos.callbacks();
}

uint64_t HostileThreads(const recorder::Image& image, uint64_t seed, uint64_t callbacks) {
  constexpr uint32_t kThreads = 4;
  std::atomic<uint64_t> made{0};
  std::atomic<uint32_t> running{kThreads};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Chaos chaos(image, 1 + static_cast<int>((seed + t) % 6), seed + t);
      while (chaos.callbacks() < callbacks / kThreads) chaos.One();
      chaos.Close();
      made += chaos.callbacks();
      --running;
    });
  }
  while (running != 0) {
    CheckEncoding(image);
    CheckTables(image, ~uint64_t{0}, false);
  }
  for (std::thread& thread : threads) thread.join();
  return made;
}

void ManyCommunicators(const recorder::Image& image, uint64_t seed) {
  constexpr uint32_t kMany = 10000;
  Door door(6, seed);
  const auto counter = [&](Counter which) {
    return Load(image.counters[static_cast<uint32_t>(which)]);
  };
  const uint64_t lost_before = counter(Counter::kCommNoRow);
  uint32_t living = 0;
  for (uint32_t c = 0; c < image.comm_rows; ++c)
    living += Load(image.comms[c].stamp) != 0 && Load(image.comms[c].finalized) == 0;
  std::vector<void*> contexts;
  for (uint32_t i = 0; i < kMany; ++i)
    contexts.push_back(door.Init({i + 1000000000, "many", 2, 4, 1}));
  const uint64_t lost = counter(Counter::kCommNoRow) - lost_before;
  RequireEqual(lost, kMany - (image.comm_rows - living), "communicators counted as lost");
  for (void* context : contexts) {
    Event call;
    call.type = abi::kCollApi;
    call.func = "AllReduce";
    call.datatype = "ncclInt8";
    call.count = 1;
    void* handle = door.Start(context, call);
    door.Stop(handle);
    call.type = abi::kProxyOp;
    call.parent = handle;
    call.pid = getpid();
    call.n_steps = 1;
    door.Stop(door.Start(context, call));
  }
  CheckTables(image, recorder::Ticks(), false);
  for (void* context : contexts) door.Finalize(context);
}

}  // namespace ringscope::interface_model
