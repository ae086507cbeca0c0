// Who writes a trace when somebody else stands still, and who speaks for a node.
#include "recorder/anchor.h"
#include "recorder/flight/ask.h"
#include "recorder/marker.h"
#include "recorder/messages.h"
#include "recorder/sys.h"
#include "tests/unit/recorder/process_fixture.h"

namespace ringscope::recorder {
namespace {

using testing::IsEmpty;

class TriggerTest : public ProcessTest {
 protected:
  void SetUp() override { Stall("0.4"); }

  // A process that has worked and does nothing now; `then` runs in it before it waits to be killed.
  static std::function<void()> Idles(const char* rank, std::function<void()> then = nullptr) {
    return [rank, then] {
      setenv("RANK", rank, 1);
      setenv("LOCAL_RANK", rank, 1);
      if (!Start()) _exit(1);
      Complete(Communicator());
      if (then) then();
      pause();
    };
  }
  // One that is stuck in its second operation.
  static std::function<void()> Sticks(const char* rank) {
    return [rank] {
      setenv("RANK", rank, 1);
      setenv("LOCAL_RANK", rank, 1);
      if (!Start()) _exit(1);
      const uint64_t context = Communicator();
      Complete(context);
      Enter(context);
      pause();
    };
  }
  // Works on without a pause: never stalls, never is quiet.
  static void WorkForEver() {
    const uint64_t context = Communicator(2, 8);
    for (;;) {
      Complete(context);
      usleep(20000);
    }
  }
  size_t Named(const std::string& part) const { return TracesNamed(part).size(); }
  std::string MarkerPath() const { return traces_ + "/j.0/" + kMarkerName; }
  static void Touch(const std::string& path) {
    close(open(path.c_str(), O_WRONLY | O_CREAT, 0644));
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), nullptr, 0), 0);
  }
  // Long enough for whatever a process might still write.
  static void Settle() { usleep(1500000); }
};

// ---- quiet

TEST_F(TriggerTest, AQuietProcessWritesOneTraceAndSaysNothing) {
  Child quiet(Idles("0"));
  ASSERT_TRUE(Eventually([this] { return Named("-quiet") == 1; }));
  Settle();
  EXPECT_THAT(Traces(), SizeIs(1));
  const trace::Trace t = OnlyTrace();
  EXPECT_EQ(t.reason(), trace::REASON_QUIET);
  EXPECT_EQ(t.stalls_size(), 0);
  EXPECT_EQ(t.communicators(0).collectives(), 1u);
  EXPECT_EQ(quiet.Stderr(), "");
}

TEST_F(TriggerTest, TheNextQuietPeriodReplacesTheOneBefore) {
  Child quiet(Idles("0", [this] {
    const uint64_t context = Communicator(2, 9);
    for (const char* name : {"-1-quiet", "-2-quiet", "-3-quiet"}) {
      Complete(context);
      if (!Eventually([&] { return Named(name) == 1; })) _exit(2);
    }
  }));
  ASSERT_TRUE(Eventually([this] { return Named("-3-quiet") == 1; }));
  EXPECT_TRUE(Eventually([this] { return Traces().size() == 1; }));
}

// ---- wake

TEST_F(TriggerTest, AStallMakesTheWholeNodeWrite) {
  Child busy(Idles("1", WorkForEver));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  Child stuck(Sticks("0"));
  ASSERT_TRUE(Eventually([this] { return Named("-stall") == 1 && Named("-wake") == 1; }));
  Settle();
  EXPECT_EQ(Named("-stall"), 1u);  // answering does not make anybody ask
  EXPECT_EQ(Named("-wake"), 1u);
  EXPECT_EQ(Named("-marker"), 0u);  // the marker tells it nothing new
  EXPECT_EQ(busy.Stderr(), "");
  const trace::Trace t = ReadTrace(ReadAll(TracesNamed("-wake")[0])).trace;
  EXPECT_EQ(t.reason(), trace::REASON_WAKE);
  EXPECT_EQ(t.process().rank(), 1);
  EXPECT_EQ(t.liveness().woken_by_pid(), stuck.pid());
  EXPECT_EQ(t.liveness().woken_by_rank(), 0);
}

TEST_F(TriggerTest, WhoStallsItselfNeedsNotBeWoken) {
  Child a(Sticks("0")), b(Sticks("1")), c(Sticks("2"));
  ASSERT_TRUE(Eventually([this] { return Named("-stall") == 3; }));
  Settle();
  EXPECT_THAT(Traces(), SizeIs(3));
}

