// What was read, and how the hosts' clocks stood.
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include "analyzer/report/html/context.h"

namespace ringscope::report::html {
namespace {

void Clocks(const Context& c, Writer* out) {
  if (c.d.clocks().empty()) return;
  constexpr int kMost = 64;
  *out << "<h3>Clocks of the hosts</h3><div class=\"wide\"><table><tr><th>host</th><th class=\"n\">ahead of the job's "
          "time</th><th "
          "class=\"n\">within</th><th>doubt</th></tr>";
  for (int i = 0; i < c.d.clocks_size() && i < kMost; ++i) {
    const HostClock& clock = c.d.clocks(i);
    *out << "<tr><td>" << clock.host() << "</td><td class=\"n\">" << absl::StrFormat("%+.3f ms", clock.ahead_ms())
         << "</td><td class=\"n\">"
         << (clock.reference()      ? std::string("reference")
             : clock.error_ms() < 0 ? std::string("not bounded")
                                    : absl::StrFormat("%.3f ms", clock.error_ms()))
         << "</td><td>" << clock.doubt() << "</td></tr>";
  }
  *out << "</table></div>";
  if (c.d.clocks_size() > kMost) *out << "<p class=\"muted\">and " << c.d.clocks_size() - kMost << " more</p>";
}

}  // namespace

Section InputsSection(const Context& c) {
  Section section{"inputs", "Inputs", "What was read", {}};
  constexpr int kMost = 400;
  Writer& out = section.body;
  out << "<details class=\"stays\"><summary>" << c.d.inputs_size()
      << (c.d.inputs_size() == 1 ? Markup(" file") : Markup(" files")) << "</summary><ul class=\"mono small\">";
  for (int i = 0; i < c.d.inputs_size() && i < kMost; ++i) out << "<li>" << c.d.inputs(i) << "</li>";
  if (c.d.inputs_size() > kMost) out << "<li>and " << c.d.inputs_size() - kMost << " more</li>";
  out << "</ul></details>";
  Clocks(c, &out);
  return section;
}

}  // namespace ringscope::report::html
