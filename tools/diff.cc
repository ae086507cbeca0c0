#include <stdio.h>

#include <string>
#include <utility>

#include "analyzer/compare/compare.h"
#include "analyzer/ingest/collect.h"
#include "analyzer/model/model.h"
#include "analyzer/report/comparison_text.h"
#include "analyzer/report/json.h"
#include "tools/command.h"
#include "tools/progress.h"

namespace ringscope::tools {
namespace {

// False: nothing could be read; `status` says how to end.
bool Read(const std::string& path, const char* which, model::Job* job, int* status) {
  ingest::Collected collected;
  {
    ProgressLine progress;
    collected = ingest::Collect({path}, progress.callback(), ingest::Histories::kTake);
  }
  for (const auto& problem : collected.problems) fprintf(stderr, "ringscope: %s\n", problem.c_str());
  if (!collected.anything()) {
    fprintf(stderr, "ringscope: nothing of the %s run could be read in %s; give its traces, flight files, logs or tool output\n",
            which, path.c_str());
    *status = collected.missing > 0 || collected.walked == 0 ? kNoInput : kDamaged;
    return false;
  }
  *job = model::BuildJob(std::move(collected.records));
  job->evidence = std::move(collected.evidence);
  for (const model::TextFile& file : job->evidence.files) job->inputs.push_back(file.path);
  return true;
}

int Run(const Arguments& arguments) {
  if (arguments.positional().size() != 2) {
    fprintf(stderr, "ringscope diff: give two runs, the good one first; `ringscope diff --help` says how\n");
    return kUsage;
  }
  model::Job good, bad;
  int status = kInternal;
  if (!Read(arguments.positional()[0], "good", &good, &status) || !Read(arguments.positional()[1], "bad", &bad, &status))
    return status;
  const Comparison comparison = compare::Compare(good, bad);
  std::string text;
  if (arguments.Get("format") == "json") {
    const auto json = report::ToJson(comparison);
    if (!json.ok()) {
      fprintf(stderr, "ringscope: %s\n", std::string(json.status().message()).c_str());
      return kInternal;
    }
    text = *json;
  } else {
    report::ComparisonTextOptions options;
    options.colour = UseColour(arguments.Get("color"));
    options.all = arguments.Get("all") == "yes";
    text = report::RenderComparison(comparison, options);
  }
  if (fwrite(text.data(), 1, text.size(), stdout) != text.size()) return kInternal;
  for (const Change& change : comparison.changes()) {
    if (change.weight() == Change::can_explain) return kFaultFound;
  }
  return kNothingWrong;
}

}  // namespace

const Command kDiff = {
    "diff",
    "GOOD BAD [--format=text|json] [--all=yes|no] [--color=auto|always|never]",
    "say what changed between two runs of a job: paths, plan, hardware, releases, settings, speed",
    "GOOD and BAD are files or directories as for `diagnose`: traces, flight files, logs, tool output of one run each. The more "
    "both hold of\n"
    "the same kind, the more can be compared; what one side lacks is named.\n"
    "\n"
    "Ranks and edges are paired by their numbers in the job, communicators by role and size. Hosts may be others. Measurements "
    "count as\n"
    "changed from a factor of 1.1 on, as slower from 1.3; the first operation of a communicator connects and is left out.\n"
    "\n"
    "  ringscope diff run-of-monday/ run-of-tuesday/\n"
    "  ringscope diff --format=json good/ bad/ | jq '.changes[] | select(.weight == \"can_explain\")'\n"
    "\n"
    "A change \"can explain\" a worse run by its mechanism; what confirms it stands in the JSON and with --all=yes. Exit status: "
    "1 when there is\n"
    "such a change, else 0.\n",
    {{"format", {"text", "json"}, "text", "how to print the comparison"},
     {"all", {"yes", "no"}, "no", "show every change, with what confirms it"},
     ColourFlag()},
    Run};

}  // namespace ringscope::tools
