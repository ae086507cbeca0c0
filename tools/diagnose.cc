// ringscope diagnose: files to findings to text or JSON.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/cited_lines.h"
#include "analyzer/ingest/collect.h"
#include "analyzer/model/model.h"
#include "analyzer/model/run_label.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/report/compact.h"
#include "analyzer/report/html/report.h"
#include "analyzer/report/json.h"
#include "analyzer/report/style.h"
#include "analyzer/report/text.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/scrub_session.h"

namespace ringscope::tools {
namespace {

int ExitCode(const Diagnosis& d) {
  bool undetermined = false;
  for (const Finding& f : d.findings()) {
    if (f.past() || f.kind() == Kind::none) continue;
    if (f.kind() != Kind::undetermined) return kFaultFound;
    undetermined = true;
  }
  return undetermined ? kUndetermined : kNothingWrong;
}

int Print(const std::string& out) {
  if (fwrite(out.data(), 1, out.size(), stdout) == out.size() && fflush(stdout) == 0)
    return kNothingWrong;
  fprintf(stderr, "ringscope: the report could not be written\n");
  return kInternal;
}

int PrintJson(Diagnosis diagnosis) {
  diagnosis.set_schema_version(report::kDiagnosisSchema);
  const auto json = report::ToJson(diagnosis);
  if (json.ok()) return Print(*json);
  fprintf(stderr, "ringscope: %s\n", std::string(json.status().message()).c_str());
  return kInternal;
}

std::string Html(const Diagnosis& diagnosis, const model::Job& job) {
  return report::html::RenderReport(diagnosis, job, ingest::CitedLines(report::html::LinesWanted(diagnosis, job)));
}

int WriteFile(const std::string& path, const std::string& out) {
  FILE* file = fopen(path.c_str(), "wb");
  const bool written = file != nullptr && fwrite(out.data(), 1, out.size(), file) == out.size();
  if ((file != nullptr && fclose(file) == 0) && written) return kNothingWrong;
  fprintf(stderr, "ringscope: %s could not be written: %s; --html=FILE takes a file in a folder that exists\n",
          report::Printable(path).c_str(), strerror(errno));
  return kInternal;
}

// Nothing to reason about: says why, and which of the two it is. Who asked for JSON gets an object
// all the same.
int NoRecords(const ingest::Collected& collected, bool json, ScrubSession* scrub) {
  if (json) {
    Diagnosis nothing;
    nothing.set_state(State::unknown);
    nothing.set_summary("No Ringscope record could be read.");
    for (const auto& sentence : collected.Sentences()) nothing.add_not_seen(sentence);
    if (scrub != nullptr) scrub->Message(&nothing);
    if (const int failed = PrintJson(nothing); failed != 0) return failed;
  }
  for (const auto& sentence : collected.Sentences())
    fprintf(stderr, "ringscope: %s\n", sentence.c_str());
  if (collected.damaged > 0) {
    fprintf(stderr, "ringscope: no record could be read (%d damaged)\n", collected.damaged);
    return kDamaged;
  }
  fprintf(stderr,
          "ringscope: no Ringscope record among %d files. Traces lie in RINGSCOPE_DIR (default "
          "./ringscope-traces), flight "
          "files in RINGSCOPE_FLIGHT_DIR (default /dev/shm/ringscope-<uid>) of each host; "
          "`ringscope env` shows both\n",
          collected.walked);
  return collected.missing > 0 || collected.walked == 0 ? kNoInput : kDamaged;
}

int NoSuchIncarnation(const std::string& incarnation, const model::Job& job) {
  fprintf(stderr, "ringscope: no record of %s among the files; there are:\n",
          report::Printable(incarnation).c_str());
  for (const std::string& other : job.left_out)
    fprintf(stderr, "  %s\n", report::Printable(other).c_str());
  return kNoInput;
}

int Run(const Arguments& arguments) {
  if (arguments.positional().empty()) {
    fprintf(
        stderr,
        "ringscope diagnose: give files or directories; `ringscope diagnose --help` says which\n");
    return kUsage;
  }
  std::vector<std::string> paths = arguments.positional();
  const bool html = arguments.Get("format") == "html";
  std::string html_file = arguments.Get("html");
  if (!html_file.empty()) html_file = std::filesystem::absolute(html_file).string();
  std::unique_ptr<ScrubSession> scrub;
  if (arguments.Get("scrubbed") == "yes") {
    if (std::find(arguments.positional().begin(), arguments.positional().end(), "-") != arguments.positional().end()) {
      fprintf(stderr, "ringscope diagnose: --scrubbed reads twice, which standard input cannot; save the paste to a file\n");
      return kUsage;
    }
    scrub = std::make_unique<ScrubSession>();
    if (!scrub->Open("diagnose", arguments.Get("map"), "")) return kUsage;
    scrub->Learn(arguments.positional(), "");
    // A page shows what the model holds, lines of the inputs in their place among it: it is made of masked copies.
    if (html || !html_file.empty()) {
      if (!scrub->EnterCopies()) return kInternal;
      paths = {"."};
    }
  } else if (!arguments.Get("map").empty()) {
    fprintf(stderr, "ringscope diagnose: --map goes with --scrubbed\n");
    return kUsage;
  }
  const auto shown = [&scrub](std::string text) { return scrub != nullptr ? scrub->Text(std::move(text)) : text; };
  ingest::Collected collected;
  {
    ProgressLine progress;
    collected = ingest::Collect(paths, progress.callback(), ingest::Histories::kTake);
  }
  const bool json = arguments.Get("format") == "json";
  if (!collected.anything()) return NoRecords(collected, json, scrub.get());
  std::string incarnation = arguments.Get("incarnation");
  const bool asked = !incarnation.empty();
  if (!asked) incarnation = model::RunNamedBy(paths, collected.records);
  const auto sentences = collected.Sentences();
  model::Job job = model::BuildJob(std::move(collected.records), incarnation);
  job.evidence = std::move(collected.evidence);
  for (const model::TextFile& file : job.evidence.files) job.inputs.push_back(file.path);
  if (asked && job.processes.empty()) return NoSuchIncarnation(incarnation, job);
  job.not_seen.insert(job.not_seen.end(), sentences.begin(), sentences.end());
  Diagnosis diagnosis = reasoning::Diagnose(job);
  if (scrub != nullptr) scrub->Message(&diagnosis);
  report::TextOptions options;
  options.colour = UseColour(arguments.Get("color"));
  if (arguments.Get("verbose") == "yes") options.lines = 0;
  const std::string format = arguments.Get("format");
  const int failed = json                  ? PrintJson(diagnosis)
                     : format == "compact" ? Print(report::RenderCompact(diagnosis))
                     : html                ? Print(Html(diagnosis, job))
                     : format == "markdown" ? Print(shown(report::RenderMarkdown(diagnosis, job, options)))
                                           : Print(shown(report::RenderText(diagnosis, job, options)));
  if (failed == 0 && scrub != nullptr && !scrub->Save()) return kInternal;
  if (failed != 0) return failed;
  if (!html_file.empty()) {
    if (const int not_written = WriteFile(html_file, Html(diagnosis, job)); not_written != 0) return not_written;
  }
  return ExitCode(diagnosis);
}

}  // namespace

const Command kDiagnose = {
    "diagnose",
    "PATH...|- [--format=text|markdown|json|html|compact] [--verbose] [--html=FILE] [--scrubbed] [--incarnation=JOB.RESTART] "
    "[--color=auto|always|never]",
    "say who stalled, slowed or ended a job, how sure that is, and what to look at next",
    "PATH is a file or a directory, searched with everything below it: traces, flight files of "
    "processes that live or\n"
    "were killed, logs, kernel messages, nvidia-smi, RAS and PyTorch output, compressed (gzip, zstd) or not; - reads a paste "
    "from\n"
    "standard input. Give all hosts' directories at once; records find each other by communicator.\n"
    "Files that are damaged or not ours are named and left out, the rest is still diagnosed.\n"
    "\n"
    "Processes of different jobs, or attempts of one job, are never joined. Where several lie "
    "together, the answer is about\n"
    "the one whose directory (JOB.RESTART) is among the paths, else about the newest; the others "
    "are named, and\n"
    "--incarnation chooses one.\n"
    "\n"
    "  ringscope diagnose ringscope-traces /dev/shm/ringscope-$(id -u)\n"
    "  ringscope diagnose --format=json collected/ | jq '.findings[0]'\n"
    "  ringscope diagnose --html=report.html collected/\n"
    "\n"
    "The text puts the initiating finding first: who, what kind, how sure (established, probable, possible), what to do next, who "
    "waits for\n"
    "whom, the evidence with rank and table entry or file and line, what would refute it. At most 40 lines of 80 columns; --verbose "
    "has all.\n"
    "Markdown is the same for a ticket. JSON: docs/verdicts.md.\n"
    "\n"
    "HTML is one file for a browser or a ticket: verdict and next step, the ring with the broken edge, who is how far, a timeline, "
    "counters,\n"
    "the cited lines in their place, the node's fabric, all findings, the catalogue's page of the cause. It loads nothing "
    "(docs/report.md).\n"
    "\n"
    "compact is lines as compilers print them, for editors and CI: FILE:LINE: error: what, then note: lines with the evidence "
    "(docs/verdicts.md).\n",
    {{"format", {"text", "markdown", "json", "html", "compact"}, "text", "how to print the diagnosis"},
     {"verbose", {"yes", "no"}, "no", "all of it, with the checks and fixes of the cause; else at most 40 lines"},
     {"html", {}, "", "writes the report as a page to this file, too", "FILE"},
     {"incarnation", {}, "", "job id and restart count, as in the directory's name", "JOB.RESTART"},
     {"scrubbed", {"yes", "no"}, "no", "names and secrets masked, with the masks that `ringscope scrub` of the same files gives"},
     {"map", {}, "", "as for scrub: equal masks in all runs that share it", "FILE"},
     ColourFlag()},
    Run};

}  // namespace ringscope::tools
