// Filesystems and how full they are: `df`, `df -h`, `df -T`.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/tool_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 12;
constexpr size_t kMostLine = 200;

class Df : public LineReader {
 public:
  explicit Df(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (hosts_.Heading(line)) return table_ = false;
    model::Speaker by;
    const std::string_view text = Trim(hosts_.Strip(line, &by));
    static const RE2& header = *new RE2(R"(^Filesystem\s+(?:Type\s+)?(\S+)\s.*Mounted on$)");
    std::string blocks;
    if (RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), header, &blocks)) {
      has_type_ = Contains(text, "Type");
      unit_ = blocks == "1K-blocks"    ? 1024
              : blocks == "1M-blocks"  ? 1 << 20
              : blocks == "512-blocks" ? 512
              : blocks == "1G-blocks"  ? 1 << 30
                                       : 1;
      return table_ = true;
    }
    if (table_) return table_ = Row(text, line, by, has_type_, unit_);
    Row(text, line, by, false, 1);  // a row whose header was left out: only sizes with units tell
    return false;
  }

 private:
  bool Row(std::string_view text, const TextLine& line, const model::Speaker& by, bool has_type, uint64_t unit) {
    const auto words = Words(text);
    const size_t at = has_type ? 2 : 1;
    if (words.size() != at + 5 || !words[at + 3].ends_with("%") || !words[at + 4].starts_with("/")) return false;
    model::Filesystem fs;
    const auto size = SizeOf(words[at], unit), used = SizeOf(words[at + 1], unit), available = SizeOf(words[at + 2], unit);
    if (!size || !used || !available) return false;
    fs.mount = words[at + 4];
    fs.type = has_type ? words[1] : words[0];
    fs.size = *size;
    fs.used = *used;
    fs.available = *available;
    fs.text = std::string(text.substr(0, kMostLine));
    fs.where = line.where;
    fs.by = by;
    auto& all = context_.evidence->network.filesystems;
    if (all.size() < kMost) all.push_back(std::move(fs));
    return true;
  }

  const FileContext& context_;
  HostOfOutput hosts_;
  bool table_ = false, has_type_ = false;
  uint64_t unit_ = 1;
};

std::vector<std::string> Triggers() {
  std::vector<std::string> triggers = {R"(Filesystem\s.*Mounted on)", R"(\d[KMGT]?\s+\d{1,3}%\s+/(?:dev/shm|tmp|$))"};
  const auto& more = HostOfOutput::Triggers();
  triggers.insert(triggers.end(), more.begin(), more.end());
  return triggers;
}

const RegisterReader kRegister(LineReaderType{
    "df", Triggers(), [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Df>(context); }});

}  // namespace
}  // namespace ringscope::ingest
