// RAS snapshots as the finders need them: one history a communicator, ranks of the job, and whether the job is known to hang.
// Shared by the ras_*_finder.cc files.
#ifndef RINGSCOPE_ANALYZER_REASONING_RAS_VIEW_H_
#define RINGSCOPE_ANALYZER_REASONING_RAS_VIEW_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {

struct RasSight {
  const model::RasSnapshot* snapshot;
  const model::RasCommunicator* communicator;
};

// What became of a communicator's counts between its two newest snapshots.
enum class RasMotion {
  kOnce,       // seen once, or with nothing to compare: counts that differ may be a moment's
  kAdvancing,  // the rank that is behind launched more, too: no hang then
  kLagging,    // others went on, the rank that is behind did not
  kUnchanged,  // all counts equal
};

struct RasHistory {
  std::string hash;  // empty: its line was not pasted
  int size = -1;
  std::vector<RasSight> sights;  // oldest first, as far as counts and times tell
  RasMotion motion = RasMotion::kOnce;
  int64_t apart_s = -1;         // time between the two newest; -1 unknown
  bool said_unchanged = false;  // somebody wrote so
  const RasSight& last() const { return sights.back(); }
};

// One a communicator that a snapshot gave details of, largest first. Numbers that cannot be (NCCL 2.27.3's RAS printed memory
// of communicators that were not there) are left out.
std::vector<RasHistory> RasHistories(const model::Job& job);

uint64_t FrontCount(const model::RasCounts& counts);  // of the rank that launched most
uint64_t RearCount(const model::RasCounts& counts);

// The rank in the job: the rank itself in the communicator that spans the job, else that of its process (another communicator's
// line, NCCL's log, a record). -1 unknown.
class RasRanks {
 public:
  explicit RasRanks(const model::Job& job);
  int Of(const RasHistory& history, const model::RasRank& rank) const;
  int OfProcess(int64_t pid, const std::string& node, int gpu) const;
  bool Spans(const RasHistory& history) const;

 private:
  void Add(int64_t pid, const std::string& node, int gpu, int rank);
  // -1 under a key that two ranks share.
  std::map<std::tuple<int64_t, std::string, int>, int> by_gpu_;
  std::map<std::pair<int64_t, std::string>, int> by_process_;
  std::map<std::pair<int64_t, int>, int> log_by_gpu_;
  std::map<int64_t, int> log_by_process_;
  int world_ = -1;
  bool several_ = false;  // several communicators of that size and more GPUs than it has: none spans the job
};

// Ranks of the job that are behind in some communicator most of whose ranks are not, and did not move since.
std::set<int> RasRanksBehind(const model::Job& job);

// "process 6248 on 10.0.0.1 (GPU 0)"; what is known of it.
std::string RasProcessText(const model::RasRank& rank);

// Lines by which somebody other than RAS says that operations do not finish: watchdog timeouts and the like.
struct HangReport {
  model::Where where;
  std::string text;
  int rank = -1;
};
std::vector<HangReport> HangReports(const model::Job& job);
void CiteReports(const model::Job& job, const std::vector<HangReport>& reports, size_t most, Finding* finding);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_RAS_VIEW_H_
