#include "analyzer/timeline/timeline.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzer/ingest/stream_reader.h"

namespace ringscope::timeline {
namespace {

using model::Process;

std::string FuncText(trace::Func func) {
  const std::string upper = trace::Func_Name(func);
  std::string out;
  bool start = true;
  for (const char c : upper) {
    if (c == '_') {
      start = true;
      continue;
    }
    out += start ? c : static_cast<char>(c | 0x20);
    start = false;
  }
  return out;
}

// A process of the job by what names it in its records.
using Identity = std::tuple<std::string, int32_t, uint64_t>;
Identity IdentityOf(const trace::Process& p) { return {p.boot_id(), p.pid(), p.start_ticks()}; }

// Lanes are made when they are needed; a group of them holds what may overlap.
struct Group {
  int process;
  int order;  // of the group within its process
  std::string name;
  auto operator<=>(const Group&) const = default;
};

class Builder {
 public:
  Builder(const model::Job& job, size_t most) : job_(job), most_(std::max<size_t>(most, 1)) {}

  Timeline Run(const std::vector<std::string>& streams);

 private:
  struct Raw {
    Slice slice;
    int group = 0;
  };
  // Streamed operations replace those of the records: they are the same ones, and more.
  class Stream;

  void Add(int process, int order, const std::string& group, Slice slice);
  void Prune();
  void Order();
  void Operations();
  void Operation(const Process& p, const std::string& comm, const trace::Func func, bool p2p, uint64_t position, uint64_t count,
                 trace::DataType type, int peer, uint32_t thread, uint64_t stream, int64_t entered, int64_t returned,
                 int64_t enqueued, int64_t started, int64_t finished, bool over, uint64_t flow_key, bool sends);
  void Calls(const Process& p);
  void Lay();