TEST_F(TriggerTest, AWakeGoesToTheOwnJobOnly) {
  Stall("2");
  const auto other_job = [](const char* name, const char* value) {
    return [name, value] {
      setenv(name, value, 1);
      if (!Start()) _exit(1);
      WorkForEver();
    };
  };
  Child other(other_job("RINGSCOPE_JOB", "k")),
      attempt(other_job("TORCHELASTIC_RESTART_COUNT", "1"));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 2; }));
  Child stuck(Sticks("0"));
  ASSERT_TRUE(Eventually([this] { return Named("-stall") == 1; }));
  Settle();
  EXPECT_EQ(Named("-wake"), 0u);
}

TEST_F(TriggerTest, ForeignAndDamagedFilesAreNotWrittenTo) {
  mkdir(flight_.c_str(), 0700);
  const std::string prefix = flight_ + "/ringscope-j.0-h-rank";
  const std::string longer = dir_.path() + "/longer";
  std::ofstream(longer) << std::string(8192, 'x');
  std::ofstream(prefix + "1-1-1.flight") << "short";
  std::ofstream(prefix + "2-2-2.flight") << std::string(8192, 'x');
  ASSERT_EQ(symlink(longer.c_str(), (prefix + "3-3-3.flight").c_str()), 0);
  // The right magic, and everything else wrong; ends within the page.
  std::ofstream(prefix + "4-4-4.flight") << std::string(flight::kMagic, 8) + std::string(3000, 1);
  ASSERT_EQ(mkfifo((prefix + "5-5-5.flight").c_str(), 0600), 0);
  Child stuck(Sticks("0"));
  ASSERT_TRUE(Eventually([this] { return Named("-stall") == 1; }));
  Settle();
  EXPECT_EQ(kill(stuck.pid(), 0), 0) << "it lives on";
  EXPECT_EQ(ReadAll(longer), std::string(8192, 'x'));
  EXPECT_EQ(ReadAll(prefix + "2-2-2.flight"), std::string(8192, 'x'));
  EXPECT_EQ(ReadAll(prefix + "1-1-1.flight"), "short");
}

TEST_F(TriggerTest, AskOwnerTouchesNothingElse) {
  const std::string path = dir_.path() + "/file";
  std::vector<uint64_t> words(1024, 0);
  auto* header = reinterpret_cast<flight::FileHeader*>(words.data());
  memcpy(header->magic, flight::kMagic, 8);
  header->version = flight::kVersion;
  header->byte_order = flight::kByteOrder;
  header->uid = geteuid();
  header->asked_reasons.store(1);
  const auto ask = [&](auto change) {
    std::vector<uint64_t> given = words;
    change(reinterpret_cast<flight::FileHeader*>(given.data()));
    const std::string bytes(reinterpret_cast<char*>(given.data()), given.size() * 8);
    std::ofstream(path, std::ios::binary) << bytes;
    const int fd = open(path.c_str(), O_RDWR);
    const bool asked =
        flight::AskOwner(fd, geteuid(), flight::ReasonBit(flight::Reason::kWake), 42);
    close(fd);
    EXPECT_EQ(asked, ReadAll(path) != bytes);
    return asked;
  };
  EXPECT_TRUE(ask([](flight::FileHeader*) {}));
  const std::string after = ReadAll(path);
  auto* asked = reinterpret_cast<const flight::FileHeader*>(after.data());
  EXPECT_EQ(asked->asked_reasons.load(), 1 | flight::ReasonBit(flight::Reason::kWake));
  EXPECT_EQ(asked->woken_by.load(), 42u);
  size_t changed = 0;
  for (size_t i = 0; i < words.size(); ++i) changed += memcmp(&words[i], &after[i * 8], 8) != 0;
  EXPECT_EQ(changed, 2u);
  EXPECT_FALSE(ask([](flight::FileHeader* h) { h->magic[0] = 'X'; }));
  EXPECT_FALSE(ask([](flight::FileHeader* h) { h->version += 1; }));
  EXPECT_FALSE(ask([](flight::FileHeader* h) { h->byte_order = 0x04030201; }));
  EXPECT_FALSE(ask([](flight::FileHeader* h) { h->uid += 1; }));
}

// ---- marker

