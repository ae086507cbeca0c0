#include "tests/property/score.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>

namespace ringscope::property {
namespace {

bool Accuses(const Finding& f) {
  return !f.past() && f.kind() != Kind::none && f.kind() != Kind::undetermined;
}

bool Names(const Finding& f, const Who& who) {
  const std::set<int> ranks(f.who().ranks().begin(), f.who().ranks().end());
  Edges edges;
  for (const EdgeName& e : f.who().edges()) edges.insert({e.from(), e.to()});
  const std::set<std::string> hosts(f.who().hosts().begin(), f.who().hosts().end());
  const auto within = [](const auto& a, const auto& b) {
    return std::includes(b.begin(), b.end(), a.begin(), a.end());
  };
  if (who.any_of) {
    if (ranks.empty() && edges.empty() && hosts.empty()) return false;
    return within(ranks, who.ranks) && edges.empty() &&
           (hosts.empty() || who.hosts.empty() || hosts == who.hosts);
  }
  // An edge may be shown with its ends, ranks with their hosts.
  std::set<int> ends;
  for (const auto& [a, b] : who.edges) ends.insert(a), ends.insert(b);
  const bool ranks_fit = ranks == who.ranks || (!who.edges.empty() && within(ranks, ends));
  return ranks_fit &&
         (edges == who.edges || (who.edges.empty() && !who.ranks.empty() && edges.empty()));
}

bool Fits(const Finding& f, const std::vector<Answer>& answers) {
  for (const Answer& a : answers) {
    if (!a.kinds.count(f.kind())) continue;
    for (const Who& who : a.who) {
      if (Names(f, who)) return true;
    }
  }
  return false;
}

std::string Brief(const Who& who) {
  std::vector<std::string> parts;
  if (!who.ranks.empty() && who.ranks.size() <= 12)
    parts.push_back("rank " + absl::StrJoin(who.ranks, ","));
  if (who.ranks.size() > 12) parts.push_back(absl::StrCat(who.ranks.size(), " ranks"));
  for (const auto& [a, b] : who.edges) parts.push_back(absl::StrCat(a, "->", b));
  for (const auto& h : who.hosts) parts.push_back(h);
  return (who.any_of ? "of " : "") + absl::StrJoin(parts, " ");
}

}  // namespace

std::string Brief(const Finding& f) {
  Who who;
  who.ranks.insert(f.who().ranks().begin(), f.who().ranks().end());
  for (const EdgeName& e : f.who().edges()) who.edges.insert({e.from(), e.to()});
  who.hosts.insert(f.who().hosts().begin(), f.who().hosts().end());
  return absl::StrCat(Kind::Value_Name(f.kind()), " [", Brief(who), "] ",
                      Confidence::Value_Name(f.confidence()), f.past() ? " past" : "");
}

std::string Brief(const Label& label) {
  if (label.healthy) return "healthy";
  std::vector<std::string> answers;
  for (const Answer& a : label.right) {
    std::vector<std::string> kinds, whos;
    for (auto k : a.kinds) kinds.push_back(Kind::Value_Name(k));
    for (const Who& who : a.who) whos.push_back(Brief(who));
    answers.push_back(
        absl::StrCat(absl::StrJoin(kinds, "/"), " [", absl::StrJoin(whos, " | "), "]"));
  }
  return absl::StrCat(label.sufficient ? "" : "(not sufficient) ", absl::StrJoin(answers, " or "));
}

Outcome Score(uint64_t seed, const Label& label, const Diagnosis& diagnosis) {
  Outcome out;
  out.seed = seed;
  out.label = label;
  const Finding* first = nullptr;
  bool untrue = false;
  std::vector<std::string> said;
  for (const Finding& f : diagnosis.findings()) {
    said.push_back(Brief(f));
    if (!Accuses(f)) continue;
    if (first == nullptr) first = &f;
    const bool right = Fits(f, label.right), true_at_least = right || Fits(f, label.also_true);
    if (f.confidence() >= Confidence::probable) {
      ++out.findings;
      out.true_findings += true_at_least ? 1 : 0;
      untrue |= !true_at_least;
    }
    out.established_wrong |= f.confidence() == Confidence::established && !true_at_least;
  }
  out.said = absl::StrJoin(said, "; ");
  if (label.healthy) {
    out.accused_healthy = first != nullptr;
    out.verdict = first != nullptr ? Verdict::kWrong : Verdict::kRight;
  } else if (label.sufficient) {
    out.verdict = first == nullptr            ? Verdict::kAbstained
                  : Fits(*first, label.right) ? Verdict::kRight
                                              : Verdict::kWrong;
  } else {
    out.verdict = untrue ? Verdict::kWrong : Verdict::kRight;
  }
  return out;
}

void Tally::Add(const Outcome& o) {
  Row& row = rows_[static_cast<size_t>(o.label.fault)];
  ++row.jobs;
  row.findings += o.findings;
  row.true_findings += o.true_findings;
  row.established_wrong += o.established_wrong ? 1 : 0;
  row.accused += o.accused_healthy ? 1 : 0;
  if (!o.label.sufficient) {
    ++row.insufficient;
    row.misled += o.verdict == Verdict::kWrong ? 1 : 0;
    return;
  }
  ++row.sufficient;
  row.right += o.verdict == Verdict::kRight ? 1 : 0;
  row.abstained += o.verdict == Verdict::kAbstained ? 1 : 0;
  row.wrong += o.verdict == Verdict::kWrong ? 1 : 0;
}

Row Tally::Total() const {
  Row t;
  for (const Row& r : rows_) {
    t.jobs += r.jobs, t.sufficient += r.sufficient, t.right += r.right, t.abstained += r.abstained,
        t.wrong += r.wrong;
    t.insufficient += r.insufficient, t.misled += r.misled, t.findings += r.findings,
        t.true_findings += r.true_findings;
    t.established_wrong += r.established_wrong, t.accused += r.accused;
  }
  return t;
}

std::string Tally::Table() const {
  const auto percent = [](int part, int of) {
    return of == 0 ? std::string("-") : absl::StrFormat("%.1f%%", 100.0 * part / of);
  };
  std::string out = absl::StrFormat("%-20s %6s | %6s %7s %7s %6s | %6s %7s | %9s %6s\n", "fault",
                                    "jobs", "enough", "recall", "abstain", "wrong", "not", "misled",
                                    "precision", "est-X");
  const auto line = [&](const std::string& name, const Row& r) {
    absl::StrAppendFormat(&out, "%-20s %6d | %6d %7s %7s %6d | %6d %7d | %9s %6d\n", name, r.jobs,
                          r.sufficient, percent(r.right, r.sufficient),
                          percent(r.abstained, r.sufficient), r.wrong, r.insufficient, r.misled,
                          percent(r.true_findings, r.findings), r.established_wrong);
  };
  for (size_t k = 0; k < rows_.size(); ++k) {
    if (rows_[k].jobs > 0) line(NameOf(static_cast<FaultKind>(k)), rows_[k]);
  }
  line("all", Total());
  return out;
}

}  // namespace ringscope::property
