// Lines by their numbers: the same numbers as the reader of texts gives them.
#include "analyzer/ingest/cited_lines.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <string>

namespace ringscope::ingest {
namespace {

using Found = std::map<uint32_t, std::string>;

// A few bytes at a time.
class Drops : public ByteSource {
 public:
  Drops(std::string bytes, size_t size) : bytes_(std::move(bytes)), size_(size) {}
  absl::StatusOr<bool> More(std::string* out) override {
    if (at_ >= bytes_.size()) return false;
    out->append(bytes_, at_, size_);
    at_ += size_;
    return true;
  }

 private:
  std::string bytes_;
  size_t size_, at_ = 0;
};

Found Of(const std::string& bytes, const std::set<uint32_t>& wanted, size_t piece = 1 << 16) {
  Drops source(bytes, piece);
  return CitedLines(&source, wanted);
}

TEST(CitedLines, Some) {
  for (const size_t piece : {1, 2, 3, 5, 100}) {
    EXPECT_EQ(Of("one\ntwo\n\nfour\nfive", {1, 3, 5}, piece), (Found{{1, "one"}, {3, ""}, {5, "five"}})) << piece;
    EXPECT_EQ(Of("one\ntwo\n", {2, 3, 4}, piece), (Found{{2, "two"}})) << piece;
    EXPECT_EQ(Of("\xef\xbb\xbfone\r\ntwo", {1}, piece), (Found{{1, "one\r"}})) << piece;
  }
}

TEST(CitedLines, NothingToFind) {
  EXPECT_EQ(Of("", {1}), Found{});
  EXPECT_EQ(Of("a\n", {0}), Found{});
  EXPECT_EQ(Of("a\n", {4294967295u}), Found{});
  EXPECT_EQ(Of("a\n", {}), Found{});
}

TEST(CitedLines, Utf16AsWindowsWritesIt) {
  const std::string text = "one\ntwo\n";
  std::string wide = "\xff\xfe";
  for (const char c : text) wide += c, wide += '\0';
  EXPECT_EQ(Of(wide, {2}), (Found{{2, "two"}}));
}

TEST(CitedLines, LongLinesAreCut) {
  const Found found = Of(std::string(100000, 'x') + "\nnext\n", {1, 2}, 777);
  EXPECT_EQ(found.at(1).size(), kMostOfALine);
  EXPECT_EQ(found.at(2), "next");
}

TEST(CitedLines, FilesThatAreGone) {
  EXPECT_TRUE(CitedLines({{"/nowhere/at/all.log", {1}}, {"-", {1}}, {"/dev/zero", {1}}}).empty());
}

}  // namespace
}  // namespace ringscope::ingest
