// PCIe error reports of the kernel, joined by device and severity: a failing link writes thousands of the same block.
// "pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0" (to 6.8), "AER: Correctable error message received from …"
// (since 6.9), then "…: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)" and the status bits by name
// (drivers/pci/pcie/aer.c).
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"

namespace ringscope::ingest {
namespace {

using model::AerFact;

constexpr size_t kMostDevices = 256;  // of one file
constexpr size_t kMostErrors = 16;

// A pattern in which "ADDR" stands for a group that takes a PCI address.
const RE2& Pattern(std::string text) {
  for (size_t at = text.find("ADDR"); at != text.npos; at = text.find("ADDR"))
    text.replace(at, 4, "[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]");
  return *new RE2(text);
}

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class AerReader : public LineReader {
 public:
  explicit AerReader(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& received =
        Pattern(R"(\w+ (ADDR): AER: (?:Multiple )?(Corrected|Correctable|Uncorrected|Uncorrectable))"
                R"((?: \((Fatal|Non-Fatal|Nonfatal)\))? error (?:message )?received(?: from|:) (?:(ADDR)|id=))");
    static const RE2& error = Pattern(
        R"(\w+ (ADDR): (?:AER: )?PCIe Bus Error: )"
        R"(severity=(Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((Fatal|Non-Fatal|Nonfatal)\))?, type=([A-Za-z ]+))");
    static const RE2& bit = Pattern(R"(\w+ (ADDR): (?:AER: )?\s+\[\s*\d+\]\s+(\w+))");
    std::string word, fatal, device, layer;
    if (RE2::PartialMatch(Piece(line.text), error, &device, &word, &fatal, &layer)) {
      AerFact* fact = Of(device, SeverityOf(word, fatal), line);
      if (fact == nullptr) return false;
      if (fact->layer.empty()) fact->layer = layer;
      // One block is one report, and one report may come without its "received" line.
      if (!(announced_ == device)) Count(line, fact);
      announced_.clear();
      current_ = device;
    } else if (std::string source; RE2::PartialMatch(Piece(line.text), received, &device, &word, &fatal, &source)) {
      if (!source.empty()) device = source;  // else an old kernel's "id=0018"
      if (AerFact* fact = Of(device, SeverityOf(word, fatal), line)) Count(line, fact);
      announced_ = device;
    } else if (!current_.empty() && RE2::PartialMatch(Piece(line.text), bit, &device, &word) && device == current_) {
      if (last_ != nullptr && last_->errors.size() < kMostErrors &&
          std::find(last_->errors.begin(), last_->errors.end(), word) == last_->errors.end())
        last_->errors.push_back(word);
    }
    return false;
  }

  void End() override {
    for (auto& [key, fact] : facts_) context_.evidence->kernel.aers.push_back(std::move(fact));
  }

 private:
  static AerFact::Severity SeverityOf(const std::string& word, const std::string& fatal) {
    if (word.starts_with("Correct")) return AerFact::Severity::kCorrected;
    return fatal == "Fatal" ? AerFact::Severity::kFatal : AerFact::Severity::kNonfatal;
  }

  AerFact* Of(const std::string& device, AerFact::Severity severity, const TextLine& line) {
    const auto key = std::make_pair(device, static_cast<int>(severity));
    auto it = facts_.find(key);
    if (it == facts_.end()) {
      if (facts_.size() >= kMostDevices) return last_ = nullptr;
      it = facts_.emplace(key, AerFact()).first;
      AerFact& fact = it->second;
      fact.device = device;
      fact.bus_id = model::ParseBusId(device);
      fact.severity = severity;
      fact.where = line.where;
      fact.time = line.time;
      fact.by = line.by;
      fact.quote = std::string(line.text.substr(0, 300));
      for (char& c : fact.quote) {
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
      }
    }
    return last_ = &it->second;
  }

  static void Count(const TextLine& line, AerFact* fact) {
    ++fact->count;
    fact->last = line.where;
    fact->last_time = line.time;
  }

  const FileContext& context_;
  std::map<std::pair<std::string, int>, AerFact> facts_;
  AerFact* last_ = nullptr;
  std::string announced_, current_;
};

const RegisterReader kRegister(LineReaderType{
    "PCIe AER",
    {R"(: AER: (?:Multiple )?(?:Un)?[Cc]orrect\w+ )", R"(PCIe Bus Error: severity=)",
     R"([0-9a-fA-F]{2}\.[0-7]: (?:AER: )?\s+\[\s*\d+\]\s+\w+)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<AerReader>(context); }});

}  // namespace
}  // namespace ringscope::ingest
