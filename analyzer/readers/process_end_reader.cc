// Ends of processes as launchers, schedulers and container runtimes tell them, one line each; kubectl's descriptions of a
// container's state, a few lines.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/torch_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 14;
constexpr int kMostTasks = 1 << 16;

// "0-3,7" of srun.
std::vector<int> TaskList(std::string_view text) {
  std::vector<int> tasks;
  for (size_t i = 0; i < text.size();) {
    const size_t comma = std::min(text.find(',', i), text.size());
    const std::vector<int> ends = RankList(text.substr(i, comma - i));
    if (ends.size() == 1) tasks.push_back(ends[0]);
    for (int t = ends.size() == 2 ? ends[0] : 1; ends.size() == 2 && t <= ends[1] && tasks.size() < kMostTasks; ++t) tasks.push_back(t);
    i = comma + 1;
  }
  return tasks;
}

int SignalOf(std::string_view words) {
  struct Name {
    std::string_view text;
    int number;
  };
  static constexpr Name kNames[] = {{"SIGKILL", 9},
                                    {"SIGTERM", 15},
                                    {"SIGSEGV", 11},
                                    {"SIGABRT", 6},
                                    {"SIGBUS", 7},
                                    {"SIGHUP", 1},
                                    {"SIGINT", 2},
                                    {"SIGFPE", 8},
                                    {"SIGILL", 4},
                                    {"Killed", 9},
                                    {"Terminated", 15},
                                    {"Segmentation fault", 11},
                                    {"Aborted", 6},
                                    {"Bus error", 7},
                                    {"Out Of Memory", 9},
                                    {"Floating point exception", 8},
                                    {"Illegal instruction", 4},
                                    {"Hangup", 1}};
  for (const Name& name : kNames) {
    if (Contains(words, name.text)) return name.number;
  }
  return 0;
}

// A shell's and a container's status of a process that a signal ended.
void SetStatus(int64_t status, model::ProcessEnd* end) {
  if (status < 0 && status >= -64) {
    end->signal = static_cast<int>(-status);
  } else if (status > 128 && status <= 128 + 64) {
    end->signal = static_cast<int>(status - 128);
    end->exit_code = static_cast<int>(status);
  } else if (status >= 0 && status < 256) {
    end->exit_code = static_cast<int>(status);
  }
}

class ProcessEnds : public LineReader {
 public:
  explicit ProcessEnds(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    model::ProcessEnd end;
    end.by.host = line.by.host;
    if (Own(line.text, &end) || Srun(line.text, &end) || Mpi(line.text, &end) || Python(line.text, &end) ||
        Kubernetes(line.text, &end)) {
      end.text = QuoteOf(line.quote);
      end.where = line.where;
      end.time = line.time;
      if (end.by.rank < 0 && end.ranks.size() == 1) end.by.rank = end.ranks[0];
      if (facts().ends.size() < kMost) facts().ends.push_back(std::move(end));
    }
    return false;
  }

 private:
  // `ringscope run`, of a command that failed before NCCL (supervisor/early_end.h).
  static bool Own(std::string_view text, model::ProcessEnd* end) {
    static const RE2& own = *new RE2(R"(ringscope run: (?:rank (\d{1,7}): )?the command ended with exit code (\d{1,3}), )"
                                     R"(and none of its processes left a record of a communicator)");
    std::string rank;
    int64_t status = 0;
    if (!RE2::FullMatch(Piece(text), own, &rank, &status)) return false;
    end->source = "ringscope run";
    SetStatus(status, end);
    if (!rank.empty()) end->ranks = {std::stoi(rank)};
    return true;
  }

  // srun: error: node7: tasks 0-3: Exited with exit code 1
  static bool Srun(std::string_view text, model::ProcessEnd* end) {
    static const RE2& task = *new RE2(R"(srun: error: ([\w.-]{1,100}): tasks? ([\d,-]{1,400}): (.{1,200})$)");
    static const RE2& code = *new RE2(R"([Ee]xit(?:ed with exit)? code (\d{1,3}))");
    std::string tasks, what;
    if (!RE2::PartialMatch(Piece(text), task, &end->by.host, &tasks, &what)) return false;
    end->source = "srun";
    end->ranks = TaskList(tasks);
    int64_t status = 0;
    if (RE2::PartialMatch(what, code, &status)) {
      SetStatus(status, end);
    } else {
      end->signal = SignalOf(what);
    }
    end->core = Contains(what, "core dumped");
    end->out_of_memory = Contains(what, "Out Of Memory");
    end->reason = what;
    return true;
  }

