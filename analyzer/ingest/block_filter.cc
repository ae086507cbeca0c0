#include "analyzer/ingest/block_filter.h"

#include <re2/set.h>

#include <algorithm>

#include "analyzer/ingest/readers.h"
#include "catalog/catalog.h"

#if RINGSCOPE_VECTORSCAN
#include <hs/hs.h>
#endif

namespace ringscope::ingest {

namespace {

// The end of the group or class that begins at `at`.
size_t EndOf(std::string_view pattern, size_t at) {
  int depth = 0;
  for (size_t i = at; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '[') {
      // "[]x]" and "[^]x]" hold the bracket.
      size_t j = i + 1;
      if (j < pattern.size() && pattern[j] == '^') ++j;
      if (j < pattern.size() && pattern[j] == ']') ++j;
      while (j < pattern.size() && pattern[j] != ']') j += pattern[j] == '\\' ? 2 : 1;
      i = j;
      if (depth == 0) return i;
    } else if (pattern[i] == '(') {
      ++depth;
    } else if (pattern[i] == ')' && --depth == 0) {
      return i;
    }
  }
  return pattern.size();
}

std::vector<std::string_view> Alternatives(std::string_view pattern) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '(' || pattern[i] == '[') {
      i = EndOf(pattern, i);
    } else if (pattern[i] == '|') {
      parts.push_back(pattern.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(pattern.substr(std::min(start, pattern.size())));
  return parts;
}

using Texts = std::vector<RequiredText>;

// How much a set of texts says: as much as its shortest.
size_t Weight(const Texts& texts) {
  size_t least = texts.empty() ? 0 : texts[0].text.size();
  for (const RequiredText& t : texts) least = std::min(least, t.text.size());
  return least;
}

Texts OfPattern(std::string_view pattern, bool caseless);

// Of a pattern without alternatives at its top.
Texts OfSequence(std::string_view pattern, bool caseless) {
  Texts best;
  std::string run;
  const auto offer = [&](Texts texts) {
    if (Weight(texts) > Weight(best)) best = std::move(texts);
  };
  const auto close = [&] {
    if (!run.empty()) offer({{run, caseless}});
    run.clear();
  };
  const auto optional = [&](size_t next) {
    return next < pattern.size() && (pattern[next] == '?' || pattern[next] == '*' || pattern[next] == '{');
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '(' || c == '[') {
      close();
      const size_t end = EndOf(pattern, i);
      if (c == '(' && end < pattern.size()) {
        std::string_view inside = pattern.substr(i + 1, end - i - 1);
        bool inner = caseless;
        if (inside.starts_with("?P<")) {
          inside.remove_prefix(std::min(inside.find('>') + 1, inside.size()));
        } else if (inside.starts_with("?i:")) {
          inside.remove_prefix(3);
          inner = true;
        } else if (inside == "?i") {
          caseless = true;
          inside = {};
        } else if (inside.starts_with("?:")) {
          inside.remove_prefix(2);
        } else if (inside.starts_with("?")) {
          inside = {};
        }
        if (!optional(end + 1)) offer(OfPattern(inside, inner));
      }
      i = end;
      continue;
    }
    const bool escaped = c == '\\' && i + 1 < pattern.size();
    if (escaped) ++i;
    const char literal = pattern[i];
    const bool is_class = escaped ? (literal >= '0' && literal <= '9') || ((literal | 32) >= 'a' && (literal | 32) <= 'z')
                                  : std::string_view(".^$*+?{}").find(literal) != std::string_view::npos;
    if (is_class) {
      close();
      if (!escaped && literal == '{') i = std::min(pattern.find('}', i), pattern.size());
      continue;
    }
    if (optional(i + 1)) {
      close();
      continue;
    }
    run += literal;
    if (i + 1 < pattern.size() && pattern[i + 1] == '+') close();
  }
  close();
  return best;
}

Texts OfPattern(std::string_view pattern, bool caseless) {
  Texts all;
  // "(?i)a|b" is caseless throughout.
  const bool whole = pattern.starts_with("(?i)");
  for (const std::string_view part : Alternatives(pattern)) {
    Texts texts = OfSequence(part, caseless || whole);
    if (texts.empty()) return {};
    all.insert(all.end(), texts.begin(), texts.end());
  }
  return all;
}

}  // namespace

