// What ranks did last, on the job's clock: data for the script (assets/report.js), which draws the ranks that the reader chooses.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <time.h>

#include <algorithm>
#include <map>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/safe_math.h"
#include "analyzer/report/cursors.h"
#include "analyzer/report/html/context.h"

namespace ringscope::report::html {
namespace {

constexpr size_t kMostOps = 24000;  // in the page, of all ranks together
constexpr size_t kLeastOfRank = 6, kMostOfRank = 64;
constexpr size_t kDefaultRanks = 8;
constexpr int64_t kUs = 1000;

std::string Utc(int64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1000000000);
  struct tm parts;
  char text[64];
  if (realtime_ns <= 0 || gmtime_r(&seconds, &parts) == nullptr) return "unknown time";
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return absl::StrFormat("%s.%03d UTC", text, static_cast<int>(realtime_ns / 1000000 % 1000));
}

struct Shown {
  const model::Op* op = nullptr;
  int communicator = 0;
  int64_t Newest() const {
    return std::max({op->raw.entered_ns(), op->raw.enqueued_ns(), op->raw.started_ns(), op->raw.finished_ns()});
  }
};

const char* CallName(trace::CallInFlight::Call call) {
  switch (call) {
    case trace::CallInFlight::GROUP:
      return "inside a group";
    case trace::CallInFlight::COLL_API:
      return "inside a collective call";
    case trace::CallInFlight::P2P_API:
      return "inside a send or receive call";
    case trace::CallInFlight::GROUP_END:
      return "inside ncclGroupEnd";
    case trace::CallInFlight::KERNEL_LAUNCH:
      return "inside a kernel launch";
    case trace::CallInFlight::INIT:
      return "inside the making of a communicator";
    case trace::CallInFlight::FINALIZE:
      return "inside the destruction of a communicator";
    default:
      return "";
  }
}

class Columns {
 public:
  void Add(int64_t value) { values_.push_back(value); }
  std::string Json() const { return absl::StrCat("[", absl::StrJoin(values_, ","), "]"); }

 private:
  std::vector<int64_t> values_;
};

class Timeline {
 public:
  explicit Timeline(const Context& c) : c_(c) {}

  // False: there is nothing to draw.
  bool Collect() {
    const size_t per_rank = c_.process_of.empty() ? 0 : std::clamp(kMostOps / c_.process_of.size(), kLeastOfRank, kMostOfRank);
    for (const model::Communicator& communicator : c_.job.communicators) {
      for (const model::Member& m : communicator.members) {
        if (!m.has_record()) continue;
        const model::Process& process = c_.job.processes[static_cast<size_t>(m.process)];
        if (process.job_rank < 0) continue;
        auto& of = ops_[process.job_rank];
        // Of each communicator no more than what is kept of all.
        const size_t skip = m.ops.size() > per_rank ? m.ops.size() - per_rank : 0;
        for (size_t i = 0; i < m.ops.size(); ++i) {
          const model::Op& op = m.ops[i];
          if ((i >= skip || Open(op)) && op.raw.entered_ns() > 0) of.push_back({&op, communicator.index});
        }
      }
    }
    for (auto& [rank, of] : ops_) {
      std::stable_sort(of.begin(), of.end(), [](const Shown& a, const Shown& b) {
        return a.op->raw.entered_ns() != b.op->raw.entered_ns() ? a.op->raw.entered_ns() < b.op->raw.entered_ns()
                                                                : a.communicator < b.communicator;
      });
      while (of.size() > per_rank) {
        // The oldest that is over goes first: what is open is what matters.
        const auto over = std::find_if(of.begin(), of.end(), [](const Shown& s) { return !Open(*s.op); });
        if (over == of.end()) break;
        of.erase(over);
      }
      if (of.size() > kMostOfRank * 4) of.resize(kMostOfRank * 4);
    }
    Times();
    return base_ != 0;
  }

  const std::string& stall_text() const { return stall_text_; }
  int64_t error_ns() const { return error_; }

