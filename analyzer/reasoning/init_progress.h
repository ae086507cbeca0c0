// How far the job's first communicator came, by NCCL's init lines.
#ifndef RINGSCOPE_ANALYZER_REASONING_INIT_PROGRESS_H_
#define RINGSCOPE_ANALYZER_REASONING_INIT_PROGRESS_H_

#include <map>
#include <set>
#include <string>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

struct InitProgress {
  int n_ranks = 0;  // 0: no line says anything of a start (before 2.18.3 NCCL printed none)
  std::map<int, const model::LogRank*> started, completed;
  bool aborted = false;                 // by some rank
  size_t ranks_in_one_file = 0;         // the most ranks that one file tells of
  std::string function;                 // "ncclCommInitRank" where printed
  std::map<std::string, int> per_host;  // ranks that entered, by host
  std::set<int> StartedRanks() const;
  // Hosts have different numbers of ranks.
  bool Uneven() const;
};

InitProgress LookAtInit(const model::Job& job);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_INIT_PROGRESS_H_
