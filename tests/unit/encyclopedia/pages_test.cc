#include "analyzer/encyclopedia/pages.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace ringscope::encyclopedia {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Text into every field of text, two of each repeated one; numbers 1.
void Fill(google::protobuf::Message* m, const std::string& text) {
  const auto* r = m->GetReflection();
  for (int i = 0; i < m->GetDescriptor()->field_count(); ++i) {
    const auto* f = m->GetDescriptor()->field(i);
    using Field = google::protobuf::FieldDescriptor;
    for (int n = 0; n < (f->is_repeated() ? 2 : 1); ++n) {
      switch (f->cpp_type()) {
        case Field::CPPTYPE_STRING:
          f->is_repeated() ? r->AddString(m, f, text) : r->SetString(m, f, text);
          break;
        case Field::CPPTYPE_MESSAGE:
          Fill(f->is_repeated() ? r->AddMessage(m, f) : r->MutableMessage(m, f), text);
          break;
        case Field::CPPTYPE_ENUM:
          f->is_repeated() ? r->AddEnumValue(m, f, 1) : r->SetEnumValue(m, f, 1);
          break;
        case Field::CPPTYPE_INT32:
          if (!f->is_repeated()) r->SetInt32(m, f, 1);
          break;
        case Field::CPPTYPE_BOOL:
          if (!f->is_repeated()) r->SetBool(m, f, true);
          break;
        default:
          FAIL() << "a kind of field that this test does not fill: " << f->full_name();
      }
    }
  }
}

struct Example {
  catalog::EntryFile entries;
  catalog::SignatureFile signatures;
  catalog::FaultTable tables;
  explicit Example(const std::string& text) {
    Fill(&signatures, text);
    Fill(&tables, text);
    Fill(&entries, text);
    const std::vector<std::string> ids = {"XX-01", "XX-02"};
    for (int i = 0; i < 2; ++i) {
      entries.mutable_entry(i)->set_id(ids[i]);
      entries.mutable_entry(i)->add_related(ids[1 - i]);
    }
    for (int i = 0; i < signatures.signature_size(); ++i) signatures.mutable_signature(i)->set_role(catalog::Role::cause);
    for (const auto table : {catalog::CodeEntry::cuda_error, catalog::CodeEntry::ib_completion}) {
      auto* code = tables.add_code();
      Fill(code, text);
      code->set_table(table);
    }
  }
  Catalogue Get() const { return {entries, signatures, tables}; }
};

// What a browser takes for markup: the names of the tags in their order, and how many attributes are quoted.
std::string Skeleton(const std::string& html) {
  std::string out;
  int quotes = 0;
  for (size_t i = 0; i < html.size(); ++i) {
    if (html[i] == '"') ++quotes;
    if (html[i] != '<') continue;
    const size_t end = html.find_first_of(" \n>", i);
    out += html.substr(i, end - i) + ">";
  }
  return out + std::to_string(quotes);
}

const std::string kHostile =
    "\"><script>alert(1)</script>' onmouseover='alert(2)' <img src=x onerror=alert(3)> </style></textarea></code> <!-- ]]> "
    "javascript:alert(4)";

TEST(Pages, TextThatMeansHarmStaysText) {
  const auto hostile = Pages(Example(kHostile).Get());
  const auto plain = Pages(Example("plain").Get());
  ASSERT_TRUE(hostile.ok() && plain.ok());
  ASSERT_EQ(hostile->size(), 7u);
  for (size_t i = 0; i < hostile->size(); ++i) {
    SCOPED_TRACE((*hostile)[i].name);
    // The data of the search is JSON, where a quote is quoted in its own way.
    const auto markup = [](const std::string& html) {
      const size_t data = html.find("<script type=\"application/json\"");
      if (data == std::string::npos) return html;
      const size_t end = html.find("</script>", data);
      EXPECT_EQ(html.substr(html.find('>', data) + 1, end - html.find('>', data) - 1).find_first_of("<>&"), std::string::npos);
      return html.substr(0, data) + html.substr(end);
    };
    EXPECT_EQ(Skeleton(markup((*hostile)[i].content)), Skeleton(markup((*plain)[i].content)));
    EXPECT_THAT((*hostile)[i].content, Not(HasSubstr("<script>alert")));
    EXPECT_THAT((*hostile)[i].content, Not(HasSubstr("<img")));
    EXPECT_THAT((*hostile)[i].content, Not(HasSubstr("=\"javascript:")));
  }
}

