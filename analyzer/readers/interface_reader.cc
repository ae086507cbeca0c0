// Interfaces and their addresses: `ip addr`, `ip link`, `ip -br addr`, ifconfig (new and old form).
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

using model::NetworkInterface;

constexpr size_t kMost = 1 << 14;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class Interfaces : public LineReader {
 public:
  explicit Interfaces(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (hosts_.Heading(line)) return open_ = false;
    model::Speaker by = hosts_.Whose(line);
    if (Start(line.text, line, by) || Brief(line.text, line, by)) return open_ = true;
    const std::string_view text = hosts_.Strip(line, &by);
    if (Start(text, line, by) || Brief(text, line, by)) return open_ = true;
    if (!open_) return false;
    return open_ = More(Trim(text));
  }

 private:
  std::vector<NetworkInterface>& all() { return context_.evidence->network.interfaces; }

  NetworkInterface* Add(std::string name, const TextLine& line, const model::Speaker& by) {
    if (all().size() >= kMost) return nullptr;
    NetworkInterface interface;
    interface.name = name.substr(0, name.find('@'));
    interface.where = line.where;
    interface.by = by;
    all().push_back(std::move(interface));
    return &all().back();
  }

  static void Flags(std::string_view flags, NetworkInterface* to) {
    to->up = false;
    to->carrier = !Contains(flags, "NO-CARRIER");
    for (size_t start = 0; start <= flags.size();) {
      const size_t end = std::min(flags.find(',', start), flags.size());
      to->up |= flags.substr(start, end - start) == "UP";
      start = end + 1;
    }
  }

  // "2: eth0@if3: <BROADCAST,UP,LOWER_UP> mtu 1500 … state UP", "eth0: flags=4163<UP,RUNNING>  mtu 9000",
  // "eth0      Link encap:Ethernet  HWaddr …".
  bool Start(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& ip = *new RE2(R"(^(?:\s*\d+: )?([A-Za-z][\w.@-]*): <([A-Z0-9_,-]*)> mtu (\d+)(?:.* state (\w+))?)");
    static const RE2& ifconfig = *new RE2(R"(^([A-Za-z][\w.@:-]*): flags=\d+<([A-Z0-9_,-]*)>\s+mtu (\d+))");
    static const RE2& old = *new RE2(R"(^([A-Za-z][\w.@:-]*)\s+Link encap:)");
    std::string name, flags, state;
    int mtu = 0;
    const bool is_ip = RE2::PartialMatch(Piece(text), ip, &name, &flags, &mtu, &state);
    if (is_ip || RE2::PartialMatch(Piece(text), ifconfig, &name, &flags, &mtu)) {
      if (NetworkInterface* i = Add(name, line, by)) {
        i->mtu = mtu;
        Flags(flags, i);
        if (state == "DOWN") i->carrier = false;
        if (!is_ip && i->up && !Contains(flags, "RUNNING")) i->carrier = false;
      }
      return true;
    }
    if (!RE2::PartialMatch(Piece(text), old, &name)) return false;
    Add(name, line, by);
    return true;
  }

  // "eth0             UP             10.0.0.1/24 fe80::1/64 ".
  bool Brief(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& brief =
        *new RE2(R"(^([A-Za-z][\w.@-]*)\s+(UP|DOWN|UNKNOWN|LOWERLAYERDOWN)\s+((?:[0-9a-fA-F.:]+/\d+\s*)+)$)");
    std::string name, state, addresses;
    if (!RE2::PartialMatch(Piece(text), brief, &name, &state, &addresses)) return false;
    if (NetworkInterface* i = Add(name, line, by)) {
      i->carrier = state == "UP" || state == "UNKNOWN";
      for (const std::string_view word : Words(addresses)) i->addresses.emplace_back(word.substr(0, word.find('/')));
    }
    return true;
  }

  // Whether the block goes on.
  bool More(std::string_view text) {
    static const RE2& address = *new RE2(R"(^inet6? (?:addr: ?)?([0-9a-fA-F.:]+))");
    static const RE2& old_flags = *new RE2(R"(^((?:[A-Z]+ )+) ?MTU:(\d+))");
    static const RE2& other = *new RE2(
        R"(^(?:link/|valid_lft|altname|ether |loop |infiniband |txqueuelen|RX |TX |RX:|TX:|inet|brd |prom|vf \d|collisions|UP |)"
        R"(device |\d+\s+\d+|Interrupt|unspec |tunnel |parentbus|group))");
    if (all().empty()) return false;
    NetworkInterface& last = all().back();
    std::string found;
    int mtu = 0;
    if (RE2::PartialMatch(Piece(text), address, &found)) {
      if (last.addresses.size() < 64) last.addresses.push_back(found);
      return true;
    }
    if (RE2::PartialMatch(Piece(text), old_flags, &found, &mtu)) {
      last.mtu = mtu;
      last.up = Contains(found, "UP ");
      last.carrier = Contains(found, "RUNNING ");
      return true;
    }
    return RE2::PartialMatch(Piece(text), other);
  }

  const FileContext& context_;
  HostOfOutput hosts_;
  bool open_ = false;
};

std::vector<std::string> Triggers() {
  std::vector<std::string> triggers = {R"([A-Za-z][\w.@-]*: <[A-Z0-9_,-]*> mtu \d)", R"([A-Za-z][\w.@:-]*: flags=\d+<)",
                                       R"(^[A-Za-z][\w.@:-]*\s+Link encap:)",
                                       R"([A-Za-z][\w.@-]*\s+(?:UP|DOWN|UNKNOWN|LOWERLAYERDOWN)\s+[0-9a-fA-F.:]+/\d)"};
  const auto& more = HostOfOutput::Triggers();
  triggers.insert(triggers.end(), more.begin(), more.end());
  return triggers;
}

const RegisterReader kRegister(LineReaderType{
    "network interfaces", Triggers(),
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Interfaces>(context); }});

}  // namespace
}  // namespace ringscope::ingest
