#include "analyzer/reasoning/stack_view.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/ras_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

struct Rule {
  Doing doing;
  const char* function;  // RE2, whole name
  const char* file;      // RE2, anywhere in file or module; empty: any
};

// Names of NCCL (src/), CUDA's driver and runtime API, PyTorch (torch/distributed, torch/utils/data), Python's library.
constexpr Rule kRules[] = {
    {Doing::kProxySlot, "ncclLocalOpAppend", ""},
    {Doing::kAbort, "ncclComm(?:Abort|Destroy|Finalize|Revoke)|commDestroySync|commReclaim|destroy_process_group|abort_process_group",
     ""},
    {Doing::kAbort, "_?(?:abort|shutdown)", "distributed_c10d|process_?group"},
    {Doing::kInit,
     "ncclCommInitRank\\w*|ncclCommInitAll|ncclCommSplit|ncclCommInitRankFunc|bootstrap\\w+|init_process_group|new_group|"
     "initTransportsRank",
     ""},
    {Doing::kDriver,
     "cuMem(?:Alloc|Free|Create|Map|Unmap|HostAlloc|HostRegister|FreeHost|SetAccess|Release)\\w*|cuLibrary\\w+|cuModule\\w+|"
     "cuKernel\\w+|cuInit|cuCtx"
     "(?:Synchronize|Create|Destroy)\\w*|cuDevicePrimaryCtx\\w+|cuIpc\\w+|cuFuncGet\\w+",
     ""},
    {Doing::kDriver,
     "cuda(?:Malloc|Free|HostAlloc|HostRegister|FuncGetAttributes|FuncSetAttribute|DeviceSynchronize|DeviceReset|SetDevice|Ipc\\w+|"
     "DeviceEnablePeerAccess)\\w*|"
     "empty_cache|nvml\\w+|nvidia_ioctl|nvidia_unlocked_ioctl|rm_\\w+|_?nv\\d+rm|uvm_\\w+|_nv\\w+rm",
     ""},
    {Doing::kLoad, "_next_data|_try_get_data|_get_data|_try_put_index|fetch|next_batch|get_batch|load_batch",
     "data|loader|fetch|sampler|batch"},
    {Doing::kLoad, "__getitem__|__next__|__iter__", "dataset|dataloader|loader|sampler|webdataset|streaming"},
    {Doing::kLoad, "tokenize\\w*|preprocess\\w*|encode_batch|load_dataset|map|_map_single",
     "token|preprocess|datasets|arrow_dataset|fingerprint"},
    {Doing::kSave, "save\\w*|_?save_\\w+|write_\\w*checkpoint\\w*|dump\\w*|fsync|state_dict|_legacy_save|_save|upload\\w*", ""},
    {Doing::kStore, "wait|get|_?store_based_barrier|monitored_barrier|multi_tenant_wait",
     "TCPStore|FileStore|PrefixStore|rendezvous|store_based|etcd"},
    {Doing::kStore,
     "c10d::\\w*Store\\w*::\\w+|_store_based_barrier|monitored_barrier|.*TCPStore.*|.*gloo::.*|all_gather_object|gather_object|"
     "broadcast_object_list|"
     "PMPI_\\w+|MPI_\\w+|opal_progress|ompi_\\w+",
     ""},
    {Doing::kIdle,
     "worker_busy_loop|run_busy_loop|dequeue|acquire_read|event_loop|recv_requests|run_forever|select|_poll|poll|epoll_wait|recv_"
     "pyobj",
     ""},
    {Doing::kLoad,
     "readinto|read|recv_into|_recv_bytes|urlopen|pread|__read\\w*|__GI___?p?read\\w*|nfs\\w*_\\w+|lustre\\w*|ll_\\w+|folio_wait\\w*|"
     "io_schedule",
     ""},
    {Doing::kLoad, "flock|lockf|acquire", "filelock|lock\\.py|fcntl"},
};

