#include "analyzer/report/text.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "analyzer/model/ranks_text.h"
#include "analyzer/report/cursors.h"
#include "analyzer/report/style.h"
#include "analyzer/report/words.h"

namespace ringscope::report {
namespace {

class Renderer {
 public:
  Renderer(const Diagnosis& d, const model::Job& job, const TextOptions& options)
      : d_(d), job_(job), options_(options), style_(options.colour) {}

  std::string Run() {
    Head();
    if (Leads()) First(d_.findings(0));
    Others(Leads() ? 1 : 0);
    Communicators();
    NotSeen();
    return std::move(out_);
  }

 private:
  bool Leads() const { return report::Leads(d_); }

  void Text(const std::string& first, const std::string& text) {
    out_ += Wrapped(first, text, options_.width);
  }
  void Heading(const std::string& text) { absl::StrAppend(&out_, "\n", style_.Bold(text), "\n"); }

  void Head() {
    const std::string word = StateWord(d_.state());
    const bool good = d_.state() == State::healthy;
    const bool soft =
        d_.state() == State::recovered || d_.state() == State::unknown || d_.state() == State::slow;
    const std::string painted = good   ? style_.Good(word)
                                : soft ? style_.Warn(word)
                                       : style_.Alarm(word);
    const std::string title = Leads() ? d_.findings(0).title() : StateMeaning(d_.state());
    absl::StrAppend(&out_, painted, "  ", style_.Bold(Printable(title)), "\n");
    if (!d_.job().empty()) Text("  ", absl::StrCat("job ", d_.job()));
    if (!job_.left_out.empty()) {
      std::vector<std::string> names(job_.left_out.begin(), job_.left_out.end());
      const size_t all = names.size();
      if (all > 4) names.resize(4);
      Text("  ", absl::StrCat("NOT about ", absl::StrJoin(names, "; "),
                              all > 4 ? absl::StrCat(" and ", all - 4, " more") : "",
                              ": their records lie here too"));
    }
    if (!d_.summary().empty() && d_.summary() != title) Text("  ", d_.summary());
    if (job_.processes.empty() && !job_.evidence.files.empty()) {
      out_ += style_.Dim(absl::StrCat("  ", TextsRead())) + "\n";
      return;
    }
    std::set<std::string> hosts;
    for (const auto& p : job_.processes) hosts.insert(p.host);
    const std::string ranks =
        d_.ranks_total() > 0 ? absl::StrCat(d_.ranks_seen(), " of ", d_.ranks_total(), " ranks")
                             : absl::StrCat(d_.ranks_seen(), " ranks");
    out_ += style_.Dim(absl::StrCat(
                "  records of ", ranks, ", ", hosts.size(),
                hosts.size() == 1 ? " host, " : " hosts, ", job_.communicators.size(),
                job_.communicators.size() == 1 ? " communicator, " : " communicators, ",
                job_.inputs.size(), job_.inputs.size() == 1 ? " file" : " files")) +
            "\n";
  }

  // "no record; 3 texts: NCCL init, nvidia-smi topo".
  std::string TextsRead() const {
    std::set<std::string> kinds;
    for (const auto& file : job_.evidence.files) kinds.insert(file.readers.begin(), file.readers.end());
    const size_t n = job_.evidence.files.size();
    std::string text = absl::StrCat("no record; ", n, n == 1 ? " text" : " texts");
    constexpr size_t kNamed = 6;
    std::vector<std::string> named(kinds.begin(), kinds.end());
    const size_t more = named.size() > kNamed ? named.size() - kNamed : 0;
    named.resize(named.size() - more);
    if (!named.empty()) absl::StrAppend(&text, ": ", absl::StrJoin(named, ", "));
    if (more > 0) absl::StrAppend(&text, " and ", more, " more kinds");
    return text;
  }

  static std::string Sure(const Finding& f) {
    return absl::StrCat(Kind::Value_Name(f.kind()), ", ",
                        Words(Confidence::Value_Name(f.confidence())), f.past() ? ", over" : "");
  }

  void First(const Finding& f) {
    out_ += "\n";
    Text("who     ", WhoText(f.who()));
    Text("what    ", Sure(f));
    const bool known = CauseKnown(f);
    Text("cause   ", known ? absl::StrCat(f.cause().id(), ", ",
                                          Words(Confidence::Value_Name(f.cause().confidence())),
                                          " (its page: ringscope explain ", f.cause().id(), ")")
                           : "not established");
    if (f.collateral().ranks_size() > 0) {
      Text("waits   ",
           absl::StrCat(model::RanksText(Ints(f.collateral().ranks())), " (collateral)"));
    }
    if (f.evidence_size() > 0) Heading("Evidence");
    for (const Evidence& e : f.evidence()) {
      const std::string source = SourceText(e);
      Text("  - ", source.empty() ? e.text() : absl::StrCat(e.text(), "  [", source, "]"));
    }
    Cited(f);
    Checks(f);
    if (f.rivals_size() > 0) Heading("It could also be");
    for (const Rival& rival : f.rivals()) {
      Text("  - ", absl::StrCat(rival.text(), rival.finding() > 0 ? absl::StrCat(" (finding ", rival.finding() + 1, ")") : "",
                                "; told apart by: ", rival.told_apart_by()));
    }
    if (!f.refuted_by().empty()) {
      Heading("What would refute it");
      Text("  ", f.refuted_by());
    }
    if (!f.next().text().empty() || !f.next().command().empty()) {
      Heading("Next");
      if (!f.next().text().empty()) Text("  ", f.next().text());
      if (!f.next().command().empty())
        absl::StrAppend(&out_, "  $ ", style_.Command(Printable(f.next().command())), "\n");
    }
  }

