#include "analyzer/reasoning/exception_nature.h"

#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/model/views.h"

namespace ringscope::reasoning {
namespace {

template <size_t N>
bool AnyOf(std::string_view text, const char* const (&parts)[N]) {
  return std::any_of(std::begin(parts), std::end(parts), [&](const char* part) { return Contains(text, part); });
}

std::string Whole(const model::Exception& e) {
  std::string text = e.message;
  for (const std::string& line : e.more) absl::StrAppend(&text, "\n", line);
  return text;
}

// torch's allocator prints what it was asked for. No GPU has 16 TiB.
bool Impossible(const std::string& text) {
  static const RE2& more = *new RE2(R"(allocate more than \d+ ?EB)");
  static const RE2& size = *new RE2(R"([Tt]ried to allocate (\d{1,12})(?:\.\d+)? ?(GiB|TiB|PiB|EiB|GB|TB|PB|EB))");
  int64_t n = 0;
  std::string unit;
  if (RE2::PartialMatch(text, more)) return true;
  if (!RE2::PartialMatch(text, size, &n, &unit)) return false;
  return unit[0] == 'P' || unit[0] == 'E' || (unit[0] == 'T' && n >= 16) || (unit[0] == 'G' && n >= 16384);
}

}  // namespace

Nature NatureOf(const model::Exception& e) {
  const std::string text = Whole(e);
  static constexpr const char* kLauncher[] = {
      "ChildFailedError",   "ProcessRaisedException", "ProcessExitedException", "CalledProcessError", "RayTaskError",  "RayActorError",
      "WorkerCrashedError", "EngineDeadError",        "EngineGenerateError",    "BrokenProcessPool",  "SchedulerError"};
  static constexpr const char* kLauncherWords[] = {"See root cause above",
                                                   "See stack trace for root cause",
                                                   "Engine process failed to start",
                                                   "Engine core initialization failed",
                                                   "Engine core proc",
                                                   "died unexpectedly",
                                                   "Rank 0 scheduler is dead",
                                                   "Executor failed",
                                                   "worker died"};
  if (Contains(e.type, "SignalException") || Contains(e.type, "KeyboardInterrupt") || Contains(e.type, "SystemExit"))
    return Nature::kInterrupt;
  if (Contains(text, "DataLoader worker")) return Nature::kHostMemory;
  if (AnyOf(e.type, kLauncher) || AnyOf(text, kLauncherWords)) return Nature::kLauncher;
  static constexpr const char* kMemory[] = {"CUDA out of memory",        "HIP out of memory",
                                            "CUDA error: out of memory", "cudaErrorMemoryAllocation",
                                            "CUDA_ERROR_OUT_OF_MEMORY",  "RESOURCE_EXHAUSTED: Out of memory"};
  if (Contains(e.type, "OutOfMemoryError") || AnyOf(text, kMemory)) {
    if (Contains(e.type, "ray.")) return Nature::kHostMemory;
    return Impossible(text) ? Nature::kArtefact : Nature::kGpuMemory;
  }
  if (e.type == "MemoryError" || Contains(text, "Cannot allocate memory") || Contains(text, "DefaultCPUAllocator"))
    return Nature::kHostMemory;
  static constexpr const char* kCapture[] = {"during capture", "stream is capturing", "StreamCapture", "capture sequence",
                                             "captures_underway"};
  if (AnyOf(text, kCapture)) return Nature::kCapture;
  static constexpr const char* kConnection[] = {"DistBackendError",
                                                "DistNetworkError",
                                                "DistStoreError",
                                                "DistError",
                                                "ConnectionResetError",
                                                "ConnectionRefusedError",
                                                "BrokenPipeError",
                                                "EOFError",
                                                "ConnectionAbortedError",
                                                "TimeoutError",
                                                "NCCLError",
                                                "NcclError",
                                                "RpcError"};
  if (AnyOf(e.type, kConnection)) return Nature::kCommunication;
  // A wrong call, a missing name or file is this program's whatever its message speaks of.
  static constexpr const char* kPlain[] = {
      "TypeError",           "KeyError",          "IndexError",        "AttributeError",      "ImportError",
      "ModuleNotFoundError", "NameError",         "UnboundLocalError", "SyntaxError",         "FileNotFoundError",
      "PermissionError",     "IsADirectoryError", "ZeroDivisionError", "NotImplementedError", "UnicodeDecodeError",
      "JSONDecodeError"};
  if (AnyOf(e.type, kPlain)) return Nature::kOwn;
  static constexpr const char* kUserGpu[] = {"device-side assert", "illegal memory access", "misaligned address",
                                             "illegal instruction"};
  if (AnyOf(text, kUserGpu) && !Contains(text, "Watchdog")) return Nature::kUserGpu;
  static constexpr const char* kEcho[] = {"NCCL",
                                          "nccl",
                                          "gloo",
                                          "Gloo",
                                          "Socket Timeout",
                                          "Connection reset by peer",
                                          "Connection closed by peer",
                                          "Broken pipe",
                                          "store->get",
                                          "TCPStore",
                                          "recvValue failed",
                                          "Watchdog caught",
                                          "imed out",
                                          "RPC call to",
                                          "monitoredBarrier",
                                          "Detected mismatch between collectives",
                                          "DDP expects same model",
                                          "appears not to match",
                                          "exhausted inputs",
                                          "wait timeout after",
                                          "client socket has",
                                          "Stop_waiting",
                                          "process group has been aborted",
                                          "HCCL",
                                          "RCCL"};
  if (AnyOf(text, kEcho)) return Nature::kCommunication;
  if (Contains(text, "CUDA error") || Contains(text, "CUDA driver error") || Contains(text, "CUDA_ERROR_") ||
      Contains(e.type, "AcceleratorError"))
    return Contains(text, "invalid device ordinal") || Contains(text, "no kernel image") || Contains(text, "invalid argument")
               ? Nature::kOwn
               : Nature::kGpuFault;
  return Nature::kOwn;
}

bool IsOwn(Nature nature) {
  return nature == Nature::kOwn || nature == Nature::kGpuMemory || nature == Nature::kHostMemory || nature == Nature::kUserGpu;
}

std::vector<Raised> RaisedIn(const model::Job& job) {
  using Key = std::tuple<int, int, int, int64_t, std::string>;
  std::vector<Raised> all;
  std::map<Key, size_t> last;
  std::set<std::tuple<int, int64_t, std::string, std::string>> seen;
  for (const model::Exception& e : job.evidence.work.exceptions) {
    const Key key{e.where.file, e.by.rank, e.by.local_rank, e.by.pid, e.by.host};
    const Nature nature = NatureOf(e);
    const auto it = last.find(key);
    if (e.chained_before && it != last.end()) {
      Raised& raised = all[it->second];
      raised.chain.push_back(&e);
      // The launcher's wrapper around a worker's exception, or a clean-up that failed, is not what happened.
      if (IsOwn(raised.nature) && IsOwn(nature)) {
        raised.shown = &e;
        raised.nature = nature;
      }
      continue;
    }
    if (!seen.emplace(e.by.rank, e.by.pid, e.type, e.message).second) continue;
    last[key] = all.size();
    all.push_back({&e, nature, {&e}});
  }
  return all;
}

std::string ExceptionText(const model::Exception& e) {
  std::string text = e.message.empty() ? e.type : absl::StrCat(e.type, ": ", e.message);
  if (text.size() > 300) text = text.substr(0, 300) + "…";
  return text;
}

std::string FrameText(const model::Exception& e) {
  if (e.frames.empty()) return "";
  const model::Exception::Frame& frame = e.frames.back();
  const size_t slash = frame.file.rfind('/');
  const std::string file = slash == frame.file.npos ? frame.file : frame.file.substr(slash + 1);
  return absl::StrCat(frame.function.empty() ? "" : frame.function + " ", "(", file, ":", frame.line, ")");
}

}  // namespace ringscope::reasoning