TEST(Pages, AnEntryShowsEverythingThatItHolds) {
  catalog::EntryFile entries;
  catalog::Entry* entry = entries.add_entry();
  Fill(entry, "plain");
  // A word of its own in each field of text, so that none can be left out unseen.
  std::vector<std::string> words;
  const std::function<void(google::protobuf::Message*)> name = [&](google::protobuf::Message* m) {
    const auto* r = m->GetReflection();
    for (int i = 0; i < m->GetDescriptor()->field_count(); ++i) {
      const auto* f = m->GetDescriptor()->field(i);
      const int n = f->is_repeated() ? r->FieldSize(*m, f) : 1;
      for (int k = 0; k < n; ++k) {
        if (f->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
          name(f->is_repeated() ? r->MutableRepeatedMessage(m, f, k) : r->MutableMessage(m, f));
        } else if (f->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING && f->name() != "catalogued_as") {
          words.push_back("word" + std::to_string(words.size()) + "x");
          f->is_repeated() ? r->SetRepeatedString(m, f, k, words.back()) : r->SetString(m, f, words.back());
        }
      }
    }
  };
  name(entry);
  ASSERT_GT(words.size(), 40u);
  const auto pages = Pages({entries, catalog::SignatureFile(), catalog::FaultTable()});
  ASSERT_TRUE(pages.ok());
  const auto it = std::find_if(pages->begin(), pages->end(), [&](const File& f) { return f.name == entry->id() + ".html"; });
  ASSERT_NE(it, pages->end());
  for (const std::string& word : words) EXPECT_THAT(it->content, HasSubstr(word));
}

TEST(Pages, EachIsWholeAndForbidsWhatIsNotItsOwn) {
  const auto pages = Pages(Example("plain").Get());
  ASSERT_TRUE(pages.ok());
  for (const File& page : *pages) {
    SCOPED_TRACE(page.name);
    EXPECT_EQ(page.content.rfind(kMarker, 0), 0u);
    EXPECT_THAT(page.content, HasSubstr("default-src 'none'; style-src 'sha256-"));
    EXPECT_THAT(page.content, Not(HasSubstr("unsafe-inline")));
    EXPECT_THAT(page.content, Not(HasSubstr(" style=")));
    EXPECT_THAT(page.content, Not(HasSubstr("http://")));
    EXPECT_THAT(page.content, Not(HasSubstr("https://")));
    EXPECT_THAT(page.content, HasSubstr("<html lang=\"en\">"));
    EXPECT_THAT(page.content, HasSubstr("</html>"));
  }
}

TEST(Pages, TheSameTwice) {
  const auto one = Pages(Example("plain").Get()), two = Pages(Example("plain").Get());
  ASSERT_TRUE(one.ok() && two.ok());
  ASSERT_EQ(one->size(), two->size());
  for (size_t i = 0; i < one->size(); ++i) EXPECT_EQ((*one)[i].content, (*two)[i].content);
}

TEST(Pages, AnIdThatIsNoNameOfAFileIsRefused) {
  for (const std::string id : {"", "../x", "a/b", ".x", "-x", "a b", "a\"b", "<b>"}) {
    Example example("plain");
    example.entries.mutable_entry(0)->set_id(id);
    EXPECT_FALSE(Pages(example.Get()).ok()) << id;
  }
  Example twice("plain");
  twice.entries.mutable_entry(0)->set_id("XX-02");
  EXPECT_FALSE(Pages(twice.Get()).ok());
}

TEST(Pages, NothingInTheCatalogueIsNoFailure) {
  const auto pages = Pages({catalog::EntryFile(), catalog::SignatureFile(), catalog::FaultTable()});
  ASSERT_TRUE(pages.ok());
  EXPECT_EQ(pages->size(), 5u);
}

}  // namespace
}  // namespace ringscope::encyclopedia
