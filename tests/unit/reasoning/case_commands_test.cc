// Commands that can be pasted: the case's own host, process, GPU and port, and nothing that a shell would run.
#include "analyzer/reasoning/case_commands.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using ::testing::HasSubstr;
using testing::JobBuilder;
using ::testing::Not;

Finding Filled(const std::string& finding, const std::string& host = "") {
  JobBuilder b(4);
  b.RanksPerHost(2);
  b.Comm("world", {0, 1, 2, 3});
  if (!host.empty()) {
    for (int r = 2; r < 4; ++r) b.Record(r).mutable_process()->set_host(host);
  }
  b.Record(2).mutable_process()->set_pid(4711);
  Diagnosis d;
  if (!google::protobuf::TextFormat::ParseFromString(finding, d.add_findings())) abort();
  FillCommands(b.Build(), &d);
  return d.findings(0);
}

TEST(CaseCommands, TheProcessThatIsMeant) {
  EXPECT_EQ(Filled("who { ranks: 2 } next { command: 'py-spy dump --pid <pid of that rank>' }").next().command(),
            "ssh host1 py-spy dump --pid 4711");
  EXPECT_EQ(Filled("who { ranks: 2 } next { command: \"gdb -p <pid> -batch -ex 'bt'  # twice\" }").next().command(),
            "ssh host1 \"gdb -p 4711 -batch -ex 'bt'\"  # twice");
  EXPECT_EQ(Filled("who { ranks: 2 } next { command: 'ssh host1 py-spy dump --pid 1' }").next().command(),
            "ssh host1 py-spy dump --pid 1");
}

TEST(CaseCommands, TheMachineThatIsMeant) {
  EXPECT_EQ(Filled("who { hosts: 'host1' } next { command: 'dmesg -T | grep -i xid' }").next().command(),
            "ssh host1 'dmesg -T | grep -i xid'");
  EXPECT_EQ(Filled("who { ranks: 0 ranks: 2 } next { command: 'nvidia-smi' }").next().command(), "nvidia-smi") << "two machines";
  EXPECT_EQ(Filled("who { hosts: 'host1' } next { command: 'ringscope diagnose' }").next().command(), "ringscope diagnose");
}

TEST(CaseCommands, TheEntrysCommandsForTheCase) {
  const Finding f = Filled("who { hosts: 'host1' gpus: 'GPU 3 (0000:61:00.0)' } cause { id: 'HW-01' }");
  EXPECT_FALSE(f.cause().name().empty());
  ASSERT_GT(f.confirm_size(), 0);
  ASSERT_GT(f.fixes_size(), 0);
  ASSERT_GT(f.verify_size(), 0);
  for (const auto* list : {&f.confirm(), &f.fixes(), &f.verify()}) {
    for (const Action& action : *list) {
      EXPECT_THAT(action.command(), Not(HasSubstr("{")));
      EXPECT_THAT(action.command(), Not(HasSubstr("<host>")));
    }
  }
  EXPECT_EQ(Filled("cause { id: 'not established' }").confirm_size(), 0);
}

TEST(CaseCommands, NamesOfGpusInAllForms) {
  const auto bus_of = [](const std::string& gpu) {
    const Finding f = Filled("who { hosts: 'host1' gpus: '" + gpu + "' } cause { id: 'HW-05' }");
    std::string all;
    for (const auto* list : {&f.confirm(), &f.fixes(), &f.verify()}) {
      for (const Action& action : *list) all += action.command() + "\n";
    }
    return all;
  };
  for (const char* gpu : {"0000:61:00.0", "GPU 0000:61:00.0", "GPU 3 (0000:61:00.0)", "node1:0000:61:00.0"})
    EXPECT_THAT(bus_of(gpu), HasSubstr("0000:61:00.0")) << gpu;
  for (const char* gpu : {"", ":", "::::", ":0000:61", "GPU", "GPU ", "GPU 3", "(", "x:y:z"})
    EXPECT_THAT(bus_of(gpu), HasSubstr("<bus_id>")) << gpu;
}

// Names come out of records.
TEST(CaseCommands, AnOddNameStaysAPlaceholder) {
  for (const char* host : {"a;rm -rf /", "$(x)", "-oProxyCommand=x", "a b", "a'b"}) {
    const Finding f = Filled("who { ranks: 2 } cause { id: 'HW-01' } next { command: 'py-spy dump --pid <pid>' }", host);
    EXPECT_EQ(f.next().command(), "py-spy dump --pid 4711") << host;
    for (const Action& action : f.confirm()) EXPECT_THAT(action.command(), Not(HasSubstr(host))) << host;
  }
}

}  // namespace
}  // namespace ringscope::reasoning
