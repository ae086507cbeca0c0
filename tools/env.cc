// ringscope env: the settings table with the values of this environment.
#include <stdio.h>
#include <string.h>

#include <string>
#include <vector>

#include "analyzer/report/style.h"
#include "recorder/settings.h"
#include "tools/command.h"
#include "tools/nearest.h"

extern char** environ;

namespace ringscope::tools {
namespace {

int g_complaints = 0;

void Complain(const char* line) {
  ++g_complaints;
  fprintf(stderr, "ringscope env: %s\n", line);
}

// Names are compared behind the prefix that all share: it would make every one look near.
std::string Hint(const std::string& name, const std::vector<std::string>& known) {
  const std::string prefix = "RINGSCOPE_";
  const auto tail = [&](const std::string& n) {
    return n.rfind(prefix, 0) == 0 ? n.substr(prefix.size()) : n;
  };
  std::vector<std::string> tails;
  for (const std::string& k : known) tails.push_back(tail(k));
  const std::string nearest = Nearest(tail(name), tails);
  if (nearest.empty()) return "";
  return "; did you mean " + (nearest == "RINGSCOPE" ? nearest : prefix + nearest) + "?";
}

// RINGSCOPE_* names of the environment that the table does not have.
void CheckNames() {
  std::vector<std::string> known;
  for (size_t i = 0; i < recorder::kSettingCount; ++i) known.push_back(recorder::kSettings[i].name);
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const char* equals = strchr(*e, '=');
    if (equals == nullptr || strncmp(*e, "RINGSCOPE", 9) != 0) continue;
    const std::string name(*e, static_cast<size_t>(equals - *e));
    bool found = false;
    for (const auto& k : known) found |= k == name;
    if (!found)
      Complain((report::Printable(name) + " is not a setting and has no effect" + Hint(name, known))
                   .c_str());
  }
}

int Run(const Arguments& arguments) {
  if (!arguments.positional().empty()) {
    fprintf(stderr, "ringscope env: takes no arguments\n");
    return kUsage;
  }
  g_complaints = 0;
  recorder::Settings settings;
  recorder::ReadSettings(&settings, Complain);
  CheckNames();
  const report::Style style(UseColour(arguments.Get("color")));
  for (size_t i = 0; i < recorder::kSettingCount; ++i) {
    const recorder::SettingInfo& info = recorder::kSettings[i];
    char value[1024];
    recorder::FormatSetting(settings, info, value, sizeof(value));
    const std::string heading = std::string(info.name) + "=" + report::Printable(value);
    printf("%s", style.Bold(heading).c_str());
    const bool same = strcmp(value, info.default_text) == 0;
    if (!same) printf("   (default: %s)", info.default_text[0] != 0 ? info.default_text : "none");
    if (info.for_tests) printf("   (for tests)");
    printf("\n%s\n", report::Wrapped("    ", info.meaning, 100).c_str());
  }
  fflush(stdout);
  return g_complaints == 0 ? kNothingWrong : kUsage;
}

}  // namespace

const Command kEnv = {"env",
                      "[--color=auto|always|never]",
                      "print every RINGSCOPE_* setting, its value here and what it means",
                      "Reads the environment as the recorder would. Names that are no setting and "
                      "values that cannot be used are said on\n"
                      "stderr, with the nearest right name; the exit code is then 64.\n",
                      {ColourFlag()},
                      Run};

}  // namespace ringscope::tools
