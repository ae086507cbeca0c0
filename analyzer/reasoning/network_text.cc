#include "analyzer/reasoning/network_text.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

// What UCX calls the statuses.
int StatusOfUcx(std::string_view what) {
  static constexpr std::pair<std::string_view, int> kNames[] = {
      {"Transport retry", kRetryExceeded},    {"RNR retry", kReceiverNotReady},
      {"Local protection", kLocalProtection}, {"Remote access", kRemoteAccess},
      {"Remote operation", kRemoteOperation}, {"Remote invalid", kRemoteInvalid},
      {"Work Request Flushed", kFlushed},     {"Local QP", 2}};
  for (const auto& [name, status] : kNames) {
    if (what.starts_with(name)) return status;
  }
  return 0;
}

// A training job that counted this many operations has used its connections.
constexpr uint64_t kManyOperations = 64;
constexpr int64_t kManySteps = 10;

}  // namespace

std::string_view WcStatusText(int status) {
  switch (status) {
    case kLocalLength:
      return "local length error: more arrived than was expected";
    case kLocalProtection:
      return "local protection error: the adapter could not reach local memory";
    case kFlushed:
      return "flushed after an earlier error";
    case kRemoteInvalid:
      return "the peer rejected the request";
    case kRemoteAccess:
      return "the peer's memory could not be accessed";
    case kRemoteOperation:
      return "the peer could not complete the operation";
    case kRetryExceeded:
      return "transport retries exceeded: the peer did not acknowledge";
    case kReceiverNotReady:
      return "the receiver was not ready";
    default:
      return "";
  }
}

std::vector<Completion> Completions(const model::Job& job) {
  std::vector<Completion> found;
  for (const model::Event* event : EventsOf(job, {"nccl-ib-completion", "ucx-transport-error"})) {
    Completion c;
    c.event = event;
    c.status = event->signature == "ucx-transport-error" ? StatusOfUcx(event->Field("what"))
                                                         : static_cast<int>(event->Number("status").value_or(0) & 0xff);
    if (c.status == 0) continue;  // a trace of what went well
    c.peer = event->Field("peer");
    if (!c.peer.empty()) c.peer_host = model::HostOfAddress(job.evidence, c.peer);
    found.push_back(std::move(c));
  }
  return found;
}

const Completion* FirstError(const std::vector<Completion>& completions) {
  for (const Completion& c : completions) {
    if (c.status != kFlushed) return &c;
  }
  return nullptr;
}

bool AnyStatus(const std::vector<Completion>& completions, int status) {
  return std::any_of(completions.begin(), completions.end(), [&](const Completion& c) { return c.status == status; });
}

void CiteCompletions(const model::Job& job, const std::vector<Completion>& completions, size_t most, Finding* finding) {
  std::set<std::tuple<std::string, int64_t, std::string, int>> seen;
  size_t cited = 0;
  for (const bool flushes : {false, true}) {
    for (const Completion& c : completions) {
      if ((c.status == kFlushed) != flushes || cited >= most) continue;
      if (!seen.insert({c.event->by.host, c.event->by.pid, c.peer, c.status}).second) continue;
      Cite(job, *c.event, finding);
      ++cited;
      if (flushes) return;
    }
  }
}

std::string PeerText(const model::Job& job, std::string_view peer) {
  const std::string host = model::HostOfAddress(job.evidence, peer);
  return host.empty() || host == peer ? std::string(peer) : absl::StrCat(Absl(peer), " (", host, ")");
}

void OnlyReported(const std::vector<const model::Event*>& events, Finding* finding) {
  std::set<int> ranks = RanksOf(events);
  for (const int rank : finding->who().ranks()) ranks.erase(rank);
  AddRanks(ranks, finding->mutable_collateral()->mutable_ranks());
}

const model::Setting* SettingOf(const model::Job& job, std::string_view name) {
  const model::Setting* found = nullptr;
  for (const model::Setting& s : job.evidence.settings) {
    if (s.name == name) found = &s;
  }
  return found;
}

void CiteSettings(const model::Job& job, std::string_view name, size_t most, Finding* finding) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const model::Setting& s : job.evidence.settings) {
    if (s.name != name || seen.size() >= most || !seen.insert({s.by.host, s.value}).second) continue;
    Cite(job, s.where, absl::StrCat(s.name, "=", s.value, s.by.host.empty() ? "" : absl::StrCat(" (", s.by.host, ")")),
         finding);
  }
}

int OldestNccl(const model::Job& job) {
  int oldest = 0;
  for (const model::Version& v : job.evidence.versions) {
    if (v.component != "nccl") continue;
    const std::vector<std::string> parts = absl::StrSplit(v.version.substr(0, v.version.find('+')), '.');
    int major = 0, minor = 0, patch = 0;
    if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) || !absl::SimpleAtoi(parts[1], &minor)) continue;
    if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &patch)) patch = 0;
    if (major < 1 || major > 9 || minor < 0 || minor > 99 || patch < 0 || patch > 99) continue;
    const int release = major * 10000 + minor * 100 + patch;
    if (oldest == 0 || release < oldest) oldest = release;
  }
  return oldest;
}

namespace {

// `before`: null for any time.
std::optional<Sign> WorkedUntil(const model::Job& job, const model::Event* before) {
  const auto earlier = [&](model::Where where) {
    return before == nullptr || where.file != before->where.file || where.line < before->where.line;
  };
  const model::Evidence& e = job.evidence;
  for (const model::NcclTestRow& row : e.hardware.speed.nccl_tests) {
    if (row.wrong <= 0 && row.micros > 0 && earlier(row.where))
      return Sign{row.where, absl::StrCat(row.bytes, " bytes in ", row.micros, " us: the connections worked until then")};
  }
  for (const model::Event* row : EventsOf(job, {"nccl-tests-row"})) {
    if (earlier(row->where)) return Sign{row->where, row->text};
  }
  for (const model::CallHistory& h : e.calls.histories) {
    for (const model::LoggedCall& call : h.calls) {
      if (call.op_count >= kManyOperations && earlier(call.where))
        return Sign{call.where, absl::StrCat("operation ", call.op_count, " was called: many had ended")};
    }
  }
  for (const model::WorkCursor& c : e.work.cursors) {
    if (c.completed >= static_cast<int64_t>(kManyOperations))
      return Sign{c.where, absl::StrCat(c.completed, " operations had completed")};
  }
  for (const model::WorkTimeout& t : e.work.timeouts) {
    if (t.seq.value_or(0) >= static_cast<int64_t>(kManyOperations))
      return Sign{t.where, absl::StrCat("operation ", *t.seq, " timed out: many had ended")};
  }
  for (const model::StepTime& t : e.hardware.speed.steps) {
    if (t.step >= kManySteps && earlier(t.where)) return Sign{t.where, absl::StrCat("step ", t.step, " had ended")};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Sign> WorkedBefore(const model::Job& job, const model::Event& before) { return WorkedUntil(job, &before); }
std::optional<Sign> Worked(const model::Job& job) { return WorkedUntil(job, nullptr); }

bool UsesRoce(const model::Job& job) {
  const auto& adapters = job.evidence.network.adapters;
  if (!adapters.empty())
    return std::any_of(adapters.begin(), adapters.end(), [](const model::AdapterUse& a) { return a.roce; });
  for (const Completion& c : Completions(job)) {
    if (!c.event->Field("local_gid").empty() || c.event->Field("link") == "RoCE") return true;
  }
  return false;
}

}  // namespace ringscope::reasoning
