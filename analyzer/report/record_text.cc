#include "analyzer/report/record_text.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "analyzer/model/safe_math.h"
#include "analyzer/report/cursors.h"
#include "analyzer/report/style.h"

namespace ringscope::report {
namespace {

constexpr uint32_t kNotTold = 0xffffffff;  // Communicator.rank

std::string Lower(const std::string& name) {
  return name.empty() ? "?" : absl::AsciiStrToLower(name);
}

std::string Utc(int64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1000000000);
  struct tm parts;
  char text[64];
  if (realtime_ns <= 0 || gmtime_r(&seconds, &parts) == nullptr) return "unknown time";
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return absl::StrFormat("%s.%03d UTC", text, static_cast<int>(realtime_ns / 1000000 % 1000));
}

std::string Duration(int64_t ns) {
  return absl::StrFormat("%.3f s", static_cast<double>(ns) / 1e9);
}

class RecordRenderer {
 public:
  RecordRenderer(const model::Record& record, const RecordTextOptions& options,
                 const ForeignEdges& foreign)
      : r_(record),
        t_(record.trace),
        options_(options),
        foreign_(foreign),
        style_(options.colour) {}

  std::string Run() {
    Identity();
    Written();
    Settings();
    Counters();
    Stalls();
    Siblings();
    Host();
    Calls();
    for (const auto& c : t_.communicators()) Communicator(c);
    Edges();
    Evidence();
    if (t_.not_seen_size() > 0) Heading("Not seen");
    for (const auto& s : t_.not_seen()) Line(absl::StrCat("  - ", s));
    return std::move(out_);
  }

 private:
  void Heading(const std::string& text) {
    absl::StrAppend(&out_, "\n", style_.Bold(Printable(text)), "\n");
  }
  void Line(const std::string& text) { absl::StrAppend(&out_, Printable(text), "\n"); }

  // Seconds before the record was written.
  std::string Ago(int64_t ns) const {
    if (ns == 0) return "-";
    return absl::StrFormat("%+.3fs", static_cast<double>(model::SatSub(ns, t_.written_ns())) / 1e9);
  }
  int64_t Realtime(int64_t ns) const {
    if (ns == 0) return 0;
    return model::SatAdd(ns, model::SatSub(t_.clock().realtime_ns(), t_.clock().monotonic_ns()));
  }

  void Identity() {
    const auto& p = t_.process();
    absl::StrAppend(&out_, style_.Bold(Printable(r_.source)),
                    r_.from_flight_file ? "  (flight file" : "  (trace",
                    r_.torn ? ", parts are missing)\n" : ")\n");
    if (!t_.has_process()) return Line("  the part that says which process this is is missing");
    Line(absl::StrCat("  process     rank ", p.rank() < 0 ? "unknown" : absl::StrCat(p.rank()),
                      " of ", p.world_size() < 0 ? "unknown" : absl::StrCat(p.world_size()),
                      ", local rank ",
                      p.local_rank() < 0 ? "unknown" : absl::StrCat(p.local_rank()), ", pid ",
                      p.pid(), " on ", p.host()));
    Line(absl::StrCat("  boot        ", p.boot_id(), ", process started ", p.start_ticks(),
                      " ticks after boot, nonce ", p.nonce()));
    Line(absl::StrCat("  job         ", p.job_id().empty() ? "no id" : p.job_id(), ", attempt ",
                      p.restart_count()));
    if (!p.command_line().empty()) Line(absl::StrCat("  command     ", p.command_line()));
    for (const auto& l : p.libraries()) {
      Line(absl::StrCat(
          "  library     ", l.name(), l.version().empty() ? "" : " ", l.version(),
          l.profiler_api() > 0 ? absl::StrCat(", profiler table v", l.profiler_api()) : "",
          l.path().empty() ? "" : "  ", l.path()));
    }
    for (const auto& g : p.gpus()) {
      Line(absl::StrCat("  gpu         ", g.device(), " ", g.bus_id(), " ", g.uuid(), " ",
                        g.name()));
    }
    std::vector<std::string> names;
    for (const auto& [name, value] : p.environment())
      names.push_back(absl::StrCat(name, "=", value));
    std::sort(names.begin(), names.end());
    for (const auto& line : names) Line(absl::StrCat("  environment ", line));
    if (!p.recorder_version().empty()) Line(absl::StrCat("  recorder    ", p.recorder_version()));
  }

