// Variables of the environment that put a job at risk, or that nobody reads: catalog/tables/variables.textproto.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "catalog/catalog.h"
#include "catalog/nccl_release.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

const catalog::Variable* Find(const std::string& name) {
  for (const catalog::Variable& variable : catalog::Faults().variable()) {
    if (variable.name() == name) return &variable;
  }
  return nullptr;
}

// Letters to insert, remove or change.
size_t Edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

// The name that was probably meant; two letters may be wrong, in short names one. Plugins have names of their own, which are
// further away.
std::string Meant(const std::string& name) {
  std::string best;
  size_t fewest = name.size() < 12 ? 2 : 3;
  for (const catalog::Variable& variable : catalog::Faults().variable()) {
    if (const size_t edits = Edits(name, variable.name()); edits < fewest) fewest = edits, best = variable.name();
  }
  return best;
}

// The release that the first library on the path has; 0: not known.
int Release(const node::Node& node) {
  for (const node::Library& library : node.libraries()) {
    if (const int release = catalog::NcclRelease(library.nccl()); release > 0) return release;
  }
  return 0;
}

const char* const kDiffer = "Ranks with different settings may plan differently.";

std::string Sentence(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return text + ".";
}

// True when there is something to say. `was`: in the baseline, when it was another value.
bool Known(const catalog::Variable& variable, const std::string& value, int release, const std::string& was, Verdict* verdict) {
  const std::string seen = absl::StrCat(variable.name(), "=", value);
  const bool too_old = release > 0 && !variable.since().empty() && release < catalog::NcclRelease(variable.since());
  const bool gone = release > 0 && !variable.until().empty() && release >= catalog::NcclRelease(variable.until());
  if (too_old || gone) {
    verdict->Warning(
        absl::StrCat(seen, ": NCCL ", catalog::NcclReleaseText(release), " does not read it (",
                     too_old ? absl::StrCat("since ", variable.since()) : absl::StrCat("until ", variable.until()), ")"),
        {"It has no effect here, whatever it was set for.", absl::StrCat("unset ", variable.name()), "NC-04"}, was);
    return true;
  }
  for (const auto& risk : variable.risk()) {
    if (!RE2::FullMatch(value, risk.values())) continue;
    verdict->Warning(seen, {Sentence(risk.text()), risk.fix(), risk.entry()}, was);
    return true;
  }
  return false;
}

void Look(const Question& question, Verdict* verdict) {
  const node::Node& now = question.now;
  const int release = Release(now);
  size_t set = 0;
  std::string foreign;
  for (const auto& [name, value] : std::map<std::string, std::string>(now.settings().begin(), now.settings().end())) {
    const bool of_nccl = absl::StartsWith(name, "NCCL_");
    set += of_nccl;
    std::string was;
    if (question.before != nullptr && of_nccl) {
      const auto old = question.before->settings().find(name);
      was = old == question.before->settings().end() ? "unset" : old->second;
      if (was == value) was.clear();
    }
    const catalog::Variable* variable = Find(name);
    if (variable != nullptr) {
      if (Known(*variable, value, release, was, verdict)) continue;
    } else if (of_nccl) {
      if (const std::string meant = Meant(name); !meant.empty()) {
        verdict->Warning(absl::StrCat(name, " is not read by NCCL; ", meant, "?"),
                         {"A name that is misspelt has no effect, without a word.", absl::StrCat(meant, "=", value), "NC-04"},
                         was);
        continue;
      }
      absl::StrAppend(&foreign, foreign.empty() ? "" : ", ", name);
    }
    if (!was.empty()) verdict->Warning(absl::StrCat(name, "=", value), {kDiffer, "env | grep NCCL_", "NC-04"}, was);
  }
  if (question.before != nullptr) {
    const auto& before = question.before->settings();
    for (const auto& [name, value] : std::map<std::string, std::string>(before.begin(), before.end())) {
      if (absl::StartsWith(name, "NCCL_") && now.settings().count(name) == 0)
        verdict->Warning(absl::StrCat(name, " is not set"), {kDiffer, "env | grep NCCL_", "NC-04"}, value);
    }
  }
  if (set == 0) return verdict->Seen("no NCCL_ variable is set here");
  verdict->Seen(absl::StrCat(Count(set, "NCCL_ variable"), ", none of them a risk",
                             foreign.empty() ? "" : absl::StrCat("; not NCCL's own: ", foreign)));
}

const RegisterCheck kRegister({"settings", "no variable of the environment puts a job at risk", Look});

}  // namespace
}  // namespace ringscope::doctor
