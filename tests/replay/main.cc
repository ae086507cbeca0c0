// replay: see README.md and `replay --help`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/replay/foreign.h"
#include "tests/replay/job.h"
#include "tests/replay/leftovers.h"
#include "tests/replay/options.h"
#include "tests/replay/permute.h"

namespace ringscope::replay {
namespace {

namespace fs = std::filesystem;

enum Exit { kDone = 0, kFailed = 1, kUsage = 64, kNoInput = 66 };

int Say(const absl::Status& status, int code) {
  std::fprintf(stderr, "replay: %s\n", std::string(status.message()).c_str());
  return code;
}

// DIR with its folders, absolute. It must be new or empty: records of two jobs in one folder would
// be taken for one.
absl::StatusOr<std::string> MakeOut(const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("--out ", dir, ": cannot be made: ", error.message()));
  if (!fs::is_empty(dir, error) || error) {
    return absl::AlreadyExistsError(
        absl::StrCat("--out ", dir, ": is not empty; give a new folder, or remove what is in it"));
  }
  const fs::path path = fs::canonical(dir, error);
  if (!error) fs::create_directories(path / "flight", error);
  if (!error) fs::create_directories(path / "logs", error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("--out ", dir, ": cannot be written: ", error.message()));
  return path.string();
}

absl::StatusOr<std::string> FindPlugin(const Options& options) {
  std::string path = options.plugin;
  if (path.empty()) {
    const char* variable = getenv("RINGSCOPE_PLUGIN");
    if (variable != nullptr) path = variable;
  }
  if (path.empty()) {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    path = (self.parent_path() / "libringscope.so").string();
  }
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("plugin ", path,
                     ": not there; build libringscope.so first, or name one with --plugin PATH"));
  }
  return found.string();
}

void Report(const Capture& capture, const Options& options, const JobResult& result) {
  std::printf(
      "replay: %s, NCCL %s, profiler v%d%s: %llu callbacks made, %llu not wanted by the plugin, "
      "%.1f "
      "s\n",
      capture.name.c_str(), capture.nccl.c_str(), capture.as_api,
      capture.as_api != capture.api ? " through NCCL's shim" : "",
      static_cast<unsigned long long>(result.delivered),
      static_cast<unsigned long long>(result.left_out), result.seconds);
  for (size_t p = 0; p < result.ends.size(); ++p) {
    std::string ranks;
    for (int rank : capture.processes[p].ranks)
      absl::StrAppend(&ranks, ranks.empty() ? "" : ",", rank);
    std::printf("  rank %s, %s\n", ranks.c_str(), result.ends[p].c_str());
  }
  std::printf("Next: ringscope diagnose %s\n", options.out.c_str());
}

int Main(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseOptions(arguments);
  if (!options.ok()) return Say(options.status(), kUsage);
  if (options->help) {
    std::fputs(Help().c_str(), stdout);
    return kDone;
  }
  absl::StatusOr<std::unique_ptr<Capture>> read = ReadCapture(options->capture);
  if (!read.ok()) return Say(read.status(), kNoInput);
  Capture& capture = **read;
  bool events = false;
  for (const Process& process : capture.processes) events = events || process.has_events;
  if (events && (capture.api < 1 || capture.api > 6)) {
    return Say(absl::UnimplementedError(absl::StrCat(capture.name, " went through profiler API v",
                                                     capture.api, " (NCCL ", capture.nccl,
                                                     "); replay speaks v1 to v6")),
               kNoInput);
  }
  if (options->as_api > capture.api) {
    return Say(absl::InvalidArgumentError(absl::StrCat(
                   "--as-api ", options->as_api, ": ", capture.name, " went through version ",
                   capture.api, ", which tells less; give that one or an older one")),
               kUsage);
  }
  if (options->as_api != 0) capture.as_api = options->as_api;
  for (Process& process : capture.processes) MendRefused(process, capture.api);
  MapForeign(capture);
  uint64_t cut_t = 0;
  if (!options->cut.empty()) {
    absl::StatusOr<uint64_t> instant = CutInstant(capture, options->cut);
    if (!instant.ok()) return Say(instant.status(), kUsage);
    cut_t = *instant;
  }
  const Permutation permutation =
      options->permute ? MakePermutation(capture, options->permute_seed) : Identity(capture);
  if (options->permute) Permute(capture, permutation);
  absl::StatusOr<std::string> plugin = std::string();
  if (events) plugin = FindPlugin(*options);
  if (!plugin.ok()) return Say(plugin.status(), kNoInput);
  absl::StatusOr<std::string> out = MakeOut(options->out);
  if (!out.ok()) return Say(out.status(), kUsage);

  std::vector<ProcessPlan> plans = MakePlans(capture, cut_t);
  if (options->end_process >= 0) {
    const absl::Status ended = EndEarly(capture, options->end_process, options->end_how, &plans);
    if (!ended.ok()) return Say(ended, kUsage);
  }
  const JobResult result = RunJob(capture, plans, *options, cut_t, *out, *plugin);
  if (result.is_child) return result.exit_code;

  JobFiles files;
  files.out = *out;
  files.pids = result.pids;
  files.pids.resize(capture.processes.size());
  files.until_t = cut_t != 0 ? cut_t : EndedFromOutside(capture);
  absl::Status status = CopyLogs(capture, plans, permutation, options->permute, files);
  if (status.ok() && options->permute) {
    std::ofstream file(*out + "/permutation.json");
    file << ToJson(permutation);
    if (!file.flush())
      status = absl::UnavailableError(*out + "/permutation.json: cannot be written");
  }
  if (status.ok() && options->drop_rank >= 0) status = DropRank(capture, options->drop_rank, files);
  Report(capture, *options, result);
  if (!result.status.ok()) return Say(result.status, kFailed);
  return status.ok() ? kDone : Say(status, absl::IsInvalidArgument(status) ? kUsage : kFailed);
}

}  // namespace
}  // namespace ringscope::replay

int main(int argc, char** argv) { return ringscope::replay::Main({argv + 1, argv + argc}); }