  const model::Job& job_;
  const size_t most_;
  std::vector<Raw> raw_;
  std::map<Group, int> groups_;
  std::vector<Group> group_list_;
  std::map<Identity, const Process*> by_identity_;
  std::set<int> streamed_;
  std::map<std::pair<uint64_t, bool>, uint64_t> unused_;
  Timeline out_;
};

void Builder::Add(int process, int order, const std::string& group, Slice slice) {
  if (slice.begin_ns == 0) return;
  slice.end_ns = std::max(slice.end_ns, slice.begin_ns);
  const auto [it, added] = groups_.try_emplace(Group{process, order, group}, static_cast<int>(group_list_.size()));
  if (added) group_list_.push_back(it->first);
  raw_.push_back({std::move(slice), it->second});
  if (raw_.size() > 2 * most_ + 1024) Prune();
}

// Keeps the newest.
void Builder::Prune() {
  if (raw_.size() <= most_) return;
  const auto newer = [](const Raw& a, const Raw& b) { return a.slice.end_ns > b.slice.end_ns; };
  std::nth_element(raw_.begin(), raw_.begin() + static_cast<ptrdiff_t>(most_), raw_.end(), newer);
  out_.left_out += raw_.size() - most_;
  raw_.resize(most_);
}

std::string Elements(uint64_t count, trace::DataType type) {
  std::string name = trace::DataType_Name(type);
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  return absl::StrCat(count, " x ", type == trace::TYPE_UNKNOWN ? "?" : name);
}

// FNV-1a over what two sides know alike of one message or step.
uint64_t Hash(std::initializer_list<uint64_t> words) {
  uint64_t hash = 14695981039346656037ull;
  for (uint64_t word : words) {
    for (int i = 0; i < 8; ++i, word >>= 8) hash = (hash ^ (word & 255)) * 1099511628211ull;
  }
  return hash == 0 ? 1 : hash;
}

void Builder::Operation(const Process& p, const std::string& comm, const trace::Func func, bool p2p, uint64_t position,
                        uint64_t count, trace::DataType type, int peer, uint32_t thread, uint64_t stream, int64_t entered,
                        int64_t returned, int64_t enqueued, int64_t started, int64_t finished, bool over, uint64_t flow_key,
                        bool sends) {
  const int64_t end = p.trace.written_ns();
  Slice call;
  call.category = Category::kCall;
  call.name = absl::StrCat(FuncText(func), " #", position, p2p && peer >= 0 ? absl::StrCat(sends ? " to " : " from ", peer) : "");
  call.details = {{"communicator", comm}, {"elements", Elements(count, type)}};
  Slice kernel = call;
  if (entered != 0) {
    const int64_t until = returned != 0 ? returned : over ? std::max({entered, enqueued}) : std::max(end, entered);
    if (returned == 0 && !over) call.details.emplace_back("state", "inside the call");
    call.begin_ns = p.ToRealtime(entered);
    call.end_ns = p.ToRealtime(until);
    (sends ? call.flow_out : call.flow_in) = p2p && started == 0 ? flow_key : 0;
    Add(p.index, 0, thread == 65535 ? "calls" : absl::StrCat("calls, thread ", thread), std::move(call));
  }
  const int64_t begin = started != 0 ? started : enqueued;
  if (begin == 0) return;
  const int64_t until = finished != 0 ? finished : over ? begin : std::max(end, begin);
  kernel.category = Category::kKernel;
  if (started == 0) kernel.details.emplace_back("state", "in the stream, its start was not seen");
  if (finished == 0 && !over) kernel.details.emplace_back("state", "not finished");
  if (finished == 0 && over) kernel.details.emplace_back("state", "its end was not seen");
  kernel.begin_ns = p.ToRealtime(begin);
  kernel.end_ns = p.ToRealtime(until);
  if (p2p && started != 0) (sends ? kernel.flow_out : kernel.flow_in) = flow_key;
  Add(p.index, 1, absl::StrCat("GPU, ", comm, stream == 0 ? "" : absl::StrFormat(", stream %#x", stream)), std::move(kernel));
}

void Builder::Operations() {
  for (const model::Communicator& c : job_.communicators) {
    for (const model::Member& m : c.members) {
      if (!m.has_record() || streamed_.contains(m.process)) continue;
      const Process& p = job_.processes[static_cast<size_t>(m.process)];
      // Messages between two ranks are counted from the first; a side that forgot its oldest cannot say which is which.
      std::map<std::pair<int, bool>, uint64_t> messages;
      bool from_first = true, any = false;
      for (const model::Op& op : m.ops) {
        if (op.p2p() && !any) from_first = op.position() == 1;
        any = any || op.p2p();
      }
      for (const model::Op& op : m.ops) {
        const auto& r = op.raw;
        const bool sends = r.func() == trace::SEND;
        const bool paired = op.p2p() && from_first && r.peer() >= 0 && r.tail_tasks() == 0 && (sends || r.func() == trace::RECV);
        const uint64_t from = static_cast<uint64_t>(sends ? m.rank : r.peer()),
                       to = static_cast<uint64_t>(sends ? r.peer() : m.rank);
        const uint64_t flow =
            paired ? Hash({1, c.id, static_cast<uint64_t>(c.instance), from, to, ++messages[{r.peer(), sends}]}) : 0;
        Operation(p, c.Label(), r.func(), op.p2p(), op.position(), r.count(), r.datatype(), r.peer(), r.thread(), r.stream(),
                  r.entered_ns(), r.returned_ns(), r.enqueued_ns(), r.started_ns(), r.finished_ns(), !r.unfinished(), flow,
                  sends);
      }
    }
  }
}

// Stalls, and the calls in which its threads were when the record was written.
void Builder::Calls(const Process& p) {
  for (const trace::StallFinding& stall : p.trace.stalls()) {
    Slice s;
    s.category = Category::kStall;
    s.name = absl::StrCat("stall: ", stall.p2p() ? "point-to-point " : "", "#", stall.position());
    s.begin_ns = p.ToRealtime(stall.since_ns());
    s.end_ns = p.ToRealtime(stall.resolved_ns() != 0 ? stall.resolved_ns() : p.trace.written_ns());
    s.details.emplace_back("noticed", absl::StrFormat("%.3f s after the last progress",
                                                      static_cast<double>(stall.noticed_ns() - stall.since_ns()) / 1e9));
    if (stall.resolved_ns() == 0) s.details.emplace_back("state", "lasts");
    Add(p.index, 4, "stalls", std::move(s));
  }
  for (const trace::CallInFlight& call : p.trace.calls()) {
    const std::string thread = absl::StrCat("host, thread ", call.tid());
    if (call.host_since_ns() != 0 && !call.host_function().empty()) {
      Slice s;
      s.category = Category::kHost;
      s.name = call.host_function();
      s.begin_ns = p.ToRealtime(call.host_since_ns());
      s.end_ns = p.ToRealtime(std::max(p.trace.written_ns(), call.host_since_ns()));
      s.details.emplace_back("state", "inside when the record was written");
      Add(p.index, 3, thread, std::move(s));
    } else if (call.call() != trace::CallInFlight::NONE && call.since_ns() != 0) {
      Slice s;
      s.category = Category::kHost;
      s.name = absl::StrCat("NCCL: ", trace::CallInFlight::Call_Name(call.call()));
      s.begin_ns = p.ToRealtime(call.since_ns());
      s.end_ns = p.ToRealtime(std::max(p.trace.written_ns(), call.since_ns()));
      s.details.emplace_back("state", "inside when the record was written");
      Add(p.index, 3, thread, std::move(s));
    }
  }
}

class Builder::Stream : public ingest::StreamSink {
 public:
  explicit Stream(Builder* builder) : b_(*builder) {}
  bool known = true;
  std::string who;