struct Collective {
  const char* pattern;
  const char* name;
};
constexpr Collective kCollectives[] = {
    {"_?all_?reduce(?:_coalesced|_impl)?|ncclAllReduce", "all_reduce"},
    {"_?all_?gather\\w*|ncclAllGather", "all_gather"},
    {"_?reduce_?scatter\\w*|ncclReduceScatter", "reduce_scatter"},
    {"all_?to_?all\\w*|ncclAlltoAll", "all_to_all"},
    {"barrier", "barrier"},
    {"_?broadcast(?:_coalesced)?|ncclBroadcast|ncclBcast", "broadcast"},
    {"reduce|ncclReduce", "reduce"},
    {"scatter|ncclScatter", "scatter"},
    {"gather|ncclGather", "gather"},
};

bool Matches(const std::string& text, const RE2& re) { return RE2::FullMatch(text, re); }

// "c10d::ProcessGroupNCCL::allreduce" -> "allreduce".
std::string Last(const std::string& function) {
  std::string name = function.substr(0, function.find('<') == 0 ? function.npos : function.find('<'));
  const size_t at = name.rfind("::");
  return at == name.npos ? name : name.substr(at + 2);
}

std::string CollectiveOf(const model::StackFrame& frame) {
  static const auto& all = *[] {
    auto* list = new std::vector<std::pair<std::unique_ptr<RE2>, const char*>>;
    for (const Collective& c : kCollectives) list->emplace_back(std::make_unique<RE2>(c.pattern), c.name);
    return list;
  }();
  const std::string name = Last(frame.function);
  for (const auto& [re, text] : all) {
    if (!Matches(name, *re)) continue;
    // Short words are somebody's own as often as torch's.
    const bool plain = name == "reduce" || name == "gather" || name == "scatter" || name == "broadcast";
    if (plain && !Contains(frame.file, "distributed") && !Contains(frame.file, "comm") && !frame.file.empty()) return "";
    return text;
  }
  return "";
}

bool OfLibrary(const model::StackFrame& frame) {
  if (!frame.python) return true;
  for (const char* part : {"site-packages", "dist-packages", "torch/", "<frozen", "<string>", "/lib/python", "threading.py",
                           "runpy.py", "multiprocessing/", "concurrent/", "importlib", "contextlib.py", "asyncio/", "queue.py",
                           "selectors.py", "socket.py", "ssl.py"}) {
    if (Contains(frame.file, part)) return true;
  }
  return false;
}

Doing DoingOf(const model::StackFrame& frame, bool* certain) {
  struct Compiled {
    Doing doing;
    std::unique_ptr<RE2> function, file;
  };
  static const auto& rules = *[] {
    auto* list = new std::vector<Compiled>;
    for (const Rule& r : kRules)
      list->push_back(
          {r.doing, std::make_unique<RE2>(r.function), *r.file ? std::make_unique<RE2>(absl::StrCat("(?i)", r.file)) : nullptr});
    return list;
  }();
  *certain = true;
  const std::string name = Last(frame.function);
  const std::string place = absl::StrCat(frame.file, " ", frame.module, " ", frame.function);
  for (const Compiled& r : rules) {
    if ((Matches(name, *r.function) || Matches(frame.function, *r.function)) &&
        (r.file == nullptr || RE2::PartialMatch(place, *r.file)))
      return r.doing;
  }
  static const RE2& send = *new RE2("ncclSend|_?i?send|send_\\w*(?:forward|backward|tensor)\\w*|batch_isend_irecv");
  static const RE2& receive = *new RE2("ncclRecv|_?i?recv|recv_\\w*(?:forward|backward|tensor)\\w*");
  static const RE2& sync = *new RE2(
      "(?:cuda|cu)(?:Stream|Event)(?:Synchronize|Query)\\w*|synchronize|synchronizeInternal|synchronizeStream|_?wait|item|cpu|nonzero|"
      "local_scalar_dense\\w*|"
      "_local_scalar_dense\\w*|ncclStrongStreamSynchronize|tolist|memcpy_and_sync|block_until_ready|wait_tensor|isCompleted");
  const bool of_comm =
      frame.file.empty() || Contains(frame.file, "distributed") || Contains(frame.file, "p2p") || Contains(frame.file, "comm");
  if (Matches(name, send) && of_comm) return Doing::kSend;
  if (Matches(name, receive) && of_comm) return Doing::kReceive;
  if (!CollectiveOf(frame).empty()) return Doing::kCollective;
  if (Matches(name, sync)) {
    *certain = false;
    return Doing::kSync;
  }
  return frame.function.empty() || frame.function == "??" || frame.function.starts_with("0x") ? Doing::kUnknown : Doing::kUser;
}

