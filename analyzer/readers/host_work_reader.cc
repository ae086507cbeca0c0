// What a training script tells of work on the host while collectives wait: progress bars of tokenizers and downloads, lines about
// checkpoints, evaluation and data loaders that ended.
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/torch_text.h"

namespace ringscope::ingest {
namespace {

using Kind = model::HostWork::Kind;
// A bar is repainted thousands of times: the first and the newest line of a kind and speaker tell all.
constexpr size_t kMost = 4096;
constexpr int kKeptOfAKind = 32;

struct Rule {
  Kind kind;
  const char* pattern;
  bool over;
};

const std::vector<std::pair<Rule, std::unique_ptr<RE2>>>& Rules() {
  static const auto& rules = *[] {
    // Whoever says something about the end of a thing comes before whoever says something about the thing.
    static constexpr Rule kRules[] = {
        {Kind::kIterations,
         R"((?i)(?:data ?)?(?:loader|iterator|dataset|batches)\b.{0,20}\b(?:exhausted|ran out|)"
         R"(finished|depleted)\b.{0,60})",
         true},
        {Kind::kIterations, R"((?i)\b(?:finished|completed|done|processed)\b.{0,40}\b\d+ (?:batches|steps|iterations)\b)", true},
        {Kind::kSave,
         R"((?i)\b(?:saved|successfully saved|finished saving|done saving)\b.{0,60}(?:checkpoint|)"
         R"(model|optimizer|state))",
         true},
        {Kind::kSave,
         R"((?i)\b(?:saving|save_checkpoint|save_pretrained|writing checkpoint|checkpoint save|)"
         R"(dist_cp\.save|dcp\.save|async_save)\b)",
         false},
        {Kind::kSave, R"((?i)\bstart(?:ed|ing)? (?:to )?(?:save|saving|checkpoint))", false},
        {Kind::kPreprocess,
         R"((?i)\b(?:tokeniz(?:ing|er)|tokenis(?:ing|er)|preprocess(?:ing)?|grouping texts|packing|)"
         R"(converting format|filtering|map \(num_proc|mapping|building (?:train|valid|dataset|)"
         R"(index|samples?)|generating (?:train|test|validation) split|creating (?:index|cache)|)"
         R"(caching (?:dataset|images|labels)|scanning (?:images|labels))\b)",
         false},
        // Bars of the datasets library carry its function's name alone.
        {Kind::kPreprocess,
         R"((?i)^\s*(?:map|filter|flattening the indices|extracting|casting|sorting|sharding|packing|truncating)\b[^|]{0,40}:\s+\d+%\|)",
         false},
        {Kind::kDownload, R"((?i)\b(?:downloading|fetching \d+ files|resolving data files)\b)", false},
        {Kind::kLoad, R"((?i)\b(?:loading (?:checkpoint shards|safetensors|weights|dataset|model|checkpoint|state))\b)", false},
        {Kind::kEvaluate,
         R"((?i)\b(?:evaluat(?:e|ing|ion)\b|eval(?:uation)?(?::| step| batch| loop)|)"
         R"(validat(?:ing|ion)\b.{0,20}(?:step|batch|epoch|\d+%)))",
         false},
        {Kind::kCompile, R"((?i)\b(?:torch\.compile|autotune|compiling|jit-compiling|building extension|ninja: )\b)", false},
    };
    auto* all = new std::vector<std::pair<Rule, std::unique_ptr<RE2>>>;
    for (const Rule& rule : kRules) all->emplace_back(rule, std::make_unique<RE2>(rule.pattern));
    return all;
  }();
  return rules;
}

// "29:55", "1:02:03", "1 day, 02:03:04" of tqdm.
std::optional<int64_t> Seconds(std::string_view text) {
  int64_t total = 0, part = 0;
  for (const char c : text) {
    if (c == ':') {
      total = (total + part) * 60;
      part = 0;
    } else if (c >= '0' && c <= '9' && part < 1000000) {
      part = part * 10 + (c - '0');
    } else {
      return std::nullopt;
    }
    if (total > (int64_t{1} << 40)) return std::nullopt;
  }
  return total + part;
}

class HostWorkLines : public LineReader {
 public:
  explicit HostWorkLines(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    // A message may be glued behind a bar; an exception's text or NCCL's may speak of saving too.
    const size_t glued = std::min(line.text.find("[E "), line.text.find("Watchdog caught"));
    const std::string_view text = line.text.substr(0, std::min<size_t>(glued, 400));
    if (line.nccl != TextLine::Nccl::kNone || Contains(text, "Error: ") || Contains(text, "  File \"")) return false;
    const Rule* rule = nullptr;
    for (const auto& [candidate, pattern] : Rules()) {
      if (!RE2::PartialMatch(Piece(text), *pattern)) continue;
      rule = &candidate;
      break;
    }
    if (rule == nullptr) return false;
    model::HostWork work;
    work.kind = rule->kind;
    work.over = rule->over;
    static const RE2& bar = *new RE2(R"((\d{1,15})/(\d{1,15}) \[([\d:]{4,12})<)");
    static const RE2& count = *new RE2(R"((?i)\b(\d{1,12}) (?:batches|steps|iterations)\b)");
    static const RE2& at = *new RE2(R"((?i)\b(?:batch|step|iteration|iter)s?[ :=#]{1,3}(\d{1,12})\b)");
    int64_t done = 0, total = 0;
    std::string elapsed;
    if (RE2::PartialMatch(Piece(text), bar, &done, &total, &elapsed)) {
      work.done = done;
      work.total = total;
      work.elapsed_s = Seconds(elapsed);
      work.over = work.over || (total > 0 && done >= total);
    } else if (RE2::PartialMatch(Piece(text), count, &done) || RE2::PartialMatch(Piece(text), at, &done)) {
      work.done = done;
    }
    work.by = line.by;
    // The torch message glued behind a bar tells its own rank, not the bar's.
    if (glued != line.text.npos) {
      work.by = model::Speaker{};
      work.by.rank = context_.info().rank;
    }
    static const RE2& rank = *new RE2(R"((?i)\b(?:rank|worker)[ :=_]{0,2}(\d{1,7})\b)");
    int told = -1;
    if (work.by.rank < 0 && RE2::PartialMatch(Piece(text), rank, &told)) work.by.rank = told;
    work.text = QuoteOf(glued == line.text.npos ? line.quote : text);
    work.where = line.where;
    work.time = line.time;
    Keep(std::move(work));
    return false;
  }

