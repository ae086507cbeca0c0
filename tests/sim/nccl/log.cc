// NCCL_DEBUG=VERSION|WARN|INFO, NCCL_DEBUG_FILE (%h, %p), in the shapes of NCCL's lines.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <mutex>

#include "tests/sim/nccl/communicator.h"

namespace ringscope::sim {
namespace {

enum Level { kNone, kVersion, kWarn, kInfo };

Level TheLevel() {
  const char* asked = getenv("NCCL_DEBUG");
  if (asked == nullptr) return kNone;
  for (const auto& [name, level] :
       {std::pair<const char*, Level>{"VERSION", kVersion}, {"WARN", kWarn}, {"INFO", kInfo}, {"TRACE", kInfo}}) {
    if (strcasecmp(asked, name) == 0) return level;
  }
  return kNone;
}

FILE* File() {
  static FILE* const file = [] {
    const char* asked = getenv("NCCL_DEBUG_FILE");
    if (asked == nullptr || asked[0] == 0) return stdout;
    std::string path;
    for (const char* at = asked; *at != 0; ++at) {
      if (at[0] == '%' && at[1] == 'h') {
        path += HostName();
        ++at;
      } else if (at[0] == '%' && at[1] == 'p') {
        path += std::to_string(getpid());
        ++at;
      } else {
        path += *at;
      }
    }
    FILE* opened = fopen(path.c_str(), "w");
    return opened != nullptr ? opened : stdout;
  }();
  return file;
}

void Write(int device, const char* level, const std::string& text) {
  char head[160];
  snprintf(head, sizeof(head), "%s:%d:%d [%d] NCCL %s ", HostName().c_str(), getpid(), gettid(), device, level);
  static auto* const mutex = new std::mutex;
  std::lock_guard<std::mutex> lock(*mutex);
  fprintf(File(), "%s%s%s\n", strcmp(level, "WARN") == 0 ? "\n" : "", head, text.c_str());
  fflush(File());
}

thread_local std::string last_error;

}  // namespace

void LogInfo(int device, const std::string& text) {
  if (TheLevel() >= kInfo) Write(device, "INFO", text);
}
void LogGraph(int device, const std::string& text) {
  static const bool asked = [] {
    const char* subsystems = getenv("NCCL_DEBUG_SUBSYS");
    return subsystems != nullptr && (strcasestr(subsystems, "GRAPH") != nullptr || strcasestr(subsystems, "ALL") != nullptr);
  }();
  if (asked) LogInfo(device, text);
}
void LogWarn(int device, const std::string& text) {
  last_error = text;
  if (TheLevel() >= kWarn) Write(device, "WARN", text);
}
void LogVersion() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (TheLevel() < kVersion) return;
    fprintf(File(), "NCCL version %d.%d.%d+cuda12.8\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    fflush(File());
  });
}

ncclResult_t Error(ncclResult_t result, const std::string& text) {
  int device = 0;
  cudaGetDevice(&device);
  LogWarn(device, text);
  return result;
}
const char* LastError() { return last_error.c_str(); }

}  // namespace ringscope::sim
