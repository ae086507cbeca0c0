// Whether each process lived, was frozen, had gone or had ended at the end of the observed time.
//
// Evidence, strongest first: the process's own clean end; what its siblings on the machine saw of
// its lock; the lock when the file is read where it was made; the time at which its heartbeat
// stopped, compared with the others'. A process is never called gone because a job was ended: those
// whose heartbeats stopped together were ended together.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "analyzer/model/build.h"
#include "analyzer/model/job_time.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

constexpr int64_t kSecond = 1000000000;
// Waits for a processor that are shorter are everyday (virtual machines lose 100-200 ms).
constexpr int64_t kStarved = kSecond / 4;

struct Witness {
  const Process* observer = nullptr;
  const trace::Sibling* saw = nullptr;
  JobTime checked;
};

std::string Seconds(int64_t ns) { return absl::StrFormat("%.1f s", static_cast<double>(ns) / 1e9); }

std::string Name(const Process& p) {
  if (p.job_rank >= 0) return absl::StrCat("rank ", p.job_rank);
  return absl::StrCat("pid ", p.trace.process().pid(), " on ", p.host);
}

// How much earlier than the others' a heartbeat must stop to mean something.
int64_t Window(const Process& p) {
  const double heartbeat = std::clamp(p.trace.settings().heartbeat_seconds(), 0.0, 3600.0);
  return std::max(kSecond, static_cast<int64_t>(3 * heartbeat * 1e9));
}

bool EndedInOrder(const Process& p) {
  const auto& live = p.trace.liveness();
  return live.clean() || live.exiting() || p.trace.reason() == trace::REASON_EXIT;
}

class Judge {
 public:
  explicit Judge(Job* job) : job_(*job) {
    for (const Process& p : job_.processes) {
      Observe(p, p.trace);
      for (const auto& t : p.earlier) Observe(p, t);
    }
    std::vector<int64_t> signs;
    for (const Process& p : job_.processes) {
      if (p.last_sign_ns != 0) {
        const JobTime sign = LastSignOf(p);
        const int64_t surely = SatSub(sign.ns, sign.error_ns);
        signs.push_back(surely);
        newest_ = std::max(newest_, surely);
        int64_t& here = newest_of_[sign.clock];
        here = std::max(here, sign.ns);
      }
      int64_t& starved = starved_[p.host];
      starved = std::max(starved, p.trace.liveness().starved_ns());
      lives_now_ |= p.trace.liveness().lock_known() && p.trace.liveness().lock_held();
    }
    std::sort(signs.begin(), signs.end());
    if (!signs.empty()) middle_ = signs[signs.size() / 2];
  }

  void Run() {
    for (Process& p : job_.processes) {
      p.life = Decide(p, &p.life_evidence);
    }
  }

 private:
  // What is added to it where nothing but a heartbeat speaks: on a host that lacks processors the
  // recorder threads wait for one. They were seen to, and may wait several times as long the next
  // time.
  int64_t Lag(const Process& p) const {
    const double stall = std::clamp(p.trace.settings().stall_seconds(), 0.0, 3600.0);
    const auto starved = starved_.find(p.host);
    if (starved == starved_.end() || starved->second < kStarved) return 0;
    return static_cast<int64_t>(std::min(4.0 * static_cast<double>(starved->second), stall * 1e9));
  }

  using Key = std::tuple<int32_t, uint32_t,
                         uint32_t>;  // pid, nonce, start time: unique in a job, hosts included
  static Key KeyOf(const trace::Process& p) {
    return Key(p.pid(), p.nonce(), static_cast<uint32_t>(p.start_ticks()));
  }

  void Observe(const Process& observer, const trace::Trace& record) {
    for (const auto& s : record.siblings()) {
      Witness w = {&observer, &s, ToJobTime(observer, s.checked_ns())};
      Witness& newest = witnesses_[Key(s.pid(), s.nonce(), s.start_ticks_low())];
      // Neighbours share a clock.
      if (newest.saw == nullptr || w.checked.ns > newest.checked.ns) newest = w;
    }
  }

