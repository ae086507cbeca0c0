#include "tests/replay/nccl_log.h"

#include <time.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/replay/text_file.h"

namespace ringscope::replay {
namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }

int Number(absl::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// "...<host>:<pid>:<tid> [" : where host, pid and tid stand; text in front (a time) is allowed.
struct Prefix {
  size_t host = 0, pid = 0, tid = 0, end = 0;  // begin of each; end of tid
};

bool FindPrefix(absl::string_view line, Prefix& prefix) {
  const size_t nccl = line.find(" NCCL ");
  const size_t limit = nccl == absl::string_view::npos ? line.size() : nccl;
  for (size_t colon = line.find(':'); colon != absl::string_view::npos && colon < limit;
       colon = line.find(':', colon + 1)) {
    size_t at = colon + 1;
    while (at < limit && Digit(line[at])) ++at;
    if (at == colon + 1 || at >= limit || line[at] != ':') continue;
    size_t end = at + 1;
    while (end < limit && Digit(line[end])) ++end;
    if (end == at + 1 || line.substr(end, 2) != " [") continue;
    const size_t space = line.rfind(' ', colon);
    prefix.host = space == absl::string_view::npos ? 0 : space + 1;
    prefix.pid = colon + 1;
    prefix.tid = at + 1;
    prefix.end = end;
    return prefix.host < colon;
  }
  return false;
}

// Renames every number at a place where NCCL prints a rank of the communicator.
class RankRewriter {
 public:
  RankRewriter(const Permutation& permutation, uint64_t comm)
      : permutation_(permutation), comm_(comm) {}

  std::string Rewrite(absl::string_view text) {
    text_ = text;
    if (absl::StartsWith(text, "Channel ") || absl::StartsWith(text, "CollNet ")) {
      Channel();
    } else if (absl::StartsWith(text, "Ring ") || absl::StartsWith(text, "Tree ")) {
      AfterColon();
    } else if (absl::StartsWith(text, "Trees ")) {
      Trees();
    } else {
      Words();
    }
    absl::StrAppend(&out_, text_.substr(copied_));
    return std::move(out_);
  }

 private:
  void Replace(size_t begin, size_t end) {
    absl::StrAppend(&out_, text_.substr(copied_, begin - copied_));
    absl::StrAppend(&out_, permutation_.InComm(comm_, Number(text_.substr(begin, end - begin))));
    copied_ = end;
  }

  // Every number from `at` on that `keep` does not spare; "-1" is none, not a rank.
  void AllNumbers(size_t at, size_t end) {
    while (at < end) {
      if (!Digit(text_[at])) {
        ++at;
        continue;
      }
      size_t stop = at;
      while (stop < end && Digit(text_[stop])) ++stop;
      const char before = at > 0 ? text_[at - 1] : ' ';
      const bool negative =
          before == '-' && stop == at + 1 && text_[at] == '1' && (at < 2 || !Digit(text_[at - 2]));
      if (!negative) Replace(at, stop);
      at = stop;
    }
  }

  // "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0(3)/GDRDMA", "Channel 00/02 : 0 1 2 3"
  void Channel() {
    const size_t colon = text_.find(" : ");
    if (colon == absl::string_view::npos) return;
    const size_t via = text_.find(" via ");
    size_t at = colon + 3;
    const size_t end = via == absl::string_view::npos ? text_.size() : via;
    const bool connection = text_.find("->", at) != absl::string_view::npos;
    if (!connection) {
      AllNumbers(at, end);
      return;
    }
    while (at < end) {
      if (!Digit(text_[at])) {
        at = text_[at] == '[' ? std::min(end, text_.find(']', at)) : at + 1;  // [device] is no rank
        continue;
      }
      size_t stop = at;
      while (stop < end && Digit(text_[stop])) ++stop;
      Replace(at, stop);
      at = stop;
    }
    if (via == absl::string_view::npos) return;
    const size_t open = text_.find('(', via);  // the relay of PXN; "(PCI)" is none
    if (open != absl::string_view::npos && open + 1 < text_.size() && Digit(text_[open + 1])) {
      AllNumbers(open + 1, std::min(text_.size(), text_.find(')', open)));
    }
  }

  void AfterColon() {  // "Ring 00 : 3 -> 0 -> 1", "Tree 0 : -1 -> 0 -> 2/-1/-1"
    const size_t colon = text_.find(" : ");
    if (colon != absl::string_view::npos) AllNumbers(colon + 3, text_.size());
  }

  void Trees() {  // "Trees [0] 2/-1/-1->0->-1 [1] -1/-1/-1->0->1"
    for (size_t at = text_.find(']'); at != absl::string_view::npos; at = text_.find(']', at + 1)) {
      AllNumbers(at + 1, std::min(text_.size(), text_.find('[', at)));
    }
  }

  void Words() {
    static constexpr absl::string_view kWords[] = {"rank ", "[Rank ", "Rank ", "tpRank ",
                                                   "between ranks "};
    for (size_t at = 0; at < text_.size();) {
      size_t length = 0;
      for (absl::string_view word : kWords) {
        if (text_.substr(at, word.size()) == word) length = std::max(length, word.size());
      }
      const bool inside = at > 0 && (std::isalnum(static_cast<unsigned char>(text_[at - 1])) != 0);
      const bool local = at >= 6 && text_.substr(at - 6, 6) == "local ";
      size_t stop = at + length;
      while (length != 0 && stop < text_.size() && Digit(text_[stop])) ++stop;
      if (length != 0 && !inside && !local && stop > at + length) {
        Replace(at + length, stop);
        at = stop;
      } else {
        ++at;
      }
    }
  }

  const Permutation& permutation_;
  uint64_t comm_;
  absl::string_view text_;
  std::string out_;
  size_t copied_ = 0;
};

// The communicator a line is about: by its pointer, else the one that this thread is making.
class CommTracker {
 public:
  explicit CommTracker(uint64_t first) : last_(first) {}

  uint64_t Of(absl::string_view text, absl::string_view tid) {
    const std::string pointer = After(text, "comm 0x");
    const std::string id = After(text, "commId 0x");
    if (!id.empty()) {
      last_ = std::strtoull(id.c_str(), nullptr, 16);
      if (!pointer.empty()) by_pointer_[pointer] = last_;
      by_tid_[std::string(tid)] = last_;
      return last_;
    }
    if (const auto found = by_pointer_.find(pointer); found != by_pointer_.end())
      return found->second;
    if (const auto found = by_tid_.find(std::string(tid)); found != by_tid_.end())
      return found->second;
    return last_;
  }

 private:
  static std::string After(absl::string_view text, absl::string_view key) {
    const size_t at = text.find(key);
    if (at == absl::string_view::npos) return "";
    size_t end = at + key.size();
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    return std::string(text.substr(at + key.size(), end - at - key.size()));
  }

  std::map<std::string, uint64_t> by_pointer_, by_tid_;
  uint64_t last_;
};

// "[2026-11-30 19:05:45] ..." in ns since the epoch, read as UTC; 0: no stamp.
int64_t Stamp(absl::string_view line) {
  tm parts = {};
  if (line.size() < 21 || line[0] != '[' ||
      std::sscanf(std::string(line.substr(0, 21)).c_str(), "[%d-%d-%d %d:%d:%d]", &parts.tm_year,
                  &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min,
                  &parts.tm_sec) != 6) {
    return 0;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<int64_t>(timegm(&parts)) * 1'000'000'000;
}

}  // namespace

int64_t WallOffset(const Capture& capture) {
  for (const Process& process : capture.processes) {
    for (const Event& event : process.events) {
      // The recording's GPU timer counts ns since the epoch.
      if (event.callback == Callback::kStart && event.type == kKernelCh &&
          event.p_timer > 1'000'000'000'000'000'000) {
        return static_cast<int64_t>(event.p_timer - event.t);
      }
    }
  }
  return 0;
}

std::string RewriteLog(absl::string_view text, const LogRewrite& rewrite) {
  const Process& process = *rewrite.process;
  CommTracker comms(process.contexts.empty() ? 0 : process.contexts.front().comm_id);
  const std::string old_pid = absl::StrCat(process.pid);
  const std::string host = process.host.substr(0, process.host.find('.'));
  std::string out;
  int ends = 0;
  for (absl::string_view line : Lines(text)) {
    if (rewrite.until_t != 0 && rewrite.wall_offset_ns != 0) {
      // Stamps count whole seconds.
      const int64_t stamp = Stamp(line);
      const int64_t limit = static_cast<int64_t>(rewrite.until_t) + rewrite.wall_offset_ns;
      if (stamp > limit) break;
    }
    Prefix prefix;
    if (!FindPrefix(line, prefix)) {
      absl::StrAppend(&out, line, "\n");
      continue;
    }
    const bool begins_end = absl::EndsWith(line, "- Abort START");
    const bool ended = absl::StrContains(line, "- Destroy COMPLETE") ||
                       absl::StrContains(line, "- Abort COMPLETE");
    if (process.has_events && (begins_end || ended) && ends >= rewrite.finalizes) break;
    ends += ended;
    const absl::string_view pid = line.substr(prefix.pid, prefix.tid - 1 - prefix.pid);
    const absl::string_view tid = line.substr(prefix.tid, prefix.end - prefix.tid);
    const std::string new_pid = rewrite.pid != 0 && (old_pid == "0" || pid == old_pid)
                                    ? absl::StrCat(rewrite.pid)
                                    : std::string(pid);
    absl::StrAppend(&out, line.substr(0, prefix.host), host, ":", new_pid, ":",
                    tid == pid ? new_pid : std::string(tid));
    const absl::string_view rest = line.substr(prefix.end);
    // Only what NCCL says is about ranks, not the "[device]" in front of it.
    const size_t word = rest.find("NCCL ");
    const size_t message =
        word == absl::string_view::npos ? absl::string_view::npos : rest.find(' ', word + 5);
    if (!rewrite.permuted || message == absl::string_view::npos) {
      absl::StrAppend(&out, rest, "\n");
      continue;
    }
    const absl::string_view said = rest.substr(message + 1);
    const uint64_t comm = comms.Of(said, tid);
    absl::StrAppend(&out, rest.substr(0, message + 1),
                    RankRewriter(*rewrite.permutation, comm).Rewrite(said), "\n");
  }
  return out;
}

}  // namespace ringscope::replay
