// Entries of the catalogue, by id and by words.
#include "catalog/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ringscope::catalog {
namespace {

TEST(Entries, AreSortedAndUnique) {
  std::string before;
  for (const Entry& entry : Entries().entry()) {
    EXPECT_LT(before, entry.id());
    before = entry.id();
    EXPECT_EQ(FindEntry(entry.id()), &entry);
  }
  EXPECT_GE(Entries().entry_size(), 55);
}

TEST(Entries, AreFoundInAnyCase) {
  ASSERT_NE(FindEntry("hw-01"), nullptr);
  EXPECT_EQ(FindEntry("hw-01")->id(), "HW-01");
  EXPECT_EQ(FindEntry("HW-0"), nullptr);
  EXPECT_EQ(FindEntry("HW-011"), nullptr);
  EXPECT_EQ(FindEntry(""), nullptr);
}

TEST(Entries, WhatLinesAndNumbersNameIsThere) {
  for (const Signature& s : Signatures().signature()) {
    for (const std::string& id : s.causes()) EXPECT_NE(FindEntry(id), nullptr) << s.id() << " names " << id;
  }
  for (const XidEntry& xid : Faults().xid()) {
    if (xid.cause().empty()) continue;
    EXPECT_NE(FindEntry(xid.cause()), nullptr) << "Xid " << xid.number() << " names " << xid.cause();
  }
}

TEST(Search, AnEntrysOwnNameFindsIt) {
  size_t first = 0;
  for (const Entry& entry : Entries().entry()) {
    const auto found = Search(entry.name(), 5);
    bool there = false;
    for (const Found& f : found) there |= f.entry == &entry;
    EXPECT_TRUE(there) << entry.id() << " " << entry.name();
    first += !found.empty() && found[0].entry == &entry;
  }
  EXPECT_GE(first * 10, static_cast<size_t>(Entries().entry_size()) * 9) << "nearly always in the first place";
}

TEST(Search, OrderIsByScoreAndLimited) {
  const auto found = Search("network port link down", 3);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_GE(found[0].score, found[1].score);
  EXPECT_GE(found[1].score, found[2].score);
}

TEST(Search, NothingFitsNonsense) {
  EXPECT_TRUE(Search("", 5).empty());
  EXPECT_TRUE(Search("zzzz qqqq", 5).empty());
  EXPECT_TRUE(Search("a b c \xff\xfe", 5).empty());
  EXPECT_TRUE(Search("zzzz qqqq vvvv shared", 5).empty()) << "one word of four is no match";
}

}  // namespace
}  // namespace ringscope::catalog
