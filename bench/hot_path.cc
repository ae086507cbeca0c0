// What a profiler plugin costs on NCCL's threads. See bench/README.md; `hot_path --help`.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/plugin.h"
#include "bench/scratch.h"

namespace ringscope::bench {
namespace {

constexpr char kHelp[] =
    R"(usage: hot_path [options] PLUGIN.so...
Drives NCCL profiler plugins through their v5 (else v4) table as NCCL does and prints what a callback costs over an empty
table. All plugins, and the empty table, take turns in every round.

  --rounds N      rounds; CPU time is the minimum over them (default 7, at least 5)
  --batch N       units (a pair, a collective, a proxy operation) a thread and round (default 1000)
  --json          one JSON object instead of the tables
  --drive UNITS   no clock: run UNITS units of --case on the first plugin between write(-1, "begin") and
                  write(-1, "end"), for system call tracers and instruction counters ("-" = the empty table)
  --api N         speak through table version N (1 to 6; default v5, else v4)
  --case NAME     only cases whose name contains NAME (with --drive: the first such)

A PLUGIN may be given as ops=FILE or steps=FILE: loaded once more, from a copy, with RINGSCOPE_STREAM set so. The empty
table and FILE itself take turns with it, so that the ratio of streaming to none stands in one table.

A plugin is loaded from a file of this machine; RINGSCOPE_*, NCCL_PROFILE_* and the like reach it as they are set.
Without such settings Ringscope writes no trace and keeps its flight file in a scratch folder, and NCCL's example
plugin is asked for the same events as Ringscope (NCCL_PROFILE_EVENT_MASK=3935).
)";

struct Options {
  int rounds = 7;
  int batch = 1000;
  int drive = 0;
  int api = 0;
  bool json = false;
  std::string only;
  std::vector<std::string> plugins;
};

int Number(const char* option, const char* text, int least) {
  char* end = nullptr;
  const long value = text == nullptr ? -1 : std::strtol(text, &end, 10);
  if (text == nullptr || *end != '\0' || value < least || value > 100000000) {
    std::fprintf(stderr, "hot_path: %s wants a number of at least %d\n", option, least);
    std::exit(64);
  }
  return static_cast<int>(value);
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (arg == "--help" || arg == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    } else if (arg == "--json") {
      options.json = true;
    } else if (arg == "--rounds") {
      options.rounds = Number("--rounds", value, 5), ++i;
    } else if (arg == "--batch") {
      options.batch = Number("--batch", value, 1), ++i;
    } else if (arg == "--drive") {
      options.drive = Number("--drive", value, 1), ++i;
    } else if (arg == "--api") {
      options.api = Number("--api", value, 1), ++i;
    } else if (arg == "--case" && value != nullptr) {
      options.only = value, ++i;
    } else if (arg.size() > 1 && arg[0] == '-') {
      std::fprintf(stderr, "hot_path: unknown option %s (try --help)\n", arg.c_str());
      std::exit(64);
    } else {
      options.plugins.push_back(arg);
    }
  }
  if (options.plugins.empty()) {
    std::fputs(kHelp, stderr);
    std::exit(64);
  }
  return options;
}

constexpr Threads kThreadings[] = {{1, false}, {2, false}, {2, true}, {4, false}, {4, true}};
constexpr int kMaxThreads = 4;

// One plugin with its communicators.
struct Subject {
  Plugin plugin;
  std::vector<void*> own;  // one a thread
  void* shared = nullptr;
  std::vector<void*> Contexts(const Threads& t) const {
    if (t.shared) return std::vector<void*>(static_cast<size_t>(t.count), shared);
    return {own.begin(), own.begin() + t.count};
  }
};

// The plugin of an argument; "ops=" or "steps=" before the file name: a copy, which has globals of its own.
Plugin LoadAs(const std::string& argument, int api, const std::string& folder) {
  const size_t equals = argument.find('=');
  const std::string level = argument.substr(0, equals == std::string::npos ? 0 : equals);
  if (level != "ops" && level != "steps") return Plugin::Load(argument, api);
  const std::string file = argument.substr(equals + 1);
  const std::string copy = folder + "/" + level + "-" + file.substr(file.rfind('/') + 1);
  std::error_code error;
  std::filesystem::copy_file(file, copy, error);
  if (error) {
    std::fprintf(stderr, "hot_path: cannot copy %s: %s\n", file.c_str(), error.message().c_str());
    std::exit(66);
  }
  setenv("RINGSCOPE_STREAM", level.c_str(), 1);
  return Plugin::Load(copy, api);
}

Subject Open(const std::string& path, int api, const std::string& folder) {
  const char* set = getenv("RINGSCOPE_STREAM");
  const std::string before = set != nullptr ? set : "";
  Subject subject{path == "-" ? Plugin::Empty() : LoadAs(path, api, folder), {}, nullptr};
  for (uint64_t id = 1; id <= kMaxThreads; ++id)
    subject.own.push_back(subject.plugin.Init({.id = id}));
  subject.shared = subject.plugin.Init({.id = kMaxThreads + 1});
  setenv("RINGSCOPE_STREAM", before.c_str(), 1);  // read at the first Init
  return subject;
}

void Close(const Subject& subject) {
  for (void* context : subject.own) subject.plugin.Finalize(context);
  subject.plugin.Finalize(subject.shared);
}

struct Row {
  const Case* work;
  Threads threads;
  std::vector<CpuCost> cost;  // by subject
  std::vector<Spread> each;   // by subject; only for one and two threads of their own
};

