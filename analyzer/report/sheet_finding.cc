// The finding that leads: who, what, why, the way that the waiting takes, evidence, doubts, what to do.
#include <absl/strings/str_cat.h>

#include <set>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/report/sheet.h"
#include "analyzer/report/words.h"

namespace ringscope::report {
namespace {

Section Facts(const Finding& f) {
  Section facts;
  facts.lines.push_back({Line::kPair, "who", WhoText(f.who())});
  facts.lines.push_back(
      {Line::kPair, "what",
       absl::StrCat(Kind::Value_Name(f.kind()), ", ", Words(Confidence::Value_Name(f.confidence())), f.past() ? ", over" : "")});
  facts.lines.push_back(
      {Line::kPair, "why",
       CauseKnown(f)
           ? absl::StrCat(f.cause().id(), f.cause().name().empty() ? "" : absl::StrCat(" ", f.cause().name()), ", ",
                          Words(Confidence::Value_Name(f.cause().confidence())), " (ringscope explain ", f.cause().id(), ")")
           : "not established"});
  if (f.collateral().ranks_size() > 0)
    facts.lines.push_back({Line::kPair, "waits", absl::StrCat(model::RanksText(Ints(f.collateral().ranks())), " (collateral)")});
  return facts;
}

std::string Quoted(const Evidence& e) {
  const std::string source = SourceText(e);
  return source.empty() ? e.text() : absl::StrCat(e.text(), "  [", source, "]");
}

// "rank 0 -> rank 4 -> rank 5": who is asked at each hop, and at the end who is named.
std::string Arrows(const Finding& f) {
  std::string text;
  int last = -1;
  for (uint32_t i : f.chain()) {
    if (i >= static_cast<uint32_t>(f.evidence_size())) continue;
    const int rank = f.evidence(static_cast<int>(i)).rank();
    if (rank < 0 || rank == last) continue;
    absl::StrAppend(&text, text.empty() ? "" : " -> ", "rank ", rank);
    last = rank;
  }
  const bool named = f.who().ranks_size() == 1 && f.who().ranks(0) == last;
  Who end = f.who();
  end.clear_communicators();
  end.clear_hosts();
  end.clear_gpus();
  if (end.ranks_size() == 0 && end.edges_size() == 0) *end.mutable_hosts() = f.who().hosts();
  const std::string who = WhoText(end);
  if (!named && who != "nobody") absl::StrAppend(&text, text.empty() ? "" : " -> ", who);
  return text;
}

void AddChain(const Finding& f, Sheet* sheet) {
  if (f.chain().empty()) return;
  Section section = {"the chain of waits", absl::StrCat("Who waits for whom: ", Arrows(f)), {}, 3, 2};
  for (uint32_t i : f.chain()) {
    if (i < static_cast<uint32_t>(f.evidence_size()))
      section.lines.push_back(
          {Line::kBullet, absl::StrCat(section.lines.size() + 1, "."), Quoted(f.evidence(static_cast<int>(i)))});
  }
  sheet->sections.push_back(std::move(section));
}

void AddEvidence(const Finding& f, Sheet* sheet) {
  Section section = {"evidence", "Evidence", {}, 5, 4};
  const std::set<uint32_t> chain(f.chain().begin(), f.chain().end());
  for (int i = 0; i < f.evidence_size(); ++i) {
    if (chain.count(static_cast<uint32_t>(i)) == 0) section.lines.push_back({Line::kBullet, "", Quoted(f.evidence(i))});
  }
  std::set<std::string> files;  // that the evidence stands in, once each
  for (const Evidence& e : f.evidence()) {
    const std::string file = SplitSource(e.source()).second;
    if (e.rank() >= 0 && !file.empty() && files.insert(file).second)
      section.lines.push_back({Line::kQuiet, "  ", absl::StrCat("rank ", e.rank(), ": ", file)});
  }
  if (!section.lines.empty()) sheet->sections.push_back(std::move(section));
}

void AddNext(const Finding& f, Sheet* sheet) {
  Section section = {"what to do", "Next", {}, 0, 0};
  if (!f.next().text().empty()) section.lines.push_back({Line::kText, "", f.next().text()});
  if (!f.next().command().empty()) section.lines.push_back({Line::kCommand, "", f.next().command()});
  if (f.verify_size() > 0) {
    const Action& verify = f.verify(0);
    section.lines.push_back({Line::kText, "", absl::StrCat("When it is mended: ", verify.then())});
    if (!verify.command().empty()) section.lines.push_back({Line::kCommand, "", verify.command()});
  }
  if (!section.lines.empty()) sheet->sections.push_back(std::move(section));
}

// What must be seen elsewhere, if this is so.
void AddChecks(const Finding& f, Sheet* sheet) {
  Section section = {"predictions", "If so, then", {}, 7, 0};
  for (const Check& check : f.checks()) {
    const char* const outcome = check.outcome() == Check::holds   ? "holds: "
                                : check.outcome() == Check::fails ? "FAILS: "
                                                                  : "not seen: ";
    const std::string source = check.source().empty() ? "" : absl::StrCat("  [", SplitSource(check.source()).first, "]");
    section.lines.push_back({Line::kBullet, "", absl::StrCat(check.expects(), "  - ", outcome, check.seen(), source)});
  }
  if (!section.lines.empty()) sheet->sections.push_back(std::move(section));
}

void AddDoubts(const Finding& f, Sheet* sheet) {
  Section rivals = {"other explanations", "It could also be", {}, 4, 0};
  for (const Rival& rival : f.rivals()) {
    rivals.lines.push_back(
        {Line::kBullet, "",
         absl::StrCat(rival.text(), rival.finding() > 0 ? absl::StrCat(" (finding ", rival.finding() + 1, ")") : "",
                      "; told apart by: ", rival.told_apart_by())});
  }
  if (!rivals.lines.empty()) sheet->sections.push_back(std::move(rivals));
  if (!f.refuted_by().empty())
    sheet->sections.push_back({"what would refute it", "What would refute it", {{Line::kText, "", f.refuted_by()}}, 2, 0});
}

void AddActions(const std::string& name, const std::string& heading, const google::protobuf::RepeatedPtrField<Action>& actions,
                Sheet* sheet) {
  Section section = {name, heading, {}, 9, 0};
  for (const Action& action : actions) {
    std::string text = action.text();
    if (!action.then().empty()) absl::StrAppend(&text, text.empty() ? "" : ": ", action.then());
    section.lines.push_back({Line::kBullet, absl::StrCat(section.lines.size() + 1, "."), std::move(text)});
    if (!action.command().empty()) section.lines.push_back({Line::kCommand, "", action.command()});
  }
  if (!section.lines.empty()) sheet->sections.push_back(std::move(section));
}

}  // namespace

void AddFinding(const Finding& f, bool all, Sheet* sheet) {
  sheet->sections.push_back(Facts(f));
  AddNext(f, sheet);
  AddChain(f, sheet);
  AddEvidence(f, sheet);
  AddDoubts(f, sheet);
  AddChecks(f, sheet);
  if (!all) return;
  AddActions("checks", "To confirm it", f.confirm(), sheet);
  AddActions("fixes", "To mend it, in this order", f.fixes(), sheet);
  AddActions("verification", "To see that it is mended", f.verify(), sheet);
}

}  // namespace ringscope::report
