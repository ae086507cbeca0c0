// The signature catalogue checked as a whole: complete entries, patterns that compile, examples that only their own entry matches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "analyzer/ingest/signature_matcher.h"
#include "analyzer/ingest/text_line.h"
#include "catalog/catalog.h"

namespace ringscope {
namespace {

using ::testing::IsEmpty;

TEST(Signatures, PatternsAndTriggersCompile) { EXPECT_THAT(ingest::SignatureMatcher::All().errors(), IsEmpty()); }

TEST(Signatures, EntriesAreComplete) {
  std::set<std::string> ids;
  for (const catalog::Signature& s : catalog::Signatures().signature()) {
    SCOPED_TRACE(s.id());
    EXPECT_TRUE(ids.insert(s.id()).second) << "id used twice";
    EXPECT_EQ(s.id().find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
    EXPECT_FALSE(s.source().empty());
    EXPECT_FALSE(s.patterns().empty());
    EXPECT_FALSE(s.examples().empty());
    EXPECT_FALSE(s.versions().empty());
    EXPECT_FALSE(s.reference().empty());
    EXPECT_GE(s.shows().size(), 20u);
    EXPECT_NE(s.role(), catalog::Role::unspecified);
    // Where the reason may lie elsewhere, the reader must be told how to find out.
    if (s.role() == catalog::Role::symptom || s.role() == catalog::Role::cause) {
      EXPECT_FALSE(s.next().empty());
    }
  }
}

// An example that two entries match is two opinions about one line: name it in both `confused_with`, or narrow a pattern.
TEST(Signatures, ExamplesMatchTheirOwnEntryOnly) {
  const auto& matcher = ingest::SignatureMatcher::All();
  for (const catalog::Signature& s : catalog::Signatures().signature()) {
    for (const std::string& example : s.examples()) {
      SCOPED_TRACE(s.id() + ": " + example);
      ingest::LineCleaner cleaner;
      const ingest::TextLine line = cleaner.Clean(example, {0, 1});
      ingest::SignatureMatcher::Hits hits;
      matcher.Match(line.text, &hits);
      bool own = false;
      for (const auto& [hit, pattern] : hits.signatures) {
        own |= hit->id() == s.id();
        if (hit->id() == s.id()) continue;
        const auto& known = s.confused_with();
        EXPECT_TRUE(std::find(known.begin(), known.end(), hit->id()) != known.end()) << "also matched by " << hit->id();
      }
      EXPECT_TRUE(own) << "cleaned: " << line.text;
    }
  }
}

// A pattern nobody exemplifies is a pattern nobody tried.
TEST(Signatures, EveryPatternHasAnExample) {
  for (const catalog::Signature& s : catalog::Signatures().signature()) {
    for (const std::string& pattern : s.patterns()) {
      RE2::Options options;
      options.set_encoding(RE2::Options::EncodingLatin1);
      const RE2 re(pattern, options);
      bool matched = false;
      for (const std::string& example : s.examples()) {
        ingest::LineCleaner cleaner;
        matched |= RE2::PartialMatch(std::string(cleaner.Clean(example, {0, 1}).text), re);
      }
      EXPECT_TRUE(matched) << s.id() << ": no example for " << pattern;
    }
  }
}

}  // namespace
}  // namespace ringscope
