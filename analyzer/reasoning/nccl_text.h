// Shared by the finders that read NCCL's debug log: who speaks, which releases run, settings.
#ifndef RINGSCOPE_ANALYZER_REASONING_NCCL_TEXT_H_
#define RINGSCOPE_ANALYZER_REASONING_NCCL_TEXT_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/reasoning/text_evidence.h"
#include "catalog/nccl_release.h"

namespace ringscope::reasoning {

using catalog::NcclRelease;
using catalog::NcclReleaseText;

// Every version of this component that the input names, each release once, in the order of the input.
std::vector<const model::Version*> VersionsOf(const model::Job& job, std::string_view component);
// Releases of NCCL that ran: of its own log and errors, else of package lists. 0 entries when none is named.
std::vector<const model::Version*> NcclVersions(const model::Job& job);
void CiteVersion(const model::Job& job, const model::Version& version, Finding* finding);

std::vector<const model::Setting*> SettingsOf(const model::Job& job, std::initializer_list<std::string_view> names);
void CiteSetting(const model::Job& job, const model::Setting& setting, Finding* finding);

// A rank that a line names; -1 when it does not, or names none that can be.
int RankField(const model::Event& event, std::string_view name);

// Ranks and hosts of those who said these lines become the finding's `who`.
void Accuse(const std::vector<const model::Event*>& events, Finding* finding);
// Ranks of those who said these lines, and are not accused, become collateral.
void OnlyWaited(const std::vector<const model::Event*>& events, Finding* finding);
// Lines of NCCL about a peer or a helper thread that went away.
std::vector<const model::Event*> PeerLosses(const model::Job& job);

// The largest communicator that is no split: its size, and the entries of one communicator of that size.
int WorldSize(const model::Job& job);
// Some communicator of the job's size came up on some rank.
bool AnyInitComplete(const model::Job& job);
// Hosts that speak in NCCL's log.
std::vector<std::string> LogHosts(const model::Job& job);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_NCCL_TEXT_H_
