// Errors of GPUs and NVSwitches as the driver writes them to the kernel log: "NVRM: Xid (PCI:0000:3b:00): 79, …",
// "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 31 …", and a GPU that fell off the bus told in words over
// several lines without a number (nv.c of driver 550 and later).
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"

namespace ringscope::ingest {
namespace {

using model::XidFact;

constexpr size_t kMostFacts = 4096;  // of one file, after joining what repeats
constexpr int kMostFallenLines = 4;  // lines between the address and "fallen off the bus"
constexpr size_t kMostText = 300;
constexpr size_t kMostQuote = 400;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

std::string Printable(std::string_view text, size_t most) {
  std::string out(text.substr(0, most));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return out;
}

class XidReader : public LineReader {
 public:
  explicit XidReader(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (Xid(line) || Sxid(line)) {
      fallen_.reset();
      return false;
    }
    return FallenOff(line);
  }

 private:
  bool Xid(const TextLine& line) {
    // The address may carry a MIG instance ("PCI:0000:31:00 GPU-I:05"); an old driver leaves "PCI:" out; a few reports paste the
    // line without the address.
    static const RE2& pattern =
        *new RE2(R"re(NVRM: (?:GPU\d+ )?Xid (?:\((?:PCI:)?([0-9a-fA-F:.]+)(?: [^)]*)?\): )?(\d{1,4})(?:[,:]\s*(.*))?$)re");
    std::string pci, rest;
    int number = 0;
    if (!RE2::PartialMatch(Piece(line.text), pattern, &pci, &number, &rest)) return false;
    XidFact fact;
    fact.number = number;
    fact.pci = pci;
    fact.bus_id = model::ParseBusId(pci);
    TakeProcess(&rest, &fact);
    Text(rest, &fact);
    Keep(std::move(fact), line);
    return true;
  }

  bool Sxid(const TextLine& line) {
    static const RE2& pattern = *new RE2(R"re((nvidia-nvswitch\d+): SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,6}),?\s*(.*)$)re");
    XidFact fact;
    std::string rest;
    if (!RE2::PartialMatch(Piece(line.text), pattern, &fact.device, &fact.pci, &fact.number, &rest)) return false;
    // The registers of the error that the line before names.
    if (rest.starts_with("Severity ") || rest.starts_with("Data ")) return true;
    fact.nvswitch = true;
    fact.bus_id = model::ParseBusId(fact.pci);
    Text(rest, &fact);
    Keep(std::move(fact), line);
    return true;
  }

  // Takes "pid=7, name=python3, " from the start; forms: pid='<unknown>', pid=<unknown>, pid=N/A, name=<unknown>.
  static void TakeProcess(std::string* rest, XidFact* fact) {
    static const RE2& pid = *new RE2(R"(^pid=(?:'?<?unknown>?'?|'<unknown>'|(\d{1,18})|[^,\s]*),?\s*)");
    static const RE2& name = *new RE2(R"(^name=([^,]{0,64}),?\s*)");
    std::string digits;
    re2::StringPiece input(*rest);
    if (RE2::Consume(&input, pid, &digits) && !digits.empty()) fact->pid = std::stoll(digits);
    if (RE2::Consume(&input, name, &fact->process) && (fact->process == "<unknown>" || fact->process == "unknown"))
      fact->process.clear();
    fact->process = Printable(fact->process, 64);
    *rest = std::string(input);
  }

  static void Text(const std::string& rest, XidFact* fact) {
    static const RE2& caused = *new RE2(R"(caused by previous Xid (\d{1,4})\b)");
    static const RE2& link = *new RE2(R"((?i)\blink\s+(-?\d{1,3})\b)");
    static const RE2& unit = *new RE2(R"(^([A-Z][A-Z0-9_]{2,})\s+(?:Fatal|Nonfatal|Non-fatal)\b)");
    static const RE2& action =
        *new RE2(R"(recovery action changed from [^()]*(?:\([^()]*\))?\s*to (?:0x[0-9a-fA-F]+ )?\(?([^()]+?)\)?\s*$)");
    fact->text = Printable(rest, kMostText);
    const re2::StringPiece text(fact->text);
    RE2::PartialMatch(text, caused, &fact->caused_by);
    if (RE2::PartialMatch(text, link, &fact->link) && fact->link < 0) fact->link = -1;
    RE2::PartialMatch(text, unit, &fact->unit);
    if (fact->number == 154 && !fact->nvswitch) RE2::PartialMatch(text, action, &fact->action);
    static const RE2& nonfatal = *new RE2(R"((?i)\bnon-?fatal\b)");
    static const RE2& fatal = *new RE2(R"((?i)\bfatal\b)");
    if (RE2::PartialMatch(text, nonfatal)) {
      fact->severity = XidFact::Severity::kNonfatal;
    } else if (RE2::PartialMatch(text, fatal)) {
      fact->severity = XidFact::Severity::kFatal;
    }
  }