  void Written() {
    std::string reason = Lower(trace::WriteReason_Name(t_.reason()));
    if (reason.rfind("reason_", 0) == 0) reason = reason.substr(7);
    std::replace(reason.begin(), reason.end(), '_', ' ');
    const auto& asked_by = t_.liveness();
    if (t_.reason() == trace::REASON_WAKE && asked_by.woken_by_pid() != 0) {
      absl::StrAppend(&reason, " (asked by ",
                      asked_by.woken_by_rank() < 0
                          ? ""
                          : absl::StrCat("rank ", asked_by.woken_by_rank(), ", "),
                      "pid ", asked_by.woken_by_pid(), ", which stalled)");
    }
    Line(absl::StrCat("  written     ", reason, ", number ", t_.sequence(), ", ",
                      Utc(Realtime(t_.written_ns()))));
    const auto& l = t_.liveness();
    std::vector<std::string> facts = {
        absl::StrCat("heartbeat ", Ago(l.heartbeat_ns()), " (", l.heartbeats(), " so far)"),
        absl::StrCat("last callback ", Ago(l.last_callback_ns()))};
    if (l.exiting()) facts.push_back("in exit()");
    if (l.clean()) facts.push_back("ended in order");
    if (l.unloaded()) facts.push_back("last communicator finalized");
    if (l.thread_in_call_ns() != 0) {
      facts.push_back(absl::StrCat("its recorder thread waits for a file system since ",
                                   Ago(l.thread_in_call_ns())));
    }
    if (l.freezes() > 0) {
      facts.push_back(absl::StrCat("frozen ", l.freezes(), " times, longest ",
                                   Duration(l.freeze_ns()), " from ", Ago(l.freeze_begin_ns())));
    }
    if (l.starved_ns() > 0)
      facts.push_back(absl::StrCat("waited for a CPU at most ", Duration(l.starved_ns())));
    if (l.lock_known()) facts.push_back(l.lock_held() ? "owner exists (lock held)" : "lock free");
    if (!l.process_state().empty())
      facts.push_back(absl::StrCat("process state ", l.process_state()));
    Line(absl::StrCat("  life        ", absl::StrJoin(facts, ", ")));
  }

  void Settings() {
    const auto& s = t_.settings();
    Line(
        absl::StrFormat("  settings    stall %gs (%gs before the first completion), events 0x%x, "
                        "heartbeat %gs, clock %s (+-%d ns)",
                        s.stall_seconds(), s.first_stall_seconds(), s.event_mask(),
                        s.heartbeat_seconds(), t_.clock().source(), t_.clock().error_ns()));
  }

  void Counters() {
    if (t_.counters_size() == 0) return;
    Heading("Counters");
    for (const auto& c : t_.counters()) {
      Line(absl::StrFormat("  %-22s %12d%s", c.name(), c.value(), c.loss() ? "  lost" : ""));
    }
  }

  void Stalls() {
    if (t_.stalls_size() == 0) return;
    Heading("Stalls noticed");
    for (const auto& s : t_.stalls()) {
      Line(absl::StrCat(
          "  communicator row ", s.communicator(), " ", s.p2p() ? "send/receive call " : "#",
          s.position(), ": without progress since ", Ago(s.since_ns()), ", noticed ",
          Ago(s.noticed_ns()),
          s.resolved_ns() != 0 ? absl::StrCat(", went on ", Ago(s.resolved_ns())) : ""));
    }
  }

  void Siblings() {
    if (t_.siblings_size() == 0) return;
    Heading("Other processes of this directory");
    for (const auto& s : t_.siblings()) {
      Line(absl::StrCat("  rank ", s.rank(), " pid ", s.pid(), " ",
                        Lower(trace::Sibling::State_Name(s.state())),
                        s.process_state().empty() ? "" : absl::StrCat(" (", s.process_state(), ")"),
                        " since ", Ago(s.since_ns()), ", looked ", Ago(s.checked_ns()),
                        ", its heartbeat ", Utc(s.heartbeat_realtime_ns())));
    }
  }

  void Calls() {
    if (t_.calls_size() == 0) return;
    Heading("Calls in flight");
    for (const auto& c : t_.calls()) {
      if (!c.host_function().empty())
        Line(absl::StrCat("  thread ", c.tid(), " called ", c.host_function(), " ", Ago(c.host_since_ns()),
                          c.host_about() != 0 ? absl::StrFormat(", stream or event 0x%x", c.host_about()) : "",
                          c.host_bytes() != 0 ? absl::StrCat(", ", c.host_bytes(), " bytes") : ""));
      if (c.call() != trace::CallInFlight::NONE)
        Line(absl::StrCat(
            "  thread ", c.tid(), " in ", Lower(trace::CallInFlight::Call_Name(c.call())), " since ",
            Ago(c.since_ns()),
            c.communicator() > 0 ? absl::StrCat(", communicator row ", c.communicator() - 1) : "",
            c.position() > 0 ? absl::StrCat(", #", c.position()) : "", ", group depth ",
            c.group_depth()));
      if (c.last_error() != 0)
        Line(absl::StrCat("  thread ", c.tid(), " got error ", c.last_error(), " from ", c.last_error_function(), ", its newest"));
    }
  }

