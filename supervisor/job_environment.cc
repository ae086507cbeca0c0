#include "supervisor/job_environment.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace ringscope::supervisor {
namespace {

std::string Get(const std::map<std::string, std::string>& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

// What a child process answers: loading a foreign library may run its constructors, or end the process.
std::string AskChild(const std::function<std::string()>& question, std::string if_it_died) {
  int ends[2];
  if (pipe(ends) != 0) return if_it_died;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string answer = question();
    [[maybe_unused]] const ssize_t n = write(ends[1], answer.data(), answer.size());
    _exit(0);
  }
  close(ends[1]);
  std::string answer;
  char part[512];
  // A loader that hangs on a dead file system must not hang the run.
  pollfd ready = {ends[0], POLLIN, 0};
  while (child > 0 && poll(&ready, 1, 10000) > 0) {
    const ssize_t n = read(ends[0], part, sizeof(part));
    if (n <= 0) break;
    answer.append(part, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  return answer.empty() ? if_it_died : answer;
}

void SetUnlessSet(const std::string& name, const std::string& value, JobEnvironment* environment) {
  const auto [it, fresh] = environment->variables.emplace(name, value);
  if (!fresh && it->second != value) environment->notes.push_back(absl::StrCat(name, " stays as it was set: ", it->second));
}

}  // namespace

absl::StatusOr<std::string> FindLibrary(const std::string& told, const std::string& self) {
  if (!told.empty()) {
    if (access(told.c_str(), R_OK) == 0) return told;
    return absl::NotFoundError(absl::StrCat("--library=", told, " cannot be read"));
  }
  const std::string folder = self.substr(0, self.rfind('/'));
  std::vector<std::string> looked;
  for (const char* place : {"", "/../lib", "/../lib/ringscope", "/../lib64"}) {
    const std::string path = absl::StrCat(folder, place, "/libringscope.so");
    if (char* whole = access(path.c_str(), R_OK) == 0 ? realpath(path.c_str(), nullptr) : nullptr; whole != nullptr) {
      const std::string found = whole;
      free(whole);
      return found;
    }
    looked.push_back(path);
  }
  return absl::NotFoundError(absl::StrCat("no libringscope.so; looked for ", absl::StrJoin(looked, ", "), ". Give --library"));
}

absl::Status TryToLoad(const std::string& library) {
  const std::string answer = AskChild(
      [&]() -> std::string {
        void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle != nullptr) return "loaded";
        const char* why = dlerror();
        return why == nullptr ? "it cannot be loaded" : why;
      },
      "the process that loaded it died");
  return answer == "loaded" ? absl::OkStatus() : absl::FailedPreconditionError(absl::StrCat(library, ": ", answer));
}

bool NcclHas(const std::string& library_path, const std::string& function) {
  return AskChild(
             [&]() -> std::string {
               std::vector<std::string> places;
               for (const auto part : absl::StrSplit(library_path, ':', absl::SkipEmpty()))
                 places.push_back(absl::StrCat(part, "/libnccl.so.2"));
               places.push_back("libnccl.so.2");
               for (const std::string& place : places) {
                 void* handle = dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL);
                 if (handle != nullptr) return dlsym(handle, function.c_str()) != nullptr ? "yes" : "no";
               }
               return "no";
             },
             "no") == "yes";
}

JobEnvironment EnvironmentFor(const std::map<std::string, std::string>& before, const Doors& doors, const std::string& library,
                              const std::string& directory, const std::string& run) {
  JobEnvironment environment;
  environment.variables = before;
  if (doors.plugin) {
    const std::string other = Get(before, "NCCL_PROFILER_PLUGIN");
    if (!other.empty() && other != library) {
      environment.notes.push_back(
          absl::StrCat("NCCL_PROFILER_PLUGIN stays as it was set (", other,
                       "): NCCL's own events go there, and the record rests on the calls of the application"));
    } else {
      environment.variables["NCCL_PROFILER_PLUGIN"] = library;
    }
  }
  if (doors.preload) {
    std::vector<std::string> list;
    if (const std::string old = Get(before, "LD_PRELOAD"); !old.empty()) list.push_back(old);
    list.push_back(library);
    const std::string newer = absl::StrCat(library.substr(0, library.rfind('/')), "/libringscope-newer.so");
    if (access(newer.c_str(), R_OK) == 0 && NcclHas(Get(before, "LD_LIBRARY_PATH"), "ncclAlltoAll")) list.push_back(newer);
    environment.variables["LD_PRELOAD"] = absl::StrJoin(list, ":");
  }
  SetUnlessSet("RINGSCOPE_DIR", directory, &environment);
  environment.variables["RINGSCOPE_RUN"] = run;
  if (doors.nccl_log) {
    if (Get(before, "NCCL_DEBUG").empty() && Get(before, "NCCL_DEBUG_FILE").empty()) {
      environment.variables["NCCL_DEBUG"] = "INFO";
      SetUnlessSet("NCCL_DEBUG_SUBSYS", "INIT,ENV,NET,GRAPH", &environment);
      environment.variables["NCCL_DEBUG_FILE"] = absl::StrCat(directory, "/nccl.%h.%p.log");
    } else {
      environment.notes.push_back(
          "NCCL_DEBUG or NCCL_DEBUG_FILE is set: NCCL's log goes where you have it, give it to diagnose, too");
    }
  }
  return environment;
}

}  // namespace ringscope::supervisor