  // "NVRM: The NVIDIA GPU 0000:b3:00.0" / "NVRM: (PCI ID: 10de:26b5) installed in this system has" / "NVRM: fallen off the bus
  // and is not responding to commands.", in one line or several; "NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus." beside
  // a 79.
  bool FallenOff(const TextLine& line) {
    static const std::string& address =
        *new std::string(R"((?:at )?(?:PCI:)?([0-9a-fA-F]{0,8}:?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?))");
    static const RE2& start = *new RE2("NVRM: The NVIDIA GPU " + address);
    static const RE2& whole = *new RE2("NVRM: GPU " + address + ": GPU has fallen off the bus");
    std::string pci;
    const bool fell = line.text.find("fallen off the bus") != line.text.npos;
    if (RE2::PartialMatch(Piece(line.text), whole, &pci)) {
      KeepFallen(pci, line, Printable(line.text, kMostQuote));
      fallen_.reset();
      return false;
    }
    if (RE2::PartialMatch(Piece(line.text), start, &pci)) {
      fallen_ = std::make_unique<Fallen>();
      fallen_->pci = pci;
      fallen_->where = line.where;
      fallen_->time = line.time;
      fallen_->by = line.by;
      fallen_->quote = Printable(line.text, 200);
      if (!fell) return true;
    } else if (fallen_) {
      // A continuation may have lost its time stamp and its "NVRM: ".
      std::string_view text = line.text;
      while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
      if (text.starts_with("NVRM: ")) text.remove_prefix(6);
      if (fallen_->quote.size() < 400) fallen_->quote += " " + Printable(text, 160);
      ++fallen_->lines;
    }
    if (fell && fallen_) {
      TextLine first = line;
      first.where = fallen_->where;
      first.time = fallen_->time;
      first.by = fallen_->by;
      const std::string quote = fallen_->quote;
      KeepFallen(fallen_->pci, first, quote);
      fallen_.reset();
      return false;
    }
    if (fallen_ && fallen_->lines >= kMostFallenLines) fallen_.reset();
    return fallen_ != nullptr;
  }

  void KeepFallen(const std::string& pci, const TextLine& line, const std::string& quote) {
    XidFact fact;
    fact.number = 79;
    fact.unnumbered = true;
    fact.pci = pci;
    fact.bus_id = model::ParseBusId(pci);
    fact.severity = XidFact::Severity::kFatal;
    fact.text = "fallen off the bus";
    fact.quote = quote;
    Keep(std::move(fact), line);
  }

  void Keep(XidFact fact, const TextLine& line) {
    fact.where = fact.last = line.where;
    fact.time = fact.last_time = line.time;
    // The process is the one that used the GPU; a rank that a file's name or a launcher told says whose host this is, not whose
    // GPU.
    fact.by = model::Speaker();
    fact.by.host = line.by.host;
    fact.by.pid = fact.pid;
    if (fact.quote.empty()) fact.quote = Printable(line.quote, kMostQuote);
    auto& facts = context_.evidence->kernel.xids;
    const auto key = std::make_tuple(fact.by.host, fact.pci, fact.number * 2 + fact.nvswitch, fact.link, fact.pid,
                                     fact.caused_by + (fact.unnumbered ? 100000 : 0));
    const auto [known, fresh] = known_.try_emplace(key, facts.size());
    if (!fresh) {
      XidFact& first = facts[known->second];
      ++first.repeats;
      first.last = line.where;
      first.last_time = line.time;
      if (!fact.action.empty()) first.action = fact.action;  // the newest holds
      if (fact.severity == XidFact::Severity::kFatal) first.severity = fact.severity;
      return;
    }
    if (known_.size() > kMostFacts) {
      known_.erase(known);
      return;
    }
    facts.push_back(std::move(fact));
  }

  struct Fallen {
    std::string pci, quote;
    model::Where where;
    model::Stamp time;
    model::Speaker by;
    int lines = 0;
  };
  const FileContext& context_;
  std::unique_ptr<Fallen> fallen_;
  std::map<std::tuple<std::string, std::string, int, int, int64_t, int>, size_t> known_;
};

const RegisterReader kRegister(LineReaderType{
    "Xid",
    {R"(NVRM: (?:GPU\d+ )?Xid )", R"(nvidia-nvswitch\d+: SXid )", R"(NVRM: The NVIDIA GPU )",
     R"(NVRM: GPU .*fallen off the bus)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<XidReader>(context); }});

}  // namespace
}  // namespace ringscope::ingest
