// Processes that crashed or were killed, by their own last words or by whoever watched them.
//
// A launcher that lost one process ends the others by SIGTERM and SIGKILL, and torch's watchdog ends its own process by SIGABRT: those
// ends follow and are left out. What remains is a crash (SIGSEGV and the like) or a SIGKILL from outside, most often the kernel's
// out-of-memory killer; peers see both only as closed connections.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/views.h"
#include "analyzer/reasoning/exception_nature.h"
#include "analyzer/reasoning/text_evidence.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {
namespace {

bool Crash(int signal) { return signal == 11 || signal == 7 || signal == 8 || signal == 4; }

std::string SignalName(int signal) {
  switch (signal) {
    case 4:
      return "illegal instruction (SIGILL)";
    case 6:
      return "abort (SIGABRT)";
    case 7:
      return "bus error (SIGBUS)";
    case 8:
      return "floating point exception (SIGFPE)";
    case 9:
      return "SIGKILL";
    case 11:
      return "segmentation fault (SIGSEGV)";
    case 15:
      return "SIGTERM";
    default:
      return absl::StrCat("signal ", signal);
  }
}

// Lines by which others say that a connection ended or a collective failed.
std::vector<const model::Event*> Echoes(const model::Job& job, const std::set<int>& ranks) {
  std::vector<const model::Event*> echoes;
  for (const model::Event& event : job.evidence.events) {
    if (event.by.rank >= 0 && ranks.count(event.by.rank) > 0) continue;
    const catalog::Signature* known = catalog::FindSignature(event.signature);
    if (known == nullptr || known->source() == "slurm" || known->source() == "libstdc++") continue;
    if (known->role() == catalog::Role::collateral || (known->source() == "nccl" && known->role() == catalog::Role::symptom))
      echoes.push_back(&event);
  }
  return echoes;
}

struct Ends {
  std::vector<const model::ProcessEnd*> ends;
  std::vector<const model::Event*> words;  // of the process itself, or of the kernel
  std::set<int> ranks;
  std::set<std::string> hosts;
  int signal = 0;
  void Add(const model::ProcessEnd& end) {
    ends.push_back(&end);
    ranks.insert(end.ranks.begin(), end.ranks.end());
    if (!end.by.host.empty()) hosts.insert(end.by.host);
    if (signal == 0) signal = end.signal;
  }
};

std::string Who(const Ends& ends, const char* otherwise) {
  std::string text;
  if (!ends.ranks.empty()) {
    text = model::RanksText({ends.ranks.begin(), ends.ranks.end()});
  } else if (!ends.ends.empty() && ends.ends[0]->by.local_rank >= 0) {
    text = absl::StrCat("the process with local rank ", ends.ends[0]->by.local_rank);
  } else if (!ends.hosts.empty()) {
    text = absl::StrCat("a process on ", *ends.hosts.begin());
  } else {
    text = otherwise;
  }
  text[0] = static_cast<char>(text[0] >= 'a' && text[0] <= 'z' ? text[0] - 32 : text[0]);
  return text;
}

const char* Was(const Ends& ends) { return ends.ranks.size() > 1 ? " were " : " was "; }

Candidate Put(const model::Job& job, Ends ends, Candidate candidate) {
  candidate.stops_job = true;
  candidate.state = State::crashed;
  Finding& finding = candidate.finding;
  for (const int rank : ends.ranks) finding.mutable_who()->add_ranks(rank);
  for (const std::string& host : ends.hosts) finding.mutable_who()->add_hosts(host);
  CiteAll(job, ends.words, 4, &finding);
  for (size_t i = 0; i < ends.ends.size() && i < 4; ++i) {
    Cite(job, ends.ends[i]->where, ends.ends[i]->text, &finding);
    if (ends.ends[i]->time.known() && !candidate.when.known()) candidate.when = ends.ends[i]->time;
  }
  const auto echoes = Echoes(job, ends.ranks);
  CiteAll(job, echoes, 3, &finding);
  std::set<int> waiting = RanksOf(echoes);
  for (const model::WorkTimeout& t : job.evidence.work.timeouts) waiting.insert(t.by.rank);
  for (const int rank : waiting) {
    if (rank >= 0 && ends.ranks.count(rank) == 0) finding.mutable_collateral()->add_ranks(rank);
  }
  return candidate;
}

// A rank where the launcher tells only the place on its host: the same on a job of one host.
void PlaceByLocalRank(const model::Job& job, Ends* ends) {
  if (!ends->ranks.empty() || ends->ends.empty()) return;
  std::set<std::string> hosts;
  for (const model::LogRank& r : job.evidence.log_ranks) hosts.insert(r.by.host);
  const int local = ends->ends[0]->by.local_rank;
  if (local >= 0 && hosts.size() == 1) ends->ranks.insert(local);
}

void FindCrashes(const model::Job& job, std::vector<Candidate>* found) {
  Ends ends;
  ends.words = EventsOf(job, {"crash-segfault"});
  for (const model::ProcessEnd& end : job.evidence.work.ends) {
    if (Crash(end.signal) && !end.stopped_by_us) ends.Add(end);
  }
  if (ends.words.empty() && ends.ends.empty()) return;
  std::set<int> spoke = RanksOf(ends.words);
  // In one log the first crash can bring the others down; between logs nothing tells which was first.
  if (spoke.size() > 1 && ends.words.front()->where.file == ends.words.back()->where.file && ends.words.front()->by.rank >= 0)
    spoke = {ends.words.front()->by.rank};
  if (!spoke.empty()) ends.ranks = spoke;
  PlaceByLocalRank(job, &ends);
  for (const model::Event* word : ends.words) {
    if (!word->by.host.empty() && (spoke.empty() || spoke.count(word->by.rank) > 0)) ends.hosts.insert(word->by.host);
  }
  std::string what = SignalName(ends.signal == 0 ? 11 : ends.signal);
  if (ends.signal == 0 && !ends.words.empty()) {
    const std::string_view told = ends.words[0]->Field("what");
    if (!told.empty()) what = std::string(told);
  }
  const bool echoed = !Echoes(job, ends.ranks).empty() || !job.evidence.work.timeouts.empty();
  const bool twice = !ends.words.empty() && (!ends.ends.empty() || echoed) && ends.ranks.size() == 1;
  Candidate candidate = Say(Kind::process_exited, twice ? Confidence::established : Confidence::probable, Layer::kProgram,
                            absl::StrCat(Who(ends, "a process"), " crashed: ", what,
                                         echoed ? "; the errors of the other ranks (closed connections, timeouts) follow from it" : ""),
                            "", "crash-segfault");
  candidate.finding.set_refuted_by("that process alive after the others' first errors");
  if (ends.signal == 7) {
    SetNext("A bus error in a rank or data loader is most often a full /dev/shm: see its size; else the core dump.", "df -h /dev/shm",
            &candidate.finding);
  }
  found->push_back(Put(job, std::move(ends), std::move(candidate)));
}

void FindKills(const model::Job& job, std::vector<Candidate>* found) {
  Ends ends;
  bool first = false, memory = false;
  for (const model::ProcessEnd& end : job.evidence.work.ends) first |= end.first && end.signal != 0;
  for (const model::ProcessEnd& end : job.evidence.work.ends) {
    if (end.stopped_by_us || (end.signal != 9 && !end.out_of_memory)) continue;
    // Where a source says which end it saw first, later kills are the launcher's own.
    if (first && !end.first && !end.out_of_memory) continue;
    // Who is said to have run out of memory stands before the crowd that was ended after it.
    if (end.out_of_memory && !memory) ends = {};
    if (memory && !end.out_of_memory) continue;
    memory |= end.out_of_memory;
    ends.Add(end);
  }
  // srun ends the other tasks when one failed: where one did, a crowd of killed ones followed it.
  const bool failed = std::any_of(job.evidence.work.ends.begin(), job.evidence.work.ends.end(), [](const model::ProcessEnd& end) {
    return !end.stopped_by_us && (Crash(end.signal) || (end.exit_code > 0 && end.signal == 0));
  });
  if (failed && !memory && ends.ranks.size() > 1) return;
  ends.words = EventsOf(job, {"slurm-oom-kill", "ray-out-of-memory"});
  const bool told = !ends.ends.empty() || !ends.words.empty();
  for (const model::Event& event : job.evidence.events) {
    const catalog::Signature* known = catalog::FindSignature(event.signature);
    // The kernel's own lines, whichever entry of the catalogue reads them.
    if (known != nullptr && known->source() == "kernel" && Contains(event.signature, "oom")) ends.words.push_back(&event);
  }
  memory |= !ends.words.empty();
  // The kernel's lines alone: whether the victim was of the job is for the finder that reads them.
  if (!told) return;
  const size_t killed = ends.ends.size();
  PlaceByLocalRank(job, &ends);
  for (const model::Event* word : ends.words) {
    if (ends.ranks.empty() && word->by.rank >= 0) ends.ranks.insert(word->by.rank);
    if (!word->by.host.empty()) ends.hosts.insert(word->by.host);
  }
  // Everybody was killed: by whoever ended the job.
  const bool everybody = killed > 0 && !memory && ends.ranks.size() > 1;
  if (everybody) ends.ranks.clear();
  const bool twice = memory && killed > 0 && !ends.words.empty();
  Candidate candidate = Say(
      Kind::process_exited,
      twice       ? Confidence::established
      : everybody ? Confidence::possible
                  : Confidence::probable,
      Layer::kHost,
      memory ? absl::StrCat(Who(ends, "a process"), Was(ends), "killed because memory of the host (or its limit) ran out")
             : absl::StrCat(Who(ends, "a process"), Was(ends), "killed from outside (SIGKILL); the other ranks' errors follow from it"),
      "UC-08");
  candidate.finding.set_refuted_by(memory ? "a memory limit that was not reached at that time"
                                          : "an error of that process's own before its end");
  SetNext(memory
              ? "Raise the memory limit or use less on the host: data loader workers, pinned memory, checkpoints gathered on one rank."
              : "Who sent the signal: the kernel's out-of-memory killer, the scheduler, or a person.",
          "dmesg -T | grep -iE 'out of memory|killed process'; free -g", &candidate.finding);
  found->push_back(Put(job, std::move(ends), std::move(candidate)));
}

// Where this says that a command ended, it found no record of a communicator either.
constexpr std::string_view kOwnSource = "ringscope run";

// Nothing was recorded because nothing came as far as NCCL; `ringscope run` saw the ends.
Candidate BeforeNccl(const model::Job& job) {
  Ends ends;
  std::set<int> codes;
  for (const model::ProcessEnd& end : job.evidence.work.ends) {
    if (end.source != kOwnSource) continue;
    ends.Add(end);
    codes.insert(end.exit_code);
  }
  std::string with;
  for (const int code : codes) absl::StrAppend(&with, with.empty() ? "" : ", ", code);
  Candidate candidate = Say(
      Kind::undetermined, Confidence::possible, Layer::kReport,
      absl::StrCat("No communicator was created as far as is recorded: ", ends.ends.size(),
                   ends.ends.size() == 1 ? " command" : " commands",
                   ends.ranks.empty() ? "" : absl::StrCat(" (", model::RanksText({ends.ranks.begin(), ends.ranks.end()}), ")"),
                   " ended with exit code ", with, "; why is not in these files"),
      "");
  for (size_t i = 0; i < ends.ends.size() && i < 4; ++i) Cite(job, ends.ends[i]->where, ends.ends[i]->text, &candidate.finding);
  candidate.finding.set_refuted_by("a record of one of these processes: another folder than the one that was read");
  SetNext("What these commands printed last: usage errors, missing files and exceptions end a program before NCCL.",
          "tail -n 30 <the log of each rank>", &candidate.finding);
  return candidate;
}

// torchelastic names a process that ended first, and nothing here says why.
void FindUnexplained(const model::Job& job, std::vector<Candidate>* found) {
  const model::ProcessEnd* first = nullptr;
  for (const model::ProcessEnd& end : job.evidence.work.ends) {
    if (end.stopped_by_us || !(end.exit_code > 0 || end.signal == 6)) continue;
    if (first == nullptr || (end.first && !first->first) || (end.first && first->ranks.empty())) first = &end;
  }
  if (first == nullptr || !job.evidence.work.timeouts.empty()) return;
  for (const Raised& raised : RaisedIn(job)) {
    if (IsOwn(raised.nature)) return;
  }
  if (first->source == kOwnSource && job.processes.empty() && job.communicators.empty()) {
    found->push_back(BeforeNccl(job));
    return;
  }
  Ends ends;
  ends.Add(*first);
  const std::string who = Who(ends, "a process");
  Candidate candidate =
      Say(Kind::undetermined, Confidence::possible, Layer::kReport,
          absl::StrCat(who, first->signal == 6 ? " aborted" : absl::StrCat(" ended with exit code ", first->exit_code),
                       first->first ? ", the first end its launcher saw" : "", "; its own error is not in these files"),
          "");
  candidate.state = State::crashed;
  Cite(job, first->where, first->text, &candidate.finding);
  for (const Raised& raised : RaisedIn(job)) {
    if (candidate.finding.evidence_size() < 4) Cite(job, raised.shown->where, ExceptionText(*raised.shown), &candidate.finding);
  }
  candidate.finding.set_refuted_by("an earlier error of another rank");
  SetNext("The log of that process up to its end; torchrun --log-dir with --tee 3 keeps one file a rank.",
          "torchrun --log-dir logs --tee 3 …", &candidate.finding);
  found->push_back(std::move(candidate));
}

std::vector<Candidate> FindEnds(const model::Job& job) {
  std::vector<Candidate> found;
  FindCrashes(job, &found);
  FindKills(job, &found);
  if (found.empty()) FindUnexplained(job, &found);
  return found;
}

const Register kRegister("process end", FindEnds);

}  // namespace
}  // namespace ringscope::reasoning
