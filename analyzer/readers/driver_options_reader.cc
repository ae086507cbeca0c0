// Options of the NVIDIA kernel module that change what paths exist: modprobe.d files, the kernel's command line, and
// /proc/driver/nvidia/params. Kept as settings under the option's or registry word's own name.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

class DriverOptions : public LineReader {
 public:
  explicit DriverOptions(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (Comment(line.text)) return false;
    const re2::StringPiece text(line.text.data(), line.text.size());
    // options nvidia NVreg_RegistryDwords="RMNvLinkEnable=0x0;RmX=1"; RegistryDwords: "RMNvLinkEnable=0"
    static const RE2& words = *new RE2(R"(RegistryDwords(?:PerDevice)?\s*[=:]\s*["']?([\w=;, :.-]{1,400}))");
    static const RE2& word = *new RE2(R"((R[Mm]\w{2,60})=(\w{1,18}))");
    static const RE2& option = *new RE2(R"(\b(?:NVreg_)?(NvLinkDisable)\s*[=:]\s*(\d{1,10}))");
    std::string list, name, value;
    if (RE2::PartialMatch(text, words, &list)) {
      re2::StringPiece rest(list);
      while (RE2::FindAndConsume(&rest, word, &name, &value)) Add(name, value, line);
    }
    if (RE2::PartialMatch(text, option, &name, &value)) Add("NVreg_" + name, value, line);
    return false;
  }

 private:
  static bool Comment(std::string_view text) {
    const size_t at = text.find_first_not_of(" \t");
    return at != text.npos && text[at] == '#';
  }
  void Add(const std::string& name, const std::string& value, const TextLine& line) {
    context_.evidence->settings.push_back({name, value, line.where, line.by});
  }

  const FileContext& context_;
};

const RegisterReader kRegister(LineReaderType{
    "NVIDIA module options",
    {R"(RegistryDwords\w*\s*[=:])", R"(NvLinkDisable\s*[=:])"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<DriverOptions>(context); }});

}  // namespace
}  // namespace ringscope::ingest