  void Chunk(const trace::StreamChunk& chunk) override {
    if (!chunk.has_head()) return;
    const auto it = b_.by_identity_.find(IdentityOf(chunk.head().process()));
    process_ = it == b_.by_identity_.end() ? nullptr : it->second;
    known = process_ != nullptr;
    if (process_ != nullptr) b_.streamed_.insert(process_->index);
  }

  void Operation(const ingest::StreamedOperation& op) override {
    if (process_ == nullptr) return;
    const trace::Signature& s = *op.signature;
    const trace::StreamedCommunicator none;
    const trace::StreamedCommunicator& c = op.communicator != nullptr ? *op.communicator : none;
    const bool sends = s.func() == trace::SEND;
    uint64_t flow = 0;
    if (s.p2p()) {
      auto& seen = messages_[{c.row(), c.generation()}];
      if (seen.first_position == 0) seen.first_position = op.position;
      if (seen.first_position == 1 && s.peer() >= 0 && s.tail_tasks() == 0 && (sends || s.func() == trace::RECV)) {
        const uint64_t n = ++seen.count[{s.peer(), sends}];
        flow = Hash({2, c.comm_id(), sends ? c.rank() : static_cast<uint64_t>(s.peer()),
                     sends ? static_cast<uint64_t>(s.peer()) : c.rank(), n});
      }
    }
    const std::string label = c.name().empty() ? absl::StrFormat("%#x", c.comm_id()) : c.name();
    b_.Operation(*process_, label, s.func(), s.p2p(), op.position, s.count(), s.datatype(), s.peer(), s.thread(), s.stream(),
                 op.entered_ns, op.returned_ns, op.enqueued_ns, op.started_ns, op.finished_ns, op.end != trace::STILL_OPEN, flow,
                 sends);
  }

  void Step(const ingest::StreamedStep& step) override {
    if (process_ == nullptr) return;
    const trace::StreamedTransfer& t = *step.transfer;
    const uint64_t comm = step.communicator != nullptr ? step.communicator->comm_id() : t.foreign_context();
    const Key key{comm, t.rank(), t.peer(), t.channel(), t.send(), t.p2p(), t.position(), step.step};
    auto& open = open_[key];
    if (open.since == 0) open.since = step.time_ns;
    if (step.bytes != 0) open.bytes = step.bytes;
    if (step.state != trace::STEP_FREE) {
      open.states.emplace_back(step.state, step.time_ns);
      // Steps whose end is lost: a stream may be cut anywhere.
      if (open_.size() > 100000) open_.erase(open_.begin());
      return;
    }
    Slice s;
    s.category = Category::kStep;
    s.name = absl::StrCat("step ", step.step, " of ", t.p2p() ? "p2p " : "", "#", t.position());
    s.begin_ns = process_->ToRealtime(open.since);
    s.end_ns = process_->ToRealtime(step.time_ns);
    s.details.emplace_back("bytes", absl::StrCat(open.bytes));
    for (size_t i = 0; i < open.states.size(); ++i) {
      const int64_t until = i + 1 < open.states.size() ? open.states[i + 1].second : step.time_ns;
      s.details.emplace_back(trace::StepState_Name(open.states[i].first).c_str(),
                             absl::StrFormat("%.3f ms", static_cast<double>(until - open.states[i].second) / 1e6));
    }
    const uint64_t from = t.send() ? t.rank() : t.peer(), to = t.send() ? t.peer() : t.rank();
    // Positions of collectives are the same on both sides; a message's position is each side's own.
    if (comm != 0 && !t.p2p() && t.position() != 0)
      (t.send() ? s.flow_out : s.flow_in) = Hash({3, comm, from, to, t.channel(), t.position(), step.step});
    b_.Add(process_->index, 2, absl::StrCat(t.send() ? "send to " : "receive from ", t.peer(), ", channel ", t.channel()),
           std::move(s));
    open_.erase(key);
  }

