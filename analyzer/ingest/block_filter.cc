#include "analyzer/ingest/block_filter.h"

#include <algorithm>

#include "analyzer/ingest/readers.h"
#include "catalog/catalog.h"

#if RINGSCOPE_VECTORSCAN
#include <hs/hs.h>
#endif

namespace ringscope::ingest {

// Cleaning takes things away in front of a message (wrappers) and behind it (a carriage return), so anchors hold in the cleaned
// line only.
std::string WithoutAnchors(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (!in_class && (next == 'A' || next == 'z' || next == 'b' || next == 'B')) continue;
      out += c;
      out += next;
      continue;
    }
    if (in_class) {
      in_class = c != ']' || out.back() == '[' || (out.back() == '^' && out.size() > 1 && out[out.size() - 2] == '[');
    } else if (c == '[') {
      in_class = true;
    } else if (c == '^' || c == '$') {
      continue;
    }
    out += c;
  }
  return out;
}

#if RINGSCOPE_VECTORSCAN
namespace {

// Lines that cleaning changes in their middle: they are looked at whatever they hold.
const char* const kDamage[] = {"\\x1b", "\\r[^\\n]", "&(?:gt|lt|amp|quot|#39);", "\\[\\d+(?:;\\d+)*m", "\\]\\(http"};

class Vectorscan : public BlockFilter {
 public:
  ~Vectorscan() override {
    hs_free_scratch(scratch_);
    hs_free_database(database_);
  }

  bool Compile(const std::vector<std::string>& patterns) {
    std::vector<const char*> texts;
    for (const std::string& pattern : patterns) texts.push_back(pattern.c_str());
    // A superset is enough, so constructs beyond the engine may be widened.
    const std::vector<unsigned> flags(texts.size(), HS_FLAG_PREFILTER | HS_FLAG_ALLOWEMPTY);
    std::vector<unsigned> ids(texts.size());
    hs_compile_error_t* error = nullptr;
    const hs_error_t result = hs_compile_multi(texts.data(), flags.data(), ids.data(), static_cast<unsigned>(texts.size()),
                                               HS_MODE_BLOCK, nullptr, &database_, &error);
    hs_free_compile_error(error);
    return result == HS_SUCCESS && hs_alloc_scratch(database_, &scratch_) == HS_SUCCESS;
  }

  const std::vector<size_t>& Scan(std::string_view block) override {
    ends_.clear();
    const auto on_match = [](unsigned, unsigned long long, unsigned long long to, unsigned, void* context) {
      auto& ends = *static_cast<std::vector<size_t>*>(context);
      if (ends.empty() || ends.back() != to) ends.push_back(to);
      return 0;
    };
    if (hs_scan(database_, block.data(), static_cast<unsigned>(block.size()), 0, scratch_, on_match, &ends_) != HS_SUCCESS) {
      // Nothing was found out: every line counts.
      ends_.clear();
      for (size_t at = 0; at <= block.size(); ++at) ends_.push_back(at);
    }
    if (!std::is_sorted(ends_.begin(), ends_.end())) std::sort(ends_.begin(), ends_.end());
    return ends_;
  }

 private:
  hs_database_t* database_ = nullptr;
  hs_scratch_t* scratch_ = nullptr;
  std::vector<size_t> ends_;
};

}  // namespace

std::unique_ptr<BlockFilter> BlockFilter::Make(const std::vector<std::string>& patterns) {
  std::vector<std::string> all;
  for (const std::string& pattern : patterns) all.push_back(WithoutAnchors(pattern));
  for (const char* pattern : kDamage) all.emplace_back(pattern);
  if (hs_valid_platform() != HS_SUCCESS) return nullptr;
  auto filter = std::make_unique<Vectorscan>();
  if (!filter->Compile(all)) return nullptr;
  return filter;
}
#else
std::unique_ptr<BlockFilter> BlockFilter::Make(const std::vector<std::string>&) { return nullptr; }
#endif

BlockFilter* BlockFilter::All() {
  static BlockFilter* const all = [] {
    std::vector<std::string> patterns;
    for (const auto& signature : catalog::Signatures().signature())
      patterns.insert(patterns.end(), signature.patterns().begin(), signature.patterns().end());
    for (const auto& reader : LineReaders()) patterns.insert(patterns.end(), reader.triggers.begin(), reader.triggers.end());
    return Make(patterns).release();
  }();
  return all;
}

}  // namespace ringscope::ingest
