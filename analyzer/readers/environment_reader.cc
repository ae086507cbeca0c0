// Settings as shells and launchers give them: `export NCCL_X=1`, `NCCL_X=1 python …`, the output of env, `mpirun -x NCCL_X=1`,
// `docker run -e NCCL_X=1`. Only of programs that matter to a job's communication. A note of what was tried ("NCCL_X=1: works")
// is no setting in force.
#include <re2/re2.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMostSettings = 4096;  // of a file

class Environment : public LineReader {
 public:
  explicit Environment(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& assignment = *new RE2(R"(([A-Z][A-Z0-9_]*)=("[^"]*"|'[^']*'|[^\s;]*)[ \t;]*)");
    static const RE2& option = *new RE2(R"((?:^|\s)(?:-x|-e|--env|--genv)[ =]([A-Z][A-Z0-9_]*)=("[^"]*"|'[^']*'|[^\s;]*))");
    static const RE2& ours = *new RE2(
        R"((?:NCCL|TORCH|PYTORCH|CUDA|VLLM|SGLANG|GLOO|UCX|FI|OMPI|NVSHMEM|SHARP|GDRCOPY|DEEPSPEED)_\w+|LD_LIBRARY_PATH|)"
        R"(LD_PRELOAD|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)");
    static const RE2& command = *new RE2(
        R"(^\s*(?:$|#|;|&&|\\|(?:\S*/)?(?:python\S*|torchrun|mpirun|mpiexec|srun|accelerate|deepspeed|vllm|bash|sh|env|)"
        R"(numactl|nsys|\.\S*)\b|\S*/\S))");
    if (line.nccl != TextLine::Nccl::kNone) return false;
    re2::StringPiece rest(line.text.data(), line.text.size());
    std::string name, value;
    RE2::Consume(&rest, R"(\s*(?:[\w@.~:/-]*[$#] )?(?:export |set |setenv |declare -x )?)");
    std::vector<std::pair<std::string, std::string>> assigned;
    while (RE2::Consume(&rest, assignment, &name, &value)) assigned.emplace_back(name, value);
    if (RE2::PartialMatch(rest, command)) {
      for (const auto& [n, v] : assigned) Put(n, v, ours, line);
    }
    re2::StringPiece options(line.text.data(), line.text.size());
    while (RE2::FindAndConsume(&options, option, &name, &value)) Put(name, value, ours, line);
    return false;
  }

 private:
  void Put(const std::string& name, std::string value, const RE2& ours, const TextLine& line) {
    if (!RE2::FullMatch(name, ours) || ++kept_ > kMostSettings) return;
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'')) value = value.substr(1, value.size() - 2);
    context_.evidence->settings.push_back({name, value, line.where, line.by});
  }

  const FileContext& context_;
  size_t kept_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "environment",
    {R"((?:^|\s)(?:NCCL|TORCH|PYTORCH|CUDA|VLLM|SGLANG|GLOO|UCX|FI|OMPI|NVSHMEM|SHARP|GDRCOPY|DEEPSPEED)_\w+=)",
     R"((?:^|export |-x |-e )(?:LD_LIBRARY_PATH|LD_PRELOAD|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)=)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Environment>(context); }});

}  // namespace
}  // namespace ringscope::ingest
