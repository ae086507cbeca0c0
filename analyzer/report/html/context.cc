#include "analyzer/report/html/context.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>

#include "analyzer/model/bus_id.h"
#include "analyzer/report/cursors.h"
#include "analyzer/report/words.h"

namespace ringscope::report::html {
namespace {

bool HasOpen(const model::Communicator& communicator) {
  const auto lines = CursorLines(communicator);
  return std::any_of(lines.begin(), lines.end(), [](const CursorLine& line) { return line.open; });
}

// The communicator that a finding names: "world (0x1f2e3d4c)".
const model::Communicator* Named(const Finding& f, const model::Job& job) {
  for (const std::string& name : f.who().communicators()) {
    for (const model::Communicator& communicator : job.communicators) {
      if (communicator.Label() == name) return &communicator;
    }
    // The same with the whole id.
    for (const model::Communicator& communicator : job.communicators) {
      const std::string id = absl::StrCat("0x", absl::Hex(communicator.id));
      if (communicator.id != 0 && (name == id || name == absl::StrCat(communicator.name, " (", id, ")"))) return &communicator;
    }
  }
  return nullptr;
}

const model::Communicator* Stalled(const Diagnosis& d, const model::Job& job) {
  // What the first finding explains is about the same stall.
  if (Leads(d)) {
    if (const auto* named = Named(d.findings(0), job); named != nullptr) return named;
    for (const uint32_t i : d.findings(0).explains()) {
      if (i >= static_cast<uint32_t>(d.findings_size())) continue;
      if (const auto* named = Named(d.findings(static_cast<int>(i)), job); named != nullptr) return named;
    }
  }
  const model::Communicator* best = nullptr;
  bool best_open = false;
  for (const model::Communicator& communicator : job.communicators) {
    const bool open = HasOpen(communicator);
    if (best == nullptr || (open && !best_open) || (open == best_open && communicator.n_ranks > best->n_ranks)) {
      best = &communicator;
      best_open = open;
    }
  }
  return best;
}

// A shell takes it as it is.
bool Plain(std::string_view value) {
  return !value.empty() && value.size() < 128 && value[0] != '-' && std::all_of(value.begin(), value.end(), [](unsigned char ch) {
    return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '.' || ch == ':' ||
           ch == '-' || ch == '_';
  });
}

}  // namespace

Context::Context(const Diagnosis& diagnosis, const model::Job& the_job, const Lines& the_lines)
    : d(diagnosis), job(the_job), lines(the_lines) {
  for (const model::Process& process : job.processes) {
    if (process.job_rank >= 0) process_of.emplace(process.job_rank, &process);
  }
  stalled = Stalled(d, job);
  for (int i = 0; i < d.findings_size(); ++i) {
    for (const EdgeName& e : d.findings(i).who().edges()) {
      if (i == 0) edges.emplace(e.from(), e.to());
      if (i > 0) other_edges.emplace(std::make_pair(e.from(), e.to()), i);
    }
  }
  if (!Leads(d)) return;
  first = &d.findings(0);
  named.insert(first->who().ranks().begin(), first->who().ranks().end());
  accused = named;
  for (const auto& [from, to] : edges) accused.insert({from, to});
  waiting.insert(first->collateral().ranks().begin(), first->collateral().ranks().end());
  host = HostOf(*first);
}

std::string Context::HostOf(const Finding& finding) const {
  if (finding.who().hosts_size() > 0) return finding.who().hosts(0);
  if (finding.who().ranks_size() > 0) return job.HostOf(finding.who().ranks(0));
  if (finding.who().edges_size() > 0) return job.HostOf(finding.who().edges(0).from());
  return "";
}

std::string_view ToneOf(State::Value state) {
  switch (state) {
    case State::healthy:
      return "good";
    case State::slow:
    case State::recovered:
    case State::unknown:
      return "warn";
    default:
      return "alarm";
  }
}

std::string_view ToneOf(Confidence::Value confidence) {
  return confidence == Confidence::established ? "good" : confidence == Confidence::probable ? "info" : "warn";
}

void Chip(std::string_view tone, std::string_view text, Writer* out) {
  *out << "<span class=\"chip " << tone << "\">" << text << "</span>";
}

std::string Filled(std::string_view command, const Finding& finding, const Context& c) {
  const Who& who = finding.who();
  std::map<std::string, std::string> values;
  values["{host}"] = c.HostOf(finding);
  if (who.ranks_size() == 1) {
    values["{rank}"] = absl::StrCat(who.ranks(0));
    const auto process = c.process_of.find(who.ranks(0));
    if (process != c.process_of.end()) values["{pid}"] = absl::StrCat(process->second->trace.process().pid());
  }
  if (who.gpus_size() == 1) {
    // "GPU 0000:61:00.0", "GPU 3 (0000:61:00.0)".
    std::string name = absl::StrReplaceAll(who.gpus(0), {{"GPU ", ""}, {"(", ""}, {")", ""}});
    const size_t blank = name.find(' ');
    const std::string index = blank == name.npos ? "" : name.substr(0, blank);
    const std::string bus = blank == name.npos ? name : name.substr(blank + 1);
    if (model::ParseBusId(bus)) values["{bus_id}"] = bus;
    if (!index.empty() && index.find_first_not_of("0123456789") == index.npos) values["{gpu}"] = index;
  }
  std::string out(command);
  for (const auto& [name, value] : values) {
    if (Plain(value)) out = absl::StrReplaceAll(out, {{name, value}});
  }
  return out;
}

namespace {

int Moment(const model::HardwareSnapshot& s) {
  const auto has = [&](std::string_view word) { return s.label.find(word) != s.label.npos; };
  if (has("before")) return 0;
  return has("after") || has("later") ? 2 : 1;
}

}  // namespace

std::vector<const model::HardwareSnapshot*> SnapshotsInOrder(const model::Job& job) {
  std::vector<const model::HardwareSnapshot*> snapshots;
  for (const model::HardwareSnapshot& s : job.evidence.hardware.snapshots) snapshots.push_back(&s);
  // One order for all: stamps only where every one has the same clock.
  const bool stamped = !snapshots.empty() && std::all_of(snapshots.begin(), snapshots.end(), [&](const auto* s) {
    return s->time.known() && s->time.clock == snapshots[0]->time.clock;
  });
  std::stable_sort(snapshots.begin(), snapshots.end(), [&](const auto* a, const auto* b) {
    if (stamped && a->time.ns != b->time.ns) return a->time.ns < b->time.ns;
    return Moment(*a) < Moment(*b);
  });
  return snapshots;
}

}  // namespace ringscope::report::html
