#include <errno.h>
#include <google/protobuf/stubs/logging.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/man_page.h"
#include "tools/nearest.h"

namespace ringscope::tools {
namespace {

const Command* const kCommands[] = {&kRun, &kDiagnose, &kDiff, &kShow, &kTimeline, &kScrub, &kExplain, &kSnapshot, &kDoctor, &kEnv};

std::string Help() {
  std::string help =
      "ringscope reads what Ringscope recorded of a distributed GPU job and says who failed "
      "first.\n"
      "\n"
      "usage: ringscope COMMAND ...      `ringscope COMMAND --help` says more\n"
      "\n";
  for (const Command* c : kCommands) {
    std::string name = c->name;
    name.resize(std::max<size_t>(name.size(), 10), ' ');
    help += "  " + name + " " + c->summary + "\n";
  }
  help +=
      "\n"
      "To record: set NCCL_PROFILER_PLUGIN to libringscope.so in the environment of the job "
      "(NCCL >= 2.23). Each process\n"
      "keeps a flight file in RINGSCOPE_FLIGHT_DIR that survives whatever ends it, and writes "
      "traces to RINGSCOPE_DIR when\n"
      "an operation stalls and at its end. Then: ringscope diagnose DIR...\n"
      "\n"
      "exit codes\n"
      "   0  nothing wrong found (or what was wrong is over)\n"
      "   1  a fault was found\n"
      "   2  something is wrong and the evidence does not say what\n"
      "  64  wrong usage\n"
      "  65  input damaged or not usable, nothing could be read\n"
      "  66  input missing or unreadable\n"
      "  70  internal error\n"
      "\n"
      "environment: NO_COLOR turns colour off. `ringscope --version` prints the version.\n";
  return help;
}

void PrintHelp(const Command& c) {
  printf("usage: ringscope %s %s\n\n%s.\n\n%s\n", c.name, c.synopsis, c.summary, c.help);
  for (const Flag& f : c.flags) {
    std::string values;
    for (const char* v : f.choices) values += (values.empty() ? "" : "|") + std::string(v);
    if (values.empty()) values = f.value;
    printf("  --%s=%s\n        %s", f.name, values.c_str(), f.meaning);
    if (f.default_value[0] != 0) printf(" (default %s)", f.default_value);
    printf("\n");
  }
}

int Main(const std::vector<std::string>& words) {
  if (words.empty()) {
    fputs(Help().c_str(), stderr);
    return kUsage;
  }
  if (words[0] == "--version" || words[0] == "version") {
    printf("ringscope %s\n", RINGSCOPE_VERSION);
    return kNothingWrong;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    for (const Command* c : kCommands) {
      if (words.size() > 1 && words[1] == c->name) return PrintHelp(*c), kNothingWrong;
    }
    fputs(Help().c_str(), stdout);
    return kNothingWrong;
  }
  // For the build: the manual pages.
  if (words[0].rfind("--man=", 0) == 0 && words.size() == 1) {
    const std::string name = words[0].substr(6);
    if (name == "ringscope") {
      fputs(ManPage({std::begin(kCommands), std::end(kCommands)}, Help(), RINGSCOPE_VERSION).c_str(), stdout);
      return kNothingWrong;
    }
    for (const Command* c : kCommands) {
      if (name == std::string("ringscope-") + c->name)
        return fputs(ManPage(*c, RINGSCOPE_VERSION).c_str(), stdout), kNothingWrong;
    }
    fprintf(stderr, "ringscope: no manual page %s: there are ringscope and ringscope-COMMAND\n", name.c_str());
    return kUsage;
  }
  std::vector<std::string> names = {"--help", "--version"};
  for (const Command* c : kCommands) {
    names.push_back(c->name);
    if (words[0] != c->name) continue;
    Arguments arguments;
    if (!arguments.Parse(*c, {words.begin() + 1, words.end()})) return kUsage;
    if (arguments.help()) return PrintHelp(*c), kNothingWrong;
    return c->run(arguments);
  }
  fprintf(stderr, "ringscope: no command %s%s\n", words[0].c_str(),
          DidYouMean(words[0], names).c_str());
  return kUsage;
}

}  // namespace
}  // namespace ringscope::tools

int main(int argc, char** argv) {
  // Damaged input is reported by the readers, with file and position; libprotobuf would print lines
  // of its own.
  google::protobuf::SetLogHandler(nullptr);
  try {
    const int status = ringscope::tools::Main({argv + 1, argv + argc});
    // A full disk or a closed pipe must not look like an answer.
    if (fflush(stdout) == 0 && ferror(stdout) == 0) return status;
    fprintf(stderr, "ringscope: the output could not be written: %s\n", strerror(errno));
    return ringscope::tools::kInternal;
  } catch (const std::exception& e) {
    fprintf(stderr, "ringscope: internal error: %s\n", e.what());
    return ringscope::tools::kInternal;
  }
}