  void Host() {
    if (!t_.has_host()) return;
    const trace::Host& h = t_.host();
    Heading("What the application called (preloaded library)");
    Line(absl::StrCat("  calls seen of   ", h.nccl() ? "NCCL " : "", h.cuda_runtime() ? "CUDA-runtime " : "",
                      h.cuda_driver() ? "CUDA-driver" : ""));
    Line(absl::StrCat("  errors          ", h.nccl_errors(), " of NCCL, ", h.cuda_errors(), " of CUDA"));
    const auto error = [&](const char* what, const trace::HostError& e) {
      Line(absl::StrFormat("  %-15s %d from %s, %s, thread %d", what, e.code(), e.function(), Ago(e.at_ns()), e.tid()));
    };
    if (h.has_first_nccl()) error("first of NCCL", h.first_nccl());
    if (h.has_first_cuda()) error("first of CUDA", h.first_cuda());
    if (h.has_sticky()) error("first sticky", h.sticky());
    for (const trace::CopyTotal& c : h.copies()) {
      Line(absl::StrFormat("  copies          %-12s %s %d calls, %d bytes", Lower(trace::CopyTotal::Kind_Name(c.kind())),
                           c.up_to_bytes() == 0 ? "larger:" : absl::StrCat("up to ", c.up_to_bytes(), ":"), c.count(), c.bytes()));
    }
  }

  void Communicator(const trace::Communicator& c) {
    Heading(absl::StrFormat("Communicator row %d  0x%x  %s  rank %s of %s%s", c.row(), c.comm_id(),
                            c.name().empty() ? "(no name)" : c.name(),
                            c.rank() == kNotTold ? "(not told yet)" : absl::StrCat(c.rank()),
                            c.n_ranks() == 0 ? "(not told)" : absl::StrCat(c.n_ranks()),
                            c.n_nodes() > 0 ? absl::StrCat(" on ", c.n_nodes(), " nodes") : ""));
    Line(absl::StrCat("  entered ", c.collectives(), " collectives and ", c.p2ps(),
                      " sends/receives; launched ", c.launched(), ", completed ", c.completed(),
                      c.no_row() > 0 ? absl::StrCat(", without a row ", c.no_row()) : "",
                      c.completion_visible() ? "" : " (completion not visible)"));
    Line(absl::StrCat("  created ", Ago(c.created_ns()), ", finalized ", Ago(c.finalized_ns()),
                      ", last progress ", Ago(c.last_progress_ns()), ", profiler table v",
                      c.profiler_api(), c.api_events() ? "" : " (numbered by launch)",
                      c.fallback_noted() ? ", one node but network steps" : "",
                      c.foreign_steps() ? ", drives others' edges (PXN)" : ""));
    if (c.chain_position() > 0) {
      std::vector<std::string> kept;
      for (const auto& at : c.checkpoints()) {  // a multiple of two levels is there twice
        std::string text = absl::StrFormat("%d %012x", at.position(), at.hash());
        if (std::find(kept.begin(), kept.end(), text) == kept.end())
          kept.push_back(std::move(text));
      }
      Line(absl::StrFormat("  signature chain %016x after %d collectives%s", c.signature(),
                           c.chain_position(),
                           kept.empty() ? "" : absl::StrCat("; at ", absl::StrJoin(kept, ", "))));
    }
    const int older = c.older().signature_size();
    if (older > 0)
      Line(absl::StrCat("  ", older,
                        " older finished operations in columns (--format=json shows them)"));
    const int all = c.operations_size();
    if (all == 0) return;
    Line(
        "  row    number  operation       count type      root peer  entered    returned   "
        "enqueued   started    finished   "
        "kernels  algo proto");
    const int from = options_.operations < 0 ? 0 : std::max(0, all - options_.operations);
    int hidden = 0;
    for (int i = 0; i < all; ++i) {
      if (i < from && !c.operations(i).unfinished()) {
        ++hidden;
        continue;
      }
      Operation(c.operations(i));
    }
    if (hidden > 0)
      Line(absl::StrCat("  ", hidden, " finished ones before are not shown; --ops=-1 shows all"));
  }

  void Operation(const trace::Operation& op) {
    const std::string line = absl::StrFormat(
        "  %-6d %s%-6d %-12s %8d %-10s %4d %4d  %-10s %-10s %-10s %-10s %-10s %2d/%d/%d   %s "
        "%s%s%s%s",
        op.row(), op.p2p() ? "p" : "#", op.position(), FuncName(op.func()), op.count(),
        Lower(trace::DataType_Name(op.datatype())), op.root(), op.peer(), Ago(op.entered_ns()),
        Ago(op.returned_ns()), Ago(op.enqueued_ns()), Ago(op.started_ns()), Ago(op.finished_ns()),
        op.kernels_started(), op.kernels_stopped(), op.channels(),
        Lower(trace::Algo_Name(op.algo())), Lower(trace::Proto_Name(op.proto())),
        op.tail_tasks() > 0 ? absl::StrCat(" tail of ", op.tail_tasks()) : "",
        op.graph_captured() ? " graph" : "", op.unfinished() ? "  OPEN" : "");
    absl::StrAppend(&out_, op.unfinished() ? style_.Warn(Printable(line)) : Printable(line), "\n");
  }

