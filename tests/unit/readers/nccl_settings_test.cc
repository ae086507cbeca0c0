#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

TEST(NcclSettings, ValuesWithAndWithoutAFinalDot) {
  model::Evidence evidence;
  ASSERT_TRUE(ingest::ReadTextBytes("nccl.rank2.log",
                                    "n1:5:6 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n"
                                    "something else\n"
                                    "n1:5:6 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to lo\r\n",
                                    &evidence)
                  .ok());
  ASSERT_EQ(evidence.settings.size(), 2u);
  EXPECT_EQ(evidence.settings[0].name, "NCCL_IB_DISABLE");
  EXPECT_EQ(evidence.settings[0].value, "1");
  EXPECT_EQ(evidence.settings[1].value, "lo");
  EXPECT_EQ(evidence.settings[1].where.line, 3u);
  EXPECT_EQ(evidence.settings[1].by.host, "n1");
  EXPECT_EQ(evidence.settings[1].by.rank, 2);  // the file's name says so
}

}  // namespace
}  // namespace ringscope
