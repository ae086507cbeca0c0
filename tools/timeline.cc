// ringscope timeline: records and streams as a file for Perfetto or Chrome's trace viewer.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/collect.h"
#include "analyzer/ingest/stream_reader.h"
#include "analyzer/model/model.h"
#include "analyzer/model/run_label.h"
#include "analyzer/timeline/writers.h"
#include "tools/command.h"
#include "tools/progress.h"

namespace ringscope::tools {
namespace {

int Run(const Arguments& arguments) {
  const std::string out = arguments.Get("out"), most_text = arguments.Get("max");
  char* end = nullptr;
  const long long most = strtoll(most_text.c_str(), &end, 10);
  if (arguments.positional().empty() || *end != 0 || most < 1 || most > 100000000) {
    fprintf(stderr, arguments.positional().empty()
                        ? "ringscope timeline: give traces, flight files and streams, or directories of them\n"
                        : "ringscope timeline: --max is a number from 1 to 100000000\n");
    return kUsage;
  }
  const bool perfetto = arguments.Get("format") == "perfetto";
  if (perfetto && out.empty() && isatty(STDOUT_FILENO) != 0) {
    fprintf(stderr, "ringscope timeline: the perfetto format is no text; give --out=FILE or a pipe\n");
    return kUsage;
  }
  ingest::Collected collected;
  std::vector<std::string> streams;
  {
    ProgressLine progress;
    collected = ingest::Collect(arguments.positional(), progress.callback(), ingest::Histories::kTake);
    for (const auto& stream : collected.streams) {
      streams.push_back(stream.path);
      // A process whose only record is its stream: who it is and how its clock stands is in the stream's head.
      auto summary = ingest::ReadStream(stream.path, nullptr);
      if (summary.ok() && summary->head.has_process())
        collected.records.push_back({std::move(summary->head), stream.path, /*from_flight_file=*/false, /*torn=*/false, 0});
    }
  }
  for (const std::string& problem : collected.problems) fprintf(stderr, "ringscope: %s\n", problem.c_str());
  if (collected.records.empty()) {
    fprintf(stderr,
            "ringscope timeline: no record and no stream among %d files (RINGSCOPE_STREAM=ops or steps records streams)\n",
            collected.walked);
    return collected.missing > 0 ? kNoInput : kDamaged;
  }
  std::string incarnation = arguments.Get("incarnation");
  if (incarnation.empty()) incarnation = model::RunNamedBy(arguments.positional(), collected.records);
  const model::Job job = model::BuildJob(std::move(collected.records), incarnation);
  const timeline::Timeline made = timeline::Build(job, streams, static_cast<size_t>(most));
  const std::string bytes = perfetto ? timeline::Perfetto(made) : timeline::Chrome(made);
  FILE* file = out.empty() ? stdout : fopen(out.c_str(), "wb");
  const bool written = file != nullptr && fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() &&
                       (out.empty() ? fflush(file) : fclose(file)) == 0;
  if (!written) {
    fprintf(stderr, "ringscope timeline: %s: %s; give --out=FILE in a folder that can be written\n",
            out.empty() ? "standard output" : out.c_str(), strerror(errno));
    return kInternal;
  }
  for (const std::string& note : made.notes) fprintf(stderr, "ringscope timeline: %s\n", note.c_str());
  fprintf(stderr, "ringscope timeline: %zu slices of %zu processes\n", made.slices.size(), made.processes.size());
  return kNothingWrong;
}

}  // namespace

const Command kTimeline = {
    "timeline",
    "PATH... [--format=perfetto|chrome] [--out=FILE] [--max=N] [--incarnation=JOB.RESTART]",
    "write what each rank did when, as a file for ui.perfetto.dev or chrome://tracing",
    "PATH is a trace, flight or stream file, or a directory searched with everything below it. Ranks are processes, in their "
    "order;\n"
    "calls, GPU streams, channels, host calls and stalls are threads. Arrows lead from sends to their receives, and, where steps "
    "were\n"
    "streamed (RINGSCOPE_STREAM=steps), from a step on the sender's to that on the receiver's. All times are the job's: the "
    "clocks of\n"
    "hosts are aligned as for a diagnosis. What overlaps on one stream or channel lies on threads side by side.\n"
    "\n"
    "A record alone holds the newest operations; a stream all of them. At most --max slices are written, the newest; what was "
    "left\n"
    "out is said in the file and on standard error.\n"
    "\n"
    "  ringscope timeline --out=job.pftrace ringscope-traces/      # then open it in ui.perfetto.dev: it stays in the browser\n",
    {{"format", {"perfetto", "chrome"}, "perfetto", "Perfetto's protobuf, or JSON"},
     {"out", {}, "", "the file; otherwise standard output", "FILE"},
     {"max", {}, "1000000", "slices at most", "N"},
     {"incarnation", {}, "", "job id and restart count, as in the directory's name", "JOB.RESTART"}},
    Run};

}  // namespace ringscope::tools
