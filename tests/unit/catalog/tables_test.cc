// The catalogue's tables as a whole: complete rows, each number once, causes that have an entry.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "catalog/catalog.h"

namespace ringscope {
namespace {

void Explained(const google::protobuf::RepeatedPtrField<std::string>& causes) {
  for (const std::string& id : causes) {
    const catalog::Entry* entry = catalog::FindEntry(id);
    ASSERT_NE(entry, nullptr) << id;
    EXPECT_EQ(entry->status(), catalog::Status::established) << id;
  }
}

TEST(Tables, CodesAreCompleteAndThereOnce) {
  std::set<std::pair<int, int>> seen;
  for (const catalog::CodeEntry& code : catalog::Faults().code()) {
    SCOPED_TRACE(code.name());
    EXPECT_TRUE(seen.emplace(code.table(), code.number()).second);
    EXPECT_NE(code.table(), catalog::CodeEntry::unspecified);
    EXPECT_NE(code.role(), catalog::Role::unspecified);
    EXPECT_FALSE(code.name().empty() || code.says().empty() || code.indicates().empty() || code.reference().empty());
    Explained(code.causes());
  }
  // NCCL's results and the status of a completion are closed lists: 0 to 8, 0 to 21.
  for (int n = 0; n <= 8; ++n) EXPECT_TRUE(seen.count({catalog::CodeEntry::nccl_result, n})) << n;
  for (int n = 0; n <= 21; ++n) EXPECT_TRUE(seen.count({catalog::CodeEntry::ib_completion, n})) << n;
}

TEST(Tables, XidsNameWhereTheyStand) {
  std::set<int> seen;
  for (const catalog::XidEntry& x : catalog::Faults().xid()) {
    SCOPED_TRACE(x.number());
    EXPECT_TRUE(seen.insert(x.number()).second);
    EXPECT_FALSE(x.meaning().empty() || x.reference().empty());
    EXPECT_TRUE(x.cause().empty() || catalog::FindEntry(x.cause()) != nullptr) << x.cause();
  }
  for (const catalog::SxidEntry& x : catalog::Faults().sxid()) {
    EXPECT_LE(x.first(), x.last());
    EXPECT_FALSE(x.reference().empty());
  }
}

TEST(Tables, UsesOfVariablesAreOfVariablesThatExist) {
  std::set<std::string> known, seen;
  for (const catalog::Variable& variable : catalog::Faults().variable()) known.insert(variable.name());
  for (const catalog::VariableUse& use : catalog::Faults().variable_use()) {
    SCOPED_TRACE(use.name());
    EXPECT_TRUE(seen.insert(use.name()).second);
    EXPECT_NE(use.group(), catalog::VariableUse::unspecified);
    EXPECT_FALSE(use.use().empty() || use.cost().empty() || use.reference().empty());
    EXPECT_TRUE(use.name().rfind("NCCL_", 0) != 0 || known.count(use.name()) > 0) << "no release of NCCL reads it";
    Explained(use.causes());
  }
  EXPECT_GT(seen.size(), 50u);
}

TEST(Tables, NotesHaveAPageAndASource) {
  std::set<int> pages;
  for (const catalog::TableNote& note : catalog::Faults().note()) {
    pages.insert(note.page());
    EXPECT_FALSE(note.text().empty() || note.reference().empty());
  }
  EXPECT_EQ(pages, (std::set<int>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace ringscope
