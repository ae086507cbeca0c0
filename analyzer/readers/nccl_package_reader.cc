// NCCL as Python's package tools list it: "nvidia-nccl-cu12==2.21.5" (pip freeze, requirements), "nvidia-nccl-cu12   2.21.5" (pip
// list), "nvidia-nccl-cu12 2.21.5 pypi_0 pypi" (conda list).
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

class NcclPackage : public LineReader {
 public:
  explicit NcclPackage(const FileContext& context) : context_(context) {}
  bool Line(const TextLine& line) override {
    static const RE2& pattern = *new RE2(R"((nvidia-nccl-cu\d+)\s*(?:==|@|\s|:)\s*v?(\d+\.\d+\.\d+[\w.+]*))");
    std::string name, version;
    if (RE2::PartialMatch(re2::StringPiece(line.text.data(), line.text.size()), pattern, &name, &version))
      context_.evidence->versions.push_back({name, version, line.where, line.by});
    return false;
  }

 private:
  const FileContext& context_;
};

const RegisterReader kRegister(LineReaderType{
    "NCCL's Python package", {R"(nvidia-nccl-cu\d+)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NcclPackage>(context); }});

}  // namespace
}  // namespace ringscope::ingest
