// `ringscope run --on-stall`: what only the user knows how to collect.
#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <filesystem>

#include "supervisor/collector.h"
#include "supervisor/commands.h"

namespace ringscope::supervisor {
namespace {

bool Wanted(const CollectOptions& options) { return WantedAtStall(options) && !options.on_stall.empty(); }

absl::Status Command(const CollectOptions& options, Output* out) {
  std::string pids, ranks;
  for (const JobProcess& process : options.processes) {
    if (!process.stalled) continue;
    absl::StrAppend(&pids, pids.empty() ? "" : " ", process.pid);
    absl::StrAppend(&ranks, ranks.empty() ? "" : " ", process.rank);
  }
  // The command may be the first to write there.
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  out->Write(Prompt(options, options.on_stall));
  if (!out->status().ok()) return out->status();
  // The budget of the whole process ends it: what it starts in the background dies with it, too.
  constexpr double kNever = 1e9;
  const auto ends = RunCommands({{"/bin/sh", "-c", options.on_stall}},
                                {{"RINGSCOPE_EVIDENCE_DIR", options.directory},
                                 {"RINGSCOPE_EVIDENCE_WHEN", options.when},
                                 {"RINGSCOPE_STALLED_PIDS", pids},
                                 {"RINGSCOPE_STALLED_RANKS", ranks}},
                                kNever, [out](size_t, std::string_view text) { out->Write(text); });
  if (!ends[0].good()) return absl::UnknownError(absl::StrCat("the command ended with ", ends[0].Words(kNever)));
  return absl::OkStatus();
}

const RegisterCollector kRegister({"command", Wanted, Command});

}  // namespace
}  // namespace ringscope::supervisor
