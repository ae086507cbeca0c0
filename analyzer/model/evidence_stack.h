// Call stacks of processes at one moment: py-spy, gdb, pstack, eu-stack, faulthandler, the kernel's, and what people write down
// of them.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_STACK_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_STACK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

struct StackFrame {
  std::string function;  // without arguments; "??" where the tool knew no name
  std::string file;      // source file as written
  int line = -1;
  std::string module;    // "libnccl.so.2"
  bool python = false;
  Where where;
  std::string text;      // the line as a person would quote it
};

struct StackThread {
  int64_t tid = -1;
  std::string name;   // "MainThread", "pt_nccl_watchdg"
  std::string state;  // py-spy: "active", "idle", "active+gil"
  bool main = false;
  bool current = false;  // faulthandler: the thread that received the signal
  std::vector<StackFrame> frames;  // innermost first, unless `unordered`
  // A summary by a person ("rank 0: save -> state_dict -> _all_gather_base"): which end is the inner one is open.
  bool unordered = false;
  std::vector<std::string> not_reached;  // calls that a summary says were not reached
  Where where;
};

struct StackProcess {
  std::string tool;  // "py-spy", "gdb", "eu-stack", "faulthandler", "summary"
  std::string command;
  std::string fatal;  // faulthandler: "Segmentation fault"; empty for a dump of a living process
  std::vector<StackThread> threads;
  Speaker by;  // rank, pid, host as far as known
  Where where;
};

struct StackFacts {
  std::vector<StackProcess> processes;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_STACK_H_
