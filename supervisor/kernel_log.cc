#include "supervisor/kernel_log.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/time.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "supervisor/collector.h"
#include "supervisor/commands.h"

namespace ringscope::supervisor {
namespace {

constexpr size_t kMostLines = 2000;  // the last ones: a flood of one message must not push the file's size beyond reading
constexpr double kToolSeconds = 4;   // of dmesg, then of journalctl: together below the usual budget

int64_t Nanoseconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

class Lines {
 public:
  explicit Lines(int64_t since_ns) : since_ns_(since_ns) {}
  void Add(int64_t ns, std::string line) {
    ++seen_;
    if (ns < since_ns_) return;
    lines_.push_back(std::move(line));
    if (lines_.size() > kMostLines) lines_.pop_front();
  }
  // False when there were none, old ones included: then this was no log to read.
  bool any() const { return seen_ > 0; }
  std::vector<std::string> Take() { return {lines_.begin(), lines_.end()}; }

 private:
  const int64_t since_ns_;
  size_t seen_ = 0;
  std::deque<std::string> lines_;
};

// "6,1234,98765432,-;NVRM: Xid …": priority and facility, sequence, microseconds, flags (Documentation/ABI/testing/dev-kmsg).
// Lines that begin with a blank are the record's dictionary. The stamp is of the boot's monotonic clock as far as no processor's
// clock runs away; a machine that was suspended since is off by that time.
void TakeRecord(absl::string_view record, const std::string& host, int64_t boot_ns, Lines* lines) {
  const size_t semicolon = record.find(';');
  if (record.empty() || record[0] == ' ' || semicolon == record.npos) return;
  const std::vector<absl::string_view> head = absl::StrSplit(record.substr(0, semicolon), ',');
  int priority = 0;
  int64_t us = 0;
  if (head.size() < 3 || !absl::SimpleAtoi(head[0], &priority) || !absl::SimpleAtoi(head[2], &us)) return;
  if (priority >> 3 != 0) return;  // written by a program, not by the kernel
  const int64_t ns = boot_ns + us * 1000;
  lines->Add(ns, absl::StrCat(IsoTime(ns), " ", host, " kernel: ", record.substr(semicolon + 1)));
}

// 0, or why it cannot be read.
int ReadKmsg(const CollectOptions& options, Lines* lines) {
  const int fd = open(options.kernel_log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return errno;
  const int64_t boot_ns = Nanoseconds(CLOCK_REALTIME) - Nanoseconds(CLOCK_MONOTONIC);
  std::string text;
  char piece[16384];  // a record has at most 8 KiB; a shorter buffer is refused
  for (;;) {
    const ssize_t n = read(fd, piece, sizeof(piece));
    // EPIPE: records were overwritten while they were read; the next read goes on behind them.
    if (n < 0 && (errno == EINTR || errno == EPIPE)) continue;
    if (n <= 0) {
      const int why = n == 0 || errno == EAGAIN ? 0 : errno;
      close(fd);
      return why;
    }
    text.append(piece, static_cast<size_t>(n));
    size_t start = 0;
    for (size_t end; (end = text.find('\n', start)) != text.npos; start = end + 1)
      TakeRecord(absl::string_view(text).substr(start, end - start), options.host, boot_ns, lines);
    text.erase(0, start);
  }
}

// Nanoseconds since 1970, of "2026-08-05T03:12:01,123456+02:00" (dmesg) and "2026-08-05T03:12:01.123456+0200" (journalctl); -1
// when it is neither.
int64_t TimeOf(std::string stamp) {
  std::replace(stamp.begin(), stamp.end(), ',', '.');
  absl::Time time;
  return absl::ParseTime("%Y-%m-%dT%H:%M:%E*S%Ez", stamp, &time, nullptr) ? absl::ToUnixNanos(time) : -1;
}

// `dmesg` names no host: "2026-08-05T03:12:01,123456+00:00 NVRM: …".
void TakeOutput(const std::string& text, const std::string& host_to_add, Lines* lines) {
  for (const absl::string_view part : absl::StrSplit(text, '\n')) {
    const std::string line(part);
    const size_t blank = line.find(' ');
    const int64_t ns = blank == line.npos ? -1 : TimeOf(line.substr(0, blank));
    if (ns < 0) continue;
    lines->Add(ns, host_to_add.empty()
                       ? line
                       : absl::StrCat(line.substr(0, blank), " ", host_to_add, " kernel: ", line.substr(blank + 1)));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> KernelLog(const CollectOptions& options) {
  Lines lines(options.since_ns);
  const int why = ReadKmsg(options, &lines);
  if (lines.any()) return lines.Take();
  std::string reasons = absl::StrCat(options.kernel_log, ": ", why == 0 ? "empty" : strerror(why));
  const std::vector<std::vector<std::string>> tools = {{"dmesg", "--kernel", "--time-format=iso"},
                                                       {"journalctl", "--dmesg", "--boot", "--quiet", "--no-pager",
                                                        "--output=short-iso-precise", absl::StrCat("--lines=", kMostLines)}};
  for (const std::vector<std::string>& tool : tools) {
    if (!OnPath(tool[0])) {
      absl::StrAppend(&reasons, "; ", tool[0], ": not there");
      continue;
    }
    std::string text;
    const auto ends = RunCommands({tool}, {}, kToolSeconds, [&text](size_t, std::string_view piece) { text += piece; });
    TakeOutput(text, tool[0] == "dmesg" ? options.host : "", &lines);
    if (lines.any()) return lines.Take();
    absl::StrAppend(&reasons, "; ", tool[0], ": ", ends[0].good() ? "nothing" : ends[0].Words(kToolSeconds));
  }
  return absl::PermissionDeniedError(absl::StrCat("the kernel's log cannot be read here (", reasons, "); root on the host can"));
}

}  // namespace ringscope::supervisor
