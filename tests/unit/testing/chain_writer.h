// The signature chain of one rank as its recorder would write it (recorder/flight/chain.h), from a
// list of calls.
#ifndef RINGSCOPE_TESTS_UNIT_TESTING_CHAIN_WRITER_H_
#define RINGSCOPE_TESTS_UNIT_TESTING_CHAIN_WRITER_H_

#include <cstdint>
#include <map>

#include "proto/trace.pb.h"
#include "recorder/flight/chain.h"

namespace ringscope::testing {

class ChainWriter {
 public:
  // One call in a group of its own, or, between BeginGroup() and EndGroup(), one of that group. As
  // in the recorder a group counts once the next one begins.
  void Call(uint64_t count, flight::Func func = flight::Func::kAllReduce) {
    if (open_ > 0 && !(grouped_ && members_ > 0)) Close();
    sum_ += flight::ChainOf(func, flight::DataType::kFloat32, count, 0);
    ++open_;
    ++members_;
  }
  void BeginGroup() { grouped_ = true, members_ = 0; }
  void EndGroup() { grouped_ = false, members_ = 0; }
  void Calls(uint64_t n, uint64_t count = 1024) {
    for (uint64_t i = 0; i < n; ++i) Call(count);
  }

  uint64_t entered() const { return position_ + open_; }
  void WriteTo(trace::Communicator* to) const {
    to->set_collectives(entered());
    to->set_chain_position(position_);
    to->set_signature(hash_);
    to->clear_checkpoints();
    for (const uint32_t shift : flight::kChainShift) {
      const uint64_t newest = position_ >> shift;
      for (uint64_t o = newest; o != 0 && o + 2 > newest; --o) {
        trace::Checkpoint& at = *to->add_checkpoints();
        at.set_position(o << shift);
        at.set_hash(kept_.at(o << shift));
      }
    }
  }

 private:
  void Close() {
    hash_ = flight::ChainFold(hash_, sum_);
    const uint64_t before = position_;
    position_ += open_;
    for (uint64_t m = before / 64 + 1; m <= position_ / 64; ++m)
      kept_[m * 64] = flight::ChainMix(hash_ ^ position_) & 0xffffffffffff;
    sum_ = open_ = 0;
  }
  uint64_t hash_ = 0, position_ = 0, sum_ = 0, open_ = 0, members_ = 0;
  bool grouped_ = false;
  std::map<uint64_t, uint64_t> kept_;
};

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_TESTING_CHAIN_WRITER_H_
