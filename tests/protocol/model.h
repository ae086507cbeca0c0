// An explicit-state checker for the publish and reuse protocol of rows, over the release/acquire part of the C++ memory model.
//
// The memory model is the usual operational one with views (e.g. Kang et al., "A Promising Semantics for Relaxed-Memory
// Concurrency", POPL 2017, without promises): every store adds a message to its location's modification order, with the view
// that a release store or an earlier release fence gives it; a relaxed load may take any message that is not older than what
// its thread knows of; an acquire load, or a later acquire fence, adds the message's view to what the thread knows.
//
// Enumerated are all interleavings of the writers at words that more than one of them touches, and every message that each
// load may take, by depth-first search with re-execution; the recorder's real functions run on fibers. Readers change
// nothing, so a reader that runs last and may take any message does whatever one could that ran at any time; it runs once for
// each distinct final memory.
//
// Not covered: modification orders that contradict the order of execution (stores to two words by two threads, each seen in
// opposite order), load buffering, and seq_cst. No two threads here store to two common words without NCCL's own hand-over.
#ifndef RINGSCOPE_TESTS_PROTOCOL_MODEL_H_
#define RINGSCOPE_TESTS_PROTOCOL_MODEL_H_

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "tests/protocol/hooks.h"

namespace ringscope::protocol {

enum class Weakening {
  kNone,
  kNoAcquire,  // the load or fence no longer acquires
  kNoRelease,  // the store or fence no longer releases
  kNoStore,    // a stamp is not cleared before reuse
  kNoCheck,    // the second look at the stamp sees what the first saw
};
const char* NameOf(Weakening weakening);

// One place in the recorder's source, one way to break it.
struct Mutant {
  std::string file;
  int line = 0;
  Weakening weakening = Weakening::kNone;
  bool operator<(const Mutant& o) const {
    return std::tie(file, line, weakening) < std::tie(o.file, o.line, o.weakening);
  }
};

struct Result {
  uint64_t executions = 0;  // of the writers
  uint64_t memories = 0;    // distinct ones
  uint64_t readings = 0;
  uint64_t accepted = 0;
  std::string violation;    // empty: none
  std::set<Mutant> mutants;  // every way to break what was executed
};

// Explores one scenario; stops at the first violation.
Result Explore(const Scenario& scenario, const Mutant& mutant);

}  // namespace ringscope::protocol

#endif  // RINGSCOPE_TESTS_PROTOCOL_MODEL_H_
