// Dumps of PyTorch's flight recorder among the records: when they were taken, which of them are out of date, and what "scheduled"
// means in them (build.h).
//
// A dump holds no time of its own. The real recorder looks at an operation's CUDA events when its watchdog retires it and when a
// dump is taken: a time at which an open operation was seen to have started, or an unretired one to have ended, is the dump's.
// Where no entry tells, the oldest open operation's timeout stands for it: that is when the watchdog has a dump written. All
// dumps of a job are written for the same reason at the same time, so what one of them tells holds for all.
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analyzer/model/build.h"
#include "analyzer/model/ranks_text.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStall = 60 * kSecond;          // the recorder's own setting, unless set (docs/settings.md)
constexpr int64_t kUsualTimeout = 600 * kSecond;  // of PyTorch's NCCL backend since 2.2

int64_t Timeout(const trace::Dump& dump) { return dump.timeout_ns() > 0 ? dump.timeout_ns() : kUsualTimeout; }

// Everybody has to come to these before anybody leaves.
bool NeedsAll(trace::Func func) {
  return func == trace::ALL_REDUCE || func == trace::ALL_GATHER || func == trace::REDUCE_SCATTER || func == trace::ALL_TO_ALL;
}

uint64_t NewestFinished(const trace::Communicator& c) {
  for (int i = c.operations_size(); i-- > 0;) {
    const trace::Operation& op = c.operations(i);
    if (!op.p2p() && op.finished_ns() != 0 && NeedsAll(op.func())) return op.position();
  }
  return 0;
}

// A rank that has not come to what others have finished was not looked at when they were: its dump is an older one, of an earlier
// moment or an earlier run.
void DropOutdated(std::vector<Record>* records, Notes* notes) {
  absl::flat_hash_map<uint64_t, uint64_t> finished;
  for (const Record& r : *records) {
    for (const auto& c : r.trace.communicators()) {
      uint64_t& newest = finished[c.comm_id()];
      newest = std::max(newest, NewestFinished(c));
    }
  }
  std::vector<bool> old(records->size(), false);
  size_t n = 0;
  for (size_t i = 0; i < records->size(); ++i) {
    const trace::Trace& t = (*records)[i].trace;
    old[i] = std::any_of(t.communicators().begin(), t.communicators().end(),
                         [&](const trace::Communicator& c) { return c.collectives() < finished[c.comm_id()]; });
    n += old[i];
  }
  // One whose numbers are far ahead of everybody's is the odd one itself.
  if (n == 0 || 2 * n >= records->size()) return;
  std::vector<int> ranks;
  std::vector<Record> kept;
  for (size_t i = 0; i < records->size(); ++i) {
    if (old[i]) {
      ranks.push_back((*records)[i].trace.process().rank());
    } else {
      kept.push_back(std::move((*records)[i]));
    }
  }
  *records = std::move(kept);
  notes->Add(absl::StrCat("the dump of ", RanksText(ranks), ranks.size() == 1 ? " is" : " are",
                          " older than the others': they have finished what it has not come to; left out"));
}

// Entries stand in a dump from the oldest to the newest, so what was cut off is how far its rank had come.
void DropCut(std::vector<Record>* records, Notes* notes) {
  std::vector<int> ranks;
  for (const Record& r : *records) {
    if (r.torn) ranks.push_back(r.trace.process().rank());
  }
  if (ranks.empty()) return;
  std::erase_if(*records, [](const Record& r) { return r.torn; });
  notes->Add(absl::StrCat("the dump of ", RanksText(ranks), ranks.size() == 1 ? " was" : " were",
                          " cut short: the newest entries are gone, so how far the rank had come is not known; left out"));
}

void SetTaken(int64_t taken, bool assumed, trace::Trace* t) {
  trace::Dump& dump = *t->mutable_dump();
  dump.set_taken_ns(taken);
  dump.set_taken_assumed(assumed);
  t->set_written_ns(taken);
  t->mutable_liveness()->set_heartbeat_ns(taken);
  const int64_t stall = dump.timeout_ns() > 0 ? std::min(kStall, dump.timeout_ns()) : kStall;
  t->mutable_settings()->set_stall_seconds(static_cast<double>(stall) / 1e9);
}

}  // namespace

void SettleDumps(std::vector<Record>* records, Notes* notes) {
  std::vector<Record> dumps, others;
  for (Record& r : *records) (r.trace.has_dump() ? dumps : others).push_back(std::move(r));
  if (!dumps.empty() && !others.empty()) {
    // Both tell of the same operations, and the two cannot be joined: PyTorch does not know NCCL's communicator ids.
    notes->Add(absl::StrCat(dumps.size(),
                            " dumps of PyTorch's flight recorder lie beside Ringscope's records, which hold the same operations "
                            "and more; the dumps were not used"));
    dumps.clear();
  }
  if (dumps.empty()) {
    *records = std::move(others);
    return;
  }
  DropCut(&dumps, notes);
  DropOutdated(&dumps, notes);
  int64_t newest = 0, seen = 0, expired = 0;
  bool long_open = false;
  for (const Record& r : dumps) {
    const trace::Dump& d = r.trace.dump();
    newest = std::max(newest, d.newest_ns());
    if (d.looks_once()) seen = std::max(seen, d.seen_ns());
  }
  for (const Record& r : dumps) {
    const trace::Dump& d = r.trace.dump();
    if (d.oldest_open_ns() == 0) continue;
    expired = std::max(expired, SatAdd(d.oldest_open_ns(), Timeout(d)));
    long_open |= SatSub(newest, d.oldest_open_ns()) >= std::min(kStall, Timeout(d)) || d.timed_out();
  }
  constexpr int64_t kMostTime = int64_t{1} << 58;  // CutToRange()
  const bool told = seen != 0 || long_open || expired == 0;
  int64_t taken = told ? newest : std::max(newest, expired);
  for (const Record& r : dumps) {
    if (r.trace.dump().timed_out()) taken = std::max(taken, expired);
  }
  taken = std::clamp<int64_t>(taken, 0, kMostTime);
  for (Record& r : dumps) SetTaken(taken, !told, &r.trace);
  *records = std::move(dumps);
}

void SettleStarts(Job* job) {
  for (Communicator& c : job->communicators) {
    const bool dumps =
        std::any_of(c.members.begin(), c.members.end(), [](const Member& m) { return m.raw != nullptr && m.raw->from_dump(); });
    if (!dumps) continue;
    std::set<std::pair<bool, uint64_t>> running;  // messages together: their positions are each rank's own
    const auto key = [](const Op& op) { return std::make_pair(op.p2p(), op.p2p() ? 0 : op.position()); };
    const auto open = [](const Op& op) { return op.raw.unfinished(); };
    for (const Member& m : c.members) {
      for (const Op& op : m.ops) {
        if (open(op) && op.started == Truth::kYes) running.insert(key(op));
      }
    }
    for (Member& m : c.members) {
      for (Op& op : m.ops) {
        if (open(op) && op.started == Truth::kNo && running.count(key(op)) == 0) op.started = Truth::kUnknown;
      }
    }
  }
}

}  // namespace ringscope::model
