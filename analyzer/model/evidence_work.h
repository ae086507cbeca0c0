// What frameworks, launchers and schedulers said of a job's work: timeouts, cursors, mismatches, exceptions, ends of processes,
// what the host was busy with.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_WORK_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// A process group as torch names it. Sequence numbers count within one group: never compare across groups.
struct WorkGroup {
  std::string id;    // "0"; a counter of the process up to some releases
  std::string guid;  // the group's name, the same on all members (2.5+; before, `id` is that name)
  std::string desc;  // "default_pg", "mesh_dp"
  bool known() const { return !id.empty() || !guid.empty(); }
  // The group that spans the job: only there is the rank in torch's brackets a job rank.
  bool spans_job() const { return desc == "default_pg" || (desc.empty() && (guid.empty() ? id : guid) == "0"); }
  std::string Key() const { return guid.empty() ? id : guid; }
};

// "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=…, OpType=…, …) ran for … milliseconds".
struct WorkTimeout {
  WorkGroup group;                              // from a cursor line of the same rank about the same sequence number; often unknown
  std::optional<int64_t> seq;                   // absent before torch 1.13
  std::string op;                               // "ALLREDUCE", "_ALLGATHER_BASE", …
  std::string shape;                            // "[1024, 512]" up to torch 2.0
  std::optional<uint64_t> numel_in, numel_out;  // 2.1+
  int64_t timeout_ms = 0, ran_ms = 0;           // 0: not told
  std::string text;                             // as a person would quote it
  Where where;
  Speaker by;
  Stamp time;
};

// "last enqueued work: 8, last completed work: 7", from the watchdog or from a dump that another rank asked for.
struct WorkCursor {
  WorkGroup group;
  int group_rank = -1;                    // rank within the group
  std::optional<int64_t> failed;          // the work that timed out or failed; absent on ranks that were only asked for a dump
  int64_t enqueued = -1, completed = -1;  // -1: none
  std::string text;
  Where where;
  Speaker by;
  Stamp time;
};

// One line of the desync report (TORCH_NCCL_DESYNC_DEBUG, torch 1.13+): what a store told one rank of all others.
struct DesyncLine {
  enum class State : uint8_t { kNeverJoined, kJoinedNotFinished, kFinishedNotJoinedNext, kStarted, kFinished };
  State state = State::kStarted;
  std::vector<int> ranks;  // of the group, which is the job for the default group
  int64_t seq = -1;        // -1: not told
  std::string op;          // kStarted, kFinished
  std::string text;
  Where where;
  Speaker by;
};

// What one rank is about to run, of TORCH_DISTRIBUTED_DEBUG=DETAIL's comparison.
struct FingerPrint {
  int rank = -1;
  std::optional<int64_t> seq;
  std::string op, shapes, dtypes;
};
// "Detected mismatch between collectives on ranks. Rank a is running …, but Rank b is running …". Ranks are compared in ascending
// order, so every rank below the other one agrees with the one that complains.
struct FingerPrintMismatch {
  FingerPrint own, other;
  std::string differ;  // "Tensor Tensor shapes: 10vs 20"
  std::string text;
  Where where;
  Speaker by;
};

// A Python exception, with or without its traceback.
struct Exception {
  std::string type;               // "torch.cuda.OutOfMemoryError"
  std::string message;            // first line, at most kMaxQuote
  std::vector<std::string> more;  // lines that belong to the message ("ncclRemoteError: …", "Last error:", …), a few
  struct Frame {
    std::string file, function, code;
    uint32_t line = 0;
  };
  std::vector<Frame> frames;    // outermost first, the last few
  bool chained_before = false;  // raised while handling, or from, the exception before it of the same speaker
  Where where;                  // of the line with type and message
  Where start;                  // of "Traceback (most recent call last)"; file -1 without one
  Speaker by;
  Stamp time;
};

// An end of a process as somebody who watched it tells: launcher, scheduler, kernel, container runtime.
struct ProcessEnd {
  std::string source;  // "torchelastic", "srun", "mpirun", "kubernetes", …
  int exit_code = -1;  // -1: not told
  int signal = 0;      // 0: none told
  bool core = false;
  bool first = false;          // the source calls it the root cause or the first one
  bool stopped_by_us = false;  // the launcher itself sent the signal because of another process
  bool out_of_memory = false;  // the source names memory
  std::vector<int> ranks;      // empty: unknown
  std::string reason;          // "OOMKilled", "DUE TO TIME LIMIT", …
  std::string text;
  Where where;
  Speaker by;  // whom it is about: host, pid, local rank
  Stamp time;
};

// The host side busy with something that no collective sees: tokenizing, saving, evaluating, downloading.
struct HostWork {
  enum class Kind : uint8_t { kPreprocess, kDownload, kLoad, kSave, kEvaluate, kCompile, kIterations };
  Kind kind = Kind::kPreprocess;
  std::optional<int64_t> done, total;  // of a progress bar
  std::optional<int64_t> elapsed_s;    // "[29:55<…": how long it has run
  bool over = false;                   // says that it has ended
  std::string text;
  Where where;
  Speaker by;
  Stamp time;
};

// "node0 rank 0: model.py:136 self.experts()  launch blocked": where a rank's program stood, as somebody noted it beside a capture.
struct Position {
  int rank = -1;
  std::string file;
  int64_t line = -1;
  std::string rest;  // what stands behind the place
  std::string text;
  Where where;
};

struct WorkFacts {
  std::vector<WorkTimeout> timeouts;
  std::vector<WorkCursor> cursors;
  std::vector<DesyncLine> desync;
  std::vector<FingerPrintMismatch> fingerprints;
  std::vector<Exception> exceptions;  // by file and line of the exception's own line
  std::vector<ProcessEnd> ends;
  std::vector<HostWork> host_work;
  std::vector<Position> positions;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_WORK_H_