 private:
  void Keep(model::HostWork work) {
    auto& all = context_.evidence->work.host_work;
    auto& kept = kept_[{static_cast<int>(work.kind), work.by.rank}];
    // A counter that moves (or a bar) replaces its last line.
    const bool moves = work.done.has_value();
    if (!kept.empty() && moves && kept.size() >= 2) {
      model::HostWork& last = all[kept.back()];
      if (last.done && !last.over && last.total == work.total) {
        last = std::move(work);
        return;
      }
    }
    if (static_cast<int>(kept.size()) >= kKeptOfAKind) {
      all[kept.back()] = std::move(work);
      return;
    }
    if (all.size() >= kMost) return;
    kept.push_back(all.size());
    all.push_back(std::move(work));
  }

  const FileContext& context_;
  std::map<std::pair<int, int>, std::vector<size_t>> kept_;
};

const RegisterReader kRegister(LineReaderType{
    "host work",
    {R"((?i)\b(?:tokeniz|tokenis|preprocess|grouping texts|packing|converting format|filtering|)"
     R"(map \(num_proc|building (?:train|valid|dataset|index|sample)|generating (?:train|)"
     R"(test|validation) split|caching (?:dataset|images|labels)|scanning (?:images|labels)))",
     R"((?i)^\s*(?:map|filter|flattening the indices|extracting|casting|sorting|sharding|packing|truncating)\b[^|]{0,40}:\s+\d+%\|)",
     R"((?i)\b(?:downloading|fetching \d+ files|resolving data files|loading (?:checkpoint|safetensors|weights|dataset|model|state)))",
     R"((?i)\b(?:saving|saved|save_checkpoint|save_pretrained|writing checkpoint|checkpoint save|)"
     R"(start(?:ed|ing)? (?:to )?(?:save|saving|checkpoint)))",
     R"((?i)\b(?:evaluat(?:e|ing|ion)\b|eval(?:uation)?(?::| step| batch| loop)|validat(?:ing|ion)\b))",
     R"((?i)\b(?:exhausted|ran out|depleted)\b)", R"((?i)\b\d+ (?:batches|steps|iterations)\b)",
     R"((?i)\b(?:torch\.compile|autotune|compiling|jit-compiling|building extension))"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<HostWorkLines>(context); }});

}  // namespace
}  // namespace ringscope::ingest
