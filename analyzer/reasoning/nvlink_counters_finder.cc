// NVLink error counters that moved between two readings. One reading alone says little: they count since the last reset.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

struct Moved {
  const GpuView* gpu = nullptr;
  int link = -1;
  std::string counter;
  double first = 0, last = 0;
  model::Reading before, after;
  bool pair = false;  // two readings
};

bool IsRecovery(const std::string& counter) { return counter.starts_with("recovery"); }
std::string LinkText(const Moved& m) { return m.link < 0 ? m.gpu->Name() : absl::StrCat(m.gpu->Name(), " link ", m.link); }
std::string OnHost(const Moved& m) { return m.gpu->host.empty() ? "" : absl::StrCat(" on ", m.gpu->host); }
// "recovery_successful" -> "recoveries", "crc_data" -> "crc data errors".
std::string CounterText(const std::string& counter) {
  if (counter == "recovery_failed") return "failed recoveries";
  if (IsRecovery(counter)) return "recoveries";
  return absl::StrCat(absl::StrReplaceAll(counter, {{"_errors", ""}, {"_", " "}}), " errors");
}

struct Survey {
  std::vector<Moved> moved;   // between readings
  std::vector<Moved> high;    // not zero in the only reading
  size_t flat = 0, zero = 0;  // links without
};

Survey Look(const std::vector<GpuView>& views) {
  Survey survey;
  for (const GpuView& view : views) {
    std::map<std::pair<int, std::string>, Moved> counters;
    for (const GpuView::At& at : view.readings) {
      for (const model::LinkReading& link : at.gpu->links) {
        for (const auto& [name, value] : link.counters) {
          const auto line = link.counter_lines.find(name);
          const model::Reading reading = line == link.counter_lines.end() ? model::Reading{} : line->second;
          const auto [it, fresh] = counters.try_emplace({link.link, name});
          Moved& m = it->second;
          if (fresh) {
            m = {&view, link.link, name, value, value, reading, reading, false};
          } else {
            // A counter that fell was reset.
            if (value < m.last) m.first = value;
            m.last = value;
            m.after = reading;
            m.pair = true;
          }
        }
      }
    }
    for (const auto& [key, m] : counters) {
      if (m.pair) {
        if (m.last > m.first) {
          survey.moved.push_back(m);
        } else {
          ++survey.flat;
        }
      } else if (m.last > 0) {
        survey.high.push_back(m);
      } else {
        ++survey.zero;
      }
    }
  }
  return survey;
}

void CiteMoved(const model::Job& job, const Moved& m, Finding* finding) {
  if (m.pair) Cite(job, m.before.where, absl::StrCat(LinkText(m), ", first reading: ", m.before.quote), finding);
  Cite(job, m.after.where, absl::StrCat(LinkText(m), m.pair ? ", later: " : ": ", m.after.quote), finding);
}

void Finish(const model::Job& job, const Moved& worst, const std::vector<Moved>& all, Finding* f) {
  NameGpu(job, *worst.gpu, f);
  if (worst.link >= 0) f->mutable_who()->add_links(LinkText(worst));
  CiteMoved(job, worst, f);
  for (const Moved& m : all) {
    if (&m != &worst && m.gpu == worst.gpu && m.link == worst.link && f->evidence_size() < 8) CiteMoved(job, m, f);
  }
  for (const model::Event* event : EventsOf(job, {"dcgm-health-error"})) {
    if (Contains(event->text, "nvlink") && f->evidence_size() < 10) Cite(job, *event, f);
  }
}

std::vector<Candidate> FindCounters(const model::Job& job) {
  const std::vector<GpuView> views = GpuViews(job);
  const Survey survey = Look(views);
  const auto worse = [](const Moved& a, const Moved& b) {
    if (IsRecovery(a.counter) != IsRecovery(b.counter)) return IsRecovery(a.counter);
    return a.last - (a.pair ? a.first : 0) > b.last - (b.pair ? b.first : 0);
  };
  std::vector<Candidate> found;
  if (!survey.moved.empty()) {
    const Moved& worst = *std::min_element(survey.moved.begin(), survey.moved.end(), worse);
    const bool recovery = IsRecovery(worst.counter);
    // Recovery stops the link for milliseconds and is never normal; a few replays or CRC errors are.
    Candidate c = Say(recovery ? Kind::error_reported : Kind::degraded_plan,
                      recovery ? Confidence::probable : Confidence::possible, Layer::kHardware,
                      absl::StrFormat("%s%s: NVLink %s grew from %.0f to %.0f between two readings", LinkText(worst),
                                      OnHost(worst), CounterText(worst.counter), worst.first, worst.last),
                      "HW-03");
    if (recovery) {
      c.order = Class::kError;
    } else {
      c.order = Class::kPlan;
    }
    c.state = State::slow;
    Finish(job, worst, survey.moved, &c.finding);
    if (survey.flat > 0) c.finding.set_title(absl::StrCat(c.finding.title(), "; ", survey.flat, " other counters did not move"));
    c.finding.set_refuted_by("counters that stay flat under load for ten minutes");
    SetNext(
        "Take the counters again under load; drain the node at the next checkpoint when they still grow, and have the link "
        "reseated or replaced.",
        "nvidia-smi nvlink -e; sleep 600; nvidia-smi nvlink -e", &c.finding);
    found.push_back(std::move(c));
  } else if (!survey.high.empty() && survey.zero > 0) {
    const Moved& worst = *std::min_element(survey.high.begin(), survey.high.end(), worse);
    if (!IsRecovery(worst.counter)) return found;
    Candidate c = Say(Kind::error_reported, Confidence::possible, Layer::kHardware,
                      absl::StrFormat("%s on %s has recovered from errors %.0f times since its counters were reset",
                                      LinkText(worst), worst.gpu->host.empty() ? "its host" : worst.gpu->host, worst.last),
                      "HW-03");
    c.order = Class::kPlan;
    c.state = State::slow;
    Finish(job, worst, survey.high, &c.finding);
    c.finding.set_refuted_by("a second reading under load with the same numbers: the errors are old");
    SetNext("The counters a second time, after ten minutes of load: only growth is a fault of today.",
            "nvidia-smi nvlink -e; sleep 600; nvidia-smi nvlink -e", &c.finding);
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("nvlink counters", FindCounters);

}  // namespace
}  // namespace ringscope::reasoning
