#include "bench/plugin.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "bench/empty_table.h"
#include "plugin/abi_early.h"

namespace ringscope::bench {
namespace {

// NCCL keeps one mask a process; here several plugins share a process, so each has its own.
constexpr int kSlots = 64;
int g_masks[kSlots];
int g_slots = 0;

int NextSlot() {
  if (g_slots == kSlots) {
    std::fprintf(stderr, "bench: more than %d plugins\n", kSlots);
    std::exit(64);
  }
  return g_slots++;
}

void IgnoreLog(int, unsigned long, const char*, int, const char*, ...) {}

}  // namespace

Plugin Plugin::Empty() {
  Plugin plugin;
  plugin.table_ = &kEmptyTable;
  plugin.label_ = "empty table";
  plugin.slot_ = NextSlot();
  return plugin;
}

Plugin Plugin::Load(const std::string& path, int api) {
  // A name without '/' would be searched in the loader's folders; here it is a file.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "bench: cannot load %s: %s\n", path.c_str(), dlerror());
    std::exit(66);
  }
  Plugin plugin;
  for (int version : {5, 4, 6, 3, 2, 1}) {
    if (api != 0 ? version != api : version == 6 || version < 4) continue;
    const std::string symbol = "ncclProfiler_v" + std::to_string(version);
    if (void* table = dlsym(library, symbol.c_str())) {
      plugin.table_ = static_cast<const Table*>(table);
      plugin.version_ = version;
      plugin.slot_ = NextSlot();
      plugin.label_ = path.substr(path.rfind('/') + 1);
      return plugin;
    }
  }
  std::fprintf(stderr, "bench: %s has no table of the version that is wanted (%d; 0: v5 or v4)\n",
               path.c_str(), api);
  std::exit(66);
}

void* Plugin::Init(const CommIdentity& comm) const {
  void* context = nullptr;
  int* mask = &g_masks[slot_];
  if (version_ >= 5) {
    table_->init(&context, comm.id, mask, "bench", comm.nodes, comm.ranks, comm.rank, &IgnoreLog);
  } else if (version_ < 4) {
    reinterpret_cast<const abi::TableV3*>(table_)->init(&context, mask);
  } else {
    reinterpret_cast<const abi::TableV4*>(table_)->init(
        &context, mask, "bench", comm.id, comm.nodes, comm.ranks, comm.rank, &IgnoreLog);
  }
  return context;
}

int Plugin::mask() const { return g_masks[slot_]; }

}  // namespace ringscope::bench
