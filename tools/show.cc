// ringscope show: what one record holds.
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/ingest/collect.h"
#include "analyzer/report/json.h"
#include "analyzer/report/record_text.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/show_stream.h"

namespace ringscope::tools {
namespace {

bool Number(const Arguments& arguments, const char* flag, int* value) {
  const std::string text = arguments.Get(flag);
  char* end = nullptr;
  const long n = strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || n < -1 || n > 1000000) {
    fprintf(stderr, "ringscope show: --%s=%s is not a number from -1 (all) to 1000000\n", flag,
            text.c_str());
    return false;
  }
  *value = static_cast<int>(n);
  return true;
}

bool DrivesOthers(const model::Record& record) {
  const auto& edges = record.trace.edges();
  return std::any_of(edges.begin(), edges.end(), [](const trace::Edge& e) { return e.foreign(); });
}

int Run(const Arguments& arguments) {
  if (arguments.positional().empty()) {
    fprintf(stderr, "ringscope show: give a trace, flight or stream file\n");
    return kUsage;
  }
  report::RecordTextOptions options;
  options.colour = UseColour(arguments.Get("color"));
  if (!Number(arguments, "ops", &options.operations) || !Number(arguments, "edges", &options.edges))
    return kUsage;
  const bool json = arguments.Get("format") == "json";
  StreamTextOptions stream_options;
  stream_options.colour = options.colour;
  stream_options.json = json;
  stream_options.operations = options.operations;
  if (!Number(arguments, "steps", &stream_options.steps)) return kUsage;
  ingest::Collected collected;
  std::vector<absl::StatusOr<std::string>> streams;
  {
    ProgressLine progress;
    collected = ingest::Collect(arguments.positional(), progress.callback());
    for (const auto& stream : collected.streams)
      streams.push_back(ShowStream(stream.path, stream_options, progress.callback()));
  }
  std::string out;
  report::ForeignEdges foreign;
  if (!json && std::any_of(collected.records.begin(), collected.records.end(), DrivesOthers)) {
    foreign = report::ForeignEdgesOf(model::BuildJob(collected.records));
  }
  for (const model::Record& record : collected.records) {
    if (!json) {
      if (!out.empty()) out += "\n";
      out += report::RenderRecord(record, options, foreign);
      continue;
    }
    auto text = report::ToJson(record.trace);
    if (!text.ok()) {
      fprintf(stderr, "ringscope: %s: %s\n", record.source.c_str(),
              std::string(text.status().message()).c_str());
      return kInternal;
    }
    out += *text;
  }
  for (const auto& text : streams) {
    if (text.ok()) {
      if (!json && !out.empty()) out += "\n";
      out += *text;
    } else {
      fprintf(stderr, "ringscope: %s\n", std::string(text.status().message()).c_str());
    }
  }
  const bool any = !collected.records.empty() || !collected.streams.empty();
  collected.streams.clear();  // said above
  fwrite(out.data(), 1, out.size(), stdout);
  fflush(stdout);
  for (const auto& sentence : collected.Sentences())
    fprintf(stderr, "ringscope: %s\n", sentence.c_str());
  if (any) return kNothingWrong;
  return collected.missing > 0 ? kNoInput : kDamaged;
}

}  // namespace

const Command kShow = {
    "show",
    "FILE... [--format=text|json] [--ops=N] [--steps=N] [--edges=N] [--color=auto|always|never]",
    "print what a trace, flight or stream file holds, nothing concluded",
    "Identity of the process, why and when it was written, settings, what was lost, calls in "
    "flight, communicators with\n"
    "their operations, edges. Times are seconds before the record was written. A flight file of a "
    "living process may be\n"
    "read at any time; reading it changes nothing. Whose the edges are that a process drives for "
    "others (PXN) is told where\n"
    "the owners' records are given too. Of a stream (RINGSCOPE_STREAM): how much of what, what is "
    "lost, the newest\n"
    "operations, with --steps step transitions. JSON is one object a file with the names of "
    "proto/trace.proto (of a stream\n"
    "the counts only).\n",
    {{"format", {"text", "json"}, "text", "how to print the record"},
     {"ops",
      {},
      "20",
      "newest operations shown per communicator besides the unfinished ones; -1 all"},
     {"steps", {}, "0", "newest step transitions of a stream; -1 all"},
     {"edges", {}, "64", "edges shown, open ones first; -1 all"},
     ColourFlag()},
    Run};

}  // namespace ringscope::tools
