// show_gids, and sysfs's tables of GIDs and partition keys ("…/mlx5_0/ports/1/gids/3:fe80:…", "…/pkeys/1:0x8012").
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 15;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class Gids : public LineReader {
 public:
  explicit Gids(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (hosts_.Heading(line)) return false;
    model::RoceGid gid;
    const std::string_view text = Trim(hosts_.Strip(line, &gid.by));
    gid.where = line.where;
    if (Key(text, line, gid.by) || (!Sysfs(text, &gid) && !Row(text, &gid))) return false;
    static const RE2& zero = *new RE2(R"(^[0:]+$)");
    if (!RE2::PartialMatch(gid.gid, zero) && context_.evidence->network.gids.size() < kMost)
      context_.evidence->network.gids.push_back(std::move(gid));
    return false;
  }

 private:
  bool Key(std::string_view text, const TextLine& line, const model::Speaker& by) {
    static const RE2& pattern = *new RE2(R"(([\w.-]+)/ports/(\d+)/pkeys/(\d+)\s*[:= ]\s*0x([0-9a-fA-F]{4})\s*$)");
    model::PartitionKey key;
    auto& all = context_.evidence->network.partition_keys;
    if (!RE2::PartialMatch(Piece(text), pattern, &key.device, &key.port, &key.index, RE2::Hex(&key.key))) return false;
    key.where = line.where;
    key.by = by;
    if (key.key != 0 && all.size() < kMost) all.push_back(std::move(key));
    return true;
  }

  static bool Sysfs(std::string_view text, model::RoceGid* gid) {
    static const RE2& pattern = *new RE2(R"(([\w.-]+)/ports/(\d+)/gids/(\d+)\s*[:= ]\s*([0-9a-fA-F:]{15,39})\s*$)");
    return RE2::PartialMatch(Piece(text), pattern, &gid->device, &gid->port, &gid->index, &gid->gid);
  }

  // "mlx5_0 1 3 0000:…:ffff:0a4d:0814 10.77.8.20 v2 eth0"; the columns IPv4 and interface may be
  // empty.
  static bool Row(std::string_view text, model::RoceGid* gid) {
    static const RE2& pattern = *new RE2(
        R"(^([A-Za-z][\w.-]*)\s+(\d{1,2})\s+(\d{1,4})\s+([0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}))"
        R"((?:\s+(\d+\.\d+\.\d+\.\d+))?(?:\s+(?:RoCE )?v([12]))?(?:\s+([\w.@-]+))?\s*$)");
    std::string version;
    if (!RE2::PartialMatch(Piece(text), pattern, &gid->device, &gid->port, &gid->index, &gid->gid, &gid->ipv4, &version,
                           &gid->interface))
      return false;
    gid->version = version == "1" ? 1 : version == "2" ? 2 : 0;
    return true;
  }

  const FileContext& context_;
  HostOfOutput hosts_;
};

std::vector<std::string> Triggers() {
  std::vector<std::string> triggers = {R"([A-Za-z][\w.-]*\s+\d{1,2}\s+\d{1,4}\s+[0-9a-fA-F]{0,4}:[0-9a-fA-F:]{4,34}(?:\s|$))",
                                       R"(/ports/\d+/(?:gids|pkeys)/\d+)"};
  const auto& more = HostOfOutput::Triggers();
  triggers.insert(triggers.end(), more.begin(), more.end());
  return triggers;
}

const RegisterReader kRegister(LineReaderType{
    "GID tables", Triggers(),
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Gids>(context); }});

}  // namespace
}  // namespace ringscope::ingest