  static bool Mpi(std::string_view text, model::ProcessEnd* end) {
    static const RE2& noticed =
        *new RE2(R"(noticed that process rank (\d{1,7}) with PID (\d{1,10}) on node ([\w.-]{1,100}) exited on signal (\d{1,2}))");
    static const RE2& hydra = *new RE2(R"(^=?\s*RANK (\d{1,7}) PID (\d{1,10}) RUNNING AT ([\w.-]{1,100}))");
    static const RE2& abort = *new RE2(R"(MPI_ABORT was invoked on rank (\d{1,7}) in communicator MPI_COMM_WORLD)");
    int rank = -1;
    if (RE2::PartialMatch(Piece(text), noticed, &rank, &end->by.pid, &end->by.host, &end->signal)) {
      end->source = "mpirun";
      end->first = true;
    } else if (RE2::PartialMatch(Piece(text), hydra, &rank, &end->by.pid, &end->by.host)) {
      end->source = "hydra";
      end->first = true;
    } else if (RE2::PartialMatch(Piece(text), abort, &rank)) {
      end->source = "MPI";
      end->first = true;
      end->exit_code = 1;
    } else {
      return false;
    }
    end->ranks = {rank};
    return true;
  }

  // multiprocessing, subprocess, DeepSpeed's launcher, accelerate.
  static bool Python(std::string_view text, model::ProcessEnd* end) {
    static const RE2& spawn = *new RE2(R"(ProcessExitedException: process (\d{1,6}) terminated with (?:signal (SIG\w{1,10})|)"
                                       R"(exit code (\d{1,3})))");
    static const RE2& died = *new RE2(R"(died with <Signals\.(SIG\w{1,10}): (\d{1,2})>)");
    static const RE2& deepspeed = *new RE2(R"(exits with return code = (-?\d{1,3}))");
    std::string signal, code;
    int64_t n = 0;
    int rank = -1;
    if (RE2::PartialMatch(Piece(text), spawn, &rank, &signal, &code)) {
      end->source = "torch.multiprocessing";
      end->ranks = {rank};
      end->first = true;
      end->signal = SignalOf(signal);
      int64_t status = -1;
      if (RE2::FullMatch(code, R"((\d{1,3}))", &status)) SetStatus(status, end);
    } else if (RE2::PartialMatch(Piece(text), died, &signal, &end->signal)) {
      end->source = "subprocess";
    } else if (RE2::PartialMatch(Piece(text), deepspeed, &n)) {
      end->source = "deepspeed";
      SetStatus(n, end);
    } else {
      return false;
    }
    return true;
  }

  // "    Reason:       OOMKilled", "    Exit Code:    137" of kubectl describe; "train-3  0/1  OOMKilled  0  5m" of kubectl get.
  bool Kubernetes(std::string_view text, model::ProcessEnd* end) {
    static const RE2& name = *new RE2(R"(^Name:\s+([\w.-]{1,200})\s*$)");
    static const RE2& reason =
        *new RE2(R"(^\s*[Rr]eason:\s+"?(OOMKilled|Evicted|NodeLost|NodeShutdown|Terminated|ContainerStatusUnknown|)"
                 R"(DeadlineExceeded|Preempted|PreemptionByScheduler|NodeAffinity|StartError)\b)");
    static const RE2& code = *new RE2(R"(^\s*(?:Exit Code|exitCode):\s+(\d{1,3})\s*$)");
    static const RE2& pod = *new RE2(R"(^([a-z0-9][\w.-]{1,200})\s+\d+/\d+\s+(OOMKilled|Evicted|NodeLost|ContainerStatusUnknown)\s)");
    std::string word;
    int64_t status = 0;
    if (RE2::PartialMatch(Piece(text), name, &word)) {
      pod_ = word;
      return false;
    }
    if (RE2::PartialMatch(Piece(text), pod, &end->by.host, &end->reason)) {
    } else if (RE2::PartialMatch(Piece(text), reason, &end->reason)) {
      end->by.host = pod_;
    } else if (RE2::PartialMatch(Piece(text), code, &status)) {
      if (status == 0) return false;
      SetStatus(status, end);
      end->by.host = pod_;
    } else {
      return false;
    }
    end->source = "kubernetes";
    end->out_of_memory = end->reason == "OOMKilled";
    if (end->out_of_memory) end->signal = 9;
    // "train-worker-3": the index is the pod's, which is a rank only where a pod holds one: not taken.
    return true;
  }

  model::WorkFacts& facts() { return context_.evidence->work; }
  const FileContext& context_;
  std::string pod_;
};

const RegisterReader kRegister(LineReaderType{
    "ends of processes",
    {R"(^ringscope run: .*the command ended with exit code \d)",
     R"(srun: error: \S+: tasks? [\d,-]+: )", R"(noticed that process rank \d+ with PID)", R"(RANK \d+ PID \d+ RUNNING AT)",
     R"(MPI_ABORT was invoked on rank \d)", R"(ProcessExitedException: process \d+ terminated)", R"(died with <Signals\.SIG)",
     R"(exits with return code = -?\d)", R"(^\s*[Rr]eason:\s+\S)", R"(^\s*(?:Exit Code|exitCode):\s+\d)", R"(^Name:\s+[\w.-]+\s*$)",
     R"(\d+/\d+\s+(?:OOMKilled|Evicted|NodeLost|ContainerStatusUnknown)\s)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<ProcessEnds>(context); }});

}  // namespace
}  // namespace ringscope::ingest
