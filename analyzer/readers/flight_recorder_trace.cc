// The format: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp (torch 2.6 to 2.13, versions 2.4 to
// 2.10 of the dump), NCCLUtils.hpp and TraceUtils.h before (versions 1.x to 2.3).
//
// Positions are collective_seq_id: it counts a group's collectives on every rank alike. record_id is the place in this rank's
// ring and means nothing elsewhere. Calls of a coalesced group share a number, carry no state of their own (they stay "scheduled"
// for ever) and end in an entry that does; torch 2.7 records the calls as well as the end, older ones the end alone for
// collectives.
#include "analyzer/readers/flight_recorder_trace.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/model/views.h"
#include "analyzer/readers/flight_recorder_entries.h"
#include "analyzer/readers/flight_recorder_groups.h"

namespace ringscope::ingest {
namespace {

using Id = ValueTree::Id;

// Calls of one group that share a number; most are alone.
struct Batch {
  std::vector<const DumpEntry*> calls;
  const DumpEntry* end = nullptr;  // has the state of all of them; a lone call is its own
  bool message = false;
  int64_t number = -1;
};

class Builder {
 public:
  Builder(const ValueTree& tree, Id dump, const DumpSource& source, DumpRecord* out)
      : tree_(tree), dump_(dump), source_(source), out_(*out), trace_(out->trace), reader_(tree) {}

  void Run() {
    groups_ = ReadGroups(tree_, tree_.Get(dump_, "pg_config"));
    ReadEntries();
    rank_ = OwnRank(groups_, source_.path, Told());
    whole_ = !entries_.empty() && entries_.front().record == 0;
    for (size_t g = 0; g < of_group_.size(); ++g) {
      if (!of_group_[g].empty() && of_group_[g].front()->collective > 1) whole_ = false;
    }
    ReadStatus();
    SetHead();
    for (size_t g = 0; g < groups_.size(); ++g) AddGroup(g);
    FinishDump();
  }

 private:
  int Told() const {
    if (source_.rank >= 0) return source_.rank;
    for (const char* key : {"rank", "global_rank"}) {
      const auto rank = tree_.Number(tree_.Get(dump_, key));
      if (rank && *rank >= 0 && *rank < (1 << 20)) return static_cast<int>(*rank);
    }
    return -1;
  }

  // ---- reading
  void ReadEntries() {
    const auto list = tree_.Children(tree_.Get(dump_, "entries"));
    entries_.reserve(list.size());
    size_t odd = 0;
    for (const Id id : list) {
      entries_.emplace_back();
      if (reader_.Read(id, &entries_.back())) continue;
      entries_.pop_back();
      ++odd;
      if (reader_.exhausted()) break;
    }
    if (reader_.exhausted())
      out_.notes.push_back("its entries refer to the same values more often than a dump does; the rest is left out");
    if (odd > 0) out_.notes.push_back(absl::StrCat(odd, " entries are none of the flight recorder's; they are left out"));
    const auto by_record = [](const DumpEntry& a, const DumpEntry& b) { return a.record < b.record; };
    if (!std::is_sorted(entries_.begin(), entries_.end(), by_record))
      std::stable_sort(entries_.begin(), entries_.end(), by_record);
    of_group_.resize(groups_.size());
    size_t last = 0;
    for (const DumpEntry& entry : entries_) {
      if (last >= groups_.size() || groups_[last].name != entry.group ||
          (entry.group.empty() && groups_[last].id != entry.group_id))
        last = GroupOf(entry);
      if (last >= groups_.size()) continue;
      if (groups_[last].description.empty()) groups_[last].description = entry.description;
      groups_[last].id = entry.group_id;
      of_group_[last].push_back(&entry);
      Observe(entry);
    }
  }

  size_t GroupOf(const DumpEntry& entry) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      const bool by_name = !groups_[g].name.empty() && groups_[g].name == entry.group;
      if (by_name || (groups_[g].name.empty() && groups_[g].id == entry.group_id)) return g;
    }
    constexpr size_t kMostGroups = 1 << 14;
    if (groups_.size() >= kMostGroups) return groups_.size();
    DumpGroup group;
    group.name = entry.group;
    group.id = entry.group_id;
    groups_.push_back(std::move(group));
    of_group_.emplace_back();
    return groups_.size() - 1;
  }

