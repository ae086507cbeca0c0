// What the record says of one operation: trace::Operation by the same names, in a third of the memory. A job of 16,384 ranks holds
// some 17 million of them.
#ifndef RINGSCOPE_ANALYZER_MODEL_OP_RECORD_H_
#define RINGSCOPE_ANALYZER_MODEL_OP_RECORD_H_

#include <cstdint>

#include "proto/trace.pb.h"

namespace ringscope::model {

// What differs from call to call lies here; what many calls share is looked up in `shape`: the operation's own message where it was
// recorded in full, else one message for all calls of a signature. Times: ns of the host's CLOCK_MONOTONIC, 0 did not happen.
class OpRecord {
 public:
  // `full` must outlive the record.
  explicit OpRecord(const trace::Operation& full)
      : shape_(&full),
        position_(full.position()),
        entered_ns_(full.entered_ns()),
        returned_ns_(full.returned_ns()),
        enqueued_ns_(full.enqueued_ns()),
        started_ns_(full.started_ns()),
        finished_ns_(full.finished_ns()),
        gpu_finished_ns_(full.gpu_finished_ns()),
        row_(full.row()),
        group_(full.group()),
        generation_(full.generation()) {}

  struct Times {
    int64_t entered = 0, returned = 0, enqueued = 0, started = 0, finished = 0;
    int64_t gpu = 0;  // how long it ran by the GPU's own timer
  };
  // From columns. `shape` holds the signature and nothing of a single call, and must outlive the record.
  OpRecord(const trace::Operation& shape, uint64_t position, uint32_t row, uint32_t group, uint32_t generation, const Times& times)
      : shape_(&shape),
        position_(position),
        entered_ns_(times.entered),
        returned_ns_(times.returned),
        enqueued_ns_(times.enqueued),
        started_ns_(times.started),
        finished_ns_(times.finished),
        gpu_finished_ns_(times.gpu),
        row_(row),
        group_(group),
        generation_(generation) {}

  uint32_t row() const { return row_; }
  uint32_t generation() const { return generation_; }
  uint64_t position() const { return position_; }
  uint32_t group() const { return group_; }
  int64_t entered_ns() const { return entered_ns_; }
  int64_t returned_ns() const { return returned_ns_; }
  int64_t enqueued_ns() const { return enqueued_ns_; }
  int64_t started_ns() const { return started_ns_; }
  int64_t finished_ns() const { return finished_ns_; }
  int64_t gpu_started_ns() const { return shape_->gpu_started_ns(); }
  int64_t gpu_finished_ns() const { return gpu_finished_ns_; }

  bool p2p() const { return shape_->p2p(); }
  trace::Func func() const { return shape_->func(); }
  trace::DataType datatype() const { return shape_->datatype(); }
  uint64_t count() const { return shape_->count(); }
  uint64_t output_count() const { return shape_->output_count(); }
  bool count_varies() const { return shape_->count_varies(); }
  int32_t root() const { return shape_->root(); }
  int32_t peer() const { return shape_->peer(); }
  trace::Algo algo() const { return shape_->algo(); }
  trace::Proto proto() const { return shape_->proto(); }
  uint32_t channels() const { return shape_->channels(); }
  uint64_t stream() const { return shape_->stream(); }
  uint32_t thread() const { return shape_->thread(); }
  uint32_t tail_tasks() const { return shape_->tail_tasks(); }
  bool from_api() const { return shape_->from_api(); }
  bool graph_captured() const { return shape_->graph_captured(); }
  bool grouped() const { return shape_->grouped(); }
  bool copy_engine() const { return shape_->copy_engine(); }
  uint32_t reduction() const { return shape_->reduction(); }
  bool unfinished() const { return shape_->unfinished(); }
  uint32_t kernels_started() const { return shape_->kernels_started(); }
  uint32_t kernels_stopped() const { return shape_->kernels_stopped(); }
  uint32_t proxy_ops_started() const { return shape_->proxy_ops_started(); }
  uint32_t proxy_ops_stopped() const { return shape_->proxy_ops_stopped(); }
  uint32_t nccl_sequence() const { return shape_->nccl_sequence(); }
  uint32_t name() const { return shape_->name(); }
  uint32_t site() const { return shape_->site(); }

 private:
  const trace::Operation* shape_;
  uint64_t position_;
  int64_t entered_ns_, returned_ns_, enqueued_ns_, started_ns_, finished_ns_, gpu_finished_ns_;
  uint32_t row_, group_, generation_;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_OP_RECORD_H_
