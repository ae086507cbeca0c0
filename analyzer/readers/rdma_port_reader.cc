// State, rate and MTU of RDMA ports: ibstat, ibstatus, ibv_devinfo, `rdma link`, ibdev2netdev, and one-line digests of them.
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

using model::RdmaPort;

constexpr size_t kMost = 1 << 14;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class RdmaPorts : public LineReader {
 public:
  explicit RdmaPorts(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (hosts_.Heading(line)) return false;
    model::Speaker by;
    const std::string_view text = Trim(hosts_.Strip(line, &by));
    if (text.empty()) return true;
    if (Device(text, line, by) || OneLine(text, line, by)) return true;
    return Key(text, line, by);
  }

 private:
  std::vector<RdmaPort>& ports() { return context_.evidence->network.ports; }

  RdmaPort* Add(const std::string& device, int port, const TextLine& line, const model::Speaker& by) {
    if (ports().size() >= kMost) return nullptr;
    RdmaPort p;
    p.device = device;
    p.port = port;
    p.where = line.where;
    p.by = by;
    ports().push_back(std::move(p));
    current_[by.host] = ports().size() - 1;
    return &ports().back();
  }

  RdmaPort* Current(const model::Speaker& by) {
    const auto it = current_.find(by.host);
    return it == current_.end() ? nullptr : &ports()[it->second];
  }

  bool Device(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& ibstat = *new RE2(R"(^CA '([^']+)'$)");
    static const RE2& ibstatus = *new RE2(R"(^Infiniband device '([^']+)' port (\d+) status:)");
    static const RE2& devinfo = *new RE2(R"(^hca_id:\s*(\S+)$)");
    static const RE2& port = *new RE2(R"((?i)^port:?\s*(\d+):?$)");
    std::string device;
    int number = 1;
    if (RE2::PartialMatch(Piece(text), ibstatus, &device, &number)) return Add(device, number, line, by) != nullptr;
    if (RE2::PartialMatch(Piece(text), ibstat, &device) || RE2::PartialMatch(Piece(text), devinfo, &device))
      return Add(device, 1, line, by) != nullptr;
    RdmaPort* current = Current(by);
    if (current == nullptr || !RE2::FullMatch(Piece(text), port, &number)) return false;
    // The second port of an adapter.
    if (!current->state.empty()) return Add(std::string(current->device), number, line, by) != nullptr;
    current->port = number;
    return true;
  }

  // "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1", "1/1: mlx5_0/1: state …", "mlx5_0 port 1 state PORT_ACTIVE
  // … active_mtu 4096 (5)", "mlx5_0 port 1 ==> ens1 (Up)".
  bool OneLine(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& link = *new RE2(R"(^(?:link |\d+/\d+: )([\w.-]+)/(\d+):? (?:.* )?state )");
    static const RE2& flat = *new RE2(R"(^([A-Za-z][\w.-]*) port (\d+):? .*\b(?:state|active_mtu|mtu)\b)");
    static const RE2& netdev = *new RE2(R"(^([A-Za-z][\w.-]*) port (\d+) ==> ([\w.@-]+) \((\w+)\))");
    std::string device, interface, state;
    int number = 1;
    if (RE2::PartialMatch(Piece(text), netdev, &device, &number, &interface, &state)) {
      if (RdmaPort* p = Add(device, number, line, by)) {
        p->interface = interface;
        p->state = state;
      }
      return true;
    }
    if (!RE2::PartialMatch(Piece(text), link, &device, &number) && !RE2::PartialMatch(Piece(text), flat, &device, &number))
      return false;
    RdmaPort* p = Add(device, number, line, by);
    if (p == nullptr) return true;
    const auto words = Words(text);
    for (size_t i = 0; i + 1 < words.size(); ++i) Set(Trimmed(words[i]), words[i + 1], line, p);
    return true;
  }

  static std::string_view Trimmed(std::string_view key) {
    while (!key.empty() && (key.back() == ':' || key.back() == '=')) key.remove_suffix(1);
    return key;
  }

  // Whether the block goes on.
  bool Key(std::string_view text, const TextLine& line, const model::Speaker& by) {
    RdmaPort* current = Current(by);
    const size_t colon = text.find(':');
    if (current == nullptr || colon == text.npos || colon == 0 || colon > 32) return false;
    std::string key = LowerText(text.substr(0, colon));
    for (char& c : key) {
      if (c == ' ') c = '_';
      if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '#' && c != '/') return false;
    }
    Set(key, Trim(text.substr(colon + 1)), line, current);
    return true;
  }

  static void Set(std::string_view key, std::string_view value, const TextLine& line, RdmaPort* p) {
    if (key == "state") {
      p->state = value;
      p->where = line.where;
    } else if (key == "physical_state" || key == "phys_state") {
      p->physical_state = value;
    } else if (key == "rate" || key == "active_width" || key == "active_speed") {
      p->rate = p->rate.empty() ? std::string(value) : absl::StrCat(p->rate, " ", Absl(value));
    } else if (key == "link_layer") {
      p->link_layer = value;
    } else if (key == "netdev") {
      p->interface = value;
    } else if (key == "active_mtu" || key == "mtu") {
      p->active_mtu = static_cast<int>(LeadingNumber(value).value_or(0) & 0xffff);
      p->mtu_where = line.where;
    } else if (key == "max_mtu") {
      p->max_mtu = static_cast<int>(LeadingNumber(value).value_or(0) & 0xffff);
    }
  }

  const FileContext& context_;
  HostOfOutput hosts_;
  std::map<std::string, size_t> current_;  // by host: its last port
};

std::vector<std::string> Triggers() {
  std::vector<std::string> triggers = {R"(\bCA '[^']+'$)",
                                       R"(Infiniband device '[^']+' port \d+ status:)",
                                       R"(\bhca_id:\s*\S)",
                                       R"((?:^|: )(?:link |\d+/\d+: )[\w.-]+/\d+:? .*state (?:ACTIVE|DOWN|INIT|ARMED))",
                                       R"(\w port \d+:? .*\bstate:? (?:\d: )?(?:PORT_)?(?:ACTIVE|DOWN|INIT|ARMED|Active|Down))",
                                       R"(\w port \d+:? .*\bactive_mtu\b)",
                                       R"(\w port \d+ ==> \S+ \((?:Up|Down)\))"};
  const auto& more = HostOfOutput::Triggers();
  triggers.insert(triggers.end(), more.begin(), more.end());
  return triggers;
}

const RegisterReader kRegister(LineReaderType{
    "RDMA ports", Triggers(),
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<RdmaPorts>(context); }});

}  // namespace
}  // namespace ringscope::ingest