  static bool EdgeOpen(const trace::Edge& e) {
    return e.ops_started() != e.ops_stopped() || (e.has_current() && !e.current_stopped());
  }

  void Edges() {
    if (t_.edges_size() == 0) return;
    std::vector<const trace::Edge*> edges;
    for (const auto& e : t_.edges()) edges.push_back(&e);
    std::stable_sort(edges.begin(), edges.end(),
                     [](auto* a, auto* b) { return EdgeOpen(*a) > EdgeOpen(*b); });
    Heading("Edges (ranks of the communicator)");
    Line(
        "  row   comm  edge         ch   number  steps posted/sent/done  state                 "
        "changed    ops       bytes");
    size_t shown = edges.size();
    if (options_.edges >= 0) shown = std::min(shown, static_cast<size_t>(options_.edges));
    for (size_t i = 0; i < shown; ++i) EdgeLine(*edges[i]);
    if (shown < edges.size())
      Line(absl::StrCat("  ", edges.size() - shown, " more; --edges=-1 shows all"));
  }

  void EdgeLine(const trace::Edge& e) {
    const std::string direction = e.send() ? absl::StrCat(e.rank(), " -> ", e.peer(), " send")
                                           : absl::StrCat(e.peer(), " -> ", e.rank(), " recv");
    const std::string comm = e.foreign() ? "pxn" : absl::StrCat(e.communicator());
    if (e.message_count()) {
      return Line(absl::StrFormat("  %-5d %-5s %-14s messages %d, bytes %d", e.row(), comm,
                                  direction, e.steps_total(), e.bytes()));
    }
    uint64_t position = e.current_position();
    bool p2p = e.current_position_p2p();
    std::string owner;
    if (e.foreign()) {
      const auto known = foreign_.find({r_.source, e.row()});
      if (known != foreign_.end()) {
        position = known->second.position;
        p2p = known->second.position_p2p;
        owner = absl::StrCat("  of ", known->second.owner);
      }
    }
    const std::string line = absl::StrFormat(
        "  %-5d %-5s %-14s %3d  %s%-6d %3d: %d/%d/%d  %-20s %-10s %d/%d  %d%s%s", e.row(), comm,
        direction, e.channel(), p2p ? "p" : "#", position, e.n_steps(), e.posted(), e.transmitted(),
        e.done(), e.current_stopped() ? "over" : Lower(trace::StepState_Name(e.state())),
        Ago(e.changed_ns()), e.ops_started(), e.ops_stopped(), e.bytes(), owner,
        EdgeOpen(e) ? "  OPEN" : "");
    absl::StrAppend(&out_, EdgeOpen(e) ? style_.Warn(Printable(line)) : Printable(line), "\n");
  }

  void Evidence() {
    if (t_.evidence_size() == 0) return;
    Heading("Evidence kept");
    for (const auto& e : t_.evidence()) {
      Line(absl::StrCat("  ", e.source(), ": ", e.data().size(), " bytes",
                        e.truncated() ? " (cut)" : ""));
    }
  }

  const model::Record& r_;
  const trace::Trace& t_;
  const RecordTextOptions& options_;
  const ForeignEdges& foreign_;
  Style style_;
  std::string out_;
};

}  // namespace

ForeignEdges ForeignEdgesOf(const model::Job& job) {
  ForeignEdges found;
  for (const model::Edge& edge : job.edges) {
    if (edge.communicator < 0) continue;
    const model::Communicator& c = job.communicators[static_cast<size_t>(edge.communicator)];
    for (const auto* side : {&edge.sender, &edge.receiver}) {
      if (!*side || (*side)->raw == nullptr || !(*side)->raw->foreign()) continue;
      const trace::Edge& e = *(*side)->raw;
      const int job_rank = e.rank() < c.members.size() ? c.members[e.rank()].job_rank : -1;
      ForeignEdge& named =
          found[{job.processes[static_cast<size_t>((*side)->process)].source, e.row()}];
      named.owner = absl::StrCat("rank ", job_rank >= 0 ? job_rank : static_cast<int>(e.rank()),
                                 " in ", c.Label());
      named.position = (*side)->position;
      named.position_p2p = (*side)->position_p2p;
    }
  }
  return found;
}

std::string RenderRecord(const model::Record& record, const RecordTextOptions& options,
                         const ForeignEdges& foreign) {
  return RecordRenderer(record, options, foreign).Run();
}

}  // namespace ringscope::report
