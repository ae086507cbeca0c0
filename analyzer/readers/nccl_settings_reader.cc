// "NCCL_P2P_DISABLE set by environment to 1.": what was asked of NCCL.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

class NcclSettings : public LineReader {
 public:
  explicit NcclSettings(const FileContext& context) : context_(context) {}
  bool Line(const TextLine& line) override {
    // src/misc/param.cc prints a final dot after numbers, src/init.cc none after strings.
    static const RE2& pattern = *new RE2(R"((NCCL_\w+) set by environment to (\S+?)\.?$)");
    std::string name, value;
    if (RE2::PartialMatch(re2::StringPiece(line.text.data(), line.text.size()), pattern, &name, &value))
      context_.evidence->settings.push_back({name, value, line.where, line.by});
    return false;
  }

 private:
  const FileContext& context_;
};

const RegisterReader kRegister(LineReaderType{
    "NCCL settings", {R"(NCCL_\w+ set by environment to )"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NcclSettings>(context); }});

}  // namespace
}  // namespace ringscope::ingest
