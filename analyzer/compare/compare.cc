#include "analyzer/compare/compare.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ringscope::compare {
namespace {

std::vector<Topic>& Topics() {
  static auto* const topics = new std::vector<Topic>();
  return *topics;
}

using Key = std::pair<std::string, std::string>;  // name, subject
std::map<Key, Fact> ByKey(std::vector<Fact> facts) {
  std::map<Key, Fact> by_key;
  for (Fact& f : facts) by_key.emplace(Key{f.name, f.subject}, std::move(f));
  return by_key;
}

bool Differ(const Fact& good, const Fact& bad, double* ratio) {
  if (good.number > 0 && bad.number > 0) {
    *ratio = bad.number / good.number;
    return *ratio >= kDegradedRatio || *ratio <= 1 / kDegradedRatio;
  }
  return good.value != bad.value;
}

// One run shows a thing and the other, which shows others of its kind, does not.
Fact Absent(const Fact& present) {
  Fact absent = present;
  absent.value = "absent";
  absent.source.clear();
  absent.number = 0;
  return absent;
}

class TopicComparer {
 public:
  TopicComparer(const Topic& topic, Comparison* out) : topic_(topic), out_(out) {}

  void Run(const model::Job& good_job, const model::Job& bad_job) {
    const std::map<Key, Fact> good = ByKey(topic_.facts(good_job)), bad = ByKey(topic_.facts(bad_job));
    if (good.empty() || bad.empty()) {
      if (good.empty() != bad.empty()) {
        out_->add_not_compared(
            absl::StrCat(topic_.name, ": ", good.empty() ? "the good" : "the bad", " run tells nothing of it; ", topic_.missing));
      }
      return;
    }
    std::set<std::string> told[2];  // subjects that each side speaks of at all
    for (const auto& [key, fact] : good) told[0].insert(key.second);
    for (const auto& [key, fact] : bad) told[1].insert(key.second);
    for (const auto& [key, fact] : good) {
      const auto other = bad.find(key);
      if (other != bad.end()) {
        Pair(fact, other->second);
      } else if (topic_.absence_counts && told[1].count(key.second)) {
        Pair(fact, Absent(fact));
      }
    }
    for (const auto& [key, fact] : bad) {
      if (good.find(key) == good.end() && topic_.absence_counts && told[0].count(key.second)) Pair(Absent(fact), fact);
    }
    for (auto& [group, change] : changes_) {
      std::sort(change.mutable_subjects()->begin(), change.mutable_subjects()->end(),
                [](const std::string& a, const std::string& b) {
                  return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);  // rank 2 before rank 10
                });
      if (change.ratio() != 0) change.set_ratio(std::exp(logs_[group] / std::max(1, change.subjects_size())));
      *out_->add_changes() = std::move(change);
    }
  }

 private:
  // Measurements differ in every subject: they are grouped by direction, others by both values.
  using Group = std::tuple<std::string, std::string, std::string>;

  void Pair(const Fact& good, const Fact& bad) {
    double ratio = 0;
    if (!Differ(good, bad, &ratio)) return;
    const bool measured = ratio != 0;
    const Group group = measured ? Group{good.name, ratio > 1 ? "up" : "down", ""} : Group{good.name, good.value, bad.value};
    Change& change = changes_[group];
    const bool first = change.name().empty();
    logs_[group] += measured ? std::log(ratio) : 0;
    if (!good.subject.empty()) change.add_subjects(good.subject);
    // The subject in which it is largest speaks for all.
    if (!first && (!measured || std::abs(std::log(ratio)) <= largest_[group])) return;
    largest_[group] = measured ? std::abs(std::log(ratio)) : 0;
    change.set_topic(topic_.topic);
    change.set_name(good.name);
    change.set_good(good.value);
    change.set_bad(bad.value);
    change.set_good_source(good.source);
    change.set_bad_source(bad.source);
    change.set_weight(std::max(good.weight, bad.weight));
    if (measured) {
      change.set_ratio(ratio);
      // What became faster explains no slower run; what became a little slower is worth a look.
      change.set_weight(ratio < 1 ? Change::harmless : ratio < kSlowRatio ? Change::worth_a_look : change.weight());
    }
    if (good.quality > 0 && bad.quality > 0 && bad.quality >= good.quality)
      change.set_weight(bad.quality > good.quality ? Change::harmless : std::min(change.weight(), Change::worth_a_look));
    change.set_explains(good.explains);
    change.set_confirm(good.confirm);
  }

