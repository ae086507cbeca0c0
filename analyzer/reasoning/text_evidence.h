// Shared by the finders that read Job::evidence: events by signature, and evidence that cites file and line.
#ifndef RINGSCOPE_ANALYZER_REASONING_TEXT_EVIDENCE_H_
#define RINGSCOPE_ANALYZER_REASONING_TEXT_EVIDENCE_H_

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {

// Events of these signatures in the order of the input. The pointers live as long as the job.
std::vector<const model::Event*> EventsOf(const model::Job& job, std::initializer_list<std::string_view> signatures);
const model::Event* FirstEvent(const model::Job& job, std::initializer_list<std::string_view> signatures);

// Adds evidence that quotes a line with its place. `text` is what a person should read: by default the line itself.
void Cite(const model::Job& job, model::Where where, std::string text, Finding* finding);
void Cite(const model::Job& job, const model::Event& event, Finding* finding);
// The first `most` of them; says how many more there are.
void CiteAll(const model::Job& job, const std::vector<const model::Event*>& events, size_t most, Finding* finding);

// Ranks of the speakers, where known.
std::set<int> RanksOf(const std::vector<const model::Event*>& events);
// "rank 3 on node7", "node7", "pid 12"; empty when nothing is known.
std::string SpeakerText(const model::Speaker& by);

// A finding with the fields that every one must have. Next step and cause are those of the signature's catalogue entry when
// `signature` names one; callers overwrite them where they know better.
Candidate Say(Kind::Value kind, Confidence::Value confidence, Layer layer, std::string title, std::string_view cause_id,
              std::string_view signature = {});
void SetNext(std::string text, std::string command, Finding* finding);

// All processes of the job have records and showed life later than that moment (5 s for clocks): whatever ended a process then, it was
// none of these. False where times or records do not tell.
bool AllLivedOn(const model::Job& job, const model::Stamp& when);

bool ContainsIgnoringCase(std::string_view text, std::string_view word);

// A name that becomes part of a shell command; anything odd in it becomes a placeholder.
std::string ShellWord(std::string_view word);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_TEXT_EVIDENCE_H_
