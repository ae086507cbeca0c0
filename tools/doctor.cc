// ringscope doctor: is this node fit for a job?
#include "doctor/doctor.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/report/json.h"
#include "analyzer/report/node_text.h"
#include "analyzer/report/style.h"
#include "doctor/check.h"
#include "supervisor/job_environment.h"
#include "tools/command.h"
#include "tools/nearest.h"

extern char** environ;

namespace ringscope::tools {
namespace {

int List() {
  for (const doctor::Check& check : doctor::Checks()) printf("%-12s %s\n", check.name.c_str(), check.about.c_str());
  return kNothingWrong;
}

// False after a message: a name that is none.
bool Names(const Arguments& arguments, const char* flag, std::vector<std::string>* names) {
  *names = absl::StrSplit(arguments.Get(flag), ',', absl::SkipEmpty());
  std::vector<std::string> known;
  for (const doctor::Check& check : doctor::Checks()) known.push_back(check.name);
  for (const std::string& name : doctor::UnknownNames(*names)) {
    fprintf(stderr, "ringscope doctor: --%s: there is no check %s%s; --list shows all\n", flag, report::Printable(name).c_str(),
            DidYouMean(name, known).c_str());
    return false;
  }
  return true;
}

doctor::Place Here(const Arguments& arguments) {
  doctor::Place place;
  for (char** line = environ; *line != nullptr; ++line) {
    const char* equals = strchr(*line, '=');
    if (equals != nullptr) place.environment[std::string(*line, static_cast<size_t>(equals - *line))] = equals + 1;
  }
  std::error_code error;
  const absl::StatusOr<std::string> library =
      supervisor::FindLibrary(arguments.Get("library"), std::filesystem::read_symlink("/proc/self/exe", error).string());
  if (library.ok())
    place.library = *library;
  else
    place.library_missing = std::string(library.status().message());
  const std::string directory = arguments.Get("dir").empty() ? place.Variable("RINGSCOPE_DIR") : arguments.Get("dir");
  if (!directory.empty()) place.directory = std::filesystem::absolute(directory, error).lexically_normal().string();
  return place;
}

int Run(const Arguments& arguments) {
  if (!arguments.positional().empty()) {
    fprintf(stderr, "ringscope doctor: takes no arguments; checks are chosen with --only=NAME,...\n");
    return kUsage;
  }
  if (arguments.Get("list") == "yes") return List();
  std::vector<std::string> only, skip;
  if (!Names(arguments, "only", &only) || !Names(arguments, "skip", &skip)) return kUsage;
  char* end = nullptr;
  const double seconds = strtod(arguments.Get("seconds").c_str(), &end);
  if (*end != 0 || !(seconds > 0 && seconds <= 600)) {
    fprintf(stderr, "ringscope doctor: --seconds=%s is not a number of seconds up to 600\n",
            report::Printable(arguments.Get("seconds")).c_str());
    return kUsage;
  }
  node::Baseline baseline;
  const std::string compare = arguments.Get("compare");
  if (!compare.empty()) {
    absl::StatusOr<node::Baseline> read = doctor::ReadBaseline(compare);
    if (!read.ok()) {
      fprintf(stderr, "ringscope doctor: %s\n", report::Printable(std::string(read.status().message())).c_str());
      return absl::IsNotFound(read.status()) ? kNoInput : kDamaged;
    }
    baseline = *std::move(read);
  }
  const node::Node node = doctor::LookAtNode(Here(arguments), seconds);
  node::Report result = doctor::Judge(node, compare.empty() ? nullptr : &baseline.node(), only, skip);
  if (!compare.empty()) result.set_baseline(absl::StrCat(compare, " of ", baseline.node().host(), ", ", baseline.saved()));
  if (arguments.Get("json") == "yes") {
    const absl::StatusOr<std::string> json = report::ToJson(result);
    if (!json.ok()) {
      fprintf(stderr, "ringscope doctor: %s\n", std::string(json.status().message()).c_str());
      return kInternal;
    }
    fwrite(json->data(), 1, json->size(), stdout);
  } else {
    report::NodeTextOptions options;
    options.colour = UseColour(arguments.Get("color"));
    options.quiet = arguments.Get("quiet") == "yes";
    const std::string text = report::RenderNode(result, options);
    fwrite(text.data(), 1, text.size(), stdout);
  }
  if (const std::string file = arguments.Get("save"); !file.empty()) {
    if (const absl::Status saved = doctor::SaveBaseline(node, RINGSCOPE_VERSION, file); !saved.ok()) {
      fprintf(stderr, "ringscope doctor: %s\n", report::Printable(std::string(saved.message())).c_str());
      return kInternal;
    }
    if (result.status() >= node::Report::warning)
      fprintf(stderr, "ringscope doctor: the baseline was taken on a node with the problems above\n");
  }
  const bool strict = arguments.Get("strict") == "yes";
  return result.status() == node::Report::failed || (strict && result.status() == node::Report::warning) ? kFaultFound
                                                                                                         : kNothingWrong;
}

}  // namespace

const Command kDoctor = {
    "doctor",
    "[flags]",
    "is this node fit for a job? checks of GPUs, NVLink, fabric, network, limits, versions and settings",
    "Looks at the node that it runs on: what the driver, sysfs and procfs tell, nothing is put under load and nothing is "
    "changed.\n"
    "Each question has a time budget in a process of its own. What is wrong comes first, with its fix and the catalogue's page;\n"
    "then one line a check: ok, absent (nothing of the kind here) or unknown (it could not be told).\n"
    "\n"
    "  ringscope doctor                          # as the job's user, in the job's container and environment\n"
    "  ringscope doctor --save good.json         # on a node that is in order\n"
    "  ringscope doctor --compare good.json      # later: what differs from it\n"
    "\n"
    "In a Slurm prolog: docs/doctor.md. Limits and environment are those of whoever runs it.\n"
    "\n"
    "Exit code: 0 nothing failed (also on a node without a GPU, and with warnings only), 1 a check failed (with --strict also a\n"
    "warning), 64 wrong usage, 65 a damaged baseline, 66 a baseline that cannot be read, 70 a baseline that cannot be written.\n",
    {{"only", {}, "", "these checks only", "NAME,..."},
     {"skip", {}, "", "not these checks", "NAME,..."},
     {"list", {"yes", "no"}, "no", "the checks and what they look at"},
     {"json", {"yes", "no"}, "no", "one JSON object (proto/node.proto, message Report) instead of text"},
     {"save", {}, "", "write what was seen as a baseline", "FILE"},
     {"compare", {}, "", "what differs from a baseline is a problem too", "FILE"},
     {"strict", {"yes", "no"}, "no", "warnings count as failures"},
     {"quiet", {"yes", "no"}, "no", "print only what is wrong"},
     {"seconds", {}, "10", "that one question to the machine may take", "SECONDS"},
     {"library", {}, "", "libringscope.so; default: beside this program, or in ../lib", "FILE"},
     {"dir", {}, "", "where a job's traces would go: a file is made and removed there; default: RINGSCOPE_DIR", "DIR"},
     ColourFlag()},
    Run};

}  // namespace ringscope::tools