  // What must be seen elsewhere, if this is so.
  void Checks(const Finding& f) {
    if (f.checks().empty()) return;
    Heading("If so, then");
    for (const Check& check : f.checks()) {
      const char* const outcome = check.outcome() == Check::holds ? "holds: " : check.outcome() == Check::fails ? "FAILS: " : "not seen: ";
      const std::string source = check.source().empty() ? "" : absl::StrCat("  [", SplitSource(check.source()).first, "]");
      Text("  - ", absl::StrCat(check.expects(), "  - ", outcome, check.seen(), source));
    }
  }

  // The files that the evidence stands in, once each.
  void Cited(const Finding& f) {
    std::set<std::string> files;
    for (const Evidence& e : f.evidence()) {
      const std::string file = SplitSource(e.source()).second;
      if (e.rank() >= 0 && !file.empty() && files.insert(file).second) {
        out_ += style_.Dim(Printable(absl::StrCat("    rank ", e.rank(), ": ", file))) + "\n";
      }
    }
  }

  void Others(int from) {
    constexpr int kShown = 12;
    if (d_.findings_size() <= from) return;
    std::vector<int> explained(static_cast<size_t>(d_.findings_size()), -1);
    for (int i = 0; i < d_.findings_size(); ++i) {
      for (uint32_t j : d_.findings(i).explains()) {
        if (j < explained.size() && explained[j] < 0) explained[j] = i;
      }
    }
    bool any = false;
    for (int i = from; i < d_.findings_size(); ++i) {
      const Finding& f = d_.findings(i);
      if (f.kind() == Kind::none) continue;
      if (!any) Heading(from == 0 ? "Findings" : "Other findings");
      any = true;
      if (i - from == kShown) {
        Text("  ", absl::StrCat("... and ", d_.findings_size() - i,
                                " more; --format=json has all of them"));
        break;
      }
      std::string text =
          absl::StrCat(f.title().empty() ? WhoText(f.who()) : f.title(), "  (", Sure(f), ")");
      if (explained[static_cast<size_t>(i)] >= 0) {
        absl::StrAppend(&text, "; explained by finding ", explained[static_cast<size_t>(i)] + 1);
      }
      Text(absl::StrCat("  ", i + 1, ". "), text);
    }
  }

  void Communicators() {
    if (job_.communicators.empty()) return;
    struct Shown {
      const model::Communicator* communicator;
      std::vector<CursorLine> lines;
      bool open;
    };
    std::vector<Shown> all;
    for (const auto& c : job_.communicators) {
      Shown s = {&c, CursorLines(c), false};
      for (const CursorLine& line : s.lines) s.open |= line.open;
      all.push_back(std::move(s));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Shown& a, const Shown& b) { return a.open > b.open; });
    Heading("Communicators: who has entered, enqueued, started, finished what");
    // Where something is open, only a few of those without show that the rest of the job is seen,
    // too.
    constexpr int64_t kQuietShown = 4;
    const auto busy = std::count_if(all.begin(), all.end(), [](const Shown& s) { return s.open; });
    const int64_t limit = std::max(options_.communicators, 1);
    const size_t most = static_cast<size_t>(busy > 0 ? std::min(limit, busy + kQuietShown) : limit);
    for (size_t i = 0; i < all.size() && i < most; ++i)
      OneCommunicator(*all[i].communicator, all[i].lines);
    if (all.size() <= most) return;
    const auto open = std::count_if(all.begin() + static_cast<int64_t>(most), all.end(),
                                    [](const Shown& s) { return s.open; });
    Text("  ", absl::StrCat("... and ", all.size() - most, " more communicators, ", open,
                            " of them with something open"));
  }

  void OneCommunicator(const model::Communicator& c, const std::vector<CursorLine>& lines) {
    std::string head = absl::StrCat(c.name.empty() ? "communicator " : "", c.Label(), ", ",
                                    c.SizeText(), c.n_ranks == 1 ? " rank" : " ranks");
    if (!lines.empty() && !lines[0].job_ranks) head += " (its own rank numbers)";
    Text("  ", head);
    constexpr size_t kLines = 16;
    for (size_t i = 0; i < lines.size() && i < kLines; ++i) {
      std::string ranks = model::RanksText(lines[i].ranks);
      if (ranks.size() < 12) ranks.resize(12, ' ');
      Text(absl::StrCat("    ", ranks, "  "), lines[i].state);
    }
    if (lines.size() > kLines)
      Text("    ", absl::StrCat("... and ", lines.size() - kLines, " more states"));
  }

  void NotSeen() {
    std::vector<std::string> sentences(d_.not_seen().begin(), d_.not_seen().end());
    if (sentences.empty()) return;
    constexpr size_t kShown = 20;
    Heading("Not seen");
    for (size_t i = 0; i < sentences.size() && i < kShown; ++i) Text("  - ", sentences[i]);
    if (sentences.size() > kShown)
      Text("  ",
           absl::StrCat("... and ", sentences.size() - kShown, " more; --format=json has all"));
  }

  const Diagnosis& d_;
  const model::Job& job_;
  const TextOptions& options_;
  Style style_;
  std::string out_;
};

}  // namespace

std::string RenderText(const Diagnosis& diagnosis, const model::Job& job,
                       const TextOptions& options) {
  return Renderer(diagnosis, job, options).Run();
}

}  // namespace ringscope::report
