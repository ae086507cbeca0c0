// RINGSCOPE_STREAM in whole processes: everything that ran is in the files once, whatever ends the process; losses are
// counted; nothing grows.
#include "tests/unit/recorder/process_fixture.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "recorder/hot_edge.h"
#include "recorder/hot_stream.h"
#include "recorder/stream.h"
#include "tests/unit/stream/collecting.h"

namespace ringscope::recorder {
namespace {

using ::testing::IsEmpty;
using ingest::StreamSummary;
using ringscope::testing::Collecting;

class StreamTest : public ProcessTest {
 protected:
  StreamTest() {
    setenv("RINGSCOPE_STREAM", "ops", 1);
    setenv("RINGSCOPE_TRACES", "0", 1);
    Stall("0.5");  // a heartbeat of 62 ms
    unsetenv("RINGSCOPE_STREAM_RATE");
    unsetenv("RINGSCOPE_STREAM_BYTES");
  }
  ~StreamTest() override { unsetenv("RINGSCOPE_STREAM"); }

  std::vector<std::string> Streams() const { return FilesBelow(traces_); }

  // All files of one process, in the order of their numbers.
  struct Whole {
    std::vector<StreamSummary> files;
    Collecting seen;
    uint64_t bytes = 0;
    const trace::StreamLoss& lost() const { return files.back().lost; }
    uint64_t LostOps() const { return lost().operations_no_room() + lost().operations_over_rate(); }
  };
  Whole Read() const {
    std::map<uint64_t, std::pair<StreamSummary, Collecting>> by_sequence;
    Whole whole;
    for (const std::string& path : Streams()) {
      EXPECT_THAT(path, HasSubstr("/traces/j.0/h/rank0-pid"));
      Collecting seen;
      auto summary = ingest::ReadStream(path, &seen);
      EXPECT_TRUE(summary.ok()) << summary.status();
      if (!summary.ok()) continue;
      EXPECT_FALSE(summary->torn) << summary->notes[0];
      EXPECT_EQ(summary->head.process().rank(), 0) << "each file says whose it is";
      EXPECT_EQ(summary->missing_chunks, 0u);
      by_sequence[summary->first_sequence] = {*summary, seen};
    }
    for (const auto& [first, file] : by_sequence) {
      whole.files.push_back(file.first);
      whole.bytes += file.first.bytes;
      whole.seen.ops.insert(whole.seen.ops.end(), file.second.ops.begin(), file.second.ops.end());
      whole.seen.steps.insert(whole.seen.steps.end(), file.second.steps.begin(), file.second.steps.end());
    }
    EXPECT_FALSE(whole.files.empty());
    if (whole.files.empty()) whole.files.emplace_back();
    return whole;
  }

