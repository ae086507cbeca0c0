// How long collectives took once the last rank had come, and how long steps took by the log's own account.
//
// The shortest kernel among the ranks of an all-to-all collective is its transfer: who is last does not wait. That needs no
// common clock.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <map>

#include "analyzer/compare/compare.h"
#include "analyzer/compare/op_words.h"
#include "analyzer/model/transfers.h"

namespace ringscope::compare {
namespace {

constexpr size_t kInstances = 20;            // with fewer nothing is said
constexpr double kBandwidthBytes = 1 << 20;  // a channel; below it latency decides

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void Collectives(const model::Job& job, std::vector<Fact>* facts) {
  struct Kind {
    std::vector<double> transfer;  // ns
    double bytes = 0, factor = 1;
    uint32_t channels = 1;
    std::string source;
  };
  std::map<std::string, Kind> kinds;
  for (const model::Communicator& c : job.communicators) {
    for (const model::TransferSeries& s : model::TransfersOf(c)) {
      Kind& kind = kinds[absl::StrCat(CallText(*s.call), " in ", GroupText(c))];
      for (const auto& instance : s.instances) kind.transfer.push_back(static_cast<double>(instance.ns));
      kind.bytes = static_cast<double>(model::BytesOf(*s.call, c.n_ranks));
      kind.factor = model::BusFactor(s.call->func(), c.n_ranks);
      kind.channels = std::max<uint32_t>(s.call->channels(), 1);
      kind.source = RecordSource(job.processes[static_cast<size_t>(s.member->process)]);
    }
  }
  for (const auto& [name, kind] : kinds) {
    if (kind.transfer.size() < kInstances) continue;
    Fact f;
    f.name = absl::StrCat(name, ", transfer");
    f.number = Median(kind.transfer);
    f.value = TimeText(f.number);
    if (kind.bytes / kind.channels >= kBandwidthBytes)
      absl::StrAppend(&f.value, absl::StrFormat(", %.1f GB/s busbw", kind.bytes / f.number * kind.factor));
    absl::StrAppend(&f.value, " (median of ", kind.transfer.size(), ")");
    f.source = kind.source;
    f.weight = Change::can_explain;
    f.explains = "The transfer itself is slower, whoever comes last: a link, a path, or other traffic.";
    f.confirm = "The same all_reduce_perf on both allocations; the transports and wire waits per edge above.";
    facts->push_back(std::move(f));
  }
}

void Steps(const model::Job& job, std::vector<Fact>* facts) {
  std::map<std::string, std::vector<double>> times;
  std::map<std::string, model::Where> where;
  for (const model::StepTime& t : job.evidence.hardware.speed.steps) {
    if (t.scope == model::StepTime::Scope::kOthers || t.seconds <= 0) continue;
    const std::string name = t.part == model::StepTime::Part::kTotal ? "step" : t.name;
    times[name].push_back(t.seconds * 1e9);
    where.emplace(name, t.where);
  }
  for (const auto& [name, values] : times) {
    if (values.size() < 3) continue;
    const double median = Median(values);
    facts->push_back({absl::StrCat(name == "step" ? "" : "step: ", name, " (log)"), "",
                      absl::StrCat(TimeText(median), " (median of ", values.size(), ")"), job.evidence.PlaceText(where.at(name)),
                      median, Change::can_explain, "The program's own steps take longer.",
                      "Its parts (input, compute, communication) in the same log."});
  }
}

std::vector<Fact> Facts(const model::Job& job) {
  std::vector<Fact> facts;
  Collectives(job, &facts);
  Steps(job, &facts);
  return facts;
}

const RegisterFacts kRegister({Change::speed, "speed",
                               "give traces with at least 20 finished collectives of a kind, or a log with step times", Facts,
                               /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
