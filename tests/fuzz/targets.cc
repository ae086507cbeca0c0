#include "tests/fuzz/targets.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "analyzer/ingest/flight_reader.h"
#include "analyzer/ingest/gzip.h"
#include "analyzer/ingest/stream_reader.h"
#include "analyzer/ingest/trace_reader.h"
#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/report/json.h"
#include "analyzer/report/record_text.h"
#include "analyzer/report/text.h"
#include "tests/unit/testing/flight_image.h"
#include "tests/unit/stream/collecting.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::fuzz {
namespace {

void Require(bool condition) {
  if (!condition) abort();
}

// Everything that is done to a record after it was read.
void UseRecord(const model::Record& record) {
  report::RecordTextOptions options;
  options.operations = options.edges = -1;
  const std::string text = report::RenderRecord(record, options);
  for (char c : text) Require(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}

void UseJob(std::vector<model::Record> records) {
  const model::Job job = model::BuildJob(std::move(records));
  const Diagnosis diagnosis = reasoning::Diagnose(job);
  Require(!report::RenderText(diagnosis, job, {}).empty());
  Require(report::ToJson(diagnosis).ok());
}

void RunTrace(std::string_view bytes) {
  auto file = ingest::ParseTrace(bytes, "input");
  if (ingest::LooksLikeGzip(bytes)) (void)ingest::Gunzip(bytes, 1 << 20, "input");
  if (!file.ok()) return;
  // What was read survives being written.
  auto again = ingest::ParseTrace(ingest::WriteTrace({file->trace}), "again");
  Require(again.ok() || file->trace.ByteSizeLong() == file->trace.end().ByteSizeLong() ||
          file->trace.ByteSizeLong() > ingest::kMaxChunkBytes);
  UseRecord({std::move(file->trace), "input", false, file->torn, 0});
}

std::vector<std::string> TraceSeeds() {
  testing::JobBuilder b(2);
  const auto w = b.Comm("world", {0, 1});
  b.Finish(w, 3);
  b.Coll(w, 0, 4).Running();
  trace::Trace head;
  *head.mutable_process() = b.Record(0).process();
  trace::Trace rest = b.Record(0);
  rest.clear_process();
  return {ingest::WriteTrace({head, rest}), ingest::WriteTrace({b.Record(1)})};
}

const std::string& GoodImage() {
  static const std::string* const image = [] {
    testing::FlightImage i;
    i.Text("rank=3");
    i.Text("world_size=4");
    i.Text("env.NCCL_DEBUG=INFO");
    for (uint32_t c = 0; c < 3; ++c) {
      i.AddComm(c, 0x1000 + c, 3, 4);
      for (int k = 0; k < 300; ++k) i.AddAllReduce(c, k % 7 != 6);
    }
    for (uint32_t e = 0; e < 4; ++e) {
      auto& edge = i.edge(e);
      edge.stamp = 1 | uint64_t{e} << 16 | uint64_t{e % 2} << 24 | uint64_t{1} << 63;
      edge.peer = 2 | uint64_t{3} << 32;
      edge.steps = 4 | uint64_t{3} << 16 | uint64_t{2} << 32;
      edge.ops = 7 | uint64_t{6} << 32;
    }
    return new std::string(i.Bytes());
  }();
  return *image;
}

// Records of 6 bytes: offset in units of 8 bytes (3), length in words (1), value (1), how (1). A
// first byte of 0xff cuts the image instead.
void RunFlight(std::string_view bytes) {
  std::string image = GoodImage();
  while (bytes.size() >= 6) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const size_t at = ((size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2)) * 8) % image.size();
    if (byte(5) == 0xff) {
      image.resize(at + 1);
    } else {
      const size_t n = std::min<size_t>(image.size() - at, byte(3));
      if (byte(5) % 2 == 0) {
        memset(image.data() + at, byte(4), n);
      } else {
        for (size_t i = 0; i < n; ++i)
          image[at + i] = static_cast<char>(image[at + i] + byte(4) + byte(5) * i);
      }
    }
    bytes.remove_prefix(6);
  }
  auto file = ingest::ParseFlight(image, "input");
  if (!file.ok()) return;
  UseRecord({file->trace, "input", true, file->torn, 0});
  std::vector<model::Record> records;
  records.push_back({std::move(file->trace), "input", true, file->torn, 0});
  UseJob(std::move(records));
}

std::vector<std::string> FlightSeeds() {
  return {"", std::string("\x00\x02\x00\x08\x41\x00", 6),
          std::string("\x00\x10\x00\x10\x01\x01\x00\x20\x00\xff\xff\x02", 12)};
}