std::vector<RequiredText> RequiredTexts(std::string_view pattern) { return OfPattern(pattern, false); }

#if RINGSCOPE_VECTORSCAN
namespace {

// Shorter texts stand in every other line; the pattern itself says more.
constexpr size_t kLeastText = 5;

struct Needle {
  std::string pattern;
  unsigned flags;
  auto operator<=>(const Needle&) const = default;
};

// What the engine looks for. False: the pattern has no text that is worth it.
bool AddNeedles(const std::string& pattern, std::vector<Needle>* needles) {
  const Texts texts = RequiredTexts(pattern);
  if (Weight(texts) < kLeastText) return false;
  for (const RequiredText& required : texts) {
    std::string needle;
    for (const char c : required.text) {
      if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) needle += '\\';
      needle += c;
    }
    needles->push_back({needle, required.caseless ? HS_FLAG_CASELESS : 0u});
  }
  return true;
}

// Lines that cleaning changes in their middle: they are looked at whatever they hold.
const char* const kDamage[] = {"\\x1b", "\\r[^\\n]", "&(?:gt|lt|amp|quot|#39);", "\\[\\d+(?:;\\d+)*m", "\\]\\(http"};

class Vectorscan : public BlockFilter {
 public:
  ~Vectorscan() override {
    hs_free_scratch(scratch_);
    hs_free_database(database_);
  }

  bool Compile(const std::vector<Needle>& needles) {
    std::vector<const char*> texts;
    std::vector<unsigned> flags;
    for (const Needle& needle : needles) {
      texts.push_back(needle.pattern.c_str());
      flags.push_back(needle.flags);
    }
    std::vector<unsigned> ids(texts.size());
    hs_compile_error_t* error = nullptr;
    const hs_error_t result = hs_compile_multi(texts.data(), flags.data(), ids.data(), static_cast<unsigned>(texts.size()),
                                               HS_MODE_BLOCK, nullptr, &database_, &error);
    hs_free_compile_error(error);
    return result == HS_SUCCESS && hs_alloc_scratch(database_, &scratch_) == HS_SUCCESS;
  }

  // Patterns without a text of their own. Most are anchored: such a set gives up after a few bytes of a line.
  bool AddRest(const std::vector<std::string>& patterns) {
    RE2::Options options;
    options.set_encoding(RE2::Options::EncodingLatin1);
    options.set_log_errors(false);
    options.set_max_mem(int64_t{64} << 20);
    anchored_ = std::make_unique<RE2::Set>(options, RE2::ANCHOR_START);
    anywhere_ = std::make_unique<RE2::Set>(options, RE2::UNANCHORED);
    for (const std::string& pattern : patterns) {
      const std::string_view flags = pattern.starts_with("(?i)") ? "(?i)" : "";
      const bool anchored = std::string_view(pattern).substr(flags.size()).starts_with('^') && Alternatives(pattern).size() == 1;
      if ((anchored ? anchored_ : anywhere_)->Add(pattern, nullptr) < 0) return false;
    }
    return anchored_->Compile() && anywhere_->Compile();
  }

  bool Other(std::string_view text) const override {
    const re2::StringPiece piece(text.data(), text.size());
    return anchored_->Match(piece, nullptr) || anywhere_->Match(piece, nullptr);
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
  std::unique_ptr<RE2::Set> anchored_, anywhere_;
};

}  // namespace

std::unique_ptr<BlockFilter> BlockFilter::Make(const std::vector<std::string>& patterns) {
  std::vector<Needle> all;
  std::vector<std::string> rest;
  for (const std::string& pattern : patterns) {
    if (!AddNeedles(pattern, &all)) rest.push_back(pattern);
  }
  std::sort(rest.begin(), rest.end());
  rest.erase(std::unique(rest.begin(), rest.end()), rest.end());
  for (const char* pattern : kDamage) all.push_back({pattern, 0});
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (hs_valid_platform() != HS_SUCCESS) return nullptr;
  auto filter = std::make_unique<Vectorscan>();
  if (!filter->Compile(all) || !filter->AddRest(rest)) return nullptr;
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
