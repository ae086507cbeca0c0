#include "plugin/release.h"

#include <dlfcn.h>
#include <stddef.h>

#include "plugin/abi.h"
#include "recorder/settings.h"

namespace ringscope::plugin {
namespace {

// ncclGetVersion of the object at `base`, and of no other: two copies of NCCL may be loaded.
uint32_t AskVersion(void* library, const char* name, const void* base) {
  void* symbol = dlsym(library, name);
  Dl_info owner;
  if (symbol == nullptr || dladdr(symbol, &owner) == 0 || owner.dli_fbase != base) return 0;
  int version = 0;
  const auto get_version = reinterpret_cast<int (*)(int*)>(symbol);
  return get_version(&version) == 0 && version > 0 ? static_cast<uint32_t>(version) : 0;
}

constexpr uint64_t KnownEvents(uint32_t api) {
  if (api >= 6) return abi::kCeBatch * 2 - 1;
  if (api == 5) return abi::kKernelLaunch * 2 - 1;
  return api >= 3 ? abi::kNetPlugin * 2 - 1 : abi::kProxyCtrl * 2 - 1;
}

constexpr uint64_t kAlways = abi::kGroup | abi::kColl | abi::kP2p | abi::kProxyOp |
                             abi::kProxyStep | abi::kGroupApi | abi::kCollApi | abi::kP2pApi |
                             abi::kKernelLaunch;

// KernelCh came with 2.26.2; 2.31 serves it from a thread of its own, at several times the cost. Of
// an unknown release its table has to be enough.
constexpr bool KernelChIsCheap(uint32_t version) {
  return version == 0 || (version >= 22602 && version < 23100);
}

}  // namespace

uint32_t NcclVersionAt(const void* address) {
  Dl_info object;
  if (address == nullptr || dladdr(address, &object) == 0 || object.dli_fname == nullptr) return 0;
  void* library = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  // The main program is not found under its name.
  if (library == nullptr) library = dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  uint32_t version = AskVersion(library, "pncclGetVersion", object.dli_fbase);
  if (version == 0) version = AskVersion(library, "ncclGetVersion", object.dli_fbase);
  dlclose(library);
  return version;
}

uint32_t EventsFor(uint64_t setting, uint32_t api, uint32_t nccl_version) {
  uint64_t events = setting;
  if (setting == recorder::kEventsByRelease) {
    events = kAlways;
    if (KernelChIsCheap(nccl_version)) events |= abi::kKernelCh;
  }
  return static_cast<uint32_t>(events & KnownEvents(api));
}

}  // namespace ringscope::plugin
