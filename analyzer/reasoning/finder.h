// Finders: each looks at the whole job for one mechanism and returns findings; Diagnose() runs all of them and ranks.
// A new finder is one file (plus its test) with a static Register object; no other file changes.
#ifndef RINGSCOPE_ANALYZER_REASONING_FINDER_H_
#define RINGSCOPE_ANALYZER_REASONING_FINDER_H_

#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::reasoning {

// Where in a causal chain a finding stands, earliest first: a finding of an earlier class can explain those of later ones.
// Order of checks: docs/localisation.md, Wait-for graph (signatures, liveness, reported errors, graph, pivot, then slowness).
enum class Class {
  kMismatch = 0,   // different arguments, order, unmatched messages
  kLiveness = 1,   // process gone or frozen
  kError = 2,      // an edge or component reported an error
  kStall = 3,      // sink of the wait-for graph
  kUndetermined = 4,
  kSlow = 5,
  kPlan = 6,       // fallback path and the like: true, but not why something stands still
  kPast = 7,       // over
};

// How deep in the machine the fault of a finding from text lies. A fault of a deeper layer is the reason of the complaints of
// higher ones, never the other way round: an Xid ends a process, a process that ended makes peers report socket errors, and those
// end in watchdog timeouts. Findings from records leave it unset (their order follows from Class).
enum class Layer {
  kUnset = 0,
  kHardware = 1,       // GPU, link, port, PCIe, with a hardware witness
  kDriver = 2,         // driver, fabric manager, firmware
  kHost = 3,           // limits, memory, /dev/shm, a process killed from outside
  kConfiguration = 4,  // interfaces, GIDs, versions, environment
  kProgram = 5,        // exception, divergence, mismatch, slow user code
  kNetwork = 6,        // a connection's error without a witness of why
  kReport = 7,         // who only waited: timeouts, remote errors, aborted collectives
};

struct Candidate {
  Finding finding;
  Class order = Class::kStall;
  // Operation at which it bites, to tell which of two comes first; empty/0 when it is not about one.
  int communicator = -1;      // index in Job::communicators
  uint64_t position = 0;
  bool stops_job = false;     // explains why operations do not finish
  bool left_in_order = false; // a process that ran its exit handlers: its program may have had a reason to leave
  // From text:
  Layer layer = Layer::kUnset;
  State::Value state = State::unknown;  // what it says of the job's state; unknown: follows from kind and class
  model::Stamp when;                    // first sign of it
};

using FindFn = std::vector<Candidate> (*)(const model::Job&);
struct Register {
  Register(const char* name, FindFn find);
};

// Runs every registered finder and ranks. Candidates of kind `none` say that what looks like a fault is none ("0 NVLS channels
// is normal on this GPU"); they stand last, and alone where nothing is wrong. Never empty-handed about its blind spots: not_seen is filled.
Diagnosis Diagnose(const model::Job& job);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_FINDER_H_
