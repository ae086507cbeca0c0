// Counters of ports and interfaces: perfquery, ibqueryerrors, `ethtool -S`, sysfs (`grep . …/counters/*`), and one-line digests
// ("node mlx5_2 hw_counters: local_ack_timeout_err 812 …").
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 18;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

// perfquery's names are sysfs's without the underlines.
std::string CounterName(std::string_view written) {
  static const struct {
    const char* from;
    const char* to;
  } kNames[] = {{"symbolerrorcounter", "symbol_error"},
                {"symbolerrors", "symbol_error"},
                {"linkdownedcounter", "link_downed"},
                {"linkdowned", "link_downed"},
                {"linkrecovers", "link_error_recovery"},
                {"linkerrorrecoverycounter", "link_error_recovery"},
                {"linkerrorrecovery", "link_error_recovery"},
                {"portrcverrors", "port_rcv_errors"},
                {"rcverrors", "port_rcv_errors"},
                {"portrcvremotephysicalerrors", "port_rcv_remote_physical_errors"},
                {"rcvremotephyserrors", "port_rcv_remote_physical_errors"},
                {"portrcvswitchrelayerrors", "port_rcv_switch_relay_errors"},
                {"rcvswrelayerrors", "port_rcv_switch_relay_errors"},
                {"portxmitdiscards", "port_xmit_discards"},
                {"xmtdiscards", "port_xmit_discards"},
                {"portxmitwait", "port_xmit_wait"},
                {"xmtwait", "port_xmit_wait"},
                {"localoverrunerrors", "local_link_integrity_errors"},
                {"locallinkintegrityerrors", "local_link_integrity_errors"},
                {"linkintegrityerrors", "local_link_integrity_errors"},
                {"excessivebufferoverrunerrors", "excessive_buffer_overrun_errors"},
                {"excbufoverrunerrors", "excessive_buffer_overrun_errors"},
                {"portxmitconstrainterrors", "port_xmit_constraint_errors"},
                {"portrcvconstrainterrors", "port_rcv_constraint_errors"},
                {"vl15dropped", "vl15_dropped"}};
  const std::string lower = LowerText(written);
  for (const auto& name : kNames) {
    if (lower == name.from) return name.to;
  }
  return lower;
}

class NetworkCounters : public LineReader {
 public:
  explicit NetworkCounters(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (hosts_.Heading(line)) {
      // "$ ethtool -S eth2", "# perfquery mlx5_0" behind the prompt.
      Subject(line.text);
      return block_ = false;
    }
    model::Speaker by;
    const std::string_view text = Trim(hosts_.Strip(line, &by));
    if (line.time.known()) time_ = line.time;
    if (text.empty()) return block_;
    if (Sysfs(text, line, by) || Digest(text, line, by)) return block_;
    if (Start(text)) return block_ = true;
    if (!block_) return false;
    if (QueryErrors(text, line, by)) return true;
    return block_ = NameAndValue(text, line, by);
  }

 private:
  void Add(const std::string& device, int port, std::string_view name, uint64_t value, const TextLine& line,
           const model::Speaker& by) {
    auto& counters = context_.evidence->network.counters;
    if (counters.size() >= kMost) return;
    counters.push_back({device, port, CounterName(name), value, line.where, by, line.time.known() ? line.time : time_});
  }

  // "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:3", "…/hw_counters/x = 3", "mlx5_0/ports/1/counters/link_downed
  // 3".
  bool Sysfs(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& ib = *new RE2(R"(([\w.-]+)/ports/(\d+)/(?:hw_)?counters/([\w.-]+)\s*[:= ]\s*(\d+)\s*$)");
    static const RE2& net = *new RE2(R"(/sys/class/net/([\w.@-]+)/statistics/(\w+)\s*[:= ]\s*(\d+)\s*$)");
    static const RE2& carrier =
        *new RE2(R"(/sys/class/net/([\w.@-]+)/(carrier_(?:down_count|changes|up_count))\s*[:= ]\s*(\d+)\s*$)");
    std::string device, name;
    int port = 0;
    uint64_t value = 0;
    if (RE2::PartialMatch(Piece(text), ib, &device, &port, &name, &value)) {
      Add(device, port, name, value, line, by);
      return true;
    }
    if (RE2::PartialMatch(Piece(text), net, &device, &name, &value) ||
        RE2::PartialMatch(Piece(text), carrier, &device, &name, &value)) {
      Add(device, 0, name, value, line, by);
      return true;
    }
    return false;
  }

