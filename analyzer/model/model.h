// The job as facts: processes, communicators with their members' operations, edges. No opinions.
//
// Built from traces (proto/trace.proto), one record a process; a flight file is turned into the
// same message. Everything here can be incomplete: members without a record, rings that kept only
// the newest operations, completion that was not visible. Absent is always told apart from "did not
// happen".
#ifndef RINGSCOPE_ANALYZER_MODEL_MODEL_H_
#define RINGSCOPE_ANALYZER_MODEL_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/model/evidence.h"
#include "analyzer/model/op_record.h"
#include "proto/trace.pb.h"

namespace ringscope::model {

// What the evidence says about the life of a process at the end of the observed time.
enum class Life {
  kUnknown,
  kRunning,  // lives, or was alive as long as anybody looked
  kFrozen,   // exists, but does not run (SIGSTOP, freezer): lock held and heartbeat old, or state T
  kGone,     // ended without a clean end (killed, crashed)
  kGoneOrFrozen,  // its heartbeat stopped well before the others'; nothing tells whether it was
                  // killed or frozen
  kExited,        // ended in order
};

enum class Truth : uint8_t { kNo, kYes, kUnknown };

// 80 bytes: jobs of 16,384 ranks hold some 17 million of them.
struct Op {
  explicit Op(const OpRecord& record, bool in_full) : raw(record), full(in_full) {}
  [[no_unique_address]] OpRecord raw;  // from columns: row, times and signature are filled, per-channel counts are 0
  bool full : 1;                       // false: from columns
  Truth entered : 2 = Truth::kYes;
  Truth returned : 2 = Truth::kUnknown;  // API call returned
  Truth enqueued : 2 = Truth::kUnknown;
  Truth started : 2 = Truth::kUnknown;  // on the GPU
  Truth finished : 2 = Truth::kUnknown;
  bool p2p() const { return raw.p2p(); }
  uint64_t position() const { return raw.position(); }
};

// A communicator's finished operations, taken out of their columns.
struct History {
  std::vector<trace::Operation> shapes;  // what operations share, a signature each; `ops` point into it
  std::vector<Op> ops;
};

// From the monotonic clock of a process to the job's time (clocks.h, job_time.h).
struct ClockMap {
  int clock = -1;         // which clock of the job; -1: none is known, the record's own anchor counts
  int64_t at_ns = 0;      // monotonic
  int64_t job_ns = 0;     // the job's time at that moment
  int64_t error_ns = 0;   // the truth lies within this of it then ...
  double growth_ppm = 0;  // ... and loses so much with the distance from it
  bool assumed = false;   // nothing bounds it: the error is what wall clocks may be off
  int64_t jumped_ns = 0, jump_ns = 0;  // before this (monotonic) it may be wrong by so much more: the clock jumped; 0 it did not
};

// Newest state of one process, and what else was written about it.
struct Process {
  int index = 0;       // in Job::processes
  trace::Trace trace;  // newest record (all chunks merged)
  std::vector<History> histories;  // as in Record, until the members have them
  std::string source;  // file it came from
  bool from_flight_file = false;
  bool torn = false;             // the file's tail was missing
  int64_t read_realtime_ns = 0;  // see Record
  // Older traces of the same process, oldest first (a stall that was noticed, say).
  std::vector<trace::Trace> earlier;
  std::string host;  // host name; made unique with the boot id where two boots share a name
  // RANK etc.; -1 when unknown or when the process holds several ranks of the job.
  int job_rank = -1;
  Life life = Life::kUnknown;
  std::string life_evidence;  // one sentence: who saw it, how
  int64_t last_sign_ns = 0;   // newest heartbeat or callback, the job's time
  int64_t end_ns = 0;         // when the process was last seen, the job's time
  ClockMap time;
  int64_t ToRealtime(int64_t monotonic_ns) const;  // in the job's time; 0 stays 0
};

// How the clock of one host stands to the job's time, which is the wall clock of most hosts.
struct HostClock {
  std::string host;       // one of those that share the clock
  std::string boot_id;    // names the clock; empty: the host does
  int64_t ahead_ns = 0;   // its wall clock shows so much more than the job's time
  int64_t error_ns = -1;  // the truth lies within this of `ahead_ns`; -1: not bounded on both sides, `ahead_ns` is what is believed
  bool reference = false; // the others' bounds are against this one
  bool has_drift = false;
  double drift_ppm = 0, drift_error_ppm = 0;  // against the reference host
  std::string doubt;      // one sentence: it jumped, was set, or contradicts the others; empty: nothing of that
};

// One rank of a communicator.
struct Member {
  int rank = 0;       // in the communicator
  int job_rank = -1;  // -1 unknown (no record, or none could be derived)
  int process = -1;   // index in Job::processes; -1 = no record of this rank
  const trace::Communicator* raw =
      nullptr;               // in Job::processes[process].trace; nullptr without a record
  std::vector<Op> ops;       // in program order (API calls; launches where there are no API events)
  std::vector<trace::Operation> shapes;  // see History
  uint64_t collectives = 0;  // position of the newest collective that this rank entered
  uint64_t first_kept = 0;   // oldest collective position still in `ops`; 0 = none kept
  std::vector<uint32_t>
      by_position;  // indices of the collectives in `ops`, ascending position; for Collective()
  bool finalized = false;       // destroyed or aborted
  bool finalized_open = false;  // ... with operations open: aborted
  bool has_record() const { return process >= 0; }
  const Op* Collective(uint64_t position) const;  // nullptr when not kept or not entered