  std::string Json() const {
    std::map<std::string, size_t> names;
    std::vector<std::string> name_list;
    const auto name = [&](const std::string& text) {
      const auto [it, fresh] = names.try_emplace(text, name_list.size());
      if (fresh) name_list.push_back(text);
      return static_cast<int64_t>(it->second);
    };
    std::string ranks;
    for (const auto& [rank, process] : c_.process_of) {
      const auto found = ops_.find(rank);
      Columns communicator, number, what, entered, enqueued, started, finished, state;
      if (found != ops_.end()) {
        for (const Shown& s : found->second) {
          communicator.Add(s.communicator);
          number.Add(static_cast<int64_t>(std::min<uint64_t>(s.op->position(), INT64_MAX / 2)));
          what.Add(name(What(*s.op)));
          entered.Add(At(*process, s.op->raw.entered_ns()));
          enqueued.Add(At(*process, s.op->raw.enqueued_ns()));
          started.Add(At(*process, s.op->raw.started_ns()));
          finished.Add(At(*process, s.op->raw.finished_ns()));
          state.Add(s.op->finished == model::Truth::kYes ? 0 : Open(*s.op) ? 1 : 2);
        }
      }
      absl::StrAppend(&ranks, ranks.empty() ? "" : ",", "{\"r\":", rank, ",\"h\":", JsonText(process->host),
                      ",\"end\":", End(*process), ",\"c\":", communicator.Json(), ",\"n\":", number.Json(),
                      ",\"w\":", what.Json(), ",\"e\":", entered.Json(), ",\"q\":", enqueued.Json(), ",\"s\":", started.Json(),
                      ",\"d\":", finished.Json(), ",\"k\":", state.Json(), ",\"calls\":[", Calls(*process), "]}");
    }
    std::string labels, words;
    for (const model::Communicator& communicator : c_.job.communicators)
      absl::StrAppend(&labels, labels.empty() ? "" : ",", JsonText(communicator.Label()));
    for (const std::string& text : name_list) absl::StrAppend(&words, words.empty() ? "" : ",", JsonText(text));
    return absl::StrCat(
        "{\"stall\":", stall_ == 0 ? -1 : (stall_ - base_) / kUs, ",\"noticed\":", noticed_ == 0 ? -1 : (noticed_ - base_) / kUs,
        ",\"chosen\":", JsonText(model::RangeText(Default(), 64)), ",\"accused\":[", absl::StrJoin(c_.accused, ","),
        "],\"labels\":[", labels, "],\"words\":[", words, "],\"ranks\":[", ranks, "]}");
  }

 private:
  static bool Open(const model::Op& op) { return op.full && op.raw.unfinished() && op.finished != model::Truth::kYes; }
  static std::string What(const model::Op& op) {
    std::string text = FuncName(op.raw.func());
    if (op.p2p() && op.raw.peer() >= 0) absl::StrAppend(&text, op.raw.func() == trace::RECV ? " from " : " to ", op.raw.peer());
    return text;
  }

  // Microseconds after the base; -1: did not happen or is not known.
  int64_t At(const model::Process& process, int64_t ns) const {
    if (ns == 0) return -1;
    return std::max<int64_t>(0, model::SatSub(process.ToRealtime(ns), base_) / kUs);
  }
  int64_t End(const model::Process& process) const {
    return process.end_ns == 0 ? -1 : std::max<int64_t>(0, model::SatSub(process.end_ns, base_) / kUs);
  }

  void Times() {
    for (const auto& [rank, process] : c_.process_of) {
      error_ = std::max(error_, process->time.error_ns);
      if (const auto of = ops_.find(rank); of != ops_.end() && !of->second.empty()) {
        const int64_t at = process->ToRealtime(of->second.front().op->raw.entered_ns());
        if (base_ == 0 || at < base_) base_ = at;
      }
      // A stall that lasts, else one that was noticed before.
      const auto stalls = [&](const trace::Trace& trace) {
        for (const trace::StallFinding& stall : trace.stalls()) {
          const int64_t since = process->ToRealtime(stall.since_ns()), noticed = process->ToRealtime(stall.noticed_ns());
          if (since > 0 && (stall_ == 0 || since < stall_)) stall_ = since;
          if (noticed > 0 && (noticed_ == 0 || noticed < noticed_)) noticed_ = noticed;
        }
      };
      stalls(process->trace);
      for (const trace::Trace& earlier : process->earlier) stalls(earlier);
    }
    if (stall_ != 0 && base_ != 0 && stall_ < base_) base_ = stall_;
    if (stall_ != 0) stall_text_ = Utc(stall_);
  }

