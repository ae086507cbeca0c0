// Baselines on disk, and what hostile bytes of a node do to the output.
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/report/json.h"
#include "analyzer/report/node_text.h"
#include "tests/unit/doctor/seen.h"

namespace ringscope::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Baseline, SavedAndRead) {
  TempDir dir;
  node::Node node = Gpus(4, 18);
  (*node.mutable_settings())["NCCL_DEBUG"] = "INFO";
  node.mutable_limits()->set_shm_bytes(uint64_t{1} << 40);
  ASSERT_TRUE(doctor::SaveBaseline(node, "0.1.0", dir / "b.json").ok());
  ASSERT_TRUE(doctor::SaveBaseline(node, "0.1.0", dir / "b.json").ok());  // over an older one
  const auto read = doctor::ReadBaseline(dir / "b.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(node.SerializeAsString(), read->node().SerializeAsString());
  EXPECT_EQ(1, read->version());
  EXPECT_EQ("0.1.0", read->ringscope());
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) ++files;
  EXPECT_EQ(1u, files);
}

TEST(Baseline, ThatCannotBeWritten) {
  TempDir dir;
  const auto status = doctor::SaveBaseline(Gpus(1, 0), "0.1.0", dir / "none/b.json");
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/b.json cannot be written: No such file or directory"));
}

std::string Refused(const std::string& file) {
  const auto read = doctor::ReadBaseline(file);
  return read.ok() ? "read" : std::string(read.status().message());
}

TEST(Baseline, ThatIsNone) {
  TempDir dir;
  EXPECT_THAT(Refused(dir / "none"), HasSubstr("none: No such file or directory; a baseline is written by --save"));
  EXPECT_THAT(Refused(dir.path()), HasSubstr(": not a file; take it again"));
  mkfifo((dir / "pipe").c_str(), 0600);
  EXPECT_THAT(Refused(dir / "pipe"), HasSubstr(": not a file; take it again"));
  EXPECT_THAT(Refused(dir.Write("empty", "")), HasSubstr("empty: damaged, or no baseline: "));
  EXPECT_THAT(Refused(dir.Write("text", "hello")), HasSubstr(": damaged, or no baseline: "));
  EXPECT_THAT(Refused(dir.Write("other", "{\"status\": \"ok\"}")), HasSubstr(": no baseline of ringscope doctor"));
  EXPECT_THAT(Refused(dir.Write("newer", "{\"version\": 9, \"ringscope\": \"3.0\", \"node\": {}}")),
              HasSubstr("written by Ringscope 3.0 in version 9; this one reads up to 1; take it again"));
  EXPECT_EQ("read", Refused(dir.Write("more", "{\"version\": 1, \"node\": {\"host\": \"a\", \"phase_of_moon\": 3}}")));
  EXPECT_THAT(Refused(dir.Write("nested", std::string(200000, '['))), HasSubstr(": damaged, or no baseline: "));
}

TEST(Baseline, EveryPrefixAndDamagedByte) {
  TempDir dir;
  node::Node node = Gpus(1, 1);
  ASSERT_TRUE(doctor::SaveBaseline(node, "0.1.0", dir / "b.json").ok());
  const std::string whole = TextOf(dir / "b.json");
  for (size_t size = 0; size + 2 < whole.size(); ++size)
    EXPECT_THAT(Refused(dir.Write("cut", whole.substr(0, size))), HasSubstr("damaged, or no baseline")) << size;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    const auto read = doctor::ReadBaseline(dir.Write("bit", damaged));
    if (read.ok()) doctor::Judge(node, &read->node(), {}, {});
  }
}

// Names and values as nobody would choose them.
TEST(Text, HostileNodes) {
  node::Node node = Gpus(2, 3);
  node.set_host("a\x1b]0;owned\x07");
  node.mutable_gpus(0)->set_trouble("lost\n\x1b[2Jgone");
  (*node.mutable_settings())["NCCL_P2P_DISABEL"] = "\x1b[31m\nFAILED  gpus";
  AddPort(&node, std::string(500, 'x'))->set_state("1: DOWN\r");
  node.mutable_limits()->set_memlock("-1");
  const std::string text = report::RenderNode(doctor::Judge(node, nullptr, {}, {}), {});
  EXPECT_THAT(text,
              AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\r")), Not(HasSubstr("\x07")), Not(HasSubstr("\nFAILED  gpus"))));
}

TEST(Text, EightyColumnsWhatIsWrongFirst) {
  node::Node node = Gpus(8, 18, 0x2330);
  for (int i = 0; i < 8; ++i) {
    node.mutable_gpus(i)->mutable_links(i)->set_active(false);
    node.mutable_gpus(i)->set_processes(1);
    node.mutable_gpus(i)->mutable_fabric()->set_state(1);
  }
  const std::string text = report::RenderNode(doctor::Judge(node, nullptr, {}, {}), {});
  EXPECT_THAT(text, StartsWith("DOCTOR  node7: 3 checks failed, "));
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_LT(text.rfind("FAILED"), text.find("WARNING"));
  EXPECT_LT(text.rfind("WARNING"), text.find("\nabsent"));
  // One block for what is alike.
  EXPECT_EQ(text.find("FAILED   fabric"), text.rfind("FAILED   fabric"));
  EXPECT_THAT(text, HasSubstr("see: ringscope explain FB-01\n"));
  EXPECT_THAT(report::RenderNode(doctor::Judge(node, nullptr, {}, {}), {.quiet = true}), Not(HasSubstr("\nabsent")));
}

TEST(Text, Json) {
  const auto json = report::ToJson(doctor::Judge(Gpus(2, 3), nullptr, {"nvlink", "shm"}, {}));
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json,
              AllOf(HasSubstr("\"status\": \"failed\""), HasSubstr("\"name\": \"nvlink\""), HasSubstr("\"entry\": \"NC-08\"")));
}

}  // namespace
}  // namespace ringscope::testing
