// Kills replayed processes at random moments (SIGKILL, within callbacks too) and compares what
// their flight files say with a model of the tables: every fact must be that after the callbacks
// that had returned, or after one more when a callback was being executed.
//
//   kill_test BUILD_TREE CAPTURES KILLS
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/integration/kill_facts.h"
#include "tests/integration/kill_model.h"
#include "tests/replay/deliver.h"
#include "tests/replay/foreign.h"
#include "tests/replay/plan.h"

namespace ringscope::integration {
namespace {

namespace fs = std::filesystem;

// Collectives and point-to-point calls over v4, v5 and v6, ring and tree, Simple and LL; all within
// the model's limits.
constexpr const char* kCaptures[] = {"b1_rank2_skips_op10",        "2.27.7_healthy_mixed",
                                     "2.28.9_healthy_mixed",       "pp0_pipeline_healthy",
                                     "q1_default_tree_ll_healthy", "e1_create_destroy_30x_healthy",
                                     "q3_tree_simple_healthy",     "a1_healthy_mixed_v6"};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "kill_test: %s\n", why.c_str());
  std::exit(1);
}

// A plugin that answers every start; its handles are numbers.
uint32_t g_mask = 0;
uint64_t g_next = 1;
int InitV4(void** context, int* mask, const char*, uint64_t, int, int, int, replay::Logger) {
  *context = reinterpret_cast<void*>(g_next++);
  *mask = static_cast<int>(g_mask);
  return 0;
}
int InitV5(void** context, uint64_t, int* mask, const char*, int, int, int, replay::Logger) {
  *context = reinterpret_cast<void*>(g_next++);
  *mask = static_cast<int>(g_mask);
  return 0;
}
int Start(void*, void** handle, void*) {
  *handle = reinterpret_cast<void*>(g_next++);
  return 0;
}
int Stop(void*) { return 0; }
int State(void*, uint32_t, void*) { return 0; }
int Finalize(void*) { return 0; }

// Notes which of the captured events NCCL delivers.
struct Note : replay::DeliveryObserver {
  std::vector<const replay::Event*> events;
  void Returned(const replay::Event& event) override { events.push_back(&event); }
};

struct Case {
  std::string folder;
  std::unique_ptr<replay::Capture> capture;
  uint32_t mask = 0;
  std::vector<std::vector<const replay::Event*>> delivered;  // by process, in order
};

Case Load(const std::string& folder) {
  Case c;
  c.folder = folder;
  auto capture = replay::ReadCapture(folder);
  if (!capture.ok()) Fail(std::string(capture.status().message()));
  c.capture = *std::move(capture);
  for (replay::Process& process : c.capture->processes)
    replay::MendRefused(process, c.capture->api);
  replay::MapForeign(*c.capture);
  return c;
}

void WorkOutDeliveries(Case& c, uint32_t mask) {
  if (c.mask == mask) return;
  c.mask = g_mask = mask;
  c.delivered.clear();
  const auto plans = replay::MakePlans(*c.capture, 0);
  auto shared = replay::Shared::Make(*c.capture);
  if (!shared.ok()) Fail(std::string(shared.status().message()));
  for (size_t p = 0; p < plans.size(); ++p) {
    replay::TableV4 v4 = {"note", InitV4, Start, Stop, State, Finalize};
    replay::TableV5 v5 = {"note", InitV5, Start, Stop, State, Finalize};
    replay::PluginTable plugin(
        c.capture->api == 4 ? static_cast<void*>(&v4) : static_cast<void*>(&v5), c.capture->api);
    Note note;
    replay::Deliverer deliverer(*c.capture, p, plugin, *shared, &note);
    for (const replay::Action& action : plans[p].actions) {
      if (action.kind != replay::Action::kCall) continue;
      if (absl::Status s = deliverer.Deliver(c.capture->processes[p].events[action.event]); !s.ok())
        Fail(s.ToString());
    }
    c.delivered.push_back(std::move(note.events));
  }
}

std::string FlightFileOf(const std::string& out, int rank) {
  for (const auto& entry : fs::directory_iterator(out + "/flight")) {
    if (absl::StrContains(entry.path().filename().string(), absl::StrCat("-rank", rank, "-")))
      return entry.path();
  }
  return "";
}

