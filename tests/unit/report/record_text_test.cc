// `ringscope show`: everything a record holds is on the page.
#include "analyzer/report/record_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::report {
namespace {

using testing::CommRef;
using ::testing::HasSubstr;
using testing::JobBuilder;
using ::testing::Not;

model::Record Sample() {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  b.Finish(w, 30);
  b.Coll(w, 0, 31, 40).Running();
  b.P2p(w, 0, 1, true, 1, 41).Entered();
  b.EdgeOf(w, 0, 1, 2).Send(31, 12, trace::SEND_WAIT, 8, 12, 8);
  b.Messages(w, 0, 1, true, 5);
  b.InCall(0, trace::CallInFlight::P2P_API, 41, w, 1);
  b.Saw(0, 1, trace::Sibling::FROZEN, 90, "T");
  b.Stalled(w, 0, 31, 40, 100);
  auto& c = *b.Record(0).add_counters();
  c.set_name("op_no_row");
  c.set_value(17);
  c.set_loss(true);
  b.Record(0).add_not_seen("nobody looked at the network");
  b.Record(0).add_evidence()->set_source("/proc/net/dev");
  return b.Records()[0];
}

TEST(RecordText, HoldsEverything) {
  const std::string text = RenderRecord(Sample(), {});
  for (const char* part :
       {"rank0.flight", "rank 0 of 2", "pid 1000 on host0",
        "flight file, number 1, 2027-01-15 08:01:40.000 UTC", "op_no_row", "lost",
        "communicator row 0 #31: without progress since -60.000s", "rank 1 pid 1001 frozen (T)",
        "thread 2000 in p2p_api since -59.000s", "0x1000000000000000  world  rank 0 of 2",
        "#31     all-reduce", "OPEN", "p1      send", "12: 12/8/8  send_wait", "messages 5",
        "/proc/net/dev", "nobody looked at the network", "12 finished ones before are not shown"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(RecordText, AllOperationsWhenAsked) {
  RecordTextOptions options;
  options.operations = -1;
  EXPECT_THAT(RenderRecord(Sample(), options), HasSubstr("#1      all-reduce"));
  EXPECT_THAT(RenderRecord(Sample(), {}), Not(HasSubstr("#1      all-reduce")));
}

TEST(RecordText, SignatureChain) {
  model::Record r = Sample();
  auto& c = *r.trace.mutable_communicators(0);
  c.set_chain_position(99);
  c.set_signature(0xabc);
  for (int i = 0; i < 2; ++i) {
    auto& at = *c.add_checkpoints();
    at.set_position(64);
    at.set_hash(0xdef);
  }
  EXPECT_THAT(
      RenderRecord(r, {}),
      HasSubstr("signature chain 0000000000000abc after 99 collectives; at 64 000000000def\n"));
}

TEST(RecordText, WhoseAnEdgeIsThatIsDrivenForAnother) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  b.Coll(w, 1, 7).Running().raw().set_row(42);
  b.EdgeOf(w, 1, 2, 5).Recv(7, 12, trace::RECV_WAIT, 3);
  auto& e = *b.Record(0).add_edges();
  e.set_row(9);
  e.set_foreign(true);
  e.set_rank(1);
  e.set_peer(2);
  e.set_channel(5);
  e.set_send(true);
  e.set_ops_started(1);
  e.set_has_current(true);
  e.set_current_op_row(42);
  // (recorder/flight/handles.h: nonce, kind, row.)
  e.set_foreign_context(uint64_t{101} << 50 | uint64_t{1} << 46 | b.Raw(w, 1).row());
  e.set_foreign_parent(uint64_t{101} << 50 | uint64_t{3} << 46 | 42);
  EXPECT_THAT(RenderRecord(b.Records()[0], {}), HasSubstr("#0")) << "alone it does not know";
  const std::string text = RenderRecord(b.Records()[0], {}, ForeignEdgesOf(b.Build()));
  EXPECT_THAT(text, HasSubstr("#7"));
  EXPECT_THAT(text, HasSubstr("of rank 1 in world"));
}

TEST(RecordText, SaysWhyItWasWrittenAndWhoAsked) {
  const auto text = [](trace::WriteReason reason) {
    model::Record r = Sample();
    r.trace.set_reason(reason);
    r.trace.mutable_liveness()->set_woken_by_pid(77);
    r.trace.mutable_liveness()->set_woken_by_rank(3);
    return RenderRecord(r, {});
  };
  EXPECT_THAT(text(trace::REASON_WAKE), HasSubstr("written     wake (asked by rank 3, pid 77"));
  EXPECT_THAT(text(trace::REASON_QUIET), HasSubstr("written     quiet, number"));
  EXPECT_THAT(text(trace::REASON_MARKER), HasSubstr("written     marker, number"));
  EXPECT_THAT(text(trace::REASON_REQUEST), HasSubstr("written     request, number"));
}

TEST(RecordText, AnEmptyRecordIsSaidToBeSo) {
  EXPECT_THAT(RenderRecord(model::Record(), {}), HasSubstr("which process this is is missing"));
}

TEST(RecordText, ControlCharactersStayOut) {
  model::Record r = Sample();
  r.trace.mutable_process()->set_command_line("python\x1b[2J train.py\n");
  r.trace.mutable_communicators(0)->set_name("a\x07");
  for (char c : RenderRecord(r, {}))
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace
}  // namespace ringscope::report
