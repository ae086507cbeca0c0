// The kernel's log, where it may be read: what the driver said of GPUs, links and adapters.
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <deque>
#include <string>

#include "supervisor/collect.h"

namespace ringscope::supervisor {
namespace {

constexpr size_t kMostLines = 4000;

// A record of /dev/kmsg: "level,sequence,microseconds since boot,flags;text".
std::string Line(const std::string& record, int64_t boot_ns, const char* host) {
  const size_t text = record.find(';');
  const size_t first = record.find(','), second = record.find(',', first + 1);
  if (text == record.npos || second == record.npos || second > text) return "";
  const int64_t at = boot_ns + strtoll(record.c_str() + second + 1, nullptr, 10) * 1000;
  const time_t seconds = at / 1000000000;
  tm utc;
  gmtime_r(&seconds, &utc);
  char when[64];
  strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
  char head[400];
  snprintf(head, sizeof(head), "%s.%06d+0000 %s kernel: ", when, static_cast<int>(at / 1000 % 1000000), host);
  return head + record.substr(text + 1, record.find('\n', text) - text - 1) + "\n";
}

std::string KernelLog(const CollectOptions& options, FILE* out) {
  const int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::string("/dev/kmsg cannot be read: ") + strerror(errno) + " (root, or kernel.dmesg_restrict=0)";
  timespec real, boot;
  clock_gettime(CLOCK_REALTIME, &real);
  clock_gettime(CLOCK_MONOTONIC, &boot);
  const int64_t boot_ns = (real.tv_sec - boot.tv_sec) * 1000000000LL + real.tv_nsec - boot.tv_nsec;
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  std::deque<std::string> lines;
  char record[8192];
  for (;;) {
    const ssize_t n = read(fd, record, sizeof(record) - 1);
    if (n < 0 && errno == EPIPE) continue;  // overwritten meanwhile; the next one is there
    if (n <= 0) break;
    std::string line =
        Line(std::string(record, static_cast<size_t>(n)), boot_ns, options.host.empty() ? host : options.host.c_str());
    if (line.empty()) continue;
    lines.push_back(std::move(line));
    if (lines.size() > kMostLines) lines.pop_front();
  }
  close(fd);
  for (const std::string& line : lines) fputs(line.c_str(), out);
  return lines.empty() ? "the kernel's log is empty" : "";
}

const RegisterCollector kRegister({"kernel log", "kernel.log", true, Collector::kMachine, KernelLog});

}  // namespace
}  // namespace ringscope::supervisor
