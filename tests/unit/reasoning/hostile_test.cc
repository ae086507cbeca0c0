// Records whose fields hold anything: no finder may crash, overflow or loop. Runs under the
// sanitizers.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

#include "analyzer/reasoning/finders.h"
#include "tests/unit/testing/chain_writer.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::CommRef;
using testing::JobBuilder;
using testing::OpBuilder;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // Sets one scalar of forty to something: small, huge, negative, or a plausible time.
  void Mutate(Message* message) {
    const auto* reflection = message->GetReflection();
    const auto* type = message->GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      if (field->is_map()) continue;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        if (field->is_repeated()) {
          for (int k = 0; k < reflection->FieldSize(*message, field); ++k) {
            Mutate(reflection->MutableRepeatedMessage(message, field, k));
          }
        } else if (reflection->HasField(*message, field)) {
          Mutate(reflection->MutableMessage(message, field));
        }
      } else if (!field->is_repeated() && random_() % 40 == 0) {
        Set(message, field);
      }
    }
  }
  bool Coin() { return random_() % 2 == 0; }

 private:
  uint64_t Value() {
    switch (random_() % 5) {
      case 0:
        return random_();
      case 1:
        return random_() % 8;
      case 2:
        return static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - random_() % 3;
      case 3:
        return static_cast<uint64_t>(std::numeric_limits<int64_t>::min()) + random_() % 3;
      default:
        return static_cast<uint64_t>(testing::kBootNs) + random_() % 100000000000u;
    }
  }
  void Set(Message* message, const FieldDescriptor* field) {
    const auto* reflection = message->GetReflection();
    const uint64_t v = Value();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection->SetInt32(message, field, static_cast<int32_t>(v));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection->SetInt64(message, field, static_cast<int64_t>(v));
      case FieldDescriptor::CPPTYPE_UINT32:  // mostly rows and ranks: small ones hit others
        return reflection->SetUInt32(message, field, static_cast<uint32_t>(Coin() ? v % 20 : v));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection->SetUInt64(message, field, v);
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection->SetBool(message, field, v % 2 == 1);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection->SetDouble(
            message, field,
            v % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(v));
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection->SetEnumValue(message, field, static_cast<int>(v % 20));
      default:
        return;
    }
  }
  std::mt19937_64 random_;
};

// A job with something for every finder.
JobBuilder Busy(Mutator* mutator) {
  JobBuilder b(4);
  const CommRef world = b.Comm("world", {0, 1, 2, 3}), pair = b.Comm("pair", {1, 2});
  for (int r = 0; r < 4; ++r) {
    for (uint64_t k = 1; k <= 9; ++k) {
      OpBuilder op = b.Coll(world, r, k);
      const double t = static_cast<double>(k);
      if (k == 9 && r != 2)
        op.Running();
      else
        op.Kernel(t + 0.1, t + 0.2 + (r == 1 ? 0.3 : 0));
      if (k % 3 == 0) op.Group(static_cast<uint32_t>(k) / 6);
    }
    const int next = (r + 1) % 4;
    b.P2p(world, r, 1, true, next).Running();
    b.Messages(world, r, next, true, mutator->Coin() ? 3 : 4);
    b.Messages(world, next, r, false, 3);
    b.EdgeOf(world, r, next)
        .Send(9, 12, trace::SEND_WAIT, 4)
        .Waited(1, 2, 3000000)
        .Recv(9, 12, trace::RECV_WAIT, 4);
    b.Stalled(world, r, 5, 4, 60, mutator->Coin() ? 70 : 0);
  }
  b.Coll(pair, 0, 1).Running();
  for (int r = 0; r < 4; ++r) {
    testing::ChainWriter chain;
    chain.Calls(1000);
    chain.Call(r == 3 ? 7 : 1024);
    chain.Calls(100);
    const uint64_t entered = b.Raw(world, r).collectives();
    chain.WriteTo(&b.Raw(world, r));
    if (mutator->Coin()) b.Raw(world, r).set_collectives(entered);
  }
  // Rank 0 drives a send of rank 1 (recorder/flight/handles.h).
  trace::Edge& foreign = *b.Record(0).add_edges();
  foreign.set_foreign(true);
  foreign.set_rank(1);
  foreign.set_peer(2);
  foreign.set_send(true);
  foreign.set_ops_started(3);
  foreign.set_has_current(true);
  foreign.set_current_op_row(2);
  foreign.set_foreign_context(uint64_t{101} << 50 | uint64_t{1} << 46 | b.Raw(world, 1).row());
  foreign.set_foreign_parent(uint64_t{101} << 50 | uint64_t{3} << 46 | 4);
  return b;
}

TEST(Hostile, AnyValueInAnyField) {
  size_t found = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Mutator mutator(seed);
    JobBuilder b = Busy(&mutator);
    for (int r = 0; r < 4; ++r) mutator.Mutate(&b.Record(r));
    const model::Job job = b.Build();
    for (FindFn find :
         {FindMismatches, FindUnmatched, FindStragglers, FindSlowEdges, FindFallbacks, FindPast}) {
      found += find(job).size();
    }
  }
  EXPECT_GT(found, 100u) << "the jobs must still be read that far";
}

}  // namespace
}  // namespace ringscope::reasoning
