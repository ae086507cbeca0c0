// What NCCL says of the network it chose: adapters, addresses, the network's name, the two ends of its queue pairs.
#include <absl/strings/numbers.h>
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

using model::ProcessAddress;

constexpr size_t kMost = 1 << 16;  // facts of a kind over all files; a flood of connections says nothing more

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class NcclNetwork : public LineReader {
 public:
  explicit NcclNetwork(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& choice = *new RE2(R"(Using network (\S.*?)\s*$)");
    std::string network;
    if (RE2::PartialMatch(Piece(line.text), choice, &network)) {
      if (facts().choices.size() < kMost) facts().choices.push_back({network, line.where, line.by});
    } else if (Contains(line.text, "qpn ")) {
      Pair(line);
    } else {
      Adapters(line);
      Addresses(line);
    }
    return false;
  }

 private:
  model::NetworkFacts& facts() { return context_.evidence->network; }

  // "Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]".
  void Adapters(const TextLine& line) {
    static const RE2& adapter = *new RE2(R"(\[\d+\]([\w.-]+):(\d+)/(IB|RoCE)\b)");
    re2::StringPiece rest = Piece(line.text);
    std::string device, link;
    int port = 0;
    while (facts().adapters.size() < kMost && RE2::FindAndConsume(&rest, adapter, &device, &port, &link))
      facts().adapters.push_back({device, port, link == "RoCE", line.where, line.by});
  }

  // "Using [0]eth0:10.0.0.1<0> [1]ib0:fe80::1%ib0<0>", "Using eth0:10.0.0.1<0>", "OOB eth0:10.0.0.1<0>".
  void Addresses(const TextLine& line) {
    static const RE2& address =
        *new RE2(R"((?:Using |\[\d+\]|OOB )([A-Za-z][\w.@-]*):([0-9A-Fa-f][0-9A-Fa-f.:]*(?:%[\w.-]+)?)<\d+>)");
    const auto use = Contains(line.text, "Bootstrap")    ? ProcessAddress::Use::kBootstrap
                     : Contains(line.text, "NET/Socket") ? ProcessAddress::Use::kSocket
                                                         : ProcessAddress::Use::kOutOfBand;
    re2::StringPiece rest = Piece(line.text);
    std::string interface, ip;
    while (facts().addresses.size() < kMost && RE2::FindAndConsume(&rest, address, &interface, &ip))
      facts().addresses.push_back({interface, ip, use, line.where, line.by});
  }

  // "Dev 0 Port 1 qpn 12 mtu 5 LID 7", "… mtu 5 [query_ece={…}] GID 3 (0/CE01C1AFFFF0000)": the GID's halves are printed as
  // numbers of a little-endian machine, so fe80:: ends in "80FE".
  void Pair(const TextLine& line) {
    static const RE2& pair = *new RE2(R"(Dev (\d+)(?: IbDev \d+)? Port \d+ qpn \d+ mtu (\d+)(.*))");
    static const RE2& gid = *new RE2(R"(GID (-?\d+) \(([0-9A-Fa-f]+)/[0-9A-Fa-f]+\))");
    static const RE2& lid = *new RE2(R"(LID (\d+))");
    model::QueuePair qp;
    std::string rest, prefix;
    if (facts().queue_pairs.size() >= kMost || !RE2::PartialMatch(Piece(line.text), pair, &qp.device, &qp.mtu_code, &rest))
      return;
    if (RE2::PartialMatch(rest, gid, &qp.gid_index, &prefix)) {
      uint64_t half = 0;
      qp.link_local = absl::SimpleHexAtoi(prefix, &half) && (half & 0xc0ff) == 0x80fe;
    } else {
      RE2::PartialMatch(rest, lid, &qp.lid);
    }
    qp.where = line.where;
    qp.by = line.by;
    facts().queue_pairs.push_back(std::move(qp));
  }

  const FileContext& context_;
};

const RegisterReader kRegister(LineReaderType{
    "NCCL network",
    {R"(Using network \S)", R"(NET/(?:IB|Socket|IBext\w*) ?: Using )", R"(Bootstrap ?: Using )",
     R"(Dev \d+ (?:IbDev \d+ )?Port \d+ qpn \d+ mtu \d)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NcclNetwork>(context); }});

}  // namespace
}  // namespace ringscope::ingest
