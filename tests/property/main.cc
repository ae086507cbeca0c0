// usage: property_jobs [--jobs N] [--seed S] [--kind NAME] [--job SEED [--write DIR]] [--verbose] [--clocks N]
//
// Plays random jobs with faults, diagnoses their records, and holds the answers against the labels
// (README.md).
#include <absl/strings/numbers.h>
#include <absl/strings/str_join.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "analyzer/ingest/crc32c.h"
#include "analyzer/ingest/trace_reader.h"
#include "analyzer/reasoning/finder.h"
#include "tests/property/score.h"
#include "tests/unit/testing/clock_shift.h"

namespace ringscope::property {
namespace {

struct Options {
  int jobs = 500;
  uint64_t seed = 0;
  bool seed_given = false, verbose = false;
  int clocks = 0;  // other clocks that each job is tried with
  uint64_t job = 0;
  bool one_job = false;
  std::string write;
  FaultKind only = FaultKind::kCount;
};

struct OneJob {
  World world;
  Played played;
  Recorded recorded;
  Label label;
};

OneJob MakeJob(uint64_t seed, FaultKind only, double apart_seconds = -1) {
  OneJob job;
  job.world = MakeWorld(seed, only);
  job.played = Play(&job.world);
  job.recorded = Record(job.world, job.played, apart_seconds);
  job.label = LabelOf(job.world, job.played, job.recorded);
  return job;
}

void WriteTraces(const OneJob& job, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const model::Record& record : job.recorded.records) {
    trace::Trace end;
    end.mutable_end()->set_chunks(1);
    // A file with the ending .trace is read as one, whatever the record was made from.
    std::ofstream out(folder + "/" + record.source.substr(0, record.source.find('.')) + ".trace",
                      std::ios::binary);
    const auto word = [&out](uint32_t v) {
      for (int i = 0; i < 4; ++i) out.put(static_cast<char>(v >> 8 * i & 0xff));
    };
    out << ingest::kTraceMagic;
    for (const trace::Trace& chunk : {record.trace, end}) {
      const std::string payload = chunk.SerializeAsString();
      word(static_cast<uint32_t>(payload.size()));
      word(ingest::Crc32c(payload));
      out << payload;
    }
  }
}

void Describe(const OneJob& job) {
  const World& w = job.world;
  static const char* const kLayouts[] = {"DP", "FSDP", "TPxDP", "PPxTPxDP", "EP"};
  std::printf(
      "seed %llu: %s, %d ranks on %d hosts, %zu communicators, %d iterations, table v%d, %s, keeps "
      "%d, stall %.0f s%s%s\n",
      static_cast<unsigned long long>(w.seed), kLayouts[static_cast<int>(w.layout)], w.ranks,
      w.hosts, w.comms.size(), w.iterations, w.recording.api,
      w.recording.socket ? "sockets" : "credits", w.recording.kept, w.recording.stall_seconds,
      w.recording.flight_files ? ", flight files" : "",
      w.recording.earlier_attempt ? ", restarted" : "");
  for (const Fault& f : w.faults) {
    std::printf(
        "  fault: %s rank %d comm %s position %llu edge %d->%d channel %d step %d seconds %.3f\n",
        NameOf(f.kind), f.rank,
        f.comm >= 0 ? w.comms[static_cast<size_t>(f.comm)].name.c_str() : "-",
        static_cast<unsigned long long>(f.position), f.from, f.to, f.channel, f.step, f.seconds);
  }
  int lost = 0;
  for (const RecordPlan& plan : job.recorded.plans) lost += plan.exists ? 0 : 1;
  std::printf("  %s, last event at %.3f s, %d records missing\n  label: %s (%s)\n",
              job.played.hangs ? "hangs" : "ends", job.played.last, lost, Brief(job.label).c_str(),
              job.label.why.c_str());
}

bool Parse(int argc, char** argv, Options* o) {
  if (const char* jobs = std::getenv("RINGSCOPE_PROPERTY_JOBS"))
    (void)absl::SimpleAtoi(jobs, &o->jobs);
  if (const char* seed = std::getenv("RINGSCOPE_PROPERTY_SEED"))
    o->seed_given = absl::SimpleAtoi(seed, &o->seed);
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (arg == "--verbose") {
      o->verbose = true;
      continue;
    }
    ++i;
    if (arg == "--jobs" && absl::SimpleAtoi(value, &o->jobs)) continue;
    if (arg == "--clocks" && absl::SimpleAtoi(value, &o->clocks)) continue;
    if (arg == "--seed" && absl::SimpleAtoi(value, &o->seed)) {
      o->seed_given = true;
      continue;
    }
    if (arg == "--job" && absl::SimpleAtoi(value, &o->job)) {
      o->one_job = true;
      continue;
    }
    if (arg == "--write") {
      o->write = value;
      continue;
    }
    if (arg == "--kind") {
      for (int k = 0; k < static_cast<int>(FaultKind::kCount); ++k) {
        if (value == NameOf(static_cast<FaultKind>(k))) o->only = static_cast<FaultKind>(k);
      }
      if (o->only != FaultKind::kCount) continue;
    }
    std::fprintf(
        stderr,
        "usage: %s [--jobs N] [--seed S] [--kind NAME] [--job SEED [--write DIR]] [--verbose] [--clocks N]\n",
        argv[0]);
    return false;
  }
  if (!o->seed_given) o->seed = std::random_device()();
  return true;
}