Facts FactsAfter(const Case& c, size_t process, uint64_t callbacks) {
  Model model(c.capture->processes[process], c.capture->api);
  for (uint64_t i = 0; i < callbacks && i < c.delivered[process].size(); ++i)
    model.Apply(*c.delivered[process][i]);
  return model.ToFacts();
}

struct Tally {
  int kills = 0, inside = 0, failed = 0, early = 0;
  size_t facts = 0;
};

// Looks at what one process left.
void Judge(Case& c, const std::string& out, size_t process, uint64_t seed, Tally& tally) {
  const auto counts = replay::ReadReturned(out, c.capture->processes[process].index);
  if (!counts.ok()) Fail(std::string(counts.status().message()));
  uint64_t entered = 0, returned = 0;
  for (const auto& thread : *counts) entered += thread.entered, returned += thread.returned;
  ++tally.kills;
  if (returned == 0) {  // killed before or in the first init
    ++tally.early;
    return;
  }
  Facts got;
  uint32_t mask = 0;
  const std::string file = FlightFileOf(out, c.capture->processes[process].ranks.front());
  std::string differences;
  if (file.empty() || !ReadFacts(file, &got, &mask)) {
    differences = "no flight file\n";
  } else {
    WorkOutDeliveries(c, mask);
    const Facts before = FactsAfter(c, process, returned);
    differences =
        Compare(got, before, entered == returned ? before : FactsAfter(c, process, entered));
    tally.facts += before.size();
  }
  tally.inside += entered > returned;
  if (differences.empty()) return;
  ++tally.failed;
  if (tally.failed <= 5) {
    std::fprintf(
        stderr, "kill_test: %s, process %zu, seed %llu, %llu callbacks returned, %llu entered:\n%s",
        c.capture->name.c_str(), process, static_cast<unsigned long long>(seed),
        static_cast<unsigned long long>(returned), static_cast<unsigned long long>(entered),
        differences.substr(0, 1500).c_str());
  }
}

int Replay(const std::string& tree, const Case& c, const std::string& out, uint64_t seed) {
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == nullptr ||
        freopen("/dev/null", "w", stderr) == nullptr)
      _exit(127);
    const std::string program = tree + "/replay", kill = absl::StrCat("--kill=random:", seed);
    execl(program.c_str(), program.c_str(), c.folder.c_str(), "--out", out.c_str(), "--speed",
          "max", kill.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int Run(const std::string& tree, const std::string& captures, int kills) {
  std::vector<Case> cases;
  for (const char* name : kCaptures) {
    if (fs::exists(fs::path(captures) / name)) cases.push_back(Load(captures + "/" + name));
  }
  if (cases.empty()) Fail(captures + ": holds none of the captures that this test uses");
  char base[] = "/tmp/kill_test.XXXXXX";
  if (mkdtemp(base) == nullptr) Fail("no temporary folder");
  Tally tally;
  for (uint64_t seed = 1; tally.kills < kills; ++seed) {
    Case& c = cases[seed % cases.size()];
    const std::string out = absl::StrCat(base, "/", seed);
    if (const int code = Replay(tree, c, out, seed); code != 0)
      Fail(absl::StrCat(c.folder, " seed ", seed, ": replay ended with ", code));
    for (size_t p = 0; p < c.capture->processes.size(); ++p) {
      if (c.capture->processes[p].has_events) Judge(c, out, p, seed, tally);
    }
    fs::remove_all(out);
  }
  fs::remove_all(base);
  std::printf(
      "%d kills in %zu captures: %d within a callback, %d before the first returned; %zu facts "
      "compared; "
      "%d files unlike the model\n",
      tally.kills, cases.size(), tally.inside, tally.early, tally.facts, tally.failed);
  return tally.failed == 0 && tally.early < tally.kills / 2 ? 0 : 1;
}

}  // namespace
}  // namespace ringscope::integration

int main(int argc, char** argv) {
  if (argc != 4 || std::atoi(argv[3]) <= 0) {
    std::fputs("usage: kill_test BUILD_TREE CAPTURES KILLS\n", stderr);
    return 64;
  }
  return ringscope::integration::Run(argv[1], argv[2], std::atoi(argv[3]));
}
