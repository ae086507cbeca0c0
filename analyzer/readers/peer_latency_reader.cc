// The matrices of NVIDIA's p2pBandwidthLatencyTest: latency and bandwidth between pairs of GPUs with and without peer access.
#include <absl/strings/numbers.h>
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 14;

class PeerMatrices : public LineReader {
 public:
  explicit PeerMatrices(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& head = *new RE2(R"(P2P=(Enabled|Disabled) (Latency|Bandwidth)[^M]*Matrix \((us|GB/s)\))");
    const std::string_view text = Trim(line.text);
    std::string access, what, unit;
    if (RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), head, &access, &what, &unit)) {
      enabled_ = access == "Enabled";
      latency_ = what == "Latency";
      wanted_ = line.where.line + kMostRows;
      return true;
    }
    const auto words = Words(text);
    if (words.empty() || line.where.line > wanted_) return false;
    // "   GPU     0      1", "   CPU     0      1" (the host's own view, of no interest), "   D\D     0      1".
    if (words[0] == "GPU" || words[0] == "D\\D" || words[0] == "CPU") {
      gpu_ = words[0] != "CPU";
      return true;
    }
    int from = 0;
    if (!absl::SimpleAtoi(Absl(words[0]), &from) || from < 0 || from > 1023) return false;
    for (size_t to = 0; gpu_ && to + 1 < words.size(); ++to) {
      double value = 0;
      if (!absl::SimpleAtod(Absl(words[to + 1]), &value) || static_cast<int>(to) == from || all().size() >= kMost) continue;
      all().push_back({from, static_cast<int>(to), enabled_, latency_, value, line.where, line.by});
    }
    return true;
  }

 private:
  static constexpr uint32_t kMostRows = 80;
  std::vector<model::PeerMeasurement>& all() { return context_.evidence->network.peer_measurements; }

  const FileContext& context_;
  bool enabled_ = false, latency_ = false, gpu_ = true;
  uint32_t wanted_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "p2pBandwidthLatencyTest",
    {R"(P2P=(?:Enabled|Disabled) (?:Latency|Bandwidth))"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<PeerMatrices>(context); }});

}  // namespace
}  // namespace ringscope::ingest
