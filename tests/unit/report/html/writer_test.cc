// What a log or record holds stays text.
#include "analyzer/report/html/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analyzer/report/html/page.h"
#include "analyzer/report/html/sha256.h"

namespace ringscope::report::html {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Writer, LiteralsAreMarkupStringsAreText) {
  Writer out;
  const std::string text = "</p><script>alert('1')</script>&\"";
  out << "<p title=\"" << text << "\">" << text << "</p>" << 7 << 1.25 << -0.01 << 3.0;
  const std::string escaped = "&lt;/p&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;";
  EXPECT_EQ(out.str(), "<p title=\"" + escaped + "\">" + escaped + "</p>71.203");
}

TEST(Writer, WhatDeceivesTheEyeIsShown) {
  EXPECT_EQ(Shown("a\u202Eb\u2066c\u200Bd\uFEFFe"), "a[U+202E]b[U+2066]c[U+200B]d[U+FEFF]e");
  EXPECT_EQ(Shown("line\u2028next\u2029"), "line[U+2028]next[U+2029]");
  EXPECT_EQ(Shown(std::string_view("\0\x1b[31m\x7f\r\n\t", 10)), "[U+0000][U+001B][31m[U+007F][U+000D][U+000A][U+0009]");
  EXPECT_EQ(Shown("a\n\tb", true), "a\n\tb");
  EXPECT_EQ(Shown("Grüße 東京 \U0001F600"), "Grüße 東京 \U0001F600");
  EXPECT_EQ(Shown("\u0085"), "[U+0085]");
}

TEST(Writer, BytesThatAreNoUtf8) {
  const char* const bad = "\xef\xbf\xbd";
  const auto times = [&](int n) {
    std::string s;
    while (n-- > 0) s += bad;
    return s;
  };
  EXPECT_EQ(Shown("\xff"), times(1));
  EXPECT_EQ(Shown("\xc0\xbc"), times(2));          // "<" in two bytes
  EXPECT_EQ(Shown("\xe0\x80\xbc"), times(3));      // in three
  EXPECT_EQ(Shown("\xed\xa0\x80"), times(3));      // a surrogate
  EXPECT_EQ(Shown("\xf4\x90\x80\x80"), times(4));  // beyond Unicode
  EXPECT_EQ(Shown("\xe2\x82"), times(2));          // cut off
  EXPECT_EQ(Escaped("\xe2<b>"), std::string(bad) + "&lt;b&gt;");
}

TEST(Writer, JsonStaysInItsScript) {
  EXPECT_EQ(JsonText("</script><!--\"\\&\n\u2028"), "\"\\u003c/script\\u003e\\u003c!--\\u0022\\u005c\\u0026[U+000A][U+2028]\"");
}

TEST(Writer, NoBytesMakeMarkup) {
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int n = 0; n < 40; ++n) text += "<>\"'&/\\\x80\xbc\xc0\xe2\xf0 ab\0"[random() % 17];
    EXPECT_EQ(Escaped(text).find_first_of("<>\"'"), std::string::npos);
    const std::string json = JsonText(text);
    EXPECT_EQ(json.find_first_of("<>&"), std::string::npos);
    EXPECT_EQ(json.find('"', 1), json.size() - 1);
  }
}

std::string Hex(const std::array<uint8_t, 32>& digest) {
  std::string text;
  for (const uint8_t b : digest) {
    char two[3];
    snprintf(two, sizeof(two), "%02x", b);
    text += two;
  }
  return text;
}

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Hex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Hex(Sha256(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Page, NothingIsLoadedAndOnlyNamedScriptsRun) {
  Page page;
  page.title = "</title><script>alert(1)</script>";
  page.body << "<main>" << std::string("x") << "</main>";
  const std::string out = Render(page);
  EXPECT_THAT(out, HasSubstr("default-src 'none'; style-src 'sha256-"));
  EXPECT_THAT(out, HasSubstr("; script-src 'sha256-"));
  EXPECT_THAT(out, Not(HasSubstr("unsafe")));
  EXPECT_THAT(out, Not(HasSubstr("<script>alert(1)")));
  EXPECT_EQ(out, Render(page));
}

TEST(Page, AssetsCannotEndTheirElement) {
  for (const std::string_view asset : {assets::PageCss(), assets::PageJs(), assets::ReportCss(), assets::ReportJs()}) {
    ASSERT_FALSE(asset.empty());
    EXPECT_EQ(asset.find("</"), asset.npos);
    EXPECT_EQ(asset.find("<!--"), asset.npos);
    EXPECT_EQ(asset.find("http"), asset.npos);
    EXPECT_EQ(asset.find('\r'), asset.npos);  // a browser would hash another text
  }
}

}  // namespace
}  // namespace ringscope::report::html
