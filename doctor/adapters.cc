#include "doctor/adapters.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include "doctor/check.h"

namespace ringscope::doctor {

NameList::NameList(const std::string& text) {
  absl::string_view rest = text;
  if (absl::StartsWith(rest, "^")) others_ = true, rest.remove_prefix(1);
  if (absl::StartsWith(rest, "=")) exact_ = true, rest.remove_prefix(1);
  for (const absl::string_view part : absl::StrSplit(rest, ',', absl::SkipEmpty())) {
    Name name;
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(part, absl::MaxSplits(':', 1));
    name.name = std::string(halves.first);
    if (!absl::SimpleAtoi(halves.second, &name.port)) name.port = -1;
    names_.push_back(name);
  }
}

bool NameList::Fits(const Name& word, const std::string& name, int port) const {
  if (word.port >= 0 && port >= 0 && word.port != port) return false;
  return exact_ ? name == word.name : absl::StartsWith(name, word.name);
}

bool NameList::Takes(const std::string& name, int port) const {
  if (names_.empty()) return true;
  bool fits = false;
  for (const Name& word : names_) fits |= Fits(word, name, port);
  return fits != others_;
}

bool IsActive(const node::Port& port) { return absl::StrContains(port.state(), "ACTIVE"); }
bool IsRoce(const node::Port& port) { return port.link_layer() == "Ethernet"; }
std::string PortName(const node::Port& port) { return absl::StrCat(port.device(), ":", port.port()); }

double Gigabits(const node::Port& port) {
  double value = 0;
  return absl::SimpleAtod(absl::string_view(port.rate()).substr(0, port.rate().find(' ')), &value) ? value : 0;
}

std::vector<const node::Port*> UsedPorts(const node::Node& node) {
  std::vector<const node::Port*> used;
  if (Setting(node, "NCCL_IB_DISABLE") == "1") return used;
  const NameList list(Setting(node, "NCCL_IB_HCA"));
  for (const node::Port& port : node.ports()) {
    if (IsActive(port) && list.Takes(port.device(), port.port())) used.push_back(&port);
  }
  return used;
}

}  // namespace ringscope::doctor
