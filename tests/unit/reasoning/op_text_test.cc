#include "analyzer/reasoning/op_text.h"

#include <gtest/gtest.h>

namespace ringscope::reasoning {
namespace {

// What is printed after "$ " is pasted into shells; host names come from records.
TEST(ShellHost, LetsOnlyPlainNamesThrough) {
  EXPECT_EQ(ShellHost("gpu-17.rack_2.example"), "gpu-17.rack_2.example");
  for (const char* bad :
       {"", "n;touch x", "$(reboot)", "a b", "-oProxyCommand=x", "a'b", "a\nb", "h`id`"}) {
    EXPECT_EQ(ShellHost(bad), "<host>") << bad;
  }
}

}  // namespace
}  // namespace ringscope::reasoning