class Judge : public ingest::StreamSink {
 public:
  void Operation(const ingest::StreamedOperation& op) override {
    Require(op.signature != nullptr && op.end <= trace::STILL_OPEN);
    ++operations;
  }
  void Step(const ingest::StreamedStep& step) override {
    Require(step.transfer != nullptr);
    ++steps;
  }
  uint64_t operations = 0, steps = 0;
};

// A stream file; with a first byte of 0xff what follows is the payload of a chunk whose checksum is right.
void RunStream(std::string_view bytes) {
  std::string framed;
  if (!bytes.empty() && bytes[0] == '\xff') {
    framed = testing::StreamFileOf({testing::Framed(std::string(bytes.substr(1)))});
    bytes = framed;
  }
  Judge judge;
  const auto summary = ingest::ParseStream(bytes, "input", &judge);
  if (!summary.ok()) return;
  Require(summary->operations == judge.operations && summary->steps == judge.steps);
  Require(summary->bytes == bytes.size() && summary->notes.size() <= 20);
}

std::vector<std::string> StreamSeeds() {
  std::vector<std::string> chunks;
  auto batch = std::make_unique<flight::StreamBatch>();
  for (uint64_t n = 1; n <= 3; ++n) {
    batch->Clear();
    batch->comms[batch->comm_count++] = testing::CommOf(0, 77);
    for (uint32_t i = 0; i < 20; ++i) {
      flight::StreamOp& op = batch->ops[batch->op_count++];
      op = {};
      op.signature.count = i % 3;
      op.position = n * 20 + i;
      op.entered = op.position * 1000000;
      op.returned = op.entered + 500;
      op.gpu_started = 7;
    }
    batch->transfers[batch->transfer_count++] = {1, 3, 4, 0, true, false, 0, n};
    for (uint32_t i = 0; i < 16; ++i) batch->steps[batch->step_count++] = {0, i, 5000000 * n + i, 4096};
    chunks.push_back(testing::PackedChunk(batch.get(), n, n == 3));
  }
  return {testing::StreamFileOf(chunks), '\xff' + chunks[1].substr(8)};
}

// Up to four serialized traces, each behind its length (two bytes, big endian).
void RunJob(std::string_view bytes) {
  std::vector<model::Record> records;
  while (bytes.size() > 2 && records.size() < 4) {
    const size_t n = std::min<size_t>(
        size_t{static_cast<unsigned char>(bytes[0])} << 8 | static_cast<unsigned char>(bytes[1]),
        bytes.size() - 2);
    model::Record r;
    // Half-parsed messages are records, too.
    (void)r.trace.ParsePartialFromArray(bytes.data() + 2, static_cast<int>(n));
    r.source = "record " + std::to_string(records.size());
    r.from_flight_file = n % 2 == 0;
    UseRecord(r);
    records.push_back(std::move(r));
    bytes.remove_prefix(2 + n);
  }
  UseJob(std::move(records));
}

std::vector<std::string> JobSeeds() {
  testing::JobBuilder b(4);
  b.RanksPerHost(2);
  const auto w = b.Comm("world", {0, 1, 2, 3});
  const auto tp = b.Comm("tp", {1, 3});
  b.Finish(w, 2);
  for (int r : {0, 1, 3}) b.Coll(w, r, 3).Running();
  b.P2p(tp, 0, 1, true, 1).Enqueued();
  b.Messages(tp, 0, 1, true, 1);
  b.EdgeOf(w, 0, 1).Send(3, 12, trace::SEND_WAIT, 8);
  b.EdgeOf(w, 0, 1).Recv(3, 12, trace::RECV_WAIT, 8);
  b.LastSeen(2, 20).Saw(3, 2, trace::Sibling::GONE, 30);
  std::string seed;
  for (const auto& r : b.Records()) {
    const std::string bytes = r.trace.SerializeAsString();
    seed += static_cast<char>(bytes.size() >> 8);
    seed += static_cast<char>(bytes.size());
    seed += bytes;
  }
  return {seed};
}

}  // namespace

const std::vector<Target>& Targets() {
  google::protobuf::SetLogHandler(nullptr);  // thousands of lines about invalid UTF-8
  static const auto* const targets = [] {
    auto* all = new std::vector<Target>{{"trace", RunTrace, TraceSeeds},
                                        {"flight", RunFlight, FlightSeeds},
                                        {"stream", RunStream, StreamSeeds},
                                        {"job", RunJob, JobSeeds}};
    all->push_back(ScrubTarget());
    for (Target& target : ReaderTargets()) all->push_back(std::move(target));
    return all;
  }();
  return *targets;
}

}  // namespace ringscope::fuzz
