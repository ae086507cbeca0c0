// Shared by the finders about the network: completions with errors, peers by name, settings, whether the job had worked before.
#ifndef RINGSCOPE_ANALYZER_REASONING_NETWORK_TEXT_H_
#define RINGSCOPE_ANALYZER_REASONING_NETWORK_TEXT_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {

// Work completion statuses (libibverbs, enum ibv_wc_status).
enum WcStatus : int {
  kLocalLength = 1,
  kLocalProtection = 4,
  kFlushed = 5,
  kRemoteInvalid = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
  kReceiverNotReady = 13,
};
// "transport retries exceeded: the peer did not acknowledge"; empty for an unknown one.
std::string_view WcStatusText(int status);

struct Completion {
  const model::Event* event = nullptr;
  int status = 0;
  std::string peer;       // address as the line names it; empty up to NCCL 2.9
  std::string peer_host;  // where known
};
// Completions with an error, in the order of the input: NCCL's, and UCX's "Transport retry count exceeded" and the like.
std::vector<Completion> Completions(const model::Job& job);
// The first that is no flush; nullptr when there is none.
const Completion* FirstError(const std::vector<Completion>& completions);
bool AnyStatus(const std::vector<Completion>& completions, int status);
// Cites up to `most` completions with an error, one a speaker and peer and status, and one flush after them.
void CiteCompletions(const model::Job& job, const std::vector<Completion>& completions, size_t most, Finding* finding);

// "10.77.5.3 (roce-3)".
std::string PeerText(const model::Job& job, std::string_view peer);
// Ranks of those who report become collateral: they only noticed.
void OnlyReported(const std::vector<const model::Event*>& events, Finding* finding);

// The last value of a setting; nullptr when it is not set anywhere.
const model::Setting* SettingOf(const model::Job& job, std::string_view name);
void CiteSettings(const model::Job& job, std::string_view name, size_t most, Finding* finding);
// Release of NCCL as a number that compares (2.18.3 is 21803), 0 unknown; differing ones: the oldest.
int OldestNccl(const model::Job& job);

// The job exchanged data over its connections before the error at `before`: rows of a benchmark, steps, many operations.
// nullopt: nothing shows it.
struct Sign {
  model::Where where;
  std::string text;
};
std::optional<Sign> WorkedBefore(const model::Job& job, const model::Event& before);
// The same at any time.
std::optional<Sign> Worked(const model::Job& job);

// The job's NCCL uses RoCE adapters, by its own lines or by completions that show GIDs.
bool UsesRoce(const model::Job& job);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_NETWORK_TEXT_H_
