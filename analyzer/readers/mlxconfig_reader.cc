// Settings of an adapter: `mlxconfig query`.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 12;

class MlxConfig : public LineReader {
 public:
  explicit MlxConfig(const FileContext& context) : context_(context) {}

  // "         PCI_WR_ORDERING                             force_relax(1)", "*        SRIOV_EN   False(0)  True(1)  True(1)".
  bool Line(const TextLine& line) override {
    static const RE2& pattern = *new RE2(R"(^\*?\s*([A-Z][A-Z0-9_]{3,60}(?:\[\d+\])?)\s+((?:[\w-]+\(-?\d+\)\s*)+)$)");
    if (hosts_.Heading(line)) return false;
    model::Speaker by;
    const std::string_view text = Trim(hosts_.Strip(line, &by));
    std::string name, value;
    auto& all = context_.evidence->network.adapter_settings;
    if (all.size() >= kMost || !RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern, &name, &value))
      return false;
    // Default, current and next value where all are asked for: the current one is in force.
    const auto words = Words(value);
    all.push_back({name, std::string(words.size() >= 3 ? words[1] : words[0]), line.where, by});
    return false;
  }

 private:
  const FileContext& context_;
  HostOfOutput hosts_;
};

std::vector<std::string> Triggers() {
  std::vector<std::string> triggers = {R"(^\s*(?:[\w.-]+: +)?\*?\s*[A-Z][A-Z0-9_]{3,60}(?:\[\d+\])?\s+[\w-]+\(-?\d+\))"};
  const auto& more = HostOfOutput::Triggers();
  triggers.insert(triggers.end(), more.begin(), more.end());
  return triggers;
}

const RegisterReader kRegister(LineReaderType{
    "mlxconfig", Triggers(),
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<MlxConfig>(context); }});

}  // namespace
}  // namespace ringscope::ingest