  Life Decide(const Process& p, std::string* why) const {
    const auto& live = p.trace.liveness();
    if (live.clean()) return Say(Life::kExited, "it ended in order and wrote its last trace", why);
    if (live.lock_known() && live.lock_held()) return Existing(p, why);
    if (EndedInOrder(p)) return Say(Life::kExited, "it ran exit()", why);
    const bool early = SilentEarly(p);
    const auto seen = witnesses_.find(KeyOf(p.trace.process()));
    if (seen != witnesses_.end() && AfterAtLeast(LastSignOf(p), seen->second.checked) >= 0) {
      const Life life = Witnessed(p, seen->second, early, why);
      if (life != Life::kUnknown) return life;
    }
    if (live.lock_known() && lives_now_) {
      return Say(Life::kGone,
                 "its flight file's lock is free without a clean end, while others live", why);
    }
    if (!p.from_flight_file) return TraceOnly(p, early, why);
    // Whether it lives, its heartbeat does not tell.
    if (early && WaitsForFiles(p, why)) return Life::kUnknown;
    if (const auto ended = OthersEndedInOrder(p);
        early ? ended.any : ended.all && ActiveAtTheEnd(p)) {
      return Say(live.lock_known() ? Life::kGone : Life::kGoneOrFrozen,
                 absl::StrCat(ended.all ? "all others" : "others",
                              " ended in order after its last sign of life, it did not"),
                 why);
    }
    if (early && NewestAfter(p) <= Window(p) + Lag(p)) {
      return Say(Life::kUnknown,
                 "its heartbeat stopped before the others', but threads wait long for a processor on its host", why);
    }
    if (early) {
      return Say(Life::kGoneOrFrozen,
                 absl::StrCat("its heartbeat stopped ", Earlier(p),
                              " before the newest sign of life of the others, without a clean end"),
                 why);
    }
    return Say(Life::kRunning, "its heartbeat lasted as long as anybody's", why);
  }

  static Life Say(Life life, const std::string& evidence, std::string* why) {
    *why = evidence;
    return life;
  }

  // The lock is held: the process exists now.
  Life Existing(const Process& p, std::string* why) const {
    const std::string& state = p.trace.liveness().process_state();
    if (state == "T" || state == "t") {
      *why = absl::StrCat("it exists and the kernel says it is stopped (state ", state, ")");
      return Life::kFrozen;
    }
    if (WaitsForFiles(p, why)) return Life::kRunning;
    const int64_t age = p.read_realtime_ns != 0 ? SatSub(p.read_realtime_ns, p.last_sign_ns) : NewestAfter(p);
    if (p.last_sign_ns != 0 && age > Window(p) + Lag(p)) {
      *why = absl::StrCat("it exists (its flight file is locked), but its heartbeat is ",
                          Seconds(age), " old");
      return Life::kFrozen;
    }
    *why = "it exists (its flight file is locked) and its heartbeat is fresh";
    return Life::kRunning;
  }

  // The recorder's own thread stopped beating in a call to a file system (a network file system
  // that does not answer): that says nothing about the rest of the process.
  static bool WaitsForFiles(const Process& p, std::string* why) {
    const int64_t since = p.trace.liveness().thread_in_call_ns();
    if (since == 0) return false;
    *why = absl::StrCat(
        "its recorder thread waits for a file system (RINGSCOPE_DIR) since ",
        Seconds(std::max<int64_t>(SatSub(since, p.trace.liveness().heartbeat_ns()), 0)),
        " after its last heartbeat, which is therefore no sign of the process's state");
    return true;
  }

