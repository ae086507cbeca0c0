#include "analyzer/reasoning/wait_graph_edges.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/thresholds.h"
#include "analyzer/reasoning/wait_graph_progress.h"

namespace ringscope::reasoning {
namespace {

constexpr uint32_t kCut = 16383;  // proto/trace.proto: Edge.n_steps

// Nobody lost a row for an edge of this communicator, so an edge without a row has not been used.
bool RowsComplete(const model::Job& job, const model::Communicator& c) {
  return std::all_of(c.members.begin(), c.members.end(), [&](const model::Member& m) {
    return m.has_record() && !job.processes[m.process].torn &&
           CounterValue(job.processes[m.process], "edge_no_row") == 0;
  });
}

class Maker {
 public:
  Maker(const model::Job& job, const EdgeSources& sources) : job_(job), sources_(sources) {}

  std::vector<std::pair<EdgeView, const model::Edge*>> Run() {
    for (const model::Edge& edge : job_.edges) {
      const int comm = sources_.comm_of(edge.communicator, edge.p2p);
      if (comm < 0) continue;
      if (edge.communicator != last_comm_) {
        last_comm_ = edge.communicator;
        rows_complete_ = RowsComplete(job_, job_.communicators[edge.communicator]);
      }
      if (edge.p2p) {
        AddP2p(edge, comm);
      } else {
        AddCollective(edge, comm);
      }
    }
    return std::move(views_);
  }

 private:
  EdgeView Start(const model::Edge& edge, int comm) const {
    EdgeView view;
    view.comm = comm;
    view.from = sources_.rank_of(edge.communicator, edge.from);
    view.to = sources_.rank_of(edge.communicator, edge.to);
    view.channel = edge.channel;
    for (const auto& side : {edge.sender, edge.receiver}) {
      if (side) view.peer_wait_visible &= Api(*side, edge) == 0 || Api(*side, edge) >= 4;
    }
    return view;
  }
  // Profiler API that serves the side's communicator; with PXN that of any communicator of the
  // driving process.
  uint32_t Api(const model::EdgeSide& side, const model::Edge&) const {
    for (const trace::Communicator& c : job_.processes[side.process].trace.communicators()) {
      if (c.profiler_api() != 0) return c.profiler_api();
    }
    return 0;
  }
  // Native tables below v4: each change of a ProxyOp tells how many steps have come so far (docs/nccl.md), so that steps whose own
  // stops NCCL leaves out are known to be done. A later NCCL serves these tables through a shim that leaves the counts out.
  bool CountsSteps(const model::EdgeSide& side) const {
    for (const trace::Library& library : job_.processes[side.process].trace.process().libraries()) {
      if (library.name() != "nccl") continue;
      for (const char* release : {"2.23.", "2.24.", "2.25.", "2.26."}) {
        if (library.version().rfind(release, 0) == 0) return true;
      }
    }
    return false;
  }
  const model::Member& Owner(const model::Edge& edge, bool send) const {
    return job_.communicators[edge.communicator].members[send ? edge.from : edge.to];
  }

  EdgeEnd Open(const model::Edge& edge, bool send) const {
    const model::EdgeSide& side = send ? *edge.sender : *edge.receiver;
    EdgeEnd end;
    end.phase = EdgeEnd::kOpen;
    end.state = CountsSteps(side) ? side.raw->state() : StepThatTells(*side.raw, Api(side, edge));
    end.counted = side.raw->n_steps() > 0 && side.raw->n_steps() < kCut;
    end.posted = side.raw->posted();
    end.moved = std::max(side.raw->transmitted(), side.raw->done());
    end.done = side.raw->done();
    end.total = side.raw->n_steps();
    end.driver = sources_.driver_of(edge, side);
    end.row = side.raw->row();
    return end;
  }