  // What the entry's times tell of when the dump was taken, and of whether they are the real recorder's.
  void Observe(const DumpEntry& entry) {
    newest_ = std::max({newest_, entry.created, entry.started, entry.completed});
    if (oldest_ == 0 || (entry.created != 0 && entry.created < oldest_)) oldest_ = entry.created;
    if (entry.state == DumpEntry::State::kCompleted) {
      if (entry.started != 0 && entry.completed != 0) {
        constexpr int64_t kAtOnce = 1'000'000;
        ++both_times_;
        at_once_ += entry.completed - entry.started < kAtOnce && entry.completed >= entry.started;
      }
      if (!entry.retired) seen_ = std::max(seen_, entry.completed);
    } else {
      seen_ = std::max(seen_, entry.started);
    }
  }

  // pg_status goes by number. Groups without an entry have none: both lists are in the order in which groups were made, which
  // shows where names are numbers.
  void ReadStatus() {
    const Id status = tree_.Get(dump_, "pg_status");
    const auto pairs = tree_.is_dict(status) ? tree_.Children(status) : std::span<const Id>();
    std::map<int64_t, int64_t> enqueued;
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto id = tree_.Number(pairs[i]);
      const auto newest = tree_.Number(tree_.Get(pairs[i + 1], "last_enqueued_collective"));
      if (id && newest) enqueued[*id] = *newest;
    }
    std::map<int64_t, size_t> by_name;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const int64_t name = NumberOf(groups_[g].name);
      if (name >= 0) by_name[name] = g;
    }
    if (by_name.size() == groups_.size() && enqueued.size() == groups_.size()) {
      auto at = by_name.begin();
      for (const auto& [id, newest] : enqueued) {
        DumpGroup& group = groups_[at->second];
        if (group.id >= 0 && group.id != id) return;  // not that order
        ++at;
      }
      at = by_name.begin();
      for (const auto& [id, newest] : enqueued) groups_[at++->second].last_enqueued = newest;
    } else {
      for (DumpGroup& group : groups_) {
        if (const auto it = enqueued.find(group.id); group.id >= 0 && it != enqueued.end()) group.last_enqueued = it->second;
      }
    }
  }
  static int64_t NumberOf(std::string_view name) {
    int64_t value = 0;
    if (name.empty() || name.size() > 9) return -1;
    for (const char c : name) {
      if (c < '0' || c > '9') return -1;
      value = value * 10 + (c - '0');
    }
    return value;
  }

  // ---- writing
  // Times of a record are those of a monotonic clock; a dump has wall-clock times only. The base is the same for all dumps of a
  // job (and far enough back for none to be negative), so that they compare like times of one clock.
  int64_t Mono(int64_t ns) const { return ns <= base_ ? 0 : ns - base_; }

  void SetHead() {
    constexpr int kBits = 57;  // of the 2^58 that a record's times may have
    base_ = std::max<int64_t>(0, (newest_ >> kBits) - 1) << kBits;
    trace::Process& process = *trace_.mutable_process();
    process.set_host(source_.host);
    process.set_rank(rank_);
    process.set_local_rank(-1);
    int world = 0;
    for (const DumpGroup& group : groups_) {
      for (const int32_t rank : group.ranks) world = std::max(world, rank + 1);
    }
    process.set_world_size(world);
    // Two dumps of one rank are of one process.
    if (rank_ >= 0) {
      process.set_start_ticks(static_cast<uint64_t>(rank_) + 1);
    } else {
      process.set_boot_id(source_.path);
    }
    process.set_recorder_version("PyTorch flight recorder");
    if (const auto version = tree_.Str(tree_.Get(dump_, "nccl_version")); !version.empty()) AddNccl(version);
    if (const auto version = tree_.Str(tree_.Get(dump_, "comm_lib_version")); !version.empty()) AddNccl(version);
    trace_.set_reason(trace::REASON_REQUEST);
    trace_.set_sequence(1);
    trace::Clock& clock = *trace_.mutable_clock();
    clock.set_monotonic_ns(int64_t{1} << kBits);
    clock.set_realtime_ns(base_ + clock.monotonic_ns());
    clock.set_first_monotonic_ns(Mono(oldest_));
    clock.set_first_realtime_ns(oldest_);
    clock.set_source("c10::getTime");
    trace_.set_written_ns(Mono(newest_));
    trace_.mutable_end();
  }
  void AddNccl(std::string_view version) {
    trace::Library& nccl = *trace_.mutable_process()->add_libraries();
    nccl.set_name("nccl");
    nccl.set_version(std::string(version.substr(0, 32)));
  }

  std::vector<Batch> Batches(size_t g) const {
    std::vector<Batch> batches;
    for (const DumpEntry* entry : of_group_[g]) {
      const int64_t number = entry->p2p && entry->message >= 0 ? entry->message : entry->collective;
      const bool same = !batches.empty() && batches.back().message == entry->p2p && batches.back().number == number &&
                        !(batches.back().end != nullptr && batches.back().end->op.group_end);
      if (!same) {
        batches.emplace_back();
        batches.back().message = entry->p2p;
        batches.back().number = number;
      }
      Batch& batch = batches.back();
      if (!entry->op.group_end) batch.calls.push_back(entry);
      batch.end = entry;
    }
    return batches;
  }

  // The torch releases that let a coalesced group of messages move collective_seq_id too (2.3 to 2.5) spoil it as a position:
  // ranks of such a group take part in different numbers of them.
  static bool MessagesMoveIt(const std::vector<Batch>& batches) {
    int64_t before = -1;
    for (const Batch& batch : batches) {
      const int64_t number = batch.end->collective;
      if (batch.message && before >= 0 && number > before) return true;
      before = number;
    }
    return false;
  }

  void AddGroup(size_t g) {
    DumpGroup& group = groups_[g];
    const auto& entries = of_group_[g];
    if (group.ranks.empty()) {
      // Format 1.x and a cut-off configuration: only the group of all ranks can be guessed at.
      if (entries.empty()) return;
      if (NumberOf(group.name) != 0 && group.description != "default_pg" && !(group.name.empty() && group.id == 0)) {
        out_.notes.push_back(
            absl::StrCat("the members of ", group.Label(), " are not told (no pg_config); its operations are left out"));
        return;
      }
    } else {
      const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank_);
      if (at != group.ranks.end()) group.own = static_cast<int>(at - group.ranks.begin());
    }
    if (group.own < 0) group.own = OwnFromMessages(entries);
    if (group.own < 0 && group.ranks.empty()) group.own = rank_;
    if (group.own < 0) {
      unplaced_ = true;
      return;
    }
    // Whether it has called anything at all is not known: the ring has forgotten.
    if (entries.empty() && !whole_ && group.last_enqueued <= 0) return;

    trace::Communicator& c = *trace_.add_communicators();
    c.set_row(static_cast<uint32_t>(g));
    c.set_ordinal(static_cast<uint32_t>(g));
    c.set_comm_id(group.Hash());
    c.set_rank(static_cast<uint32_t>(group.own));
    c.set_n_ranks(static_cast<uint32_t>(group.ranks.size()));
    if (group.ranks.empty()) c.set_profiler_api(1);  // as where NCCL tells no size
    c.set_name(group.Label());
    c.set_completion_visible(true);
    c.set_from_dump(true);
    c.set_partial_history(!whole_);
    c.mutable_job_ranks()->Add(group.ranks.begin(), group.ranks.end());
    AddOperations(group, Batches(g), &c);
  }

  int OwnFromMessages(const std::vector<const DumpEntry*>& entries) const {
    for (const DumpEntry* entry : entries) {
      if (entry->op.own >= 0) return entry->op.own;
    }
    return -1;
  }

  void AddOperations(const DumpGroup& group, const std::vector<Batch>& batches, trace::Communicator* c) {
    const bool messages = std::any_of(batches.begin(), batches.end(), [](const Batch& b) { return b.message; });
    const bool spoilt = messages && MessagesMoveIt(batches);
    uint64_t collectives = 0, own_count = 0, messages_called = 0;
    std::map<std::pair<int, bool>, uint64_t> counts;  // peer, send
    uint32_t group_number = 0;
    bool left_out = false;
    for (size_t i = 0; i < batches.size(); ++i) {
      const Batch& batch = batches[i];
      // The oldest group of calls in a ring that has gone round may lack its beginning.
      const bool cut = i == 0 && !whole_ && batch.end->op.group_end;
      if (batch.message) {
        const uint32_t number = batch.end->op.group_end || batch.calls.size() > 1 ? ++group_number : 0;
        for (const DumpEntry* call : batch.calls) {
          if (call->op.peer < 0) continue;
          ++counts[{call->op.peer, call->op.func == trace::SEND}];
          trace::Operation& op = *c->add_operations();
          SetCall(*call, *batch.end, &op);
          op.set_p2p(true);
          op.set_position(++messages_called);
          op.set_peer(call->op.peer);
          op.set_group(number);
          // The group's end is not recorded: its calls are not with NCCL yet.
          if (number != 0 && !batch.end->op.group_end && i + 1 == batches.size()) op.set_enqueued_ns(0);
        }
        continue;
      }
      if (spoilt && !whole_) {
        left_out = true;
        continue;
      }
      const uint64_t position = spoilt ? ++own_count : static_cast<uint64_t>(std::max<int64_t>(batch.number, 0));
      if (position == 0) continue;
      collectives = std::max(collectives, position);
      trace::Operation& op = *c->add_operations();
      SetCall(batch.calls.empty() ? *batch.end : *batch.calls.front(), *batch.end, &op);
      op.set_position(position);
      if (batch.calls.size() > 1) MergeCalls(batch, &op);
      if (cut || (batch.calls.size() > 1 && !batch.end->op.group_end))
        op.set_func(trace::FUNC_UNKNOWN);  // not all of it is known
      const bool newest = i + 1 == batches.size();
      // last_enqueued moves when the call has returned from NCCL. (Messages move it too, so not where there are any.)
      if (newest && !messages && !batch.end->op.group_end && batch.end->state == DumpEntry::State::kScheduled &&
          group.last_enqueued > 0 && static_cast<uint64_t>(group.last_enqueued) + 1 == position) {
        op.set_enqueued_ns(0);
      }
    }
    if (left_out)
      out_.notes.push_back(absl::StrCat("collectives of ", group.Label(),
                                        " cannot be numbered: in this torch release its sends and receives count with "
                                        "them, and the beginning is no longer in the ring; they are left out"));
    if (!messages && group.last_enqueued > 0) collectives = std::max(collectives, static_cast<uint64_t>(group.last_enqueued));
    c->set_collectives(collectives);
    c->set_p2ps(messages_called);
    c->set_launched(collectives + messages_called);
    for (const auto& [key, count] : counts) AddCount(*c, key.first, key.second, count);
  }

  // State and times are the group's, arguments the call's.
  void SetCall(const DumpEntry& call, const DumpEntry& state, trace::Operation* op) {
    op->set_row(static_cast<uint32_t>(std::clamp<int64_t>(call.record, 0, UINT32_MAX)));
    op->set_func(call.op.func);
    op->set_datatype(call.type);
    const bool by_output = call.op.counts == DumpOp::Counts::kOutput;
    op->set_count(by_output ? call.out : call.in);
    op->set_output_count(call.out);
    op->set_count_varies(call.op.varies || !call.sized);
    op->set_root(-1);
    op->set_peer(-1);
    op->set_name(call.name);
    op->set_site(call.site != 0 ? call.site : state.site);
    const int64_t created = Mono(call.created != 0 ? call.created : state.created);
    op->set_entered_ns(created);
    op->set_enqueued_ns(created);
    // Start and end are noticed late, and together; when they were, is no measure of anything.
    if (state.state == DumpEntry::State::kCompleted) {
      op->set_finished_ns(std::max(Mono(state.completed), created));
    } else {
      op->set_unfinished(true);
      if (state.state == DumpEntry::State::kStarted) op->set_kernels_started(1);
      NoteOpen(state, created);
    }
  }

  static void MergeCalls(const Batch& batch, trace::Operation* op) {
    uint64_t in = 0, out = 0;
    for (const DumpEntry* call : batch.calls) {
      const bool by_output = call->op.counts == DumpOp::Counts::kOutput;
      if (__builtin_add_overflow(in, by_output ? call->out : call->in, &in)) in = UINT64_MAX;
      if (__builtin_add_overflow(out, call->out, &out)) out = UINT64_MAX;
      if (call->op.func != batch.calls.front()->op.func) op->set_func(trace::FUNC_UNKNOWN);
    }
    op->set_count(in);
    op->set_output_count(out);
  }

  void NoteOpen(const DumpEntry& entry, int64_t created) {
    trace::Dump& dump = *trace_.mutable_dump();
    if (dump.oldest_open_ns() == 0 || created < dump.oldest_open_ns()) dump.set_oldest_open_ns(created);
    constexpr int64_t kMostMs = int64_t{7} * 24 * 3600 * 1000;
    dump.set_timeout_ns(std::max(dump.timeout_ns(), std::min(entry.timeout_ms, kMostMs) * 1'000'000));
    // "a retired but not completed event has timed out" (FlightRecorder.hpp)
    if (entry.retired) dump.set_timed_out(true);
  }

  void AddCount(const trace::Communicator& c, int peer, bool send, uint64_t count) {
    trace::Edge& edge = *trace_.add_edges();
    edge.set_communicator(c.row());
    edge.set_rank(c.rank());
    edge.set_peer(static_cast<uint32_t>(peer));
    edge.set_channel(255);
    edge.set_send(send);
    edge.set_p2p(true);
    edge.set_message_count(true);
    edge.set_steps_total(count);
  }

  void FinishDump() {
    trace::Dump& dump = *trace_.mutable_dump();
    dump.set_version(std::string(tree_.Str(tree_.Get(dump_, "version")).substr(0, 16)));
    for (const std::string& name : reader_.names.texts()) dump.add_names(name);
    for (const std::string& site : reader_.sites.texts()) dump.add_sites(site);
    dump.set_newest_ns(Mono(newest_));
    dump.set_seen_ns(Mono(seen_));
    constexpr size_t kEnough = 8;
    dump.set_looks_once(both_times_ >= kEnough && 10 * at_once_ >= 9 * both_times_);
    if (unplaced_ && rank_ < 0)
      out_.notes.push_back(
          "which rank wrote it is not told, neither by the file's name nor by its process groups; name the file like "
          "nccl_trace_rank_3");
    if (entries_.empty())
      out_.notes.push_back(
          "holds no entries: the recorder was off (TORCH_FR_BUFFER_SIZE, TORCH_NCCL_TRACE_BUFFER_SIZE) or nothing was called");
  }

  const ValueTree& tree_;
  const Id dump_;
  const DumpSource& source_;
  DumpRecord& out_;
  trace::Trace& trace_;
  EntryReader reader_;
  std::vector<DumpGroup> groups_;
  std::vector<DumpEntry> entries_;
  std::vector<std::vector<const DumpEntry*>> of_group_;  // beside groups_
  int rank_ = -1;
  bool whole_ = false;  // the ring still holds everything
  bool unplaced_ = false;
  int64_t newest_ = 0, oldest_ = 0, seen_ = 0, base_ = 0;
  size_t both_times_ = 0, at_once_ = 0;
};

}  // namespace

bool IsDump(const ValueTree& tree, Id id) {
  if (!tree.is_dict(id)) return false;
  const Id entries = tree.Get(id, "entries");
  if (tree.is_dict(tree.Get(id, "pg_config"))) return true;
  if (!tree.is_sequence(entries)) return false;
  const auto list = tree.Children(entries);
  return !list.empty() &&
         (tree.Get(list[0], "profiling_name") != ValueTree::kNone || tree.Get(list[0], "record_id") != ValueTree::kNone);
}

absl::StatusOr<DumpRecord> TraceOfDump(const ValueTree& tree, Id dump, const DumpSource& source) {
  if (!IsDump(tree, dump))
    return absl::InvalidArgumentError("holds no dump of PyTorch's flight recorder (no entries and no pg_config)");
  DumpRecord record;
  Builder(tree, dump, source, &record).Run();
  return record;
}

}  // namespace ringscope::ingest
