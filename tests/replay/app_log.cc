#include "tests/replay/app_log.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/replay/text_file.h"

namespace ringscope::replay {
namespace {

struct Line {
  uint64_t t;
  int rank;
  uint32_t tid;
  absl::string_view text;
};

// "<ns> rank <r> tid <tid> <text>"
bool Split(absl::string_view raw, Line& line) {
  const std::vector<absl::string_view> words = absl::StrSplit(raw, absl::MaxSplits(' ', 5));
  if (words.size() < 6 || words[1] != "rank" || words[3] != "tid") return false;
  line.text = words[5];
  return absl::SimpleAtoi(words[0], &line.t) && absl::SimpleAtoi(words[2], &line.rank) &&
         absl::SimpleAtoi(words[4], &line.tid);
}

// "stopafter 800000 us": the signal comes that long after the line.
bool Delayed(absl::string_view text, absl::string_view word, uint64_t& us) {
  if (!absl::StartsWith(text, word)) return false;
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  return words.size() >= 3 && words[2] == "us" && absl::SimpleAtoi(words[1], &us);
}

}  // namespace

AppEnd ReadAppLog(absl::string_view text) {
  AppEnd end;
  enum RankEnd { kSilent, kEnd, kExit, kStays };
  std::map<int, RankEnd> ranks;
  for (absl::string_view raw : Lines(text)) {
    Line line;
    if (!Split(raw, line)) continue;
    end.line_times.push_back(line.t);
    RankEnd& rank = ranks[line.rank];
    uint64_t us;
    if (absl::StrContains(line.text, "signal KILL")) {
      end.signals.push_back({SIGKILL, line.t, line.tid, 0});
    } else if (absl::StrContains(line.text, "signal STOP")) {
      end.signals.push_back({SIGSTOP, line.t, line.tid, 0});
    } else if (Delayed(line.text, "killafter", us)) {
      end.signals.push_back({SIGKILL, line.t + us * 1000, line.tid, 0});
    } else if (Delayed(line.text, "stopafter", us)) {
      end.signals.push_back({SIGSTOP, line.t + us * 1000, line.tid, 0});
    } else if (absl::StrContains(line.text, "TIMEOUT")) {
      // "... -> abort" goes on by itself; "... -> exit" is the recording's own end.
      if (!absl::StrContains(line.text, "abort")) {
        rank = kStays;
        end.outside_t = end.outside_t == 0 ? line.t : std::min(end.outside_t, line.t);
      }
    } else if (absl::StrContains(line.text, "SKIPPED") || absl::StartsWith(line.text, "HANG")) {
      rank = kStays;
    } else if (line.text == "end") {
      rank = kEnd;
      end.exit_t = std::max(end.exit_t, line.t);
    } else if (line.text == "exit" && rank != kStays) {
      rank = kExit;
      end.exit_t = std::max(end.exit_t, line.t);
    }
  }
  std::sort(end.line_times.begin(), end.line_times.end());
  bool all = !ranks.empty();
  for (const auto& [rank, how] : ranks) {
    all = all && (how == kEnd || how == kExit);
    if (how == kExit) end.exit_code = 1;
  }
  end.how = all ? AppEnd::kExits : AppEnd::kLivesOn;
  return end;
}

}  // namespace ringscope::replay
