// Versions wherever they stand: NCCL's banner, errors that quote it, package lists, frameworks' start lines, uname.
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMostVersions = 4096;  // of a file

struct Shape {
  const char* pattern;  // the version; or component and version, when component is nullptr
  const char* component;
};
// One line may say several ("nvidia-nccl-cu11==2.14.3 nvidia-nccl-cu12==2.27.3"): each shape is looked for again and again.
constexpr Shape kShapes[] = {
    // Banner (src/init.cc; a prefix since 2.22), torch's errors ("…, NCCL version 2.14.3"), RAS ("NCCL version 2.24.3 compiled
    // with").
    {R"(NCCL version:? ?v?(\d+\.\d+\.\d+)(?:[+\s.,]|$))", "nccl"},
    // nccl-tests 2.17.2: "nccl-library=22707".
    {R"(nccl-library=(\d{5}))", "nccl"},
    // vLLM, sglang: "vLLM is using nccl==2.28.9".
    {R"(using nccl==(\d+\.\d+\.\d+))", "nccl"},
    {R"(libnccl\.so\.(\d+\.\d+\.\d+))", "nccl"},
    {R"(\btorch\.cuda\.nccl\.version\(\)\D*\((\d+, ?\d+, ?\d+)\))", "nccl"},
    // pip freeze, conda list, pip list, dpkg -l; collect_env puts "[pip3] " before.
    {R"(\b(nvidia-nccl-cu\d+|libnccl2|libnccl-dev)(?:==|\s+|[ =@]+)v?(\d+\.\d+[\d.]*))", nullptr},
    {R"((?:^|\] )(nccl)\s+(\d+\.\d+\.\d+[\d.]*)\s)", nullptr},
    {R"((?:PyTorch version:|^torch==|\[pip3\] torch==|\[conda\] torch\s+) ?(\d+\.\d+\.\d+\S*))", "torch"},
    {R"((?:NVRM version: NVIDIA UNIX .*Kernel Module(?: for \S+)?\s+|Nvidia driver version: )(\d{3}\.\d+(?:\.\d+)?))", "driver"},
    // uname -a: the machine.
    {R"(^Linux \S+ \S+ .*?\b(x86_64|aarch64|ppc64le)\b)", "machine"},
};

class Versions : public LineReader {
 public:
  explicit Versions(const FileContext& context) : context_(context) {
    static const std::vector<std::unique_ptr<RE2>>& patterns = *[] {
      auto* made = new std::vector<std::unique_ptr<RE2>>;
      for (const Shape& shape : kShapes) made->push_back(std::make_unique<RE2>(shape.pattern));
      return made;
    }();
    patterns_ = &patterns;
  }

  bool Line(const TextLine& line) override {
    for (size_t i = 0; i < patterns_->size(); ++i) {
      re2::StringPiece rest(line.text.data(), line.text.size());
      const RE2& pattern = *(*patterns_)[i];
      std::string first, second;
      if (kShapes[i].component != nullptr) {
        while (RE2::FindAndConsume(&rest, pattern, &first)) Put(kShapes[i].component, first, line);
      } else {
        while (RE2::FindAndConsume(&rest, pattern, &first, &second)) Put(first, second, line);
      }
    }
    return false;
  }

 private:
  void Put(const std::string& component, std::string version, const TextLine& line) {
    while (!version.empty() && (version.back() == '.' || version.back() == ',')) version.pop_back();
    if (component == "nccl" && version.size() == 5 && version.find('.') == version.npos) {
      const int code = std::stoi(version);  // 22707 is 2.27.7 (NCCL_VERSION since 2.9)
      version = std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
    }
    for (size_t comma = version.find(','); comma != version.npos; comma = version.find(',')) {
      version[comma] = '.';
      if (comma + 1 < version.size() && version[comma + 1] == ' ') version.erase(comma + 1, 1);
    }
    auto& versions = context_.evidence->versions;
    // Every rank and every restart prints the same; one a speaker is enough.
    const auto key = std::make_tuple(component, version, line.by.host, line.by.pid, line.by.rank);
    if (seen_.size() >= kMostVersions || !seen_.emplace(key, true).second) return;
    versions.push_back({component, std::move(version), line.where, line.by});
  }

  const FileContext& context_;
  const std::vector<std::unique_ptr<RE2>>* patterns_;
  std::map<std::tuple<std::string, std::string, std::string, int64_t, int>, bool> seen_;
};

const RegisterReader kRegister(LineReaderType{
    "versions",
    {R"(NCCL version:? ?v?\d+\.)", R"(nccl-library=\d{5})", R"(using nccl==\d)", R"(libnccl\.so\.\d+\.\d)",
     R"(nccl\.version\(\))", R"((?:nvidia-nccl-cu\d+|libnccl2|libnccl-dev)[ =@\t]+v?\d)", R"((?:^|\] )nccl\s+\d+\.\d)",
     R"(PyTorch version: ?\d|^torch==|\] torch(==|\s+)\d)", R"(NVRM version: NVIDIA UNIX|Nvidia driver version: \d)",
     R"(^Linux \S+ \d+\.\d+\S* .*(?:x86_64|aarch64|ppc64le))"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Versions>(context); }});

}  // namespace
}  // namespace ringscope::ingest
