// A damaged or hostile record may hold any number as a time. Cut once here, so that nobody behind
// has to think of it.
#include <cmath>

#include "analyzer/model/build.h"

namespace ringscope::model {
namespace {

constexpr int64_t kMaxMonotonic = int64_t{1} << 58;  // nine years after boot
constexpr int64_t kMaxRealtime = int64_t{1} << 61;   // the year 2043
constexpr int64_t kMaxDuration = int64_t{1} << 54;   // seven months
constexpr double kMaxSeconds = 1e7;

class Cutter {
 public:
  bool cut() const { return cut_; }

  int64_t Time(int64_t v) { return Within(v, kMaxMonotonic); }
  int64_t Realtime(int64_t v) { return Within(v, kMaxRealtime); }
  int64_t Duration(int64_t v) { return Within(v, kMaxDuration); }
  double Seconds(double v) {
    if (std::isfinite(v) && v >= 0 && v <= kMaxSeconds) return v;
    cut_ = true;
    return v > 0 ? kMaxSeconds : 0;
  }

 private:
  int64_t Within(int64_t v, int64_t high) {
    if (v >= 0 && v <= high) return v;
    cut_ = true;
    return v < 0 ? 0 : high;
  }
  bool cut_ = false;
};

// Applies `how` to one field of a message, leaving unset fields unset.
#define CUT(message, field, how) \
  if ((message).field() != 0) (message).set_##field(cutter.how((message).field()))

void CutOperation(trace::Operation* op, Cutter& cutter) {
  CUT(*op, entered_ns, Time);
  CUT(*op, returned_ns, Time);
  CUT(*op, enqueued_ns, Time);
  CUT(*op, started_ns, Time);
  CUT(*op, finished_ns, Time);
  CUT(*op, gpu_started_ns, Realtime);  // the GPU's globaltimer looks like nanoseconds since 1970
  CUT(*op, gpu_finished_ns, Realtime);
}

void CutHead(trace::Trace* t, Cutter& cutter) {
  CUT(*t, written_ns, Time);
  if (t->has_clock()) {
    auto& c = *t->mutable_clock();
    CUT(c, monotonic_ns, Time);
    CUT(c, realtime_ns, Realtime);
    CUT(c, error_ns, Duration);
    CUT(c, first_monotonic_ns, Time);
    CUT(c, first_realtime_ns, Realtime);
  }
  if (t->has_settings()) {
    auto& s = *t->mutable_settings();
    CUT(s, stall_seconds, Seconds);
    CUT(s, first_stall_seconds, Seconds);
    CUT(s, heartbeat_seconds, Seconds);
  }
  if (t->has_liveness()) {
    auto& l = *t->mutable_liveness();
    CUT(l, heartbeat_ns, Time);
    CUT(l, heartbeat_realtime_ns, Realtime);
    CUT(l, freeze_begin_ns, Time);
    CUT(l, freeze_ns, Duration);
    CUT(l, starved_ns, Duration);
    CUT(l, last_callback_ns, Time);
  }
}

}  // namespace

bool CutToRange(trace::Trace* t) {
  Cutter cutter;
  CutHead(t, cutter);
  for (auto& s : *t->mutable_stalls()) {
    CUT(s, since_ns, Time);
    CUT(s, noticed_ns, Time);
    CUT(s, resolved_ns, Time);
  }
  for (auto& s : *t->mutable_siblings()) {
    CUT(s, since_ns, Time);
    CUT(s, checked_ns, Time);
    CUT(s, heartbeat_realtime_ns, Realtime);
  }
  for (auto& c : *t->mutable_communicators()) {
    CUT(c, created_ns, Time);
    CUT(c, finalized_ns, Time);
    CUT(c, last_progress_ns, Time);
    for (auto& op : *c.mutable_operations()) CutOperation(&op, cutter);
  }
  for (auto& e : *t->mutable_edges()) {
    CUT(e, changed_ns, Time);
    for (int i = 0; i < e.wait_ns_size(); ++i) e.set_wait_ns(i, cutter.Duration(e.wait_ns(i)));
  }
  for (auto& c : *t->mutable_calls()) CUT(c, since_ns, Time);
  return cutter.cut();
}

#undef CUT

}  // namespace ringscope::model
