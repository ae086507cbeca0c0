// Who has entered, enqueued, started, finished what.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/report/cursors.h"
#include "analyzer/report/sheet.h"

namespace ringscope::report {
namespace {

struct Shown {
  const model::Communicator* communicator;
  std::vector<CursorLine> lines;
  bool open;
};

void One(const Shown& shown, std::vector<Line>* out) {
  const model::Communicator& c = *shown.communicator;
  const bool own_numbers = !shown.lines.empty() && !shown.lines[0].job_ranks;
  out->push_back({Line::kText, "",
                  absl::StrCat(c.name.empty() ? "communicator " : "", c.Label(), ", ", c.SizeText(),
                               c.n_ranks == 1 ? " rank" : " ranks", own_numbers ? " (its own rank numbers)" : "")});
  constexpr size_t kLines = 16;
  for (size_t i = 0; i < shown.lines.size() && i < kLines; ++i) {
    out->push_back({Line::kState, model::RanksText(shown.lines[i].ranks), shown.lines[i].state});
  }
  if (shown.lines.size() > kLines)
    out->push_back({Line::kText, "", absl::StrCat("... and ", shown.lines.size() - kLines, " more states")});
}

}  // namespace

void AddCommunicators(const model::Job& job, const SheetOptions& options, Sheet* sheet) {
  if (job.communicators.empty()) return;
  std::vector<Shown> all;
  for (const auto& c : job.communicators) {
    Shown s = {&c, CursorLines(c), false};
    for (const CursorLine& line : s.lines) s.open |= line.open;
    all.push_back(std::move(s));
  }
  std::stable_sort(all.begin(), all.end(), [](const Shown& a, const Shown& b) { return a.open > b.open; });
  Section section = {"communicators", "Communicators: who has entered, enqueued, started, finished what", {}, 8, 0};
  // Where something is open, only a few of those without show that the rest of the job is seen, too.
  constexpr int64_t kQuietShown = 4;
  const auto busy = std::count_if(all.begin(), all.end(), [](const Shown& s) { return s.open; });
  const int64_t limit = std::max(options.communicators, 1);
  const size_t most = static_cast<size_t>(busy > 0 ? std::min(limit, busy + kQuietShown) : limit);
  for (size_t i = 0; i < all.size() && i < most; ++i) One(all[i], &section.lines);
  if (all.size() > most) {
    const auto open = std::count_if(all.begin() + static_cast<int64_t>(most), all.end(), [](const Shown& s) { return s.open; });
    section.lines.push_back(
        {Line::kText, "",
         absl::StrCat("... and ", all.size() - most, " more communicators, ", open, " of them with something open")});
  }
  sheet->sections.push_back(std::move(section));
}

}  // namespace ringscope::report
