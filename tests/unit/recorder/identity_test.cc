#include "recorder/identity.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "recorder/flight/text.h"

namespace ringscope::recorder {
namespace {

std::string Masked(const char* name, const char* value) {
  TextBuffer<1024> out;
  AddMasked(out, name, value);
  return out.c_str();
}

TEST(Mask, SecretsDoNotPass) {
  EXPECT_EQ(Masked("NCCL_AUTH_TOKEN", "abc"), "***");
  EXPECT_EQ(Masked("RINGSCOPE_x_Password", "abc"), "***");
  EXPECT_EQ(Masked("SLURM_JOB_CREDENTIALS", "x"), "***");
  EXPECT_EQ(Masked("MY_API_KEY", "x"), "***");
  EXPECT_EQ(Masked("MASTER_ADDR", "tcp://user:hunter2@host:29500/x"), "tcp://***@host:29500/x");
  EXPECT_EQ(Masked("MASTER_ADDR", "user:hunter2@host"), "***@host");
  EXPECT_EQ(Masked("NCCL_X", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"), "***");
  EXPECT_EQ(Masked("NCCL_X", "sk-abcd-efgh-ijkl-mnop"), "***");
  EXPECT_EQ(Masked("NCCL_X", "id=AKIAIOSFODNN7EXAMPLE"), "id=***");
  EXPECT_EQ(Masked("NCCL_X", "a,0123456789abcdef0123456789abcdef01234567,b"), "a,***,b");
  EXPECT_EQ(Masked("NCCL_X", "wJalrXUtnFEMI9K7MDENGbPxRfiCYEXAMPLEKEY"), "***");
  EXPECT_EQ(
      Masked("NCCL_X", "eyJhbGciOiJIUzI1NiJ9.e30.ZRrHA1JJJW8opsbCGfG_HACGpVUMN_a9IUZKxCRXlTA"),
      "***.e30.***");
  EXPECT_EQ(Masked("NCCL_X", "Bearer s3cr3t"), "Bearer ***");
  EXPECT_EQ(Masked("NCCL_X", "{\"h\": \"bearer  a.b/c==\"} x"), "{\"h\": \"bearer  ***\"} x");
}

TEST(Mask, OrdinaryValuesPass) {
  const char* const values[] = {
      "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1",
      "/opt/nvidia/lib64/libnccl-profiler-ringscope.so",
      "/lustre/User1/some_long_directory_name_without_end/Checkpoint_2024_01_02",
      "0,1,2,3",
      "^docker0,lo",
      "123e4567-e89b-12d3-a456-426614174000",
      "node[001-128]",
      "fe80::1%eth0",
      "10.0.0.1:29500",
      "Bearer",
      "bearers 1 2",
      "GPU-8a56a4bc-e184-a047-2620-be19fdf913d5"};
  for (const char* value : values) EXPECT_EQ(Masked("NCCL_X", value), value);
}

TEST(Mask, CommandLine) {
  const auto masked = [](const std::string& arguments) {
    TextBuffer<1024> out;
    AddMaskedCommandLine(out, arguments.data(), arguments.size());
    return std::string(out.c_str());
  };
  const std::string z(1, '\0');
  EXPECT_EQ(masked("python" + z + "train.py" + z + "--lr=0.1" + z), "python train.py --lr=0.1");
  EXPECT_EQ(masked("a" + z + "--api-key=s3cr3t" + z + "-x" + z), "a --api-key=*** -x");
  EXPECT_EQ(masked("a" + z + "--password" + z + "hunter2" + z + "b" + z), "a --password *** b");
  EXPECT_EQ(masked("a" + z + "--token" + z + "--next" + z), "a --token --next");
  EXPECT_EQ(masked("WANDB_API_KEY=0123" + z + "b" + z), "WANDB_API_KEY=*** b");
  EXPECT_EQ(masked("a" + z + "http://u:p@h/" + z), "a http://***@h/");
  EXPECT_EQ(masked("a" + z + "http://u:p=w@h/?x=1" + z), "a http://***@h/?x=1");
  EXPECT_EQ(masked("-H" + z + "Authorization: Bearer s3cr3t==" + z),
            "-H Authorization: Bearer ***=***");
  EXPECT_EQ(masked("-H" + z + "X: Bearer s3cr3t==" + z + "b" + z), "-H X: Bearer *** b");
  EXPECT_EQ(masked("Bearer" + z + "s3cr3t" + z + "b" + z), "Bearer *** b");
  EXPECT_EQ(masked(""), "");
  EXPECT_EQ(masked("a\nb" + z), "a b");
}

TEST(ProcStat, NamesMayHoldAnything) {
  uint64_t start = 0;
  char state = 0;
  EXPECT_TRUE(ParseProcStat("7 (a) b (c) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20",
                            &start, &state));
  EXPECT_EQ(start, 4242u);
  EXPECT_EQ(state, 'T');
  EXPECT_FALSE(ParseProcStat("", &start, &state));
  EXPECT_FALSE(ParseProcStat("7 (a)", &start, &state));
  EXPECT_FALSE(ParseProcStat("7 (a) R 1 2 3", &start, &state));
}

class IdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_JOB_ID", "SLURM_LOCALID",
          "OMPI_COMM_WORLD_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
          "SLURM_NTASKS", "PMI_RANK", "NCCL_TEST_SECRET", "NCCL_TEST_PLAIN", "JOB_ID"}) {
      unsetenv(name);
    }
    memset(&settings_, 0, sizeof(settings_));
  }
  void TearDown() override { SetUp(); }
  Identity Read() {
    Identity identity;
    ReadIdentity(settings_, &identity);
    return identity;
  }
  Settings settings_;
};

