// Waits of processes with clocks of their own (wait_graph_input.h).
#include <algorithm>

#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/wait_graph_input.h"

namespace ringscope::reasoning {

using model::SatAdd;
using model::SatSub;

void WaitSpan::OfClock(int clock) {
  if (clocks_ == 0 || (clocks_ == 1 && clock_ != clock)) ++clocks_;
  clock_ = clock;
}

void WaitSpan::Begin(const model::JobTime& t) {
  if (!t.known()) return;
  OfClock(t.clock);
  const auto least = [](int64_t value, int64_t* to) { *to = *to == 0 ? value : std::min(*to, value); };
  least(t.ns, &begin_ns_);
  least(SatSub(t.ns, t.error_ns), &begin_low_);
  least(SatAdd(t.ns, t.error_ns), &begin_high_);
}

void WaitSpan::End(const model::JobTime& t) {
  if (!t.known()) return;
  OfClock(t.clock);
  end_ns_ = std::max(end_ns_, t.ns);
  end_low_ = std::max(end_low_, SatSub(t.ns, t.error_ns));
  end_high_ = std::max(end_high_, SatAdd(t.ns, t.error_ns));
}

void WaitSpan::Join(const WaitSpan& other) {
  if (other.clocks_ == 0) return;
  OfClock(other.clock_);
  clocks_ = std::max(clocks_, other.clocks_);
  const auto least = [](int64_t value, int64_t* to) { *to = *to == 0 || (value != 0 && value < *to) ? value : *to; };
  least(other.begin_ns_, &begin_ns_);
  least(other.begin_low_, &begin_low_);
  least(other.begin_high_, &begin_high_);
  end_ns_ = std::max(end_ns_, other.end_ns_);
  end_low_ = std::max(end_low_, other.end_low_);
  end_high_ = std::max(end_high_, other.end_high_);
}

int64_t WaitSpan::MostLength() const { return exact() ? SatSub(end_ns_, begin_ns_) : SatSub(end_high_, begin_low_); }

bool WaitSpan::Before(const WaitSpan& other) const {
  if (begin_ns_ == 0 || other.begin_ns_ == 0) return false;
  if (exact() && other.exact() && clock_ == other.clock_) return begin_ns_ < other.begin_ns_;
  return begin_high_ < other.begin_low_;
}

model::Truth WaitSpan::Past(const model::JobTime& t, double share) const {
  const auto at = [share](int64_t begin, int64_t end) {
    return (1 - share) * static_cast<double>(begin) + share * static_cast<double>(end);
  };
  const bool same = exact() && clock_ == t.clock;
  const auto ns = static_cast<double>(t.ns), error = same ? 0 : static_cast<double>(t.error_ns);
  if (ns - error >= (same ? at(begin_ns_, end_ns_) : at(begin_high_, end_high_))) return model::Truth::kYes;
  return ns + error < (same ? at(begin_ns_, end_ns_) : at(begin_low_, end_low_)) ? model::Truth::kNo : model::Truth::kUnknown;
}

}  // namespace ringscope::reasoning