  EdgeEnd End(const model::Edge& edge, bool send, uint64_t position) const {
    const std::optional<model::EdgeSide>& side = send ? edge.sender : edge.receiver;
    EdgeEnd end;
    if (!side) {
      end.phase = rows_complete_ ? EdgeEnd::kNotBegun : EdgeEnd::kUnseen;
      return end;
    }
    end.driver = sources_.driver_of(edge, *side);
    end.row = side->raw->row();
    if (sources_.stale(*side) || ChangedByAbort(job_, Owner(edge, send), *side)) return end;
    uint64_t at = side->position;
    if (at == 0 && Incomplete(*side)) at = position;
    if (at == 0) return end;
    if (at < position) {
      end.phase = EdgeEnd::kNotBegun;
    } else if (at > position || !Incomplete(*side)) {
      end.phase = EdgeEnd::kOver;
    } else {
      return Open(edge, send);
    }
    return end;
  }

  void AddCollective(const model::Edge& edge, int comm) {
    std::set<uint64_t> positions;
    for (const auto& side : {edge.sender, edge.receiver}) {
      if (!side || !Incomplete(*side)) continue;
      if (side->position != 0) {
        positions.insert(side->position);
      } else if (const uint64_t only = sources_.only_position(edge.communicator)) {
        positions.insert(only);
      }
    }
    for (uint64_t position : positions) {
      EdgeView view = Start(edge, comm);
      view.send_position = view.recv_position = position;
      view.send = End(edge, true, position);
      view.recv = End(edge, false, position);
      views_.emplace_back(std::move(view), &edge);
    }
  }

  // Sends and receives are numbered by each rank for itself: the graph joins the two ends by
  // message.
  void AddP2p(const model::Edge& edge, int comm) {
    EdgeView view = Start(edge, comm);
    bool any = false;
    for (bool send : {true, false}) {
      const auto& side = send ? edge.sender : edge.receiver;
      EdgeEnd& end = send ? view.send : view.recv;
      if (!side) {
        end.phase = rows_complete_ ? EdgeEnd::kNotBegun : EdgeEnd::kUnseen;
        continue;
      }
      (send ? view.send_position : view.recv_position) = side->position;
      if (sources_.stale(*side) || ChangedByAbort(job_, Owner(edge, send), *side)) continue;
      if (Incomplete(*side)) {
        end = Open(edge, send);
        any = true;
      } else {
        end.phase = EdgeEnd::kOver;
      }
    }
    // A connection carries its messages in order: as many over at both ends, so it is the same one.
    view.in_step = edge.sender && edge.receiver &&
                   edge.sender->raw->ops_stopped() == edge.receiver->raw->ops_stopped();
    if (any) views_.emplace_back(std::move(view), &edge);
  }

  const model::Job& job_;
  const EdgeSources& sources_;
  int last_comm_ = -1;
  bool rows_complete_ = false;
  std::vector<std::pair<EdgeView, const model::Edge*>> views_;
};

}  // namespace

bool ChangedByAbort(const model::Job& job, const model::Member& member,
                    const model::EdgeSide& side) {
  if (!member.finalized_open || member.raw == nullptr || side.process != member.process)
    return false;
  const int64_t end = member.raw->finalized_ns();
  std::vector<int64_t> times;
  for (const model::Op& op : member.ops) {
    if (!op.raw.unfinished()) continue;
    for (int64_t t : {op.raw.entered_ns(), op.raw.enqueued_ns(), op.raw.started_ns()}) {
      if (t > 0 && t <= end) times.push_back(t);
    }
  }
  if (times.empty()) return false;
  const int64_t begin = *std::min_element(times.begin(), times.end());
  for (const trace::Edge& edge : job.processes[member.process].trace.edges()) {
    const bool mine =
        !edge.foreign() && edge.communicator() == member.raw->row() && !edge.message_count();
    if (mine && edge.changed_ns() > begin && edge.changed_ns() <= end)
      times.push_back(edge.changed_ns());
  }
  std::sort(times.begin(), times.end());
  int64_t longest = end - times.back(), resumed = end;
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i] - times[i - 1] <= longest) continue;
    longest = times[i] - times[i - 1];
    resumed = times[i];
  }
  return static_cast<double>(longest) >=
             thresholds::kSilenceOfLife * static_cast<double>(end - begin) &&
         side.raw->changed_ns() >= resumed && side.raw->changed_ns() > begin;
}

std::vector<std::pair<EdgeView, const model::Edge*>> MakeEdgeViews(const model::Job& job,
                                                                   const EdgeSources& sources) {
  return Maker(job, sources).Run();
}

}  // namespace ringscope::reasoning
