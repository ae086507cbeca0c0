#include "tests/replay/plugin_table.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdarg>

#include "absl/strings/str_cat.h"

namespace ringscope::replay {
namespace {

// NCCL writes these to its debug log; a replay copies the log of the recording instead.
void IgnoreLog(int, unsigned long, const char*, int, const char*, ...) {}

}  // namespace

absl::Status PluginTable::Load() {
  ++communicators_;
  if (table_ != nullptr) return absl::OkStatus();
  if (fixed_ != nullptr) {
    table_ = fixed_;
    return absl::OkStatus();
  }
  library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("plugin ", path_, " cannot be loaded: ", dlerror(),
                     "; build libringscope.so first, or name another with --plugin"));
  }
  const std::string symbol = absl::StrCat("ncclProfiler_v", api_);
  table_ = dlsym(library_, symbol.c_str());
  if (table_ == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "plugin ", path_, " exports no ", symbol,
        ", the table that this capture went through; use a plugin that does, or another capture"));
  }
  return absl::OkStatus();
}

void PluginTable::Unload() {
  if (--communicators_ > 0) return;
  communicators_ = 0;
  table_ = nullptr;
  if (library_ != nullptr) dlclose(library_);
  library_ = nullptr;
}

namespace {
std::atomic<int> g_nccl_version{0};
}  // namespace

void SetNcclVersion(int number) { g_nccl_version = number; }

int PluginTable::Init(void** context, uint64_t comm_id, int* mask, const char* comm_name,
                      int n_nodes, int n_ranks, int rank) {
  if (api_ <= 3) return static_cast<TableV1*>(table_)->init(context, mask);
  if (api_ == 4) {
    return static_cast<TableV4*>(table_)->init(context, mask, comm_name, comm_id, n_nodes, n_ranks,
                                               rank, IgnoreLog);
  }
  return v5()->init(context, comm_id, mask, comm_name, n_nodes, n_ranks, rank, IgnoreLog);
}

}  // namespace ringscope::replay

// What a plugin finds in the object that calls it: here the program is NCCL.
extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  const int number = ringscope::replay::g_nccl_version;
  if (version == nullptr || number == 0) return 4;  // ncclInvalidArgument
  *version = number;
  return 0;
}
