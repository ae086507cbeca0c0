// `nvidia-smi topo -m` and `topo -p2p …`: how the GPUs and NICs of a host are joined, and whether the driver grants peer access.
// Columns are told by tabs or by spaces (a paste keeps either), the header may be underlined by terminal codes.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <memory>
#include <string>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

using model::TopologyMatrix;

constexpr size_t kMostColumns = 512;

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (words.size() < kMostColumns) {
    const size_t start = text.find_first_not_of(" \t");
    if (start == text.npos) break;
    text.remove_prefix(start);
    const size_t end = text.find_first_of(" \t");
    words.push_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end);
  }
  return words;
}

bool Is(std::string_view word, const RE2& pattern) { return RE2::FullMatch(re2::StringPiece(word.data(), word.size()), pattern); }
bool IsDevice(std::string_view word) {
  static const RE2& pattern =
      *new RE2(R"((?:GPU|NIC|CX|GH|HCA)\d+|mlx[45]_\w+|bnxt_re\w+|irdma\w+|efa_\w+|rdmap\w+|ib\d+|roce\w+|hfi1_\d+|qedr\d+)");
  return word.size() < 64 && Is(word, pattern);
}
bool IsGpu(std::string_view word) {
  static const RE2& pattern = *new RE2(R"(GPU\d{1,4})");
  return Is(word, pattern);
}
bool IsTopologyCell(std::string_view word) {
  static const RE2& pattern = *new RE2(R"(SYS|NODE|PHB|PXB|PIX|SOC|NV\d{1,3}|C2C)");
  return Is(word, pattern);
}
bool IsP2pCell(std::string_view word) {
  static const RE2& pattern = *new RE2(R"(OK|CNS|GNS|TNS|NS|DR|U)");
  return Is(word, pattern);
}

class SmiTopology : public LineReader {
 public:
  explicit SmiTopology(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    const std::string_view text = line.text;
    if (const size_t at = text.find("-p2p "); at != text.npos && at + 5 < text.size() && Contains(text, "topo")) {
      capability_ = text[at + 5];
      return false;
    }
    if (Legend(text)) return false;
    const std::vector<std::string_view> words = Words(text);
    if (IsHeader(words)) {
      TopologyMatrix matrix;
      for (const std::string_view word : words) {
        if (!IsDevice(word)) break;
        matrix.columns.emplace_back(word);
      }
      matrix.where = line.where;
      matrix.by = line.by;
      matrix.capability = capability_;
      capability_ = 0;
      context_.evidence->plan.matrices.push_back(std::move(matrix));
      open_ = true;
      return true;
    }
    if (!open_) return false;
    open_ = Row(words, line);
    return open_;
  }

 private:
  // "GPU0 GPU1 … CPU Affinity NUMA Affinity"; a row has cells where the header has names.
  static bool IsHeader(const std::vector<std::string_view>& words) {
    if (words.empty() || words[0] != "GPU0") return false;
    return words.size() == 1 || IsDevice(words[1]) || words[1] == "CPU";
  }

  bool Row(const std::vector<std::string_view>& words, const TextLine& line) {
    if (words.empty() || !IsDevice(words[0])) return false;
    TopologyMatrix& matrix = context_.evidence->plan.matrices.back();
    if (matrix.rows.size() >= matrix.columns.size()) return false;
    const size_t n = matrix.columns.size();
    TopologyMatrix::Row row;
    row.name = words[0];
    row.where = line.where;
    for (size_t i = 1; i < words.size() && row.cells.size() < n; ++i) {
      const std::string_view word = words[i];
      if (word != "X" && !IsTopologyCell(word) && !IsP2pCell(word)) break;
      if (IsP2pCell(word)) matrix.kind = TopologyMatrix::Kind::kP2p;
      row.cells.emplace_back(word);
    }
    if (row.cells.size() < n) {
      context_.Note(absl::StrCat("line ", line.where.line, ": a row of nvidia-smi's topology has ", row.cells.size(),
                                 " columns, not ", n, "; row left out. Paste the table unwrapped"));
      return true;
    }
    if (words.size() > n + 1 && IsGpu(words[0])) row.cpu_affinity = words[n + 1];
    if (words.size() > n + 2 && IsGpu(words[0])) row.numa = words[n + 2];
    matrix.rows.push_back(std::move(row));
    return true;
  }

  // "  NIC0: mlx5_0".
  bool Legend(std::string_view text) {
    static const RE2& pattern = *new RE2(R"(\s*(NIC\d{1,3})\s*: (\w{1,40})\s*)");
    std::string nic, name;
    if (context_.evidence->plan.matrices.empty() ||
        !RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern, &nic, &name))
      return false;
    TopologyMatrix& matrix = context_.evidence->plan.matrices.back();
    if (matrix.where.file == context_.file && matrix.legend.size() < kMostColumns) matrix.legend[nic] = name;
    return true;
  }

  const FileContext& context_;
  bool open_ = false;
  char capability_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "nvidia-smi topo",
    {R"(^\s*GPU0(?:\s+(?:GPU1\b|NIC\d|mlx|CPU Aff)|\s*$))", R"(^\s*NIC\d+\s*: \w+\s*$)", R"(topo\s+-p2p \w)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<SmiTopology>(context); }});

}  // namespace
}  // namespace ringscope::ingest