Row Measure(const std::vector<Subject>& subjects, const Case& work, const Threads& threads,
            const Options& options) {
  Row row{&work, threads, std::vector<CpuCost>(subjects.size()), {}};
  const bool spread = !threads.shared && threads.count <= 2;
  std::vector<std::vector<uint32_t>> samples(subjects.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t s = 0; s < subjects.size(); ++s) {
      const auto contexts = subjects[s].Contexts(threads);
      const CpuCost cost = MeasureCpu(subjects[s].plugin, work, threads, contexts, options.batch);
      if (round == 0 || cost.ns < row.cost[s].ns) row.cost[s] = cost;
      if (spread) MeasureEach(subjects[s].plugin, work, contexts, options.batch, &samples[s]);
    }
  }
  if (spread) {
    for (auto& own : samples) row.each.push_back(Percentiles(&own));
  }
  return row;
}

const char* Sharing(const Threads& t) { return t.count == 1 ? "" : t.shared ? "shared" : "own"; }

void PrintTables(const std::vector<Subject>& subjects, const std::vector<Row>& rows) {
  std::printf(
      "CPU ns a callback; +N is over the empty table (minimum over rounds)\n\n%-26s %7s %-7s %8s",
      "case", "threads", "comm", "empty");
  for (size_t s = 1; s < subjects.size(); ++s)
    std::printf("  %24.24s", subjects[s].plugin.label().c_str());
  std::printf("\n");
  std::map<std::string, std::vector<double>>
      alone;  // one thread, by case: the others are compared with it
  for (const Row& row : rows) {
    std::printf("%-26s %7d %-7s %8.1f", row.work->name.c_str(), row.threads.count,
                Sharing(row.threads), row.cost[0].ns);
    auto& base = alone[row.work->name];
    for (size_t s = 1; s < subjects.size(); ++s) {
      if (row.threads.count == 1) base.push_back(row.cost[s].ns);
      std::printf("  %8.1f %+8.1f %5.2fx", row.cost[s].ns, row.cost[s].ns - row.cost[0].ns,
                  base.empty() ? 1.0 : row.cost[s].ns / base[s - 1]);
    }
    std::printf("\n");
  }
  std::printf(
      "\n(x: CPU time a callback over that of one thread)\n\nEach callback by itself, ns, clock "
      "included\n\n"
      "%-26s %7s  %-28s %8s %8s %10s\n",
      "case", "threads", "plugin", "p50", "p99.9", "max");
  for (const Row& row : rows) {
    for (size_t s = 0; s < row.each.size(); ++s) {
      std::printf("%-26s %7d  %-28.28s %8.0f %8.0f %10.0f\n", row.work->name.c_str(),
                  row.threads.count, subjects[s].plugin.label().c_str(), row.each[s].p50,
                  row.each[s].p999, row.each[s].max);
    }
  }
}

void PrintJson(const std::vector<Subject>& subjects, const std::vector<Row>& rows) {
  std::printf("{\"plugins\": [");
  for (size_t s = 0; s < subjects.size(); ++s) {
    std::printf("%s{\"name\": \"%s\", \"api\": %d, \"mask\": %d}", s ? ", " : "",
                subjects[s].plugin.label().c_str(), subjects[s].plugin.version(),
                subjects[s].plugin.mask());
  }
  std::printf("],\n \"results\": [");
  const char* comma = "\n";
  for (const Row& row : rows) {
    for (size_t s = 0; s < subjects.size(); ++s) {
      std::printf(
          "%s  {\"case\": \"%s\", \"threads\": %d, \"shared\": %s, \"plugin\": %zu, \"callbacks\": "
          "%llu, \"cpu_ns\": %.2f, "
          "\"over_empty_ns\": %.2f",
          comma, row.work->name.c_str(), row.threads.count, row.threads.shared ? "true" : "false",
          s, static_cast<unsigned long long>(row.cost[s].callbacks), row.cost[s].ns,
          row.cost[s].ns - row.cost[0].ns);
      if (!row.each.empty()) {
        std::printf(", \"p50_ns\": %.0f, \"p999_ns\": %.0f, \"max_ns\": %.0f", row.each[s].p50,
                    row.each[s].p999, row.each[s].max);
      }
      std::printf("}");
      comma = ",\n";
    }
  }
  std::printf("\n]}\n");
}

int Run(const Options& options) {
  Scratch scratch(false);
  setenv("NCCL_PROFILE_EVENT_MASK", "3935", 0);
  std::vector<Case> cases;
  for (Case& work : AllCases()) {
    if (work.name.find(options.only) != std::string::npos) cases.push_back(std::move(work));
  }
  if (cases.empty()) {
    std::fprintf(stderr, "hot_path: no case is named like '%s'\n", options.only.c_str());
    return 64;
  }
  if (options.drive > 0) {
    const Subject subject = Open(options.plugins[0], options.api, scratch.folder());
    const uint64_t callbacks = Drive(subject.plugin, cases[0], subject.own[0], options.drive);
    std::printf("%llu callbacks\n", static_cast<unsigned long long>(callbacks));
    Close(subject);
    return 0;
  }
  std::vector<Subject> subjects = {Open("-", 0, "")};
  for (const std::string& path : options.plugins) subjects.push_back(Open(path, options.api, scratch.folder()));
  std::vector<Row> rows;
  for (const Case& work : cases) {
    for (const Threads& threads : kThreadings)
      rows.push_back(Measure(subjects, work, threads, options));
  }
  (options.json ? PrintJson : PrintTables)(subjects, rows);
  for (const Subject& subject : subjects) Close(subject);
  return 0;
}

}  // namespace
}  // namespace ringscope::bench

int main(int argc, char** argv) {
  return ringscope::bench::Run(ringscope::bench::Parse(argc, argv));
}
