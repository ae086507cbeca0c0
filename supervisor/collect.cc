#include "supervisor/collect.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <new>

#include "supervisor/collector.h"
#include "supervisor/in_processes.h"

namespace ringscope::supervisor {
namespace {

// Shared memory, not a pipe or the file: what a child told is there after it was killed, and reading it cannot block even if the
// directory's file system does.
struct Told {
  std::atomic<int> opened, ended;
  char file[4096], why_not[1024];
};

void Keep(const std::string& text, char* into, size_t size) { into[text.copy(into, size - 1)] = 0; }

std::string FileWord(std::string name) {
  if (name.empty()) name = "nohost";
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  return name;
}

std::string HostName() {
  if (const char* pretended = getenv("RINGSCOPE_HOST"); pretended != nullptr && *pretended != 0) return pretended;
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

void Run(const CollectOptions& options, const Collector& collector, Told* told) {
  absl::Status status;
  try {
    Output out(options.directory, absl::StrCat(options.host, ".", FileWord(options.when)), collector.name,
               [told](const std::string& file) {
                 Keep(file, told->file, sizeof(told->file));
                 told->opened = 1;
               });
    status = collector.collect(options, &out);
    if (!out.status().ok()) status = out.status();
  } catch (...) {
    status = absl::InternalError("its collector failed");
  }
  Keep(std::string(status.message()), told->why_not, sizeof(told->why_not));
  told->ended = 1;
}

Collected Conclude(const Collector& collector, const Told* told, const ProcessEnd& end) {
  Collected result;
  result.name = collector.name;
  result.seconds = end.seconds;
  result.why_not = end.why_not;
  if (told == nullptr) return result;
  if (told->opened != 0) result.file = told->file;
  if (end.why_not.empty() && told->ended != 0) result.why_not = told->why_not;
  if (!result.why_not.empty() && told->ended == 0 && told->opened != 0)
    result.why_not += "; the file holds what it wrote until then";
  return result;
}

}  // namespace

std::vector<Collected> CollectEvidence(const CollectOptions& asked) {
  CollectOptions options = asked;
  options.host = FileWord(options.host.empty() ? HostName() : options.host);
  std::vector<const Collector*> collectors;
  std::vector<std::function<void(void*)>> functions;
  for (const Collector& collector : Collectors()) {
    if (!collector.wanted(options)) continue;
    collectors.push_back(&collector);
    functions.push_back([&options, &collector](void* shared) { Run(options, collector, new (shared) Told()); });
  }
  std::vector<Collected> results;
  RunInProcesses(functions, sizeof(Told), options.seconds, [&](size_t i, const void* shared, const ProcessEnd& end) {
    results.push_back(Conclude(*collectors[i], static_cast<const Told*>(shared), end));
  });
  return results;
}

}  // namespace ringscope::supervisor
