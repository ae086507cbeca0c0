// Roles of process groups, by name and by what their members do.
#include "analyzer/model/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::model {
namespace {

using ringscope::testing::CommRef;
using ringscope::testing::JobBuilder;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Roles, ByName) {
  EXPECT_EQ(RoleOfName("tp"), Role::kTensor);
  EXPECT_EQ(RoleOfName("TENSOR_MODEL_PARALLEL_GROUP"), Role::kTensor);
  EXPECT_EQ(RoleOfName("PIPELINE_MODEL_PARALLEL_GROUP"), Role::kPipeline);
  EXPECT_EQ(RoleOfName("mesh_dp_shard"), Role::kData);
  EXPECT_EQ(RoleOfName("EXPERT_MODEL_PARALLEL_GROUP"), Role::kExpert);
  EXPECT_EQ(RoleOfName("EXPERT_DATA_PARALLEL_GROUP"), Role::kData);
  EXPECT_EQ(RoleOfName("dp_cp"), Role::kData);
  EXPECT_EQ(RoleOfName("cp"), Role::kContext);
  EXPECT_EQ(RoleOfName("world"), Role::kWorld);
  EXPECT_EQ(RoleOfName(""), Role::kUnknown);
  EXPECT_EQ(RoleOfName("default_pg"), Role::kUnknown);
  EXPECT_EQ(RoleOfName("stop"), Role::kUnknown) << "words, not letters";
}

// 8 ranks on 2 hosts: groups of neighbours with `near` collectives, groups across with `far`.
Job Grid(uint64_t near, uint64_t far, int ranks_per_host = 4) {
  JobBuilder b(8);
  b.RanksPerHost(ranks_per_host);
  const CommRef world = b.Comm("", {0, 1, 2, 3, 4, 5, 6, 7}, 1);
  b.Finish(world, 1);
  for (int host = 0; host < 2; ++host) {
    const int first = host * 4;
    const CommRef c = b.Comm("", {first, first + 1, first + 2, first + 3}, 10 + static_cast<uint64_t>(host));
    b.Finish(c, near);
  }
  for (int local = 0; local < 4; ++local) {
    const CommRef c = b.Comm("", {local, local + 4}, 20 + static_cast<uint64_t>(local));
    b.Finish(c, far);
  }
  return b.Build();
}

std::map<int, std::set<Role>> BySize(const Job& job) {
  std::map<int, std::set<Role>> roles;
  for (const Communicator& c : job.communicators) roles[c.n_ranks].insert(c.role);
  return roles;
}

TEST(Roles, TensorAndDataByStrideAndCalls) {
  const Job job = Grid(40, 4);
  const std::map<int, std::set<Role>> expected = {{8, {Role::kWorld}}, {4, {Role::kTensor}}, {2, {Role::kData}}};
  EXPECT_EQ(BySize(job), expected);
  for (const Communicator& c : job.communicators) {
    if (c.role == Role::kTensor) {
      EXPECT_THAT(c.Label(), HasSubstr("tensor-parallel group 0x"));
    } else if (c.role == Role::kWorld) {
      EXPECT_THAT(c.Label(), Not(HasSubstr("world"))) << "a size is no name";
    }
  }
}

TEST(Roles, WithoutAChoiceNothingIsSaid) {
  EXPECT_EQ(BySize(Grid(8, 8))[4], std::set<Role>{Role::kUnknown}) << "as many calls on both";
  EXPECT_EQ(BySize(Grid(40, 4, 2))[4], std::set<Role>{Role::kUnknown}) << "neighbours on two hosts";
  JobBuilder b(8);  // one family only: tensor parallel, or sharded data parallel
  b.RanksPerHost(4);
  for (int host = 0; host < 2; ++host) b.Finish(b.Comm("", {4 * host, 4 * host + 1, 4 * host + 2, 4 * host + 3}), 40);
  for (const Communicator& c : b.Build().communicators) EXPECT_EQ(c.role, Role::kUnknown);
}

TEST(Roles, ExpertByAllToAll) {
  JobBuilder b(4);
  const CommRef c = b.Comm("", {0, 2}, 7);
  for (int rank = 0; rank < 2; ++rank) {
    for (uint64_t p = 1; p <= 4; ++p) b.Coll(c, rank, p).Func(p == 4 ? trace::ALL_REDUCE : trace::ALL_TO_ALL).Finished();
  }
  EXPECT_EQ(b.Build().communicators.at(0).role, Role::kExpert);
}

}  // namespace
}  // namespace ringscope::model
