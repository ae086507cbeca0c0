// Peer access between the GPUs of the node.
#include <absl/strings/str_cat.h>

#include <map>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

bool Linked(const node::Node& node, int index) {
  for (const node::Gpu& gpu : node.gpus()) {
    if (gpu.index() != index) continue;
    for (const auto& link : gpu.links()) {
      if (link.active()) return true;
    }
  }
  return false;
}

std::string Name(const node::PeerPair& pair) { return absl::StrCat("GPU ", pair.a(), "-", pair.b()); }

void Look(const Question& question, Verdict* verdict) {
  if (!GpusTold(question, verdict)) return;
  if (question.now.peers_size() == 0) {
    if (question.now.gpus_size() < 2) return verdict->NotPresent("one GPU: nobody to reach");
    return verdict->CouldNotTell("no two GPUs answer");
  }
  std::map<std::pair<int, int>, const node::PeerPair*> before;
  if (question.before != nullptr) {
    for (const node::PeerPair& pair : question.before->peers()) before[{pair.a(), pair.b()}] = &pair;
  }
  std::map<std::string, std::vector<std::string>> refused;  // by what NVML says
  std::string lost;
  size_t direct = 0, nvlink = 0;
  for (const node::PeerPair& pair : question.now.peers()) {
    direct += pair.read() == "OK";
    nvlink += pair.nvlink() == "OK";
    const auto old = before.find({pair.a(), pair.b()});
    const bool was_linked = old != before.end() && old->second->nvlink() == "OK";
    const bool was_direct = old != before.end() && old->second->read() == "OK";
    if ((was_linked && pair.nvlink() != "OK") || (was_direct && pair.read() != "OK"))
      absl::StrAppend(&lost, lost.empty() ? "" : ", ", Name(pair), " ", pair.read() == "OK" ? pair.nvlink() : pair.read());
    // Without NVLink it is a matter of the platform whether GPUs may reach each other; the baseline alone can tell.
    else if (pair.read() != "OK" && pair.read() != "U" && Linked(question.now, pair.a()) && Linked(question.now, pair.b()))
      refused[pair.read()].push_back(Name(pair));
  }
  if (!lost.empty())
    verdict->Failed(absl::StrCat("no longer reach each other directly: ", lost),
                    {"NCCL refuses to start, or goes through host memory at a tenth of the rate.",
                     "nvidia-smi topo -p2p n; nvidia-smi topo -p2p r; systemctl restart nvidia-fabricmanager", "FB-02"},
                    "OK");
  for (const auto& [words, pairs] : refused) {
    std::string text;
    for (size_t i = 0; i < pairs.size() && i < 4; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", pairs[i]);
    if (pairs.size() > 4) absl::StrAppend(&text, " and ", pairs.size() - 4, " more");
    verdict->Failed(absl::StrCat("NVLinks are active, and the driver refuses peer access (", words, "): ", text),
                    {"NCCL fails at start: P2P is disabled between NVLINK connected GPUs.",
                     "nvidia-smi topo -p2p r; systemctl restart nvidia-fabricmanager; drain and reset", "FB-02"});
  }
  const size_t pairs = static_cast<size_t>(question.now.peers_size());
  verdict->Seen(absl::StrCat(direct, " of ", Count(pairs, "pair"), " reach each other directly, ", nvlink, " over NVLink"));
}

const RegisterCheck kRegister({"peers", "GPUs that share NVLinks may reach each other's memory", Look});

}  // namespace
}  // namespace ringscope::doctor
