#include "tests/replay/leftovers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/replay/nccl_log.h"
#include "tests/replay/text_file.h"

namespace ringscope::replay {
namespace {

namespace fs = std::filesystem;

// Files may be renamed or removed by the job while we look: every step tolerates that.
std::vector<fs::path> FilesBelow(const std::string& dir) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.push_back(at->path());
  }
  return files;
}

}  // namespace

std::string LogName(const Capture& capture, const Process& process) {
  const int number = capture.several_ranks_per_process || process.ranks.empty()
                         ? process.index
                         : process.ranks.front();
  return absl::StrCat("nccl-debug.rank", number, ".log");
}

absl::Status CopyLogs(const Capture& capture, const std::vector<ProcessPlan>& plans,
                      const Permutation& permutation, bool permuted, const JobFiles& files) {
  std::error_code error;
  fs::create_directories(files.out + "/logs", error);
  for (size_t p = 0; p < capture.processes.size(); ++p) {
    const Process& process = capture.processes[p];
    absl::StatusOr<std::string> text =
        ReadText(absl::StrCat(capture.folder, "/nccl-debug.rank", process.index, ".log"));
    if (absl::IsNotFound(text.status())) continue;
    if (!text.ok()) return text.status();
    LogRewrite rewrite;
    rewrite.process = &process;
    rewrite.pid = files.pids[p];
    rewrite.permutation = &permutation;
    rewrite.permuted = permuted;
    rewrite.until_t = files.until_t;
    rewrite.wall_offset_ns = WallOffset(capture);
    for (const Action& action : plans[p].actions) {
      rewrite.finalizes += action.kind == Action::kCall &&
                           process.events[action.event].callback == Callback::kFinalize;
    }
    const std::string path = absl::StrCat(files.out, "/logs/", LogName(capture, process));
    std::ofstream file(path, std::ios::binary);
    file << RewriteLog(*text, rewrite);
    if (!file.flush()) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  }
  return absl::OkStatus();
}

absl::Status DropRank(const Capture& capture, int rank, const JobFiles& files) {
  for (size_t p = 0; p < capture.processes.size(); ++p) {
    const Process& process = capture.processes[p];
    if (std::find(process.ranks.begin(), process.ranks.end(), rank) == process.ranks.end())
      continue;
    const std::string in_trace = absl::StrCat("-pid", files.pids[p], "-");
    const std::string in_flight = absl::StrCat("-", files.pids[p], "-");
    const std::string log = LogName(capture, process);
    for (const fs::path& file : FilesBelow(files.out)) {
      const std::string name = file.filename().string();
      const bool trace = absl::StrContains(name, in_trace) ||
                         absl::StrContains(name, in_trace.substr(0, in_trace.size() - 1) + ".");
      const bool flight = absl::StrContains(name, ".flight") && absl::StrContains(name, in_flight);
      if (!trace && !flight && name != log) continue;
      std::error_code error;
      fs::remove(file, error);
      if (error)
        return absl::UnavailableError(
            absl::StrCat(file.string(), ": cannot be removed: ", error.message()));
    }
    return absl::OkStatus();
  }
  std::vector<int> all;
  for (const Process& process : capture.processes)
    all.insert(all.end(), process.ranks.begin(), process.ranks.end());
  return absl::InvalidArgumentError(absl::StrCat(
      "--drop-rank ", rank, ": no process holds that rank; there are ", absl::StrJoin(all, ", ")));
}

bool HasStallTrace(const std::string& out, int32_t pid) {
  const std::string mark = absl::StrCat("-pid", pid, "-");
  for (const fs::path& file : FilesBelow(out)) {
    const std::string name = file.filename().string();
    if (absl::EndsWith(name, ".trace") && absl::StrContains(name, "stall") &&
        absl::StrContains(name, mark))
      return true;
  }
  return false;
}

}  // namespace ringscope::replay
