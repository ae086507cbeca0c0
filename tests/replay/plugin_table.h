// The plugin as NCCL finds and loads it: dlopen with RTLD_NOW | RTLD_LOCAL, the table as a data
// symbol, a count of communicators, dlclose when it reaches 0. Declarations of our own: this is the
// caller's side.
#ifndef RINGSCOPE_TESTS_REPLAY_PLUGIN_TABLE_H_
#define RINGSCOPE_TESTS_REPLAY_PLUGIN_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace ringscope::replay {

using Logger = void (*)(int level, unsigned long subsystem, const char* file, int line,
                        const char* format, ...);

// Makes the program's ncclGetVersion, which a plugin may ask for, answer like the capture's NCCL;
// 0: it fails.
void SetNcclVersion(int number);

// Up to v3 init gets no identity; v4 has the mask before the id, v5 and v6 have it after. The rest
// has the same types and places in all versions.
struct TableV1 {
  const char* name;
  int (*init)(void** context, int* mask);
};

struct TableV4 {
  const char* name;
  int (*init)(void** context, int* mask, const char* comm_name, uint64_t comm_hash, int n_nodes,
              int n_ranks, int rank, Logger logger);
  int (*start)(void* context, void** handle, void* descriptor);
  int (*stop)(void* handle);
  int (*state)(void* handle, uint32_t state, void* args);
  int (*finalize)(void* context);
};

struct TableV5 {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, int* mask, const char* comm_name, int n_nodes,
              int n_ranks, int rank, Logger logger);
  int (*start)(void* context, void** handle, void* descriptor);
  int (*stop)(void* handle);
  int (*state)(void* handle, uint32_t state, void* args);
  int (*finalize)(void* context);
};

class PluginTable {
 public:
  PluginTable(std::string path, int api) : path_(std::move(path)), api_(api) {}
  // For tests: a table without a library behind it. It must outlive this object.
  PluginTable(void* table, int api) : api_(api), fixed_(table), table_(table) {}

  // Loads on the first communicator, counts later ones. An error names the path and the remedy.
  absl::Status Load();
  // One communicator less; unloads at 0.
  void Unload();
  bool loaded() const { return table_ != nullptr; }

  int Init(void** context, uint64_t comm_id, int* mask, const char* comm_name, int n_nodes,
           int n_ranks, int rank);
  int Start(void* context, void** handle, void* descriptor) {
    return v5()->start(context, handle, descriptor);
  }
  int Stop(void* handle) { return v5()->stop(handle); }
  int RecordState(void* handle, uint32_t state, void* args) {
    return v5()->state(handle, state, args);
  }
  int Finalize(void* context) { return v5()->finalize(context); }

 private:
  // Members after init are the same in all versions.
  TableV5* v5() const { return static_cast<TableV5*>(table_); }

  std::string path_;
  int api_;
  void* fixed_ = nullptr;
  void* table_ = nullptr;
  void* library_ = nullptr;
  int communicators_ = 0;
};

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_PLUGIN_TABLE_H_