  Member() = default;  // moves, does not copy: `ops` point into `shapes` and the process's trace
  Member(Member&&) = default;
  Member& operator=(Member&&) = default;
};

// What a communicator is for in the job. Combined groups ("tp-cp") have the role that comes first in their name.
enum class Role : uint8_t { kUnknown, kWorld, kTensor, kPipeline, kData, kExpert, kContext };

struct Communicator {
  int index = 0;
  uint64_t id = 0;
  int instance = 0;  // n-th communicator with this id and size (NCCL repeats ids)
  std::string name;  // commName or empty
  int n_ranks = 0;
  bool size_known = true;           // false: n_ranks is the number that is known to exist
  int n_nodes = 0;                  // 0 unknown
  Role role = Role::kUnknown;       // roles.cc says how it is told
  bool role_inferred = false;       // from members and calls, not from its name
  std::vector<Member> members;      // size n_ranks, by rank
  bool completion_visible = false;  // on every member with a record
  std::string Label() const;        // for people: name (or inferred role) and short id
  std::string SizeText() const;     // "4", "at least 4"
};

// One side of an edge, as the proxy that drives it saw it.
struct EdgeSide {
  int process = -1;  // whose record it is in (with PXN: another process than the owner of the data)
  const trace::Edge* raw = nullptr;
  // The operation whose steps run is known when `position` is not 0.
  uint64_t position = 0;
  bool position_p2p = false;
  bool open = false;  // operations appended and not over
};

// A directed connection from -> to (ranks of the communicator) on one channel.
struct Edge {
  int communicator = -1;  // index in Job::communicators
  int from = 0, to = 0;
  int channel = 0;
  bool p2p = false;
  std::optional<EdgeSide> sender, receiver;
};

// Point-to-point messages launched between two ranks of a communicator, as each side counted them.
struct MessageCount {
  int communicator = -1;
  int from = 0, to = 0;
  std::optional<uint64_t> sent, received;  // absent: that side has no record
  // Older messages are forgotten by one side or both: counted from the last one that both have finished.
  bool relative = false;
};

// Moves, does not copy: members and edges point into the traces of `processes`.
struct Job {
  Job() = default;
  Job(Job&&) = default;
  Job& operator=(Job&&) = default;
  std::vector<Process> processes;
  std::vector<Communicator> communicators;
  std::vector<Edge> edges;
  std::vector<MessageCount> messages;
  int world_size = 0;                  // largest WORLD_SIZE or communicator; 0 unknown
  std::vector<int> missing_job_ranks;  // job ranks without any record, where that can be told
  std::vector<HostClock> clocks;       // of the hosts, where more than one clock ticks
  std::string name;                    // job id and attempt, for people; empty without records
  std::vector<std::string> left_out;   // other jobs and attempts that lay beside it, for people
  std::vector<std::string> not_seen;   // input problems and blind spots, for the report
  std::vector<std::string> inputs;     // files read
  Evidence evidence;                   // logs and tool output given beside the records, or instead
  // Host of a job rank; empty when unknown.
  std::string HostOf(int job_rank) const;
};

// Joins records into a job. Never fails: what does not fit is said in Job::not_seen. `records` are
// one per input file; the records of one process (same boot id, pid, start time and nonce) become
// one Process. Records of an earlier attempt of the job (restart count, or a rank whose process
// ended before its successor began) and of other jobs are left out and named: the newest run is
// kept, or the one that `incarnation` names ("train-7.0", run_label.h). When that is not among the
// records the job is empty.
struct Record {
  trace::Trace trace;
  std::string source;
  bool from_flight_file = false;
  bool torn = false;
  int64_t read_realtime_ns =
      0;  // flight file on the machine of its owner: CLOCK_REALTIME when it was read; else 0
  std::vector<History> histories = {};  // of trace.communicators(), by index; empty: still in the trace's columns
};
// Takes the finished operations out of the trace's columns (Communicator.older, which are then gone). A reader of many records calls
// it for each as it comes: the columns of a large job's records all at once need three times the memory. BuildJob() does it for those
// that were left.
void TakeHistories(Record* record);
Job BuildJob(std::vector<Record> records, const std::string& incarnation = "");

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_MODEL_H_
