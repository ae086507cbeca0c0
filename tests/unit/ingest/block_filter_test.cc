#include "analyzer/ingest/block_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/signature_matcher.h"
#include "analyzer/ingest/text_line.h"
#include "analyzer/ingest/text_reader.h"
#include "catalog/catalog.h"

namespace ringscope::ingest {
namespace {

TEST(BlockFilter, TheTextsThatMatchesHold) {
  const auto of = [](std::string_view pattern) {
    std::string texts;
    for (const RequiredText& t : RequiredTexts(pattern)) texts += (t.caseless ? "i:" : "") + t.text + ";";
    return texts;
  };
  EXPECT_EQ(of("Watchdog caught collective (?P<what>\\w+) timeout"), "Watchdog caught collective ;");
  EXPECT_EQ(of("a?bc+defg*hij\\.k"), "hij.k;");
  EXPECT_EQ(of("one|three"), "one;three;");
  EXPECT_EQ(of("x(?:one|three)yy(?P<n>four)?z"), "one;three;");
  EXPECT_EQ(of("x(?:one|th?)yyy"), "yyy;");
  EXPECT_EQ(of("x(?:seven (?:or )?eight)+"), "seven ;");
  EXPECT_EQ(of("[abc]{3}[]x]de{2}f"), "d;");
  EXPECT_EQ(of("(?i)whatever|else"), "i:whatever;i:else;");
  EXPECT_EQ(of("plain (?i:case) more words"), " more words;");
  EXPECT_EQ(of("\\d+\\(\\)"), "();");
  EXPECT_EQ(of("text|\\d+"), "");
  EXPECT_EQ(of("(unclosed"), "");
  EXPECT_EQ(of("(?:|a)"), "");
}

// What the matcher finds in a cleaned line, the filter must not pass over, however the line is wrapped or damaged.
TEST(BlockFilter, PassesOverNoLineThatMatches) {
  BlockFilter* filter = BlockFilter::All();
  if (filter == nullptr) GTEST_SKIP() << "built without Vectorscan";
  const auto& matcher = SignatureMatcher::All();
  std::mt19937 random(3);
  const char* const wrappers[] = {
      "", "[rank5]: ", "[1,12]<stderr>:", "2026-01-02T03:04:05Z ", "> ", "\x1b[36m(RayWorker pid=7)\x1b[0m ", "10%|#\r"};
  int checked = 0;
  for (const auto& signature : catalog::Signatures().signature()) {
    for (const std::string& example : signature.examples()) {
      const std::string line = wrappers[random() % 7] + example + (random() % 2 ? "\r" : "");
      LineCleaner cleaner;
      SignatureMatcher::Hits hits;
      bool matches = false, other = false;
      for (size_t start = 0, end; start <= line.size(); start = end + 1) {
        end = std::min(line.find('\r', start), line.size());
        const TextLine clean = cleaner.Clean(std::string_view(line).substr(start, end - start), {0, 1});
        matches |= matcher.Match(clean.text, &hits);
        other |= filter->Other(clean.text);
      }
      if (!matches) continue;
      const std::string block = "an innocent line\n" + line + "\nanother\n";
      const auto& ends = filter->Scan(block);
      const size_t begin = 17;
      EXPECT_TRUE(other ||
                  std::any_of(ends.begin(), ends.end(), [&](size_t at) { return at >= begin && at <= begin + line.size(); }))
          << line;
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

// The same events with the filter (a long log) and without (short ones).
TEST(BlockFilter, ALongLogGivesTheSameEvents) {
  std::string filler;
  while (filler.size() < (33u << 20)) filler += "step 1 loss 2.0 nothing to see here, a line as any other in a job's log\n";
  std::string examples;
  for (const auto& signature : catalog::Signatures().signature()) {
    for (const std::string& example : signature.examples()) examples += example + "\r\n";
  }
  model::Evidence with, without;
  ASSERT_TRUE(ReadTextBytes("long", filler + examples, &with).ok());
  ASSERT_TRUE(ReadTextBytes("short", examples, &without).ok());
  ASSERT_EQ(with.events.size(), without.events.size());
  const auto offset = static_cast<uint32_t>(std::count(filler.begin(), filler.end(), '\n'));
  for (size_t i = 0; i < with.events.size(); ++i) {
    EXPECT_EQ(with.events[i].signature, without.events[i].signature);
    EXPECT_EQ(with.events[i].where.line, without.events[i].where.line + offset);
    EXPECT_EQ(with.events[i].text, without.events[i].text);
  }
  EXPECT_EQ(with.settings.size(), without.settings.size());
}

}  // namespace
}  // namespace ringscope::ingest
