#include "analyzer/report/sheet.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analyzer/report/words.h"

namespace ringscope::report {
namespace {

// What the summary says beside the title: who only waits, what else was found, how many records were read.
std::string BesideTitle(const std::string& summary, const std::string& title) {
  const size_t at = title.empty() ? std::string::npos : summary.find(title);
  if (at == std::string::npos) return summary == title ? "" : summary;
  std::string rest = summary.substr(at + title.size());
  if (!rest.empty() && rest.front() == '.') rest.erase(0, 1);
  return std::string(absl::StripAsciiWhitespace(rest));
}

// "no record; 3 texts: NCCL init, nvidia-smi topo".
std::string TextsRead(const model::Job& job) {
  std::set<std::string> kinds;
  for (const auto& file : job.evidence.files) kinds.insert(file.readers.begin(), file.readers.end());
  const size_t n = job.evidence.files.size();
  std::string text = absl::StrCat("no record; ", n, n == 1 ? " text" : " texts");
  constexpr size_t kNamed = 6;
  std::vector<std::string> named(kinds.begin(), kinds.end());
  const size_t more = named.size() > kNamed ? named.size() - kNamed : 0;
  named.resize(named.size() - more);
  if (!named.empty()) absl::StrAppend(&text, ": ", absl::StrJoin(named, ", "));
  if (more > 0) absl::StrAppend(&text, " and ", more, " more kinds");
  return text;
}

std::string Counted(size_t n, const char* one) { return absl::StrCat(n, " ", one, n == 1 ? "" : "s"); }

std::string RecordsRead(const Diagnosis& d, const model::Job& job) {
  if (job.processes.empty() && !job.evidence.files.empty()) return TextsRead(job);
  std::set<std::string> hosts;
  for (const auto& p : job.processes) hosts.insert(p.host);
  const std::string ranks = d.ranks_total() > 0 ? absl::StrCat(d.ranks_seen(), " of ", d.ranks_total(), " ranks")
                                                : absl::StrCat(d.ranks_seen(), " ranks");
  return absl::StrCat("records of ", ranks, ", ", Counted(hosts.size(), "host"), ", ",
                      Counted(job.communicators.size(), "communicator"), ", ", Counted(job.inputs.size(), "file"));
}

// A sentence begins with a capital; names of devices and files stay as they are.
std::string Sentence(std::string text) {
  const std::string word = text.substr(0, text.find(' '));
  const bool plain = !word.empty() && word.size() < text.size() && std::all_of(word.begin(), word.end(), absl::ascii_islower);
  if (plain) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return text;
}

Section Head(const Diagnosis& d, const model::Job& job, const std::string& title) {
  Section head;
  if (!job.left_out.empty()) {
    std::vector<std::string> names(job.left_out.begin(), job.left_out.end());
    const size_t all = names.size();
    if (all > 4) names.resize(4);
    head.lines.push_back({Line::kText, "",
                          absl::StrCat("NOT about ", absl::StrJoin(names, "; "),
                                       all > 4 ? absl::StrCat(" and ", all - 4, " more") : "", ": their records lie here too")});
  }
  const std::string beside = Leads(d) ? BesideTitle(d.summary(), title) : d.summary();
  if (!beside.empty() && beside != title) head.lines.push_back({Line::kText, "", beside});
  head.lines.push_back(
      {Line::kQuiet, "", absl::StrCat(d.job().empty() ? "" : absl::StrCat("job ", d.job(), "; "), RecordsRead(d, job))});
  return head;
}

std::string Sure(const Finding& f) {
  return absl::StrCat(Kind::Value_Name(f.kind()), ", ", Words(Confidence::Value_Name(f.confidence())), f.past() ? ", over" : "");
}

void AddOthers(const Diagnosis& d, bool all, Sheet* sheet) {
  const int from = Leads(d) ? 1 : 0;
  std::vector<int> explained(static_cast<size_t>(d.findings_size()), -1);
  for (int i = 0; i < d.findings_size(); ++i) {
    for (uint32_t j : d.findings(i).explains()) {
      if (j < explained.size() && explained[j] < 0) explained[j] = i;
    }
  }
  Section section = {"other findings", from == 0 ? "Findings" : "Other findings", {}, 3, 1};
  for (int i = from; i < d.findings_size(); ++i) {
    const Finding& f = d.findings(i);
    if (f.kind() == Kind::none && !all) continue;
    std::string text = absl::StrCat(f.title().empty() ? WhoText(f.who()) : Sentence(f.title()), "  (", Sure(f), ")");
    if (explained[static_cast<size_t>(i)] >= 0)
      absl::StrAppend(&text, "; explained by finding ", explained[static_cast<size_t>(i)] + 1);
    section.lines.push_back({Line::kBullet, absl::StrCat(i + 1, "."), std::move(text)});
  }
  if (!section.lines.empty()) sheet->sections.push_back(std::move(section));
}

void AddNotSeen(const Diagnosis& d, Sheet* sheet) {
  Section section = {"what was not seen", "Not seen", {}, 6, 2};
  for (const std::string& sentence : d.not_seen()) section.lines.push_back({Line::kBullet, "", sentence});
  if (!section.lines.empty()) sheet->sections.push_back(std::move(section));
}

}  // namespace

Sheet MakeSheet(const Diagnosis& d, const model::Job& job, const SheetOptions& options) {
  Sheet sheet;
  sheet.state = d.state();
  sheet.title = Leads(d) ? d.findings(0).title() : StateMeaning(d.state());
  sheet.sections.push_back(Head(d, job, sheet.title));
  sheet.title = Sentence(sheet.title);
  if (Leads(d)) AddFinding(d.findings(0), options.all, &sheet);
  AddOthers(d, options.all, &sheet);
  AddCommunicators(job, options, &sheet);
  AddNotSeen(d, &sheet);
  return sheet;
}

}  // namespace ringscope::report
