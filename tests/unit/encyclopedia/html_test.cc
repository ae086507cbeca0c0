#include "analyzer/encyclopedia/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringscope::encyclopedia {
namespace {

const Ids kIds = {{"HW-01", "A link"}, {"SEED-A", "A \"story\""}};

TEST(Html, EscapesWhatCouldBeMarkup) {
  EXPECT_EQ(Escaped("a < b & 'c' > \"d\"\n\te"), "a &lt; b &amp; &#39;c&#39; &gt; &quot;d&quot;\n\te");
  EXPECT_EQ(Escaped(std::string("\x1b[0m\0", 5)).find_first_of(std::string("\x1b\0", 2)), std::string::npos);
  EXPECT_EQ(Escaped(""), "");
}

TEST(Html, LinksIdsThatStandAlone) {
  EXPECT_EQ(Linked("see HW-01, not HW-011 or XHW-01.", kIds),
            "see <a href=\"HW-01.html\" title=\"A link\">HW-01</a>, not HW-011 or XHW-01.");
  EXPECT_EQ(Linked("SEED-A", kIds), "<a href=\"SEED-A.html\" title=\"A &quot;story&quot;\">SEED-A</a>");
  EXPECT_EQ(Linked("<HW-02>", kIds), "&lt;HW-02&gt;");
  EXPECT_EQ(Linked("", kIds), "");
}

TEST(Html, MarksWhatIsToBeFilledIn) {
  EXPECT_EQ(CommandText("ssh {host} x"), "ssh <var data-fill=\"host\">{host}</var> x");
  EXPECT_EQ(CommandText("${host} {} {A} {a b} {open"), "${host} {} {A} {a b} {open");
  EXPECT_EQ(CommandText("awk '{print $1}' < {host}"), "awk &#39;{print $1}&#39; &lt; <var data-fill=\"host\">{host}</var>");
  EXPECT_EQ(CopyBlock(""), "");
}

TEST(Html, JsonCannotEndItsElement) { EXPECT_EQ(JsonString("</script><!--&").find_first_of("<>&"), std::string::npos); }

TEST(Html, AnEmptyTextIsNoElement) {
  EXPECT_EQ(Element("p", "", kIds), "");
  EXPECT_EQ(Element("p", "a", kIds), "<p>a</p>\n");
}

}  // namespace
}  // namespace ringscope::encyclopedia