TEST_F(TriggerTest, TheMarkerReachesOtherNodes) {
  Child elsewhere(Idles("1", [this] {
    // Its flight file lies in another directory: nothing but the marker connects the two.
    WorkForEver();
  }));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  setenv("RINGSCOPE_FLIGHT_DIR", (dir_.path() + "/flight2").c_str(), 1);
  Child stuck(Sticks("0"));
  ASSERT_TRUE(Eventually([this] { return Named("-stall") == 1 && Named("-marker") == 1; }));
  struct stat st;
  EXPECT_EQ(stat(MarkerPath().c_str(), &st), 0);
  Settle();
  EXPECT_EQ(Named("-marker"), 1u);
  EXPECT_EQ(Named("rank0"), 1u);  // not by its own marker
}

TEST_F(TriggerTest, AUserMayTouchTheMarker) {
  Stall("2");
  Child busy(Idles("0", WorkForEver));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  Settle();
  ASSERT_TRUE(mkdir(traces_.c_str(), 0755) == 0 && mkdir((traces_ + "/j.0").c_str(), 0755) == 0);
  Touch(MarkerPath());
  ASSERT_TRUE(Eventually([this] { return Named("-marker") == 1; }));
  usleep(3000000);  // it answers once in a stall time
  EXPECT_EQ(Named("-marker"), 1u);
  Touch(MarkerPath());
  EXPECT_TRUE(Eventually([this] { return Named("-marker") == 2; }));
}

TEST_F(TriggerTest, AnOldMarkerMeansNothing) {
  Stall("2");
  mkdir(traces_.c_str(), 0755);
  mkdir((traces_ + "/j.0").c_str(), 0755);
  Touch(MarkerPath());
  Child busy(Idles("0", WorkForEver));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  Settle();
  EXPECT_THAT(TracesNamed(".trace"), IsEmpty());
}

