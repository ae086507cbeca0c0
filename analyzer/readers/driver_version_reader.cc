// The GPU driver's release as the kernel module tells it: "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  525.60.13"
// in the kernel log, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60.13" in /proc/driver/nvidia/version.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

class DriverVersion : public LineReader {
 public:
  explicit DriverVersion(const FileContext& context) : context_(context) {}
  bool Line(const TextLine& line) override {
    static const RE2& pattern = *new RE2(R"(NVRM(?: version)?: .*Kernel Module .*?(\d{3}\.\d{2,3}(?:\.\d{2})?)\b)");
    std::string version;
    if (RE2::PartialMatch(re2::StringPiece(line.text.data(), line.text.size()), pattern, &version))
      context_.evidence->versions.push_back({"driver", version, line.where, line.by});
    return false;
  }

 private:
  const FileContext& context_;
};

const RegisterReader kRegister(LineReaderType{
    "driver version",
    {R"(NVRM(?: version)?: (?:loading )?NVIDIA UNIX .*Kernel Module )"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<DriverVersion>(context); }});

}  // namespace
}  // namespace ringscope::ingest
