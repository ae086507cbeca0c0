// A profiler plugin as NCCL sees it: found with dlopen and dlsym, spoken to through its v5 table,
// else its v4 table, or through the one that is asked for.
#ifndef RINGSCOPE_BENCH_PLUGIN_H_
#define RINGSCOPE_BENCH_PLUGIN_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "plugin/abi.h"

namespace ringscope::bench {

// Except for the arguments of init the v4 table is called like the v5 one: on a little-endian
// machine the v4 descriptor is a prefix of the v5 descriptor as far as the benchmark fills it (its
// one byte of `type` is the low byte).
using Table = abi::TableV5;
static_assert(offsetof(abi::v5::Descr, coll.proto) == offsetof(abi::v4::Descr, coll.proto) &&
              offsetof(abi::v5::Descr, kernel_ch) == offsetof(abi::v4::Descr, kernel_ch) &&
              std::endian::native == std::endian::little);

// One communicator's arguments to a plugin's init.
struct CommIdentity {
  uint64_t id = 1;
  int nodes = 4;
  int ranks = 4;
  int rank = 0;
};

class Plugin {
 public:
  // The in-program plugin that does nothing: what a callback costs by itself.
  static Plugin Empty();
  // Opens `path` as NCCL does. Never unloaded: a plugin may have threads. Ends the program with a
  // message on failure.
  // `api`: version of the table, 1 to 6; 0: v5, else v4.
  static Plugin Load(const std::string& path, int api = 0);

  // Creates one communicator; returns its context (may be nullptr, as with NCCL).
  void* Init(const CommIdentity& comm) const;
  void Finalize(void* context) const { table_->finalize(context); }

  const Table& table() const { return *table_; }
  int version() const { return version_; }
  const std::string& label() const { return label_; }
  // The event mask that the plugin asked for at its newest Init (one process-wide word, as in
  // NCCL).
  int mask() const;

 private:
  const Table* table_ = nullptr;
  int version_ = 5;
  int slot_ = 0;  // which mask word
  std::string label_;
};

}  // namespace ringscope::bench

#endif  // RINGSCOPE_BENCH_PLUGIN_H_