TEST_F(TriggerTest, WithoutAJobIdMarkersTakeOneTrace) {
  Stall("2");
  unsetenv("RINGSCOPE_JOB");
  for (const char* name : {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"}) unsetenv(name);
  mkdir(traces_.c_str(), 0755);
  mkdir((traces_ + "/nojob.0").c_str(), 0755);
  Child busy(Idles("0", WorkForEver));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  std::string before;
  for (int i = 1; i <= 3; ++i) {
    usleep(3000000);
    Touch(traces_ + "/nojob.0/" + kMarkerName);
    ASSERT_TRUE(Eventually([&] {
      const auto markers = TracesNamed("-marker.trace");
      return markers.size() == 1 && markers[0] != before;
    })) << i;
    before = TracesNamed("-marker.trace")[0];
  }
}

TEST_F(TriggerTest, NoTracesWantedMeansNoMarker) {
  setenv("RINGSCOPE_TRACES", "0", 1);
  Child stuck(Sticks("0"));
  ASSERT_TRUE(Eventually([&] { return stuck.Stderr() != ""; }));
  EXPECT_THAT(Traces(), IsEmpty());
}

// ---- the limit

TEST_F(TriggerTest, ThereIsAlwaysALastWord) {
  setenv("RINGSCOPE_TRACES", "2", 1);
  Child child([this] {
    if (!Start()) _exit(1);
    for (int i = 1; i <= 5; ++i) {
      AskSnapshot(flight::Reason::kRequest);
      if (!Eventually([&] { return Named("-" + std::to_string(i) + "-request") == 1; })) _exit(2);
    }
    if (Load(Current()->counters[static_cast<uint32_t>(flight::Counter::kTraceDropped)]) != 3)
      _exit(3);
    kill(getpid(), SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(child.Wait())) << WEXITSTATUS(child.Wait());
  const auto traces = Traces();
  ASSERT_THAT(traces, SizeIs(2));
  EXPECT_THAT(traces[0], HasSubstr("-1-request"));
  EXPECT_THAT(traces[1], HasSubstr("-5-request"));
}

// ---- who speaks

TEST_F(TriggerTest, TheFirstStalledProcessOfTheNodeSpeaks) {
  Child idle(Idles("0"));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  Child first(Sticks("1")), second(Sticks("2")), third(Sticks("3"));
  ASSERT_TRUE(Eventually([&] { return first.Stderr() != ""; }));
  Settle();
  EXPECT_THAT(first.StderrLines(), SizeIs(1));
  EXPECT_THAT(first.Stderr(), HasSubstr("rank 1 (h): AllReduce #2"));
  EXPECT_EQ(idle.Stderr() + second.Stderr() + third.Stderr(), "");
}

TEST_F(TriggerTest, WithoutAJobIdAnotherRunDoesNotSilenceThisOne) {
  unsetenv("RINGSCOPE_JOB");
  Child other([] {  // the other run's rank 0, under a launcher of its own
    if (fork() == 0) Sticks("0")();
    pause();
  });
  Child ours(Sticks("1"));
  EXPECT_TRUE(Eventually([&] { return ours.Stderr() != ""; }));
  for (const std::string& file : Flights()) {  // it is nobody's child by now
    const trace::Trace t = FlightTrace(file);
    if (t.process().rank() == 0) kill(t.process().pid(), SIGKILL);
  }
}

TEST_F(TriggerTest, LinesAboutStallsAreCapped) {
  Stall("0.1");
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    for (int i = 0; i < 8; ++i) {
      const uint64_t api = Enter(context);
      Eventually([] {
        return std::any_of(
            std::begin(Current()->header->stalls), std::end(Current()->header->stalls),
            [](const flight::StallFinding& s) { return Load(s.what) && Load(s.resolved) == 0; });
      });
      usleep(400000);
      FinishCall(context, api);
      usleep(200000);
    }
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Stderr();
  EXPECT_THAT(child.StderrLines(), SizeIs(Speaker::kMostLines)) << child.Stderr();
  EXPECT_THAT(child.StderrLines().back(), HasSubstr("further ones are in the traces"));
}

TEST_F(TriggerTest, TheFallbackIsSaidByOneOfTheNode) {
  const auto notes = [](const char* rank) {
    return [rank] {
      setenv("RANK", rank, 1);
      setenv("LOCAL_RANK", rank, 1);
      if (!Start()) _exit(1);
      Communicator(4);
      Current()->comms[0].flags.fetch_or(flight::kCommFallbackNoted);
      pause();
    };
  };
  Child a(notes("0")), b(notes("1")), c(notes("2"));
  ASSERT_TRUE(Eventually([&] { return a.Stderr() + b.Stderr() + c.Stderr() != ""; }));
  Settle();
  const size_t lines = a.StderrLines().size() + b.StderrLines().size() + c.StderrLines().size();
  EXPECT_EQ(lines, 1u) << a.Stderr() << b.Stderr() << c.Stderr();
}

// ---- a thread that waits for a file system

TEST_F(TriggerTest, AThreadInAFileSystemCallIsNotAFrozenProcess) {
  using State = flight::SiblingState;
  for (const auto& [in_call, expected] :
       {std::pair(true, State::kUnknown), {false, State::kFrozen}}) {
    // A living process whose thread has not been heard of for a while.
    Child silent([in_call = in_call] {
      Settings settings;
      ReadSettings(&settings, Say);
      Identity identity;
      ReadIdentity(settings, &identity);
      FlightFile file;
      if (!MakeFlightFile(settings, identity, &file)) _exit(1);
      auto* header = reinterpret_cast<flight::FileHeader*>(file.base);
      header->clock_kind = static_cast<uint32_t>(flight::ClockKind::kMonotonicNs);
      header->tick_ns_q32 = uint64_t{1} << 32;
      header->heartbeat_period_ms = 50;
      g_clock = flight::ClockKind::kMonotonicNs;
      const Reading now = ReadClocks();
      StoreAnchor(&header->first_anchor, now, header->tick_ns_q32);
      StoreAnchor(&header->last_anchor, now, header->tick_ns_q32);
      header->heartbeat.store(now.ticks);
      header->thread_in_call.store(in_call ? now.ticks : 0);
      PublishImage(file.base);
      pause();
    });
    ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
    usleep(1500000);
    Child witness([expected = expected] {
      if (!Start()) _exit(1);
      // As if it had been there from the beginning: what ended before it came is left out.
      Current()->header->first_anchor.realtime_ns.store(1);
      LookAtSiblings(&g_runtime, Ticks());
      if (Load(Current()->siblings[0].who) == 0) _exit(2);
      _exit((Load(Current()->siblings[0].state) & 0xff) == static_cast<uint64_t>(expected) ? 0 : 3);
    });
    EXPECT_TRUE(witness.ExitedWell()) << WEXITSTATUS(witness.Wait());
    kill(silent.pid(), SIGKILL);
    silent.Wait();
    for (const std::string& file : Flights()) unlink(file.c_str());
  }
}

}  // namespace
}  // namespace ringscope::recorder