TEST_F(IdentityTest, NothingKnown) {
  const Identity identity = Read();
  EXPECT_EQ(identity.rank, kNoNumber);
  EXPECT_EQ(identity.local_rank, kNoNumber);
  EXPECT_EQ(identity.world_size, kNoNumber);
  EXPECT_STREQ(identity.job, "");
  EXPECT_EQ(identity.restart, 0u);
  EXPECT_GT(identity.process_start, 0u);
  EXPECT_EQ(strlen(identity.boot_id), 36u);
}

TEST_F(IdentityTest, LaunchersInOrder) {
  setenv("SLURM_PROCID", "5", 1);
  setenv("SLURM_JOB_ID", "123", 1);
  EXPECT_EQ(Read().rank, 5u);
  setenv("OMPI_COMM_WORLD_RANK", "6", 1);
  EXPECT_EQ(Read().rank, 6u);
  setenv("RANK", "7", 1);
  setenv("LOCAL_RANK", "1", 1);
  setenv("WORLD_SIZE", "8", 1);
  setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
  Identity identity = Read();
  EXPECT_EQ(identity.rank, 7u);
  EXPECT_EQ(identity.local_rank, 1u);
  EXPECT_EQ(identity.world_size, 8u);
  EXPECT_EQ(identity.restart, 2u);
  EXPECT_STREQ(identity.job, "123");
  setenv("RANK", "seven", 1);
  EXPECT_EQ(Read().rank, 6u);
  strcpy(settings_.job, "mine");
  strcpy(settings_.host, "pretended");
  strcpy(settings_.boot_id, "other-boot");
  identity = Read();
  EXPECT_STREQ(identity.job, "mine");
  EXPECT_STREQ(identity.host, "pretended");
  EXPECT_STREQ(identity.boot_id, "other-boot");
}

std::vector<std::string> Entries(const std::vector<char>& block) {
  std::vector<std::string> entries;
  for (size_t at = 0; at < block.size() && block[at];) {
    entries.emplace_back(block.data() + at);
    at += entries.back().size() + 1;
  }
  return entries;
}

TEST_F(IdentityTest, TextBlock) {
  setenv("NCCL_TEST_PLAIN", "eth0", 1);
  setenv("NCCL_TEST_SECRET", "hunter2", 1);
  setenv("LOCAL_RANK", "4", 1);
  std::vector<char> block(16384, 'x');
  WriteTextBlock(Read(), "/t", block.data(), block.size());
  const auto entries = Entries(block);
  const auto has = [&](const std::string& e) {
    return std::find(entries.begin(), entries.end(), e) != entries.end();
  };
  EXPECT_EQ(entries[0], "local_rank=4");
  EXPECT_TRUE(has("env.NCCL_TEST_PLAIN=eth0"));
  EXPECT_TRUE(has("env.NCCL_TEST_SECRET=***"));
  EXPECT_TRUE(has("env.LOCAL_RANK=4"));
  for (const std::string& e : entries) EXPECT_EQ(e.find("env.PATH="), std::string::npos);
  EXPECT_EQ(block.back(), 0);
}

// A block that is too small holds whole entries only, and says that it was cut.
TEST_F(IdentityTest, SmallTextBlock) {
  setenv("NCCL_TEST_PLAIN", std::string(500, 'a').c_str(), 1);
  for (size_t size = 16; size < 560; size += 7) {
    std::vector<char> block(size + 16, 'x');
    WriteTextBlock(Read(), "/t", block.data(), size);
    for (size_t i = size; i < block.size(); ++i) ASSERT_EQ(block[i], 'x');
    block.resize(size);
    EXPECT_EQ(block.back(), 0);
    const auto entries = Entries(block);
    EXPECT_NE(std::find(entries.begin(), entries.end(), "cut=1"), entries.end()) << size;
  }
}

}  // namespace
}  // namespace ringscope::recorder
