// `lspci -vvv`, whole or searched for ACSCtl and LnkSta: access control of bridges, and links that run below their width or
// speed.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/bus_id.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

using model::PciFunction;

constexpr size_t kMost = 1 << 14;
constexpr size_t kMostLine = 200;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class Lspci : public LineReader {
 public:
  explicit Lspci(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& device = *new RE2(R"(^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+(\S.*)$)");
    static const RE2& count = *new RE2(R"(^(\d{1,6})\s+((?:ACSCtl|LnkSta):.*)$)");
    if (hosts_.Heading(line)) return open_ = false;
    model::Speaker by;
    std::string_view text = Trim(hosts_.Strip(line, &by));
    std::string bus, name;
    if (RE2::PartialMatch(Piece(text), device, &bus, &name)) {
      open_ = true;
      named_ = PciFunction();
      named_.bus_id = model::ParseBusId(bus);
      named_.by = by;
      stored_ = false;
      // A loop over devices that greps: "e3:00.0  LnkCap: …" names no device.
      const bool field = name.starts_with("LnkCap:") || name.starts_with("LnkSta:") || name.starts_with("ACSCtl:");
      if (!field) {
        named_.name = name.substr(0, kMostLine);
        return true;
      }
      text = text.substr(text.size() - name.size());
    }
    // "     11 ACSCtl: SrcValid+ …" of sort | uniq -c.
    std::string rest;
    uint32_t times = 1;
    const bool counted = RE2::PartialMatch(Piece(text), count, &times, &rest);
    if (counted) text = rest;
    if (text.starts_with("ACSCtl:") || text.starts_with("LnkSta:")) {
      PciFunction* to = Target(counted || !open_, times, by);
      if (to == nullptr) return open_;
      if (text[0] == 'A') {
        to->has_acs = true;
        to->acs_redirects = Contains(text, "ReqRedir+") || Contains(text, "CmpltRedir+") || Contains(text, "UpstreamFwd+");
        to->acs_line = std::string(line.quote.substr(0, kMostLine));
        to->acs_where = line.where;
      } else {
        to->link_downgraded = Contains(text, "(downgraded)");
        to->link_line = std::string(text.substr(0, kMostLine));
        std::replace(to->link_line.begin(), to->link_line.end(), '\t', ' ');
        to->link_where = line.where;
      }
    }
    // Functions are told apart by what is not indented; a search takes the indentation along.
    return open_ &&
           (text.empty() || (line.raw.size() > 0 && (line.raw[0] == ' ' || line.raw[0] == '\t' || line.raw[0] == '-')));
  }

 private:
  PciFunction* Target(bool nameless, uint32_t times, const model::Speaker& by) {
    auto& pci = context_.evidence->network.pci;
    if (!nameless && stored_) return &pci.back();
    if (pci.size() >= kMost) return nullptr;
    if (nameless) {
      PciFunction f;
      f.count = times;
      f.by = by;
      pci.push_back(std::move(f));
      stored_ = false;
    } else {
      pci.push_back(named_);
      stored_ = true;
    }
    return &pci.back();
  }

  const FileContext& context_;
  HostOfOutput hosts_;
  bool open_ = false;
  PciFunction named_;
  bool stored_ = false;
};

std::vector<std::string> Triggers() {
  std::vector<std::string> triggers = {R"((?:^|: )\s*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7][ \t]+[A-Z0-9])",
                                       R"(\bACSCtl:\s)", R"(\bLnkSta:\s)"};
  const auto& more = HostOfOutput::Triggers();
  triggers.insert(triggers.end(), more.begin(), more.end());
  return triggers;
}

const RegisterReader kRegister(LineReaderType{
    "lspci", Triggers(),
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Lspci>(context); }});

}  // namespace
}  // namespace ringscope::ingest
