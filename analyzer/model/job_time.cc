#include "analyzer/model/job_time.h"

#include <algorithm>
#include <cmath>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

// Keeps products of hostile times within int64.
int64_t Share(int64_t ns, double ppm) {
  return static_cast<int64_t>(std::min(std::abs(static_cast<double>(ns)) * ppm * 1e-6, 4e18));
}

}  // namespace

JobTime ToJobTime(const Process& process, int64_t monotonic_ns) {
  JobTime time;
  if (monotonic_ns == 0) return time;
  const ClockMap& map = process.time;
  time.ns = process.ToRealtime(monotonic_ns);
  time.clock = map.clock >= 0 ? map.clock : -2 - process.index;  // without a clock each process has one of its own
  time.assumed = map.assumed;
  time.error_ns = map.error_ns;
  if (map.clock >= 0) time.error_ns = SatAdd(time.error_ns, Share(SatSub(monotonic_ns, map.at_ns), map.growth_ppm));
  if (map.jumped_ns != 0 && monotonic_ns < map.jumped_ns) time.error_ns = SatAdd(time.error_ns, map.jump_ns);
  return time;
}

JobTime LastSignOf(const Process& process) {
  const trace::Trace& t = process.trace;
  JobTime time = ToJobTime(process, std::max({t.written_ns(), t.liveness().heartbeat_ns(), t.liveness().last_callback_ns()}));
  if (!time.known()) time = {0, process.time.error_ns, -2 - process.index, process.time.assumed};
  time.ns = process.last_sign_ns;
  return time;
}

int64_t ErrorBetween(const JobTime& a, const JobTime& b) {
  if (a.clock == b.clock) return 0;
  return SatAdd(a.error_ns, b.error_ns);
}

int64_t AfterAtLeast(const JobTime& a, const JobTime& b) { return SatSub(SatSub(b.ns, a.ns), ErrorBetween(a, b)); }
int64_t AfterAtMost(const JobTime& a, const JobTime& b) { return SatAdd(SatSub(b.ns, a.ns), ErrorBetween(a, b)); }

Order OrderOf(const JobTime& a, const JobTime& b) {
  if (!a.known() || !b.known()) return Order::kCannotTell;
  if (AfterAtLeast(a, b) > 0) return Order::kBefore;
  if (AfterAtLeast(b, a) > 0) return Order::kAfter;
  return Order::kCannotTell;
}

}  // namespace ringscope::model
