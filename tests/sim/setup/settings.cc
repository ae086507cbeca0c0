#include "tests/sim/setup/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vector>

#include "tests/sim/machine/machine.h"
#include "tests/sim/setup/faults_text.h"
#include "tests/sim/setup/job.h"
#include "tests/sim/setup/number.h"

extern char** environ;

namespace ringscope::sim {
namespace {

constexpr const char* kPrefix = "RINGSCOPE_SIM_";

const char* Get(const std::string& name) {
  const char* value = getenv((kPrefix + name).c_str());
  return value == nullptr || value[0] == 0 ? nullptr : value;
}

std::string Folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string OfNumber(const char* name, int64_t least, int64_t most) {
  const char* value = Get(name);
  if (value == nullptr || Whole(value, least, most)) return "";
  return std::string(kPrefix) + name + "=" + Shown(value) + ": not a number from " + std::to_string(least) + " to " +
         std::to_string(most);
}

// Something is to be appended there later, by whoever does it first.
std::string OfFile(const char* name) {
  const char* value = Get(name);
  if (value == nullptr) return "";
  if (access(value, F_OK) == 0 ? access(value, W_OK) == 0 : access(Folder(value).c_str(), W_OK) == 0) return "";
  return std::string(kPrefix) + name + "=" + Shown(value) + ": cannot be written: " + strerror(errno);
}

std::string OfHost() {
  const char* value = Get("HOST");
  if (value == nullptr) return "";
  if (strlen(value) <= 63 && std::string(value).find_first_of(" \t\n/") == std::string::npos) return "";
  return std::string(kPrefix) + "HOST=" + Shown(value) + ": a host's name has at most 63 letters, no spaces and no \"/\"";
}

constexpr const char* kNames[] = {"DEVICES", "MACHINE", "MACHINE_STATE", "KERNEL_LOG",    "FAULTS",    "FIRED",
                                  "HOST",    "SEED",    "P2P",           "NVML_MISMATCH", "NVML_HANGS"};

std::string OfNames() {
  for (char** line = environ; *line != nullptr; ++line) {
    if (strncmp(*line, kPrefix, strlen(kPrefix)) != 0) continue;
    const std::string name(*line + strlen(kPrefix), strcspn(*line + strlen(kPrefix), "="));
    bool known = false;
    std::string all;
    for (const char* one : kNames) {
      known |= name == one;
      all += (all.empty() ? "" : ", ") + std::string(kPrefix) + one;
    }
    if (!known) return "there is no setting " + std::string(kPrefix) + Shown(name) + "; there are " + all;
  }
  return "";
}

}  // namespace

Mistake CheckSettings() {
  std::string faults;
  std::vector<PlannedFault> planned;
  if (const char* text = Get("FAULTS"); text != nullptr) {
    std::string error;
    planned = ParseFaults(text, &error);
    if (!error.empty()) faults = std::string(kPrefix) + "FAULTS: " + error;
  }
  for (const std::string& text : {OfNames(), OfNumber("DEVICES", 0, 64), OfNumber("SEED", 0, 1000000000), OfNumber("P2P", 0, 1),
                                  OfNumber("NVML_MISMATCH", 0, 1), OfNumber("NVML_HANGS", 0, 1), OfHost(),
                                  OfFile("MACHINE_STATE"), OfFile("KERNEL_LOG"), OfFile("FIRED"), faults}) {
    if (!text.empty()) return {text, 64};
  }
  const char *machine = Get("MACHINE"), *state = Get("MACHINE_STATE");
  if (machine == nullptr) return {};
  std::string error;
  const Machine read = ReadMachine(machine, state == nullptr ? "" : state, &error);
  if (!error.empty()) return {"RINGSCOPE_SIM_MACHINE: " + error, 65};
  if (const char* devices = Get("DEVICES"); devices != nullptr && static_cast<size_t>(atoi(devices)) > read.gpus.size()) {
    return {std::string(kPrefix) + "DEVICES=" + devices + ": " + Shown(machine) + " has " + std::to_string(read.gpus.size()) +
                " GPUs; leave it out, or ask for no more",
            64};
  }
  for (const PlannedFault& fault : planned) {
    if (const std::string wrong = NotOnMachine(fault, read); !wrong.empty())
      return {std::string(kPrefix) + "FAULTS: " + Name(fault) + ": " + wrong, 64};
  }
  return {};
}

void DemandGoodSettings(const char* who) {
  const Mistake mistake = CheckSettings();
  if (mistake.text.empty()) return;
  fprintf(stderr, "%s: %s\n", who, mistake.text.c_str());
  _exit(mistake.status);
}

int DevicesAsked() {
  if (const char* devices = Get("DEVICES"); devices != nullptr) return atoi(devices);
  if (Get("MACHINE") == nullptr) return 8;
  std::string error;
  return static_cast<int>(ThisMachine(0, &error).gpus.size());
}

}  // namespace ringscope::sim
