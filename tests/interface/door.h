// A profiler table as NCCL calls it, whatever its version: neutral events in, descriptors with
// garbage in every byte that NCCL leaves unwritten out. Each call is checked for what every
// callback must do: return 0, write *handle.
#ifndef RINGSCOPE_TESTS_INTERFACE_DOOR_H_
#define RINGSCOPE_TESTS_INTERFACE_DOOR_H_

#include <cstdint>

#include "plugin/abi.h"
#include "tests/interface/dice.h"

namespace ringscope::interface_model {

struct CommArgs {
  uint64_t id = 1;
  const char* name = nullptr;
  int nodes = 1, ranks = 2, rank = 0;
};

// One start; only what the type has counts. Strings are static, as NCCL's are.
struct Event {
  uint64_t type = 0;
  void* parent = nullptr;
  int rank = 0;
  const char* func = nullptr;
  const char* datatype = nullptr;
  const char* algo = nullptr;
  const char* proto = nullptr;
  uint64_t count = 0, sequence = 0, gpu_ns = 0;
  uint64_t comm_id = 0, traffic = 0;  // below v4, of a collective, a send or a receive
  int root = 0, peer = 0, depth = 1, pid = 0, n_steps = 0, chunk = 0, step = 0;
  uint8_t channels = 0, channel = 0;
  bool send = false, captured = false;
  void* parent_group = nullptr;
  void* stream = nullptr;
};

class Door {
 public:
  // `version`: of the table. `seed`: of the garbage.
  Door(int version, uint64_t seed) : version_(version), garbage_(seed) {}

  int version() const { return version_; }
  bool api_events() const { return version_ >= 5; }
  bool early() const { return version_ <= 3; }
  bool kernels() const { return version_ >= 3; }  // KernelCh events

  void* Init(const CommArgs& comm);
  void Finalize(void* context);
  void* Start(void* context, const Event& event);
  void Stop(void* handle);
  // `bytes`: transSize of a step, or the GPU's time of a KernelCh stop. `without`: NULL arguments.
  void State(void* handle, uint32_t state, uint64_t bytes = 0, bool without = false);
  // A state of a proxy operation in the tables v1 to v3: `steps` of its steps have come there, with
  // `bytes` in all.
  void OpState(void* handle, uint32_t state, int steps, uint64_t bytes);

  uint64_t callbacks = 0;

 private:
  const int version_;
  Dice garbage_;
};

}  // namespace ringscope::interface_model

#endif  // RINGSCOPE_TESTS_INTERFACE_DOOR_H_
