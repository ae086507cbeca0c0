// The steps of BuildJob(), in the order in which they run. Internal to analyzer/model/.
#ifndef RINGSCOPE_ANALYZER_MODEL_BUILD_H_
#define RINGSCOPE_ANALYZER_MODEL_BUILD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::model {

// Limits that keep a hostile record from asking for terabytes.
inline constexpr uint32_t kMaxCommRanks = 1u << 18;
inline constexpr uint64_t kMaxMembers = uint64_t{1} << 22;
inline constexpr int kMaxWorld = 1 << 20;

// Sentences for Job::not_seen. The same sentence about many ranks becomes one line, also when only
// its numbers differ
// ("ranks 0-7: 3-12 operations found no free row").
class Notes {
 public:
  void Add(const std::string& sentence) { general_.push_back(sentence); }
  void AddFor(const Process& process, const std::string& sentence);
  std::vector<std::string> Take();

 private:
  std::vector<std::string> general_;
  struct Group {
    std::vector<int> ranks;
    std::vector<std::string> others;  // processes without a job rank
    std::vector<uint64_t> low, high;  // of each number in the sentence
    std::string Who() const;
  };
  std::map<std::string, Group> by_shape_;
};

// 0. Cuts times and durations that no machine can have to what arithmetic stands: afterwards any
// few of them can be added and subtracted without overflow, in finders too. True if something was
// cut.
bool CutToRange(trace::Trace* trace);
// Dumps of PyTorch's flight recorder: gives them the time at which they were taken, leaves out those that are older than the
// others or cut short, and all of them where Ringscope's own records lie beside them.
void SettleDumps(std::vector<Record>* records, Notes* notes);
// In dumps "scheduled" means "not started" only where another member's dump shows the same operation running: start events are
// off unless asked for (TORCH_NCCL_ENABLE_TIMING). After step 4.
void SettleStarts(Job* job);
// 1. Records of one process become one Process, newest state first; other attempts and jobs are
// left out.
// `incarnation` as in BuildJob(), `name` and `left_out` as in model::Job.
std::vector<Process> JoinRecords(std::vector<Record> records, const std::string& incarnation,
                                 Notes* notes, std::string* name,
                                 std::vector<std::string>* left_out);
// Without a job id two runs at a time look like one job. Keeps the newest of those that cannot be
// one. Part of step 1.
void DropOtherRuns(std::vector<Process>* processes, Notes* notes);
// 2. Communicators with their members.
void JoinCommunicators(Job* job, Notes* notes);
// 3. Job rank of processes and members, world size, missing ranks.
void AssignJobRanks(Job* job, Notes* notes);
// 4. Operations of every member.
void ExpandOperations(Job* job, Notes* notes);
// 5. Edges and message counts.
void JoinEdges(Job* job, Notes* notes);
// 6. Life of every process.
void JudgeLife(Job* job);
// 7. Blind spots that the records themselves name.
void CollectBlindSpots(const Job& job, Notes* notes);

// Index in job->communicators of each Communicator.row of each process, and the member's rank
// there.
struct RowRef {
  int communicator = -1;
  int rank = -1;
};
std::vector<std::map<uint32_t, RowRef>> IndexRows(const Job& job);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_BUILD_H_