Stance StanceOf(const model::StackProcess& process, const model::StackThread& thread) {
  Stance s;
  s.process = &process;
  s.thread = &thread;
  bool collective_inside = false;
  for (const model::StackFrame& frame : thread.frames) {
    if (s.user == nullptr && !OfLibrary(frame)) s.user = &frame;
    bool certain = false;
    const Doing doing = DoingOf(frame, &certain);
    if (const std::string name = CollectiveOf(frame); !name.empty() && s.collective.empty()) s.collective = name;
    if (doing == Doing::kSave) s.saving = true;
    // Waiting names the frame that waits unless something further out says for what; a call further in counts more than one
    // further out, except that a library's plain "wait" or "read" is explained by its caller.
    const auto take = [&] {
      s.doing = doing;
      s.telling = &frame;
    };
    switch (doing) {
      case Doing::kUnknown:
        break;
      case Doing::kUser:
        if (s.telling == nullptr && s.doing == Doing::kUnknown && !OfLibrary(frame)) take();
        break;
      case Doing::kSync:
      case Doing::kIdle:
        if (s.doing == Doing::kUnknown || s.doing == Doing::kUser) take();
        break;
      case Doing::kCollective:
        collective_inside = true;
        if (s.doing == Doing::kUnknown || s.doing == Doing::kUser || s.doing == Doing::kSync || s.doing == Doing::kIdle ||
            s.doing == Doing::kLoad)
          take();
        break;
      case Doing::kSend:
      case Doing::kReceive:
        if (s.doing == Doing::kUnknown || s.doing == Doing::kUser || s.doing == Doing::kSync || s.doing == Doing::kIdle) take();
        break;
      case Doing::kSave:
      case Doing::kLoad:
        // A save whose gather waits is a collective; so is a loader that synchronises its ranks.
        if (!collective_inside &&
            (s.doing == Doing::kUnknown || s.doing == Doing::kUser || s.doing == Doing::kSync || s.doing == Doing::kIdle))
          take();
        break;
      case Doing::kStore:
        if (!collective_inside && s.doing != Doing::kDriver && s.doing != Doing::kAbort && s.doing != Doing::kInit &&
            s.doing != Doing::kProxySlot)
          take();
        break;
      case Doing::kDriver:
        // A device-wide sync below abort or init belongs to those.
        if (!collective_inside && s.doing != Doing::kProxySlot) take();
        break;
      case Doing::kInit:
      case Doing::kAbort:
      case Doing::kProxySlot:
        if (s.doing != Doing::kProxySlot) take();
        break;
    }
  }
  if (thread.unordered && !s.collective.empty() && s.doing != Doing::kProxySlot && s.doing != Doing::kAbort) {
    // Which end of the chain is the inner one is open: a collective in it is what it waits in.
    for (const model::StackFrame& frame : thread.frames) {
      if (CollectiveOf(frame) == s.collective) s.doing = Doing::kCollective, s.telling = &frame;
    }
  }
  return s;
}

// How much a thread says about why its process does not go on.
int Weight(const Stance& s) {
  switch (s.doing) {
    case Doing::kProxySlot:
      return 6;
    case Doing::kAbort:
      return 5;
    case Doing::kUnknown:
      return 0;
    case Doing::kIdle:
    case Doing::kUser:
      return 1;
    default:
      return s.thread->name.starts_with("pt_") || s.thread->name.starts_with("NCCL") || s.thread->name.starts_with("cuda") ? 1 : 3;
  }
}

}  // namespace