  const Topic& topic_;
  Comparison* out_;
  std::map<Group, Change> changes_;
  std::map<Group, double> logs_, largest_;
};

std::string Summary(const Comparison& c) {
  int can = 0, look = 0, slower = 0;
  for (const Change& change : c.changes()) {
    if (change.topic() == Change::speed || change.topic() == Change::wait) {
      slower += change.ratio() >= kSlowRatio;
      continue;
    }
    can += change.weight() == Change::can_explain;
    look += change.weight() == Change::worth_a_look;
  }
  if (can + look + slower == 0)
    return c.changes().empty() ? "Nothing that was compared differs." : "Nothing that matters differs.";
  std::string text;
  if (slower > 0) absl::StrAppend(&text, "The bad run is slower. ");
  if (can > 0) absl::StrAppend(&text, can, can == 1 ? " change" : " changes", " can explain a worse run");
  if (look > 0)
    absl::StrAppend(&text, can > 0 ? ", " : "", look, can > 0 ? " more" : "",
                    look == 1 && can == 0 ? " change is"
                    : look == 1           ? " is"
                    : can > 0             ? " are"
                                          : " changes are",
                    " worth a look");
  if (can + look == 0) absl::StrAppend(&text, "Nothing else that was compared differs");
  return text + ".";
}

}  // namespace

RegisterFacts::RegisterFacts(const Topic& topic) { Topics().push_back(topic); }

Comparison Compare(const model::Job& good, const model::Job& bad) {
  std::vector<Topic> topics = Topics();
  std::sort(topics.begin(), topics.end(), [](const Topic& a, const Topic& b) { return a.topic < b.topic; });
  Comparison c;
  for (const std::string& input : good.inputs) c.add_good_inputs(input);
  for (const std::string& input : bad.inputs) c.add_bad_inputs(input);
  for (const Topic& topic : topics) TopicComparer(topic, &c).Run(good, bad);
  std::stable_sort(c.mutable_changes()->begin(), c.mutable_changes()->end(), [](const Change& a, const Change& b) {
    return std::make_tuple(-a.weight(), a.topic(), -a.ratio()) < std::make_tuple(-b.weight(), b.topic(), -b.ratio());
  });
  c.set_summary(Summary(c));
  return c;
}

std::string RankSubject(int rank) { return absl::StrCat("rank ", rank); }
std::string EdgeSubject(int from, int to) { return absl::StrCat("edge ", from, "->", to); }

std::string RecordSource(const model::Process& process) {
  return absl::StrCat("rank ", process.job_rank, " on ", process.host, " (", process.source, ")");
}

std::string GroupText(const model::Communicator& c) {
  const std::string ranks = absl::StrCat(c.n_ranks, c.n_ranks == 1 ? " rank" : " ranks");
  if (!c.name.empty()) return absl::StrCat(c.name, " (", ranks, ")");
  switch (c.role) {
    case model::Role::kWorld:
      return absl::StrCat("the whole job (", ranks, ")");
    case model::Role::kTensor:
      return absl::StrCat("tensor-parallel groups (", ranks, ")");
    case model::Role::kPipeline:
      return absl::StrCat("pipeline-parallel groups (", ranks, ")");
    case model::Role::kData:
      return absl::StrCat("data-parallel groups (", ranks, ")");
    case model::Role::kExpert:
      return absl::StrCat("expert-parallel groups (", ranks, ")");
    default:
      return absl::StrCat("groups of ", ranks);
  }
}

}  // namespace ringscope::compare
