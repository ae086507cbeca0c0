#include "analyzer/scrub/scrubber.h"

#include <gtest/gtest.h>

#include "analyzer/ingest/byte_source.h"
#include "analyzer/ingest/trace_reader.h"
#include "analyzer/scrub/scrub_record.h"

namespace ringscope::scrub {
namespace {

std::string Scrubbed(const std::string& text) {
  Masks masks;
  Scrubber scrubber(&masks);
  EXPECT_TRUE(LearnText(ingest::BytesSource(text).get(), &scrubber).ok());
  scrubber.Learned();
  std::string out;
  EXPECT_TRUE(ScrubText(ingest::BytesSource(text).get(), &scrubber, [&](std::string_view piece) {
                out += piece;
                return absl::OkStatus();
              }).ok());
  return out;
}

const std::string kHome = std::string("/") + "home/";

TEST(Scrubber, HostsByTheirPlaces) {
  for (const char* line : {"zeus9:70:88 [0] NCCL INFO x", "Aug 23 22:22:51 zeus9 kernel: NVRM: Xid",
                           "srun: error: zeus9: task 3: Killed", "hostname: zeus9", "MASTER_ADDR=zeus9", "{\"host\": \"zeus9\"}",
                           "slurmstepd: error: *** JOB 77123 ON zeus9 CANCELLED AT x ***", "failed to connect to [zeus9]:29500",
                           "timed out while connecting to (zeus9, 29500)", "Connection closed by remote peer zeus9.lab<41234>",
                           "torchrun --rdzv_endpoint=zeus9:29400 x.py", "zeus9: [rank0]: NCCL WARN x", "bob@zeus9:~$ nvidia-smi",
                           "Linux zeus9 5.15.0-91-generic", "zeus9 slots=8", "SLURM_JOB_NODELIST=zeus[8-9]"}) {
    const std::string out = Scrubbed(std::string(line) + "\nand zeus9 again, zeus9-ib0 and /tmp/zeus9/x\n");
    EXPECT_EQ(std::string::npos, out.find("zeus9")) << out;
    EXPECT_NE(std::string::npos, out.find("host-")) << out;
  }
}

TEST(Scrubber, WordsOfLogsAreNoHosts) {
  for (const char* line : {"host: error while reading", "node: waiting", "connect to server, then", "INFO trainer: started",
                           "kernel: [ 12.0] NVRM: Xid", "peer 3 closed", "NCCL INFO Channel 00/02 : 0[0] -> 1[1] via P2P/IPC",
                           "RuntimeError: NCCL WARN x", "on rank 3 of 8", "gpu0 GPU0 NIC0 NODE PIX SYS"}) {
    EXPECT_EQ(std::string(line) + "\n", Scrubbed(std::string(line) + "\n"));
  }
}

TEST(Scrubber, MasksFollowTheOrderOfNames) {
  EXPECT_EQ("hostname=host-2\nhostname=host-1\nhostname=host-3\n", Scrubbed("hostname=n9\nhostname=n1\nhostname=n10\n"));
}

TEST(Scrubber, PathsKeepWhatIsPublic) {
  EXPECT_EQ("File \"" + kHome + "user-1/dir-1/train.py\", line 3\n", Scrubbed("File \"" + kHome + "bea/zugspitze/train.py\", line 3\n"));
  EXPECT_EQ(kHome + "user-1/venv/lib/python3.10/site-packages/torch/nn/modules/module.py:12\n",
            Scrubbed(kHome + "bea/venv/lib/python3.10/site-packages/torch/nn/modules/module.py:12\n"));
  EXPECT_EQ("zz file-1.py:7 train.py:8\n", Scrubbed("zz zugspitze_net.py:7 train.py:8\n"));
  EXPECT_EQ("-I/dir-1/include\n", Scrubbed("-I/zugspitze/include\n"));
}

TEST(Scrubber, GuidsAreOneWhereverTheyStand) {
  const std::string out = Scrubbed(
      "Port GUID: 0x7cfe900300a41b3e\nGID fe80:0000:0000:0000:7cfe:9003:00a4:1b3e\nfe80::7cfe:9003:a4:1b3e\nnode_guid: "
      "7cfe:9003:00a4:1b3e\n");
  EXPECT_EQ(
      "Port GUID: 0x020000fffe000001\nGID fe80:0000:0000:0000:0200:00ff:fe00:0001\nfe80::200:ff:fe00:1\nnode_guid: "
      "0200:00ff:fe00:0001\n",
      out);
  EXPECT_EQ(out, Scrubbed(out));
}

TEST(Scrubber, ARecordKeepsItsNumbersAndLosesItsNames) {
  trace::Trace trace;
  auto* process = trace.mutable_process();
  process->set_host("zeus9");
  process->set_job_id("zugspitze");
  process->set_command_line("python " + kHome + "bea/train.py --api-key Zu9kq7Rm2xWw");
  (*process->mutable_environment())["MASTER_ADDR"] = "zeus1";
  (*process->mutable_environment())["NCCL_SOCKET_IFNAME"] = "eth0";
  (*process->mutable_environment())["HF_TOKEN"] = "Zu9kq7Rm2xWx";
  process->set_pid(4242);
  process->set_rank(3);
  auto* block = trace.add_evidence();
  block->set_source(kHome + "bea/x");
  block->set_data("zeus1 said\nto zeus9\n");
  trace.GetReflection()->MutableUnknownFields(&trace)->AddLengthDelimited(900, "zeus9");
  Masks masks;
  Scrubber scrubber(&masks);
  LearnTrace(trace, &scrubber);
  scrubber.Learned();
  const auto bytes = TraceBytes(trace, /*torn=*/true, &scrubber);
  ASSERT_TRUE(bytes.ok());
  for (const char* name : {"zeus", "bea", "zugspitze", "Zu9kq"}) EXPECT_EQ(std::string::npos, bytes->find(name)) << name;
  const auto read = ingest::ParseTrace(*bytes, "t");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->torn) << "what was torn stays so";
  EXPECT_EQ("host-2", read->trace.process().host());
  EXPECT_EQ("job-1", read->trace.process().job_id());
  EXPECT_EQ("host-1", read->trace.process().environment().at("MASTER_ADDR"));
  EXPECT_EQ("eth0", read->trace.process().environment().at("NCCL_SOCKET_IFNAME"));
  EXPECT_EQ(4242, read->trace.process().pid());
  EXPECT_EQ(3, read->trace.process().rank());
  EXPECT_EQ("host-1 said\nto host-2\n", read->trace.evidence(0).data());
}

TEST(Scrubber, APickleOfDataBecomesJsonOneOfCodeIsRefused) {
  // {'host': 'zeus9', 'n': [1, 2.5, None, True]}, protocol 2.
  const std::string data(
      "\x80\x02}q\x00(X\x04\x00\x00\x00hostq\x01X\x05\x00\x00\x00zeus9q\x02X\x01\x00\x00\x00nq\x03]q\x04(K\x01G@"
      "\x04\x00\x00\x00\x00\x00\x00N\x88"
      "eu.",
      61);
  const auto json = JsonOfPickle(data);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_NE(std::string::npos, json->find("\"host\": \"zeus9\"")) << *json;
  EXPECT_FALSE(JsonOfPickle("\x80\x02"
                            "cposix\nsystem\n.")
                   .ok());
}

}  // namespace
}  // namespace ringscope::scrub
