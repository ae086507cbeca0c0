#include "analyzer/reasoning/text_evidence.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "analyzer/model/job_time.h"
#include "analyzer/reasoning/op_text.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {

std::vector<const model::Event*> EventsOf(const model::Job& job, std::initializer_list<std::string_view> signatures) {
  std::vector<const model::Event*> found;
  for (const model::Event& event : job.evidence.events) {
    if (std::find(signatures.begin(), signatures.end(), event.signature) != signatures.end()) found.push_back(&event);
  }
  return found;
}

const model::Event* FirstEvent(const model::Job& job, std::initializer_list<std::string_view> signatures) {
  for (const model::Event& event : job.evidence.events) {
    if (std::find(signatures.begin(), signatures.end(), event.signature) != signatures.end()) return &event;
  }
  return nullptr;
}

void Cite(const model::Job& job, model::Where where, std::string text, Finding* finding) {
  Evidence& evidence = *finding->add_evidence();
  evidence.set_text(std::move(text));
  evidence.set_source(std::string(job.evidence.Path(where)));
  evidence.set_line(where.line);
  evidence.set_rank(-1);
}

void Cite(const model::Job& job, const model::Event& event, Finding* finding) {
  Cite(job, event.where, event.text, finding);
  if (event.by.rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(event.by.rank);
}

void CiteAll(const model::Job& job, const std::vector<const model::Event*>& events, size_t most, Finding* finding) {
  for (size_t i = 0; i < events.size() && i < most; ++i) Cite(job, *events[i], finding);
  if (events.size() > most) Cite(job, events[most]->where, absl::StrCat("… and ", events.size() - most, " more such lines"), finding);
}

std::set<int> RanksOf(const std::vector<const model::Event*>& events) {
  std::set<int> ranks;
  for (const model::Event* event : events) {
    if (event->by.rank >= 0) ranks.insert(event->by.rank);
  }
  return ranks;
}

std::string SpeakerText(const model::Speaker& by) {
  std::string text;
  if (by.rank >= 0) text = absl::StrCat("rank ", by.rank);
  if (!by.host.empty()) absl::StrAppend(&text, text.empty() ? "" : " on ", by.host);
  if (text.empty() && by.pid >= 0) text = absl::StrCat("pid ", by.pid);
  return text;
}

Candidate Say(Kind::Value kind, Confidence::Value confidence, Layer layer, std::string title, std::string_view cause_id,
              std::string_view signature) {
  Candidate candidate;
  candidate.order = kind == Kind::undetermined ? Class::kUndetermined : Class::kError;
  candidate.layer = layer;
  Finding& finding = candidate.finding;
  finding.set_kind(kind);
  finding.set_confidence(confidence);
  finding.set_title(std::move(title));
  finding.mutable_cause()->set_id(cause_id.empty() ? "not established" : std::string(cause_id));
  if (!cause_id.empty()) finding.mutable_cause()->set_confidence(confidence);
  if (const catalog::Signature* known = catalog::FindSignature(signature); known != nullptr) {
    finding.mutable_next()->set_text(known->next());
    finding.mutable_next()->set_command(known->command());
  }
  return candidate;
}

void SetNext(std::string text, std::string command, Finding* finding) {
  finding->mutable_next()->set_text(std::move(text));
  finding->mutable_next()->set_command(std::move(command));
}

bool AllLivedOn(const model::Job& job, const model::Stamp& when) {
  constexpr int64_t kApart = 5'000'000'000;
  if (when.clock != model::Stamp::Clock::kRealtime || job.processes.empty() || !job.missing_job_ranks.empty()) return false;
  return std::all_of(job.processes.begin(), job.processes.end(), [&](const model::Process& p) {
    const model::JobTime last = LastSignOf(p);
    return last.known() && last.ns > when.ns + kApart;
  });
}

bool ContainsIgnoringCase(std::string_view text, std::string_view word) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; };
  const auto same = [&](char a, char b) { return lower(a) == lower(b); };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

std::string ShellWord(std::string_view word) {
  const bool plain = !word.empty() && word[0] != '-' && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '.' || c == '-' || c == '_' || c == ':' || c == '/';
  });
  return plain ? std::string(word) : "<name>";
}

}  // namespace ringscope::reasoning
