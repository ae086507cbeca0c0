// What a call stack says of its process: where it waits, or what it does instead. Shared by the stack_*_finder.cc files.
#ifndef RINGSCOPE_ANALYZER_REASONING_STACK_VIEW_H_
#define RINGSCOPE_ANALYZER_REASONING_STACK_VIEW_H_

#include <set>
#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {

// Where a thread stands, by its telling frame. Several can hold (a save that gathers); the first in this order counts.
enum class Doing {
  kProxySlot,  // NCCL's launch waits for a free proxy operation (ncclLocalOpAppend)
  kAbort,      // ncclCommAbort, Destroy, Finalize
  kInit,       // making a communicator
  kDriver,     // a driver call that may wait for the GPU: allocation, module load, free, device-wide sync
  kLoad,       // next batch: data loader, storage
  kSave,       // a checkpoint or file being written, without a collective inside
  kStore,      // rendezvous store, host barrier, object gather over a store
  kSend,
  kReceive,
  kCollective,  // in a collective, or waiting for it
  kSync,        // a stream or event synchronisation: waits for whatever was enqueued
  kIdle,        // waits for work: queues, select, sleep
  kUser,        // none of these
  kUnknown,     // no frame with a name
};

struct Stance {
  const model::StackProcess* process = nullptr;
  const model::StackThread* thread = nullptr;
  Doing doing = Doing::kUnknown;
  const model::StackFrame* telling = nullptr;  // the frame that says so
  const model::StackFrame* user = nullptr;     // innermost frame of the user's own program
  std::string collective;                      // "allreduce", normal form, where one is in the stack
  bool saving = false;                         // a save or state_dict is further out
  int rank = -1;                               // of the job
};

// One a process: its main thread's, or that of the thread which tells most.
std::vector<Stance> Stances(const model::Job& job);

// Cause and advice by what somebody does who should be in a collective: the failure mode's id ("" none), "fetches its next input",
// what to look at.
struct StanceReading {
  const char *cause, *what, *next;
};
StanceReading ReadingOf(Doing doing);

// The process's record is among the job's; a process without a pid or host of its own is matched by its rank.
bool IsOf(const Stance& stance, const model::Process& process);

// "cuMemAlloc (libcuda.so.1) below step (train.py:88)".
std::string StanceText(const Stance& stance);
// "rank 3", "pid 4410", "a process".
std::string WhoText(const Stance& stance);
void CiteStance(const model::Job& job, const Stance& stance, Finding* finding);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_STACK_VIEW_H_