  // A neighbour's look at the lock counts when the neighbour lived on long enough for the two not
  // to have ended together.
  Life Witnessed(const Process& p, const Witness& w, bool early, std::string* why) const {
    const std::string who = Name(*w.observer);
    const bool lived_on = AfterAtLeast(LastSignOf(p), LastSignOf(*w.observer)) > Window(p);
    const int64_t after = SatSub(w.checked.ns, p.last_sign_ns);
    switch (w.saw->state()) {
      case trace::Sibling::EXITED:
        *why = absl::StrCat(who, " saw that it had ended in order");
        return Life::kExited;
      case trace::Sibling::GONE:
        if (!lived_on && !early) return Life::kUnknown;
        *why = absl::StrCat(who, " saw its lock free without a clean end, ",
                            Seconds(after), " after its last sign of life");
        return Life::kGone;
      case trace::Sibling::FROZEN:
        if (!lived_on && !early) return Life::kUnknown;
        if (w.saw->process_state() != "T" && w.saw->process_state() != "t" &&
            after <= Window(p) + Lag(p)) {
          return Life::kUnknown;
        }
        *why = absl::StrCat(who, " saw its lock held and its heartbeat ",
                            Seconds(after), " old");
        if (!w.saw->process_state().empty())
          absl::StrAppend(why, " (process state ", w.saw->process_state(), ")");
        return Life::kFrozen;
      default:
        return Life::kUnknown;
    }
  }

  // A trace is one moment: silence after it says nothing.
  Life TraceOnly(const Process& p, bool early, std::string* why) const {
    if (early) {
      *why = absl::StrCat(
          "it lived when it wrote its trace, ", Earlier(p),
          " before the newest sign of life of the others; its flight file is not among the inputs");
      return Life::kUnknown;
    }
    *why = "it lived when it wrote its trace";
    return Life::kRunning;
  }

  // Before half of the job, or before anyone by so much that a job which is being ended cannot
  // explain it.
  bool SilentEarly(const Process& p) const {
    if (p.last_sign_ns == 0) return false;
    const double stall = std::clamp(p.trace.settings().stall_seconds(), 0.0, 86400.0);
    const int64_t long_window = std::max(Window(p), static_cast<int64_t>(stall * 1e9));
    const JobTime sign = LastSignOf(p);
    return SatSub(SatSub(middle_, sign.ns), sign.error_ns) > Window(p) || NewestAfter(p) > long_window;
  }

  // How much after it the newest sign of life of anybody is, at least.
  int64_t NewestAfter(const Process& p) const {
    const JobTime sign = LastSignOf(p);
    const auto here = newest_of_.find(sign.clock);
    const int64_t same = here == newest_of_.end() ? 0 : SatSub(here->second, sign.ns);
    return std::max(same, SatSub(SatSub(newest_, sign.ns), sign.error_ns));
  }
  // The same for people.
  std::string Earlier(const Process& p) const {
    const char* const doubt = p.time.assumed ? " or more (nothing that they did together bounds the hosts' clocks)" : "";
    return absl::StrCat(Seconds(NewestAfter(p)), doubt);
  }

  struct Ended {
    bool any = false, all = false;
  };
  Ended OthersEndedInOrder(const Process& p) const {
    Ended ended;
    size_t others = 0, after = 0;
    for (const Process& other : job_.processes) {
      if (&other == &p) continue;
      ++others;
      after += EndedInOrder(other) && AfterAtLeast(LastSignOf(p), LastSignOf(other)) >= 0 ? 1 : 0;
    }
    ended.any = after > 0;
    ended.all = after > 0 && after == others;
    return ended;
  }

  // It was in the midst of its work when the record ends. One that had been idle for long was alive
  // while the others waited, and may have been ended with them, within the period of its heartbeat.
  static bool ActiveAtTheEnd(const Process& p) {
    const auto& live = p.trace.liveness();
    return SatSub(live.heartbeat_ns(), live.last_callback_ns()) <= Window(p);
  }

  Job& job_;
  std::map<Key, Witness> witnesses_;
  std::map<std::string, int64_t> starved_;  // by host: longest wait of a recorder thread for a processor
  int64_t middle_ = 0;      // median of the last signs of life, each taken as early as its clock allows
  int64_t newest_ = 0;      // newest of them
  std::map<int, int64_t> newest_of_;  // newest sign of life, by clock
  bool lives_now_ = false;  // some process of the job exists where the files are read
};

}  // namespace

void JudgeLife(Job* job) { Judge(job).Run(); }

}  // namespace ringscope::model
