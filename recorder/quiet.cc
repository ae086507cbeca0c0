#include "recorder/quiet.h"

#include <string.h>

#include <initializer_list>

#include "recorder/flight/rows.h"

namespace ringscope::recorder {

using flight::Load;

void QuietWatch::Init(const Image* image, uint64_t stall_ticks, uint64_t period_ticks,
                      uint64_t share_ticks) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  image_ = image;
  stall_ticks_ = stall_ticks;
  share_ticks_ = share_ticks;
  // A look reads a line or two of each communicator: a sixteenth of the stall time is often enough.
  pause_ticks_ = stall_ticks / 16 > period_ticks ? stall_ticks / 16 : period_ticks;
}

// One number that changes whenever an operation is called, launched, started or finished, or a
// communicator comes or goes. *any: an operation was called in a communicator that lives.
uint64_t QuietWatch::Sum(bool* any) const {
  uint64_t sum = 0;
  *any = false;
  for (uint32_t i = 0; i < image_->comm_rows; ++i) {
    const flight::CommRow& row = image_->comms[i];
    const uint64_t stamp = Load(row.stamp);
    if (stamp == 0) continue;
    const uint64_t finalized = Load(row.finalized);
    const uint64_t called = Load(row.collectives) + Load(row.p2ps);
    *any |= finalized == 0 && called != 0;
    for (const uint64_t part : {stamp, finalized, called, Load(row.launched), Load(row.completed),
                                Load(row.last_progress)}) {
      sum = (sum ^ part) * 0x9e3779b97f4a7c15u;
      sum ^= sum >> 32;
    }
  }
  return sum;
}

uint64_t QuietWatch::NewestEdge() const {
  uint64_t newest = 0;
  for (uint32_t i = 0; i <= image_->edge_mask; ++i) {
    if (Load(image_->edges[i].stamp) >> 63 == 0) continue;
    const uint64_t changed = Load(image_->edges[i].changed);
    if (changed > newest) newest = changed;
  }
  return newest;
}

bool QuietWatch::Look(uint64_t now, uint64_t not_before, bool waits) {
  if (now < next_) return false;
  next_ = now + pause_ticks_;
  bool any;
  const uint64_t sum = Sum(&any);
  if (sum != sum_ || waits || !any) {
    sum_ = sum;
    last_activity_ = now;
    return false;
  }
  if (not_before > last_activity_) last_activity_ = not_before;
  const uint64_t due = last_activity_ + stall_ticks_ + share_ticks_;
  if (now < due) {
    if (due < next_) next_ = due;
    return false;
  }
  if (reported_ == last_activity_) return false;
  // The one thing that moves without a trace in the communicators: the steps of a long transfer.
  const uint64_t edge = NewestEdge();
  if (edge > last_activity_ && now - edge < stall_ticks_) {
    last_activity_ = edge;
    return false;
  }
  reported_ = last_activity_;
  return true;
}

}  // namespace ringscope::recorder