std::vector<Stance> Stances(const model::Job& job) {
  std::vector<Stance> stances;
  const RasRanks ras(job);
  for (const model::StackProcess& process : job.evidence.stacks.processes) {
    if (!process.fatal.empty()) continue;  // it crashed; where it stood is no wait
    Stance best;
    int weight = -1;
    bool main_given = std::any_of(process.threads.begin(), process.threads.end(), [](const auto& t) { return t.main; });
    for (const model::StackThread& thread : process.threads) {
      if (thread.frames.empty()) continue;
      const Stance s = StanceOf(process, thread);
      const bool helper = main_given && !thread.main;
      // Helpers wait all the time; only what no helper does by itself counts against the main thread's stance.
      int w = Weight(s) * 2 + !helper;
      if (helper && w < 10) w = 0;
      if (w > weight) best = s, weight = w;
    }
    if (weight < 0) continue;
    best.rank = process.by.rank;
    if (best.rank < 0 && process.by.pid >= 0) best.rank = ras.OfProcess(process.by.pid, process.by.host, -1);
    stances.push_back(best);
  }
  return stances;
}

bool IsOf(const Stance& stance, const model::Process& process) {
  const model::Speaker& by = stance.process->by;
  const bool host = by.host.empty() || process.host.empty() || by.host == process.host;
  const int64_t pid = process.trace.process().pid();
  return by.pid > 0 && pid > 0 ? by.pid == pid && host : stance.rank >= 0 && stance.rank == process.job_rank;
}

std::string WhoText(const Stance& stance) {
  model::Speaker by = stance.process->by;
  by.rank = stance.rank;
  const std::string text = SpeakerText(by);
  return text.empty() ? "a process" : text;
}

std::string StanceText(const Stance& stance) {
  const auto frame_text = [](const model::StackFrame& f) {
    std::string text = f.function;
    const std::string place = f.file.empty() ? f.module
                              : f.line >= 0  ? absl::StrCat(f.file.substr(f.file.rfind('/') + 1), ":", f.line)
                                             : f.file;
    if (!place.empty()) absl::StrAppend(&text, " (", place, ")");
    return text;
  };
  if (stance.telling == nullptr) return "a place without a name";
  std::string text = frame_text(*stance.telling);
  if (stance.user != nullptr && stance.user != stance.telling && !stance.thread->unordered)
    absl::StrAppend(&text, " below ", frame_text(*stance.user));
  return text;
}

StanceReading ReadingOf(Doing doing) {
  switch (doing) {
    case Doing::kLoad:
      return {"UC-06", "fetches its next input",
              "Whether that call returns: a second stack after a minute, the process's state (D: waits for storage), and the file "
              "system's health"};
    case Doing::kSave:
      return {"FW-07", "saves",
              "How long a save usually takes, a second stack after a minute, and whether all ranks are meant to take part in it"};
    case Doing::kStore:
      return {"FW-06", "waits at a host barrier or store",
              "Whether the others pass that barrier too before their collective: the order of the calls in the program"};
    case Doing::kDriver:
      return {"FW-03", "is inside a call of the GPU driver",
              "Whether it waits for a running NCCL kernel (allocation, first launch of a kernel, free: then CUDA_MODULE_LOADING=EAGER "
              "and warm-up help) or the driver "
              "itself hangs: the kernel log, and a native stack of all threads"};
    case Doing::kInit:
      return {"", "makes a communicator", "Which ranks take part in that communicator, and whether all of them have called it"};
    case Doing::kIdle:
      return {"", "waits for work", "What should have given it work: the log of the scheduler or engine process"};
    default:
      return {"UC-01", "runs other code",
              "A second stack after a minute (does it move?), and the branch of the program by which it got there"};
  }
}

void CiteStance(const model::Job& job, const Stance& stance, Finding* finding) {
  const auto cite = [&](const model::StackFrame& f) {
    Cite(job, f.where,
         absl::StrCat(WhoText(stance), ", ", stance.process->tool == "summary" ? "as written down" : stance.process->tool, ": ",
                      f.text),
         finding);
    if (stance.rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(stance.rank);
  };
  if (stance.telling != nullptr) cite(*stance.telling);
  if (stance.user != nullptr && stance.user != stance.telling && stance.user->where != stance.telling->where) cite(*stance.user);
}

}  // namespace ringscope::reasoning