// How many of the answers are others when the hosts' clocks show something else. Where nothing bounds the clocks and the margin is
// theirs, one right answer may become another ("exited", "missing").
int ChangesWithClocks(const OneJob& job, int rounds) {
  constexpr int64_t kSecond = 1'000'000'000;
  const std::vector<model::Record>& records = job.recorded.records;
  std::mt19937 random(static_cast<unsigned>(job.world.seed));
  const auto ask = [](std::vector<model::Record> r) { return reasoning::Diagnose(model::BuildJob(std::move(r))); };
  const auto right = [&](const Diagnosis& d) { return Score(job.world.seed, job.label, d).verdict == Verdict::kRight; };
  const Diagnosis expected = ask(records);
  int changed = 0;
  for (int i = 0; i < rounds; ++i) {
    std::vector<model::Record> shifted = records;
    if (i % 3 != 1) testing::ShiftWallClocks(testing::Offsets(records, 5 * kSecond / 2, &random), &shifted);
    if (i % 3 != 0) testing::ShiftBoots(testing::Offsets(records, 900 * kSecond, &random), &shifted);
    const Diagnosis got = ask(std::move(shifted));
    if (testing::Said(got) == testing::Said(expected) || (right(got) && right(expected))) continue;
    ++changed;
    std::printf("clocks     %14llu: %s; else %s\n", static_cast<unsigned long long>(job.world.seed),
                absl::StrJoin(testing::Said(got), "; ").c_str(), absl::StrJoin(testing::Said(expected), "; ").c_str());
  }
  return changed;
}

Outcome Run(uint64_t seed, FaultKind only, const Options& o) {
  OneJob job = MakeJob(seed, only);
  if (o.one_job) Describe(job);
  if (!o.write.empty()) WriteTraces(job, o.write);
  const Diagnosis diagnosis = reasoning::Diagnose(model::BuildJob(std::move(job.recorded.records)));
  if (o.one_job) {
    for (const Finding& f : diagnosis.findings())
      std::printf("  said: %s\n        %s\n", Brief(f).c_str(), f.title().c_str());
  }
  return Score(seed, job.label, diagnosis);
}

int Main(const Options& o) {
  if (o.one_job) {
    const Outcome out = Run(o.job, o.only, o);
    std::printf("  %s\n", out.verdict == Verdict::kRight       ? "right"
                          : out.verdict == Verdict::kAbstained ? "abstained"
                                                               : "WRONG");
    return out.verdict == Verdict::kWrong ? 1 : 0;
  }
  std::printf("%d jobs from seed %llu\n", o.jobs, static_cast<unsigned long long>(o.seed));
  Random seeds(o.seed);
  Tally tally;
  int changed = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < o.jobs; ++i) {
    const uint64_t seed = seeds.Next() >> 20;
    const Outcome out = Run(seed, o.only, o);
    tally.Add(out);
    if (o.clocks > 0) changed += ChangesWithClocks(MakeJob(seed, o.only, 0), o.clocks) > 0;
    const bool bad = out.verdict == Verdict::kWrong || out.established_wrong;
    if (bad || (out.verdict == Verdict::kAbstained && o.verbose)) {
      std::printf("%-10s %14llu %s%s: wanted %s; said %s\n",
                  out.verdict == Verdict::kAbstained ? "abstained" : "wrong",
                  static_cast<unsigned long long>(seed), NameOf(out.label.fault),
                  out.established_wrong ? " (ESTABLISHED)" : "", Brief(out.label).c_str(),
                  out.said.c_str());
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("\n%s%.1f s\n", tally.Table().c_str(), seconds);
  const Row all = tally.Total();
  int failed = 0;
  const auto require = [&](bool holds, const char* what) {
    if (!holds) std::printf("FAILED: %s\n", what), ++failed;
  };
  // Every run draws other jobs: what a sample of this size may be off by chance (three standard
  // deviations) is granted.
  const auto at_most = [&](double share) {
    return share * all.sufficient + 3 * std::sqrt(share * all.sufficient);
  };
  require(all.sufficient - all.right <= at_most(0.01),
          "99 % right among the jobs with sufficient evidence");
  require(all.abstained <= at_most(0.05), "at most 5 % of them without an answer");
  require(all.established_wrong == 0, "no wrong finding is called established");
  require(changed == 0, "nothing changes with the hosts' clocks");
  require(all.accused == 0, "nobody is accused in a healthy job");
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ringscope::property

int main(int argc, char** argv) {
  ringscope::property::Options options;
  if (!ringscope::property::Parse(argc, argv, &options)) return 64;
  return ringscope::property::Main(options);
}