  // "roce-2 mlx5_2 hw_counters: local_ack_timeout_err 812  packet_seq_err 1204", "mlx5_0/1 counters: link_downed=2,
  // symbol_error=0".
  bool Digest(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& digest =
        *new RE2(R"(^(?:([\w.-]+)[: ]\s*)?([A-Za-z][\w.-]*?)(?:[/: ](?:port )?(\d+))? (?:hw_)?counters: *(.*)$)");
    static const RE2& pair = *new RE2(R"(([a-zA-Z_]\w+)\s*[:= ]\s*(\d+))");
    std::string host, device;
    re2::StringPiece rest;
    int port = 0;
    std::string port_text;
    if (!RE2::PartialMatch(Piece(text), digest, &host, &device, &port_text, &rest)) return false;
    if (const auto n = LeadingNumber(port_text)) port = static_cast<int>(*n & 0xffff);
    model::Speaker whose = by;
    if (!host.empty()) whose.host = host;
    std::string name;
    uint64_t value = 0;
    bool any = false;
    while (RE2::FindAndConsume(&rest, pair, &name, &value)) {
      Add(device, port, name, value, line, whose);
      any = true;
    }
    return any;
  }

  // A prompt with the tool behind it.
  void Subject(std::string_view text) {
    static const RE2& ethtool = *new RE2(R"(ethtool (?:-S|--statistics) ([\w.@-]+))");
    static const RE2& perfquery = *new RE2(R"(perfquery .*-C (\S+))");
    if (!RE2::PartialMatch(Piece(text), ethtool, &device_)) RE2::PartialMatch(Piece(text), perfquery, &device_);
    port_ = 0;
  }

  bool Start(std::string_view text) {
    static const RE2& perfquery = *new RE2(R"(^# (?:Port (?:extended )?counters|Port counters).*: Lid (\d+) port (\d+))");
    static const RE2& named = *new RE2(R"(CA: '([^']+)')");
    static const RE2& ethtool = *new RE2(R"(^NIC statistics(?: for (\S+?))?:)");
    static const RE2& errors = *new RE2(R"(^Errors for (?:0x[0-9a-f]+ )?\"?([^\"]+?)\"?$)");
    std::string device, lid;
    int port = 0;
    if (RE2::PartialMatch(Piece(text), perfquery, &lid, &port)) {
      if (!RE2::PartialMatch(Piece(text), named, &device)) device = "lid " + lid;
      device_ = device;
      port_ = port;
      return true;
    }
    if (RE2::PartialMatch(Piece(text), ethtool, &device)) {
      if (!device.empty()) device_ = device;
      port_ = 0;
      return true;
    }
    if (RE2::PartialMatch(Piece(text), errors, &device)) {
      device_ = device;
      port_ = 0;
      return true;
    }
    Subject(text);  // "$ ethtool -S eth2" without a host before it
    return false;
  }

  // "GUID 0x98… port 12: [SymbolErrorCounter == 65535] [LinkDownedCounter == 7]".
  bool QueryErrors(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& head = *new RE2(R"(^GUID 0x[0-9a-f]+ port (\d+|ALL):(.*)$)");
    static const RE2& pair = *new RE2(R"(\[(\w+) == (\d+)[^\]]*\])");
    std::string port;
    re2::StringPiece rest;
    if (!RE2::PartialMatch(Piece(text), head, &port, &rest)) return text.starts_with("Link info:");
    std::string name;
    uint64_t value = 0;
    while (RE2::FindAndConsume(&rest, pair, &name, &value))
      Add(device_, static_cast<int>(LeadingNumber(port).value_or(0) & 0xffff), name, value, line, by);
    return true;
  }

  // "SymbolErrorCounter:..............0", "     rx_prio3_pause: 12".
  bool NameAndValue(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& pair = *new RE2(R"(^(?:\[\w+\]: )?([A-Za-z][\w.\[\]-]*?):\.*\s*(0x[0-9a-f]+|\d+)\s*$)");
    std::string name, value;
    if (!RE2::PartialMatch(Piece(text), pair, &name, &value)) return false;
    if (const auto n = LeadingNumber(value); n && !value.starts_with("0x")) Add(device_, port_, name, *n, line, by);
    return true;
  }

  const FileContext& context_;
  HostOfOutput hosts_;
  bool block_ = false;
  std::string device_;
  int port_ = 0;
  model::Stamp time_;
};

std::vector<std::string> Triggers() {
  std::vector<std::string> triggers = {R"(/ports/\d+/(?:hw_)?counters/\w+)",
                                       R"(/sys/class/net/\S+/(?:statistics/\w+|carrier_\w+)\s*[:= ])",
                                       R"(\b(?:hw_)?counters: *\w+\s*[:= ]\s*\d)",
                                       R"(# Port (?:extended )?counters)",
                                       R"(^\s*NIC statistics)",
                                       R"(^\s*Errors for )",
                                       R"(ethtool (?:-S|--statistics) \S)"};
  const auto& more = HostOfOutput::Triggers();
  triggers.insert(triggers.end(), more.begin(), more.end());
  return triggers;
}

const RegisterReader kRegister(LineReaderType{
    "network counters", Triggers(),
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NetworkCounters>(context); }});

}  // namespace
}  // namespace ringscope::ingest
