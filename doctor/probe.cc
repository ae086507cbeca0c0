#include "doctor/probe.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <string.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "doctor/utf8.h"
#include "supervisor/in_processes.h"

namespace ringscope::doctor {
namespace {

constexpr size_t kMostBytes = size_t{4} << 20;  // of one answer; pages are taken only when written

struct Answer {
  std::atomic<uint32_t> size;  // of the message; 0: none
  std::atomic<int> code;       // absl::StatusCode
  char words[1024];
  char message[kMostBytes];
};

std::vector<Probe>& Registry() {
  static auto& registry = *new std::vector<Probe>;
  return registry;
}

}  // namespace

RegisterProbe::RegisterProbe(Probe probe) { Registry().push_back(std::move(probe)); }

const std::vector<Probe>& Probes() {
  std::vector<Probe>& all = Registry();
  std::sort(all.begin(), all.end(), [](const Probe& a, const Probe& b) { return a.name < b.name; });
  return all;
}

node::Node Ask(const Place& place, const std::vector<Probe>& probes, double seconds) {
  node::Node node;
  utsname machine = {};
  uname(&machine);
  node.set_host(ValidUtf8(place.host.empty() ? machine.nodename : place.host));
  node.set_architecture(machine.machine);
  for (const auto& [name, value] : place.environment) {
    for (const char* prefix : {"NCCL_", "CUDA_", "GLOO_"}) {
      if (name.rfind(prefix, 0) == 0) (*node.mutable_settings())[ValidUtf8(name)] = ValidUtf8(value);
    }
  }
  std::vector<std::function<void(void*)>> functions;
  for (const Probe& probe : probes) {
    functions.push_back([&place, &probe](void* shared) {
      auto* answer = static_cast<Answer*>(shared);
      node::Node part;
      const absl::Status status = probe.ask(place, &part);
      const std::string words = ValidUtf8(std::string(status.message()));
      answer->words[words.copy(answer->words, sizeof(answer->words) - 1)] = 0;
      answer->code = static_cast<int>(status.code());
      MakeValidUtf8(&part);
      const size_t size = part.ByteSizeLong();
      if (size <= kMostBytes && part.SerializeToArray(answer->message, kMostBytes)) answer->size = static_cast<uint32_t>(size);
    });
  }
  supervisor::RunInProcesses(functions, sizeof(Answer), seconds,
                             [&](size_t i, const void* shared, const supervisor::ProcessEnd& end) {
                               node::Asked* asked = node.add_asked();
                               asked->set_name(probes[i].name);
                               asked->set_seconds(end.seconds);
                               asked->set_why_not(end.why_not);
                               asked->set_late(!end.finished && end.seconds >= seconds);
                               if (!end.finished) return;
                               const auto* answer = static_cast<const Answer*>(shared);
                               node::Node part;
                               if (part.ParseFromArray(answer->message, static_cast<int>(answer->size))) node.MergeFrom(part);
                               const auto code = static_cast<absl::StatusCode>(answer->code.load());
                               asked->set_answered(code == absl::StatusCode::kOk);
                               asked->set_absent(code == absl::StatusCode::kNotFound);
                               asked->set_why_not(answer->words);
                             });
  return node;
}

std::string PciAddress(const std::string& bus_id) {
  const std::string lower = absl::AsciiStrToLower(bus_id);
  return lower.size() == 16 && lower.compare(0, 4, "0000") == 0 ? lower.substr(4) : lower;
}

}  // namespace ringscope::doctor