  std::string Calls(const model::Process& process) const {
    std::string out;
    int left = 8;
    for (const trace::CallInFlight& call : process.trace.calls()) {
      const bool host = !call.host_function().empty();
      const std::string text = host ? "inside " + call.host_function() : CallName(call.call());
      const int64_t since = host ? call.host_since_ns() : call.since_ns();
      if (text.empty() || since == 0 || left-- == 0) continue;
      absl::StrAppend(&out, out.empty() ? "" : ",", "[", JsonText(text), ",", At(process, since), ",", call.tid(), "]");
    }
    return out;
  }

  // Whom to show first: the accused, those beside them, then others of the stalled communicator.
  std::vector<int> Default() const {
    std::vector<int> chosen;
    const auto add = [&](int rank) {
      if (chosen.size() < kDefaultRanks && c_.process_of.contains(rank) &&
          std::find(chosen.begin(), chosen.end(), rank) == chosen.end())
        chosen.push_back(rank);
    };
    for (const int rank : c_.accused) add(rank);
    const std::vector<int> accused = chosen;
    for (const int apart : {1, 2, 3}) {
      for (const int rank : accused) add(rank - apart), add(rank + apart);
    }
    if (c_.stalled != nullptr) {
      for (const model::Member& m : c_.stalled->members) {
        if (chosen.size() >= kDefaultRanks) break;
        add(m.job_rank);
      }
    }
    for (const auto& [rank, process] : c_.process_of) {
      if (chosen.size() >= kDefaultRanks) break;
      add(rank);
    }
    return chosen;
  }

  const Context& c_;
  std::map<int, std::vector<Shown>> ops_;  // by job rank
  int64_t base_ = 0, stall_ = 0, noticed_ = 0, error_ = 0;
  std::string stall_text_;
};

}  // namespace

Section TimelineSection(const Context& c) {
  Section section{"timeline", "Timeline", "What happened last", {}};
  Timeline timeline(c);
  if (!timeline.Collect()) return section;
  Writer& out = section.body;
  out << "<p>The newest operations of the chosen ranks on the job's clock";
  if (timeline.error_ns() > 0)
    out << " (clocks of hosts agree within " << absl::StrFormat("%.3g ms", static_cast<double>(timeline.error_ns()) / 1e6) << ")";
  out << ".";
  if (!timeline.stall_text().empty()) out << " Time 0 is the last progress before the stall, " << timeline.stall_text() << ".";
  out << "</p><div class=\"tools screen-only\"><label>Ranks <input id=\"tl-ranks\" class=\"mono\" size=\"24\" "
         "autocomplete=\"off\" spellcheck=\"false\"></label>"
         "<button type=\"button\" id=\"tl-in\" aria-label=\"Zoom in\">+</button><button type=\"button\" id=\"tl-out\" "
         "aria-label=\"Zoom out\">−</button><button "
         "type=\"button\" id=\"tl-last\">Last operations</button><button type=\"button\" id=\"tl-all\">Everything</button><span "
         "class=\"muted small\">keys: arrows "
         "choose, + − zoom, Shift+arrows move, 0 everything</span></div><p class=\"told mono small screen-only\" id=\"tl-told\" "
         "aria-live=\"polite\">&nbsp;</p>"
         "<svg id=\"tl\" class=\"timeline\" tabindex=\"0\" role=\"img\" aria-label=\"Timeline of the chosen "
         "ranks\"></svg><noscript><p>The timeline needs the page's "
         "script.</p></noscript><p class=\"legend small\"><span class=\"key\"><i class=\"swatch tl-host\"></i>called, until it "
         "is in the stream</span><span "
         "class=\"key\"><i class=\"swatch tl-queued\"></i>in the stream</span><span class=\"key\"><i class=\"swatch "
         "tl-ran\"></i>ran on the GPU</span><span "
         "class=\"key\"><i class=\"swatch tl-open\"></i>not finished</span><span class=\"key\"><i class=\"swatch "
         "tl-call\"></i>inside a call</span></p><script "
         "type=\"application/json\" id=\"tl-data\">";
  out.Json(timeline.Json()) << "</script>";
  return section;
}

}  // namespace ringscope::report::html
