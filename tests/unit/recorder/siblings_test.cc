// What a survivor's record says of the other processes of its job.
#include "tests/unit/recorder/process_fixture.h"

namespace ringscope::recorder {
namespace {

// ---- siblings

class SiblingTest : public ProcessTest {
 protected:
  void SetUp() override { Stall("1"); }
  static std::function<void()> Lives(const char* rank) {
    return [rank] {
      setenv("RANK", rank, 1);
      if (!Start()) _exit(1);
      Communicator();
      pause();
    };
  }
  static std::function<void()> EndsWell(const char* rank) {
    return [rank] {
      setenv("RANK", rank, 1);
      if (!Start()) _exit(1);
      Complete(Communicator());
      usleep(1500000);
    };
  }
  const trace::Sibling* Of(const trace::Trace& t, int rank) {
    for (const auto& s : t.siblings()) {
      if (s.rank() == rank) return &s;
    }
    return nullptr;
  }
};

TEST_F(SiblingTest, TheSurvivorTellsKilledStoppedAliveAndEndedApart) {
  Child alive(Lives("1")), stopped(Lives("2")), killed(Lives("3")), ends(EndsWell("4"));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 4; }));
  Child witness([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    if (!Eventually([this] { return !TracesNamed("-stall").empty(); })) _exit(2);
    usleep(3000000);  // the witness looks on; what it sees later stands in its flight file
    kill(getpid(), SIGKILL);
  });
  usleep(300000);
  kill(stopped.pid(), SIGSTOP);
  kill(killed.pid(), SIGKILL);
  killed.Wait();
  witness.Wait();
  std::string file;
  for (const std::string& f : Flights()) {
    if (f.find("-rank0-") != std::string::npos) file = f;
  }
  ASSERT_NE(file, "");
  const trace::Trace t = FlightTrace(file);
  ASSERT_EQ(t.siblings_size(), 4);
  ASSERT_TRUE(Of(t, 1) && Of(t, 2) && Of(t, 3) && Of(t, 4));
  EXPECT_EQ(Of(t, 1)->state(), trace::Sibling::ALIVE);
  EXPECT_EQ(Of(t, 2)->state(), trace::Sibling::FROZEN);
  EXPECT_EQ(Of(t, 2)->process_state(), "T");
  EXPECT_EQ(Of(t, 3)->state(), trace::Sibling::GONE);
  EXPECT_EQ(Of(t, 3)->pid(), killed.pid());
  EXPECT_EQ(Of(t, 4)->state(), trace::Sibling::EXITED);
  EXPECT_GT(Of(t, 3)->heartbeat_realtime_ns(), 0);
  kill(stopped.pid(), SIGCONT);
}

TEST_F(SiblingTest, OtherJobsAreNotSiblingsOtherHostNamesAre) {
  Child other([] {
    setenv("RINGSCOPE_JOB", "k", 1);
    if (!Start()) _exit(1);
    pause();
  });
  Child restarted([] {
    setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
    if (!Start()) _exit(1);
    pause();
  });
  Child container([] {  // one directory in memory is one kernel, whatever the names
    setenv("RINGSCOPE_HOST", "h2", 1);
    setenv("RANK", "5", 1);
    if (!Start()) _exit(1);
    pause();
  });
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 3; }));
  usleep(100000);
  Child witness([&] {
    if (!Start()) _exit(1);
    LookAtSiblings(&g_runtime, Ticks());
    const flight::SiblingRow* rows = Current()->siblings;
    if (Load(rows[0].who) != (static_cast<uint32_t>(container.pid()) | uint64_t{5} << 32)) _exit(2);
    _exit(Load(rows[1].who) == 0 ? 0 : 3);
  });
  EXPECT_TRUE(witness.ExitedWell()) << WEXITSTATUS(witness.Wait());
}

TEST_F(SiblingTest, TheDeadOfAnEarlierRunAreNotSiblings) {
  Child before([] {
    setenv("RANK", "1", 1);
    if (!Start()) _exit(1);
    usleep(200000);
    kill(getpid(), SIGKILL);
  });
  before.Wait();
  usleep(3500000);
  Child witness([] {
    if (!Start()) _exit(1);
    LookAtSiblings(&g_runtime, Ticks());
    _exit(Load(Current()->siblings[0].who) == 0 ? 0 : 2);
  });
  EXPECT_TRUE(witness.ExitedWell());
}

TEST_F(SiblingTest, AStoppedProcessNotesItsFreeze) {
  Child child([] {
    Stall("2");
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    pause();
  });
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  usleep(500000);
  kill(child.pid(), SIGSTOP);
  usleep(3500000);
  kill(child.pid(), SIGCONT);
  trace::Trace t;
  EXPECT_TRUE(Eventually([&] {
    t = FlightTrace(Flights()[0]);
    return t.liveness().freezes() > 0;
  }));
  EXPECT_GE(t.liveness().freeze_ns(), 3000000000);
  EXPECT_EQ(t.stalls_size(),
            0);  // the time in which it stood still is not held against its operation
}

}  // namespace
}  // namespace ringscope::recorder
