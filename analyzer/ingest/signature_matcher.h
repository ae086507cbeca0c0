// Which lines matter: all signatures of the catalogue and all triggers of line readers, matched in one pass.
#ifndef RINGSCOPE_ANALYZER_INGEST_SIGNATURE_MATCHER_H_
#define RINGSCOPE_ANALYZER_INGEST_SIGNATURE_MATCHER_H_

#include <re2/re2.h>
#include <re2/set.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"

namespace ringscope::ingest {

class SignatureMatcher {
 public:
  // Of the whole catalogue and all registered line readers. Built at the first call; a bad pattern is a programming error that
  // a test finds.
  static const SignatureMatcher& All();

  SignatureMatcher(const catalog::SignatureFile& signatures, const std::vector<std::vector<std::string>>& triggers);

  // Patterns that were refused, with the reason; empty in a good build.
  const std::vector<std::string>& errors() const { return errors_; }

  struct Hits {
    std::vector<int> set;  // scratch
    std::vector<std::pair<const catalog::Signature*, const RE2*>> signatures;  // one a signature, the first pattern that matches
    std::vector<int> readers;  // indices of `triggers`, ascending, once each
  };
  // True when anything matched.
  bool Match(std::string_view text, Hits* hits) const;

  // The named groups of `pattern` in `text` that took part.
  static std::vector<std::pair<std::string, std::string>> Fields(const RE2& pattern, std::string_view text);

 private:
  struct Target {
    const catalog::Signature* signature = nullptr;
    std::unique_ptr<RE2> pattern;  // of a signature
    int reader = -1;
  };
  void Add(const std::string& pattern, Target target);

  std::unique_ptr<RE2::Set> set_;
  std::vector<Target> targets_;  // by index in the set
  std::vector<std::string> errors_;
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_SIGNATURE_MATCHER_H_