 private:
  using Key = std::tuple<uint64_t, uint32_t, uint32_t, uint32_t, bool, bool, uint64_t, uint32_t>;
  struct Open {
    int64_t since = 0;
    uint64_t bytes = 0;
    std::vector<std::pair<trace::StepState, int64_t>> states;
  };
  struct Messages {
    uint64_t first_position = 0;
    std::map<std::pair<int, bool>, uint64_t> count;
  };
  Builder& b_;
  const Process* process_ = nullptr;
  std::map<Key, Open> open_;
  std::map<std::pair<uint32_t, uint32_t>, Messages> messages_;
};

// Greedy: the first lane of the group that is free. Then flows whose other end is not there are dropped.
void Builder::Lay() {
  Prune();
  std::map<uint64_t, std::pair<int, int>> flows;  // begins, ends
  for (const Raw& raw : raw_) {
    if (raw.slice.flow_out != 0) ++flows[raw.slice.flow_out].first;
    if (raw.slice.flow_in != 0) ++flows[raw.slice.flow_in].second;
  }
  // Processes by rank.
  std::vector<int> order(job_.processes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto rank = [&](int i) { return job_.processes[static_cast<size_t>(i)].job_rank; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return (rank(a) < 0 ? INT32_MAX : rank(a)) < (rank(b) < 0 ? INT32_MAX : rank(b)); });
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Process& p = job_.processes[static_cast<size_t>(order[i])];
    place[static_cast<size_t>(order[i])] = static_cast<int>(i);
    out_.processes.push_back({p.job_rank >= 0 ? absl::StrCat("rank ", p.job_rank, " on ", p.host)
                                              : absl::StrCat("pid ", p.trace.process().pid(), " on ", p.host),
                              p.job_rank, p.time.assumed});
  }
  std::sort(raw_.begin(), raw_.end(), [&](const Raw& a, const Raw& b) {
    const Group &x = group_list_[static_cast<size_t>(a.group)], &y = group_list_[static_cast<size_t>(b.group)];
    return std::tie(place[static_cast<size_t>(x.process)], x.order, x.name, a.slice.begin_ns, a.slice.end_ns, a.slice.name) <
           std::tie(place[static_cast<size_t>(y.process)], y.order, y.name, b.slice.begin_ns, b.slice.end_ns, b.slice.name);
  });
  for (size_t i = 0; i < raw_.size();) {
    const Group& group = group_list_[static_cast<size_t>(raw_[i].group)];
    std::vector<std::vector<Slice>> lanes;
    size_t end = i;
    for (; end < raw_.size() && raw_[end].group == raw_[i].group; ++end) {
      Slice& s = raw_[end].slice;
      if (s.flow_out != 0 && flows[s.flow_out] != std::pair(1, 1)) s.flow_out = 0;
      if (s.flow_in != 0 && flows[s.flow_in] != std::pair(1, 1)) s.flow_in = 0;
      auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const auto& l) { return l.back().end_ns <= s.begin_ns; });
      if (lane == lanes.end()) lane = lanes.insert(lanes.end(), std::vector<Slice>());
      lane->push_back(std::move(s));
    }
    for (size_t n = 0; n < lanes.size(); ++n) {
      out_.lanes.push_back(
          {place[static_cast<size_t>(group.process)], n == 0 ? group.name : absl::StrCat(group.name, " (", n + 1, ")")});
      for (Slice& s : lanes[n]) {
        s.lane = static_cast<int>(out_.lanes.size()) - 1;
        out_.slices.push_back(std::move(s));
      }
    }
    i = end;
  }
}

Timeline Builder::Run(const std::vector<std::string>& streams) {
  for (const Process& p : job_.processes) by_identity_[IdentityOf(p.trace.process())] = &p;
  size_t foreign = 0;
  for (const std::string& path : streams) {
    Stream stream(this);
    const auto summary = ingest::ReadStream(path, &stream);
    if (!summary.ok()) {
      out_.notes.push_back(std::string(summary.status().message()));
      continue;
    }
    foreign += !stream.known;
    const trace::StreamLoss& lost = summary->lost;
    if (const uint64_t n =
            lost.operations_no_room() + lost.operations_over_rate() + lost.steps_no_room() + lost.steps_over_rate();
        n != 0)
      out_.notes.push_back(absl::StrCat(path, ": ", n, " entries were lost while it was recorded"));
  }
  if (foreign > 0) out_.notes.push_back(absl::StrCat(foreign, " stream files are of other processes or jobs and were left out"));
  Operations();
  for (const Process& p : job_.processes) Calls(p);
  Lay();
  size_t assumed = 0;
  for (const Track& track : out_.processes) assumed += track.assumed_clock;
  if (assumed > 0 && out_.processes.size() > assumed)
    out_.notes.push_back(absl::StrCat(
        assumed, " processes have clocks that nothing ties to the others': their slices may be off by what wall clocks are"));
  if (out_.left_out > 0) out_.notes.push_back(absl::StrCat(out_.left_out, " older slices were left out; --max=N takes more"));
  return std::move(out_);
}

}  // namespace

const char* CategoryName(Category category) {
  switch (category) {
    case Category::kCall:
      return "call";
    case Category::kKernel:
      return "kernel";
    case Category::kStep:
      return "step";
    case Category::kHost:
      return "host";
    case Category::kStall:
      return "stall";
  }
  return "";
}

Timeline Build(const model::Job& job, const std::vector<std::string>& streams, size_t most) {
  return Builder(job, most).Run(streams);
}

}  // namespace ringscope::timeline