  // Waits while the calling thread's ring is half full, so that nothing is lost on however slow a machine.
  static void Pace() {
    const StreamDoor* door = Current()->stream;
    for (const StreamRing& ring : door->rings) {
      while (Load(ring.head) - Load(ring.tail) > kRingWords / 2) usleep(500);
    }
  }
  // (Copied by two ways, operations of one communicator come almost in order only: recorder/stream.h.)
  static std::vector<uint64_t> Sorted(std::vector<uint64_t> positions) {
    std::sort(positions.begin(), positions.end());
    return positions;
  }
  static std::vector<uint64_t> UpTo(uint64_t n) {
    std::vector<uint64_t> all(n);
    std::iota(all.begin(), all.end(), 1);
    return all;
  }
};

TEST_F(StreamTest, OffIsOff) {
  setenv("RINGSCOPE_STREAM", "off", 1);
  Child child([] {
    if (!Start() || Current()->stream || Current()->steps) _exit(1);
    const uint64_t context = Communicator();
    for (int i = 0; i < 1000; ++i) Complete(context);
    CloseCommunicator(Current(), context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(Streams(), IsEmpty());
}

TEST_F(StreamTest, EveryOperationIsThereOnceAndSmall) {
  constexpr uint64_t kOps = 100000;
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (uint64_t i = 0; i < kOps; ++i) {
      Complete(context);
      if (i % 64 == 0) Pace();
    }
    CloseCommunicator(Current(), context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_EQ(child.Stderr(), "");
  const Whole w = Read();
  EXPECT_EQ(w.LostOps(), 0u);
  EXPECT_TRUE(w.files.back().ended);
  EXPECT_EQ(Sorted(w.seen.Positions(7)), UpTo(kOps));
  const double each = static_cast<double>(w.bytes) / kOps;
  std::printf("%.2f bytes a collective\n", each);
  EXPECT_LE(each, 24);
  const ringscope::testing::SeenOp& last = w.seen.ops.back();
  EXPECT_EQ(last.communicator.name(), "world");
  EXPECT_EQ(last.signature.func(), trace::ALL_REDUCE);
  EXPECT_EQ(last.op.end, trace::ENDED);
  EXPECT_GT(last.op.entered_ns, 0);
  EXPECT_GE(last.op.returned_ns, last.op.entered_ns);
  EXPECT_GE(last.op.enqueued_ns, last.op.returned_ns);
  EXPECT_GE(last.op.started_ns, last.op.enqueued_ns);
  EXPECT_GE(last.op.finished_ns, last.op.started_ns);
  EXPECT_EQ(last.op.gpu_started_ns, 1);
}

TEST_F(StreamTest, LossesAreCounted) {
  constexpr uint64_t kOps = 30000;
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (uint64_t i = 0; i < kOps; ++i) Complete(context);  // as fast as it goes: more than any ring holds
    if (!Eventually([] { return Load(Current()->header->stream_lost) > 0; })) _exit(2);
    CloseCommunicator(Current(), context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_GT(w.LostOps(), 0u);
  EXPECT_EQ(w.seen.ops.size() + w.LostOps(), kOps);
  const auto positions = Sorted(w.seen.Positions(7));
  EXPECT_EQ(std::adjacent_find(positions.begin(), positions.end()), positions.end()) << "twice";
}

TEST_F(StreamTest, AKilledProcessLosesTheLastPeriodOnly) {
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (int i = 0; i < 5000; ++i) {
      Complete(context);
      if (i % 64 == 0) Pace();
    }
    // Two heartbeats later all of that is on disk; what comes then may be lost.
    const uint64_t beats = Load(Current()->header->heartbeats);
    if (!Eventually([=] { return Load(Current()->header->heartbeats) >= beats + 3; })) _exit(2);
    for (int i = 0; i < 100; ++i) Complete(context);
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(child.Wait())) << child.Stderr();
  const Whole w = Read();
  EXPECT_FALSE(w.files.back().ended);
  const auto positions = Sorted(w.seen.Positions(7));
  EXPECT_GE(positions.size(), 5000u);
  EXPECT_EQ(positions, UpTo(positions.size())) << "all up to some point, once";
}

TEST_F(StreamTest, WhatIsStillOpenAtTheEndSaysSo) {
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    const uint64_t other = Communicator(2, 8);
    Complete(other);
    Enter(other);
    CloseCommunicator(Current(), other);  // aborted
    const uint64_t beats = Load(Current()->header->heartbeats);
    if (!Eventually([=] { return Load(Current()->header->heartbeats) >= beats + 4; })) _exit(2);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_EQ(Sorted(w.seen.Positions(7)), UpTo(2));
  EXPECT_EQ(Sorted(w.seen.Positions(8)), UpTo(2));
  for (const auto& seen : w.seen.ops) {
    EXPECT_EQ(seen.op.end, seen.op.position == 1 ? trace::ENDED : trace::STILL_OPEN);
  }
  EXPECT_EQ(w.files.back().unfinished, 2u);
}

// Ends that are concluded, not seen: a lost stop, a captured call, a group of more messages than get rows of their own.
TEST_F(StreamTest, OddOperationsAreThereOnceToo) {
  Child child([] {
    if (!Start()) _exit(1);
    Image* image = Current();
    const uint64_t context = Communicator(4);
    OpCall call = {flight::Func::kAllReduce, flight::DataType::kFloat32, 16, -1, 0, 0};
    const OpLaunch launch = {flight::Algo::kRing, flight::Proto::kSimple, 1, 16, 0, -1};
    const auto enqueue = [&](const OpCall& c, const OpLaunch& l) {
      const uint64_t group = GroupStart(image, context, 1, false);
      const uint64_t api = ApiStart(image, context, c);
      ApiStop(image, api);
      const uint64_t op = LaunchStart(image, context, api, c, l);
      LaunchStop(image, op);
      GroupStop(image, group);
      return op;
    };
    KernelStart(image, enqueue(call, launch), 0, 1);                     // #1: its stop is lost
    KernelStop(image, KernelStart(image, enqueue(call, launch), 0, 1));  // #2
    call.flags = flight::kOpGraph;
    const uint64_t captured = GroupStart(image, context, 1, true);
    ApiStop(image, ApiStart(image, context, call));  // #3: captured, never launched
    GroupStop(image, captured);
    const uint64_t group = GroupStart(image, context, 2, false);
    uint64_t handles[12];
    for (uint64_t& handle : handles) {
      handle = ApiStart(image, context, {flight::Func::kSend, flight::DataType::kFloat32, 8, -1, 0, flight::kOpP2p});
      ApiStop(image, handle);
    }
    for (const uint64_t handle : handles) {
      const uint64_t op = LaunchStart(image, context, handle,
                                      {flight::Func::kSend, flight::DataType::kFloat32, 8, -1, 0, flight::kOpP2p},
                                      {flight::Algo::kUnknown, flight::Proto::kUnknown, 1, 0, 0, 1});
      LaunchStop(image, op);
      KernelStop(image, KernelStart(image, op, 0, 1));
    }
    GroupStop(image, group);
    const uint64_t beats = Load(image->header->heartbeats);
    if (!Eventually([=] { return Load(image->header->heartbeats) >= beats + 6; })) _exit(2);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_EQ(Sorted(w.seen.Positions(7)), UpTo(3));
  uint64_t p2p = 0, tasks = 0;
  for (const auto& seen : w.seen.ops) {
    if (seen.signature.p2p()) {
      ++p2p;
      tasks += std::max(1u, seen.signature.tail_tasks());
      EXPECT_EQ(seen.op.end, trace::ENDED);
      EXPECT_GT(seen.op.finished_ns, 0);
    } else if (seen.op.position == 1) {
      EXPECT_EQ(seen.op.end, trace::END_NOT_SEEN);
      EXPECT_EQ(seen.op.finished_ns, 0);
    } else if (seen.op.position == 3) {
      EXPECT_TRUE(seen.signature.graph_captured());
      EXPECT_EQ(seen.op.started_ns, 0);
    }
  }
  EXPECT_EQ(p2p, 9u);
  EXPECT_EQ(tasks, 12u);
}

TEST_F(StreamTest, ManyCommunicatorsComeAndGo) {
  constexpr uint64_t kComms = 700, kOps = 40;  // more than there are rows
  Child child([] {
    if (!Start()) _exit(1);
    for (uint64_t c = 1; c <= kComms; ++c) {
      const uint64_t context = Communicator(2, 1000 + c);
      for (uint64_t i = 0; i < kOps; ++i) Complete(context);
      CloseCommunicator(Current(), context);
      Pace();
    }
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_EQ(w.LostOps(), 0u);
  std::map<uint64_t, std::vector<uint64_t>> by_comm;
  for (const auto& seen : w.seen.ops) by_comm[seen.communicator.comm_id()].push_back(seen.op.position);
  EXPECT_EQ(by_comm.size(), kComms);
  for (auto& [id, positions] : by_comm) {
    std::sort(positions.begin(), positions.end());
    EXPECT_EQ(positions, UpTo(kOps)) << id;
  }
}

TEST_F(StreamTest, ThreadsGiveTheirRingsBack) {
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (uint32_t t = 0; t < 3 * kStreamRings; ++t) {
      std::thread([context] {
        for (int i = 0; i < 600; ++i) Complete(context);  // more than the ring of rows: it needs a ring of its own
        Pace();
      }).join();
      if (t % 48 != 47) continue;
      const StreamDoor* door = Current()->stream;
      const auto owned = [door] {
        return std::count_if(std::begin(door->rings), std::end(door->rings), [](const StreamRing& r) { return Load(r.owner) != 0; });
      };
      if (owned() == 0) _exit(3);
      if (!Eventually([&] { return owned() == 0; })) _exit(4);
    }
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_EQ(w.seen.ops.size() + w.LostOps(), 3 * kStreamRings * 600u);
}

TEST_F(StreamTest, SeveralThreadsAtOnce) {
  constexpr uint64_t kOps = 20000;
  Child child([] {
    if (!Start()) _exit(1);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        const uint64_t context = Communicator(2, 100 + t);
        for (uint64_t i = 0; i < kOps; ++i) {
          Complete(context);
          if (i % 64 == 0) Pace();
        }
      });
    }
    for (std::thread& t : threads) t.join();
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_EQ(w.LostOps(), 0u);
  for (uint64_t t = 0; t < 4; ++t) EXPECT_EQ(Sorted(w.seen.Positions(100 + t)), UpTo(kOps));
}

TEST_F(StreamTest, AForkedChildWritesNothing) {
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (int i = 0; i < 1000; ++i) Complete(context);
    const pid_t fork_child = fork();
    if (fork_child == 0) {
      usleep(300000);
      exit(0);  // with the library's destructor
    }
    int status = 0;
    waitpid(fork_child, &status, 0);
    if (status != 0) _exit(2);
    Complete(context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(Streams(), SizeIs(1));
  EXPECT_EQ(Sorted(Read().seen.Positions(7)), UpTo(1001));
}

TEST_F(StreamTest, AForkedChildThatRecordsHasAStreamOfItsOwn) {
  SKIP_UNDER_TSAN("a thread started in a forked child");
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (int i = 0; i < 1000; ++i) Complete(context);
    const pid_t fork_child = fork();
    if (fork_child == 0) {
      if (!Start()) _exit(3);
      const uint64_t own = Communicator(2, 9);
      for (int i = 0; i < 700; ++i) Complete(own);
      exit(0);
    }
    int status = 0;
    waitpid(fork_child, &status, 0);
    if (status != 0) _exit(2);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  ASSERT_THAT(Streams(), SizeIs(2));
  for (const std::string& path : Streams()) {
    Collecting seen;
    ASSERT_TRUE(ingest::ReadStream(path, &seen).ok());
    const bool parents = path.find("-pid" + std::to_string(child.pid()) + "-") != std::string::npos;
    EXPECT_EQ(Sorted(seen.Positions(7)), parents ? UpTo(1000) : UpTo(0));
    EXPECT_EQ(Sorted(seen.Positions(9)), parents ? UpTo(0) : UpTo(700));
  }
}

TEST_F(StreamTest, FilesTurnOverAndStayBelowTheirLimit) {
  setenv("RINGSCOPE_STREAM_BYTES", "200000", 1);
  constexpr uint64_t kOps = 60000;
  Child child([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (uint64_t i = 0; i < kOps; ++i) {
      Complete(context);
      if (i % 64 == 0) Pace();
      if (i % 10000 != 0) continue;
      size_t bytes = 0;
      for (const std::string& path : Streams()) bytes += ReadAll(path).size();
      if (bytes > 200000) _exit(2);
    }
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_GT(w.files.size(), 3u);
  EXPECT_LE(w.bytes, 200000u);
  EXPECT_GT(w.lost().removed_bytes(), 100000u);
  const auto positions = Sorted(w.seen.Positions(7));
  ASSERT_FALSE(positions.empty());
  EXPECT_EQ(positions.back(), kOps) << "the newest stay";
  EXPECT_EQ(positions.back() - positions.front() + 1, positions.size());
}

TEST_F(StreamTest, TheRateIsKept) {
  setenv("RINGSCOPE_STREAM_RATE", "4096", 1);  // and the burst of 256 KiB
  constexpr uint64_t kOps = 60000;
  uint64_t seconds = 0;
  {
    timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    Child child([] {
      if (!Start()) _exit(1);
      const uint64_t context = Communicator();
      for (uint64_t i = 0; i < kOps; ++i) {
        Complete(context);
        if (i % 64 == 0) Pace();
      }
    });
    EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
    clock_gettime(CLOCK_MONOTONIC, &after);
    seconds = static_cast<uint64_t>(after.tv_sec - before.tv_sec) + 1;
  }
  const Whole w = Read();
  EXPECT_TRUE(w.files.back().ended);
  EXPECT_GT(w.lost().operations_over_rate(), 0u);
  EXPECT_EQ(w.lost().operations_no_room(), 0u);
  EXPECT_EQ(w.seen.ops.size() + w.LostOps(), kOps);
  EXPECT_LE(w.bytes, (256u << 10) + 4096 * seconds + 16384);
}

TEST_F(StreamTest, AFileThatSomebodyTookAwayIsFollowedByANewOne) {
  Child child([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    if (!Eventually([this] { return Streams().size() == 1; })) _exit(2);
    const std::string first = Streams()[0];
    if (rename(first.c_str(), (dir_.path() + "/taken").c_str()) != 0) _exit(3);
    Complete(context);
    if (!Eventually([&] { return Streams().size() == 1 && Streams()[0] != first; })) _exit(4);
    Complete(context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_THAT(w.seen.Positions(7), ::testing::ElementsAre(2, 3));
}

// A host that closes what it does not know and opens a file of its own under the same number.
TEST_F(StreamTest, NothingGoesToAFileOfTheHost) {
  Child child([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (int round = 0; round < 20; ++round) {
      Complete(context);
      for (int fd = 3; fd < 64; ++fd) close(fd);
      for (int fd = 3; fd < 64; ++fd) {
        if (open((dir_.path() + "/mine").c_str(), O_RDWR | O_CREAT, 0600) < 0) _exit(2);
      }
      usleep(20000);
    }
    for (int fd = 3; fd < 64; ++fd) close(fd);
    if (ReadAll(dir_.path() + "/mine") != "") _exit(3);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
}

TEST_F(StreamTest, AFolderThatRefusesIsOneLine) {
  const std::string file = dir_.path() + "/file";
  close(open(file.c_str(), O_WRONLY | O_CREAT, 0600));
  setenv("RINGSCOPE_DIR", (file + "/below").c_str(), 1);
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (int i = 0; i < 2000; ++i) Complete(context);
    if (!Eventually([] { return Current()->stream->closed.load() == 1; })) _exit(2);
    for (int i = 0; i < 2000; ++i) Complete(context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(child.StderrLines(), SizeIs(1));
  EXPECT_THAT(child.Stderr(), HasSubstr("streaming is off"));
}

TEST_F(StreamTest, StepsSayWhatEachStepDidAndForWhom) {
  setenv("RINGSCOPE_STREAM", "steps", 1);
  constexpr uint32_t kTransfers = 50, kSteps = 16;
  Child child([] {
    if (!Start()) _exit(1);
    Image* image = Current();
    const uint64_t context = Communicator(4);
    const OpCall call = {flight::Func::kAllReduce, flight::DataType::kFloat32, 16, -1, 0, 0};
    for (uint32_t t = 0; t < kTransfers; ++t) {
      const uint64_t api = ApiStart(image, context, call);
      ApiStop(image, api);
      const uint64_t op =
          LaunchStart(image, context, api, call, {flight::Algo::kRing, flight::Proto::kSimple, 1, 16, 0, -1});
      LaunchStop(image, op);
      const bool send = t % 2 == 0;
      const uint64_t proxy = ProxyOpStart(image, {context, op, getpid(), 0, 1 + t % 3, 2, kSteps, 4096, send});
      for (uint32_t s = 0; s < kSteps; ++s) {
        const uint64_t step = StepStart(image, proxy, s);
        StepReach(image, step, 0, false, false, 0);
        if (s != 7) StepReach(image, step, 1, send, false, send ? 0 : 100 + s);  // once a state is skipped
        StepReach(image, step, 2, false, send, send ? 100 + s : 0);
        StepReach(image, step, 3, false, false, 0);
      }
      ProxyOpStop(image, proxy);
      KernelStop(image, KernelStart(image, op, 0, 1));
    }
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  const Whole w = Read();
  EXPECT_EQ(w.seen.Positions(7), UpTo(kTransfers));
  ASSERT_EQ(w.seen.steps.size(), kTransfers * kSteps * 4);
  int64_t time = 0;
  for (size_t i = 0; i < w.seen.steps.size(); ++i) {
    const auto& [step, transfer] = w.seen.steps[i];
    const uint32_t t = static_cast<uint32_t>(i) / (kSteps * 4), s = i / 4 % kSteps, field = i % 4;
    SCOPED_TRACE(i);
    const bool send = t % 2 == 0;
    EXPECT_EQ(transfer.position(), t + 1);
    EXPECT_EQ(transfer.peer(), 1 + t % 3);
    EXPECT_EQ(transfer.channel(), 2u);
    EXPECT_EQ(transfer.send(), send);
    EXPECT_EQ(step.step, s);
    EXPECT_EQ(step.state, field == 3   ? trace::STEP_FREE
                          : field == 0 ? (send ? trace::SEND_GPU_WAIT : trace::RECV_WAIT)
                          : field == 1 ? (send ? trace::SEND_PEER_WAIT : trace::RECV_FLUSH_WAIT)
                                       : (send ? trace::SEND_WAIT : trace::RECV_GPU_WAIT));
    EXPECT_EQ(step.bytes, field == (send ? 2u : 1u) && !(s == 7 && !send) ? 100 + s : 0);
    EXPECT_GE(step.time_ns, time);
    time = step.time_ns;
  }
}

}  // namespace
}  // namespace ringscope::recorder
