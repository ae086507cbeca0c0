#include "preload/target.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

namespace ringscope::preload {

Target g_targets[kMostNumbers];

namespace {

// Names under which the libraries are loaded (CUDA 11.8-13.0).
constexpr const char* kNcclNames[] = {"libnccl.so.2", nullptr};
constexpr const char* kRuntimeNames[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", nullptr};
constexpr const char* kDriverNames[] = {"libcuda.so.1", nullptr};

const char* const* NamesOf(Library library) {
  return library == Library::kNccl ? kNcclNames : library == Library::kCudaRuntime ? kRuntimeNames : kDriverNames;
}

struct Object {
  uintptr_t address;    // looked for
  uintptr_t low, high;  // of the object that holds it
  char name[512];       // as dlopen knows it; "" the program
  bool found;
};
int Holds(dl_phdr_info* info, size_t, void* argument) {
  auto* object = static_cast<Object*>(argument);
  uintptr_t low = ~uintptr_t{0}, high = 0;
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t from = info->dlpi_addr + segment.p_vaddr, to = from + segment.p_memsz;
    if (from < low) low = from;
    if (to > high) high = to;
    inside |= object->address >= from && object->address < to;
  }
  if (!inside) return 0;
  object->low = low;
  object->high = high;
  object->found = true;
  const char* name = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const size_t n = strlen(name);
  if (n >= sizeof(object->name)) return 1;  // found, and not by name
  memcpy(object->name, name, n + 1);
  return 1;
}

// Names of loaded objects, taken inside the callback; opened after it (a lock of the loader is held there).
constexpr size_t kMostObjects = 512;
struct Objects {
  const char* names[kMostObjects];
  size_t count;
};
int Collect(dl_phdr_info* info, size_t, void* argument) {
  auto* objects = static_cast<Objects*>(argument);
  if (info->dlpi_name != nullptr && info->dlpi_name[0] != 0 && objects->count < kMostObjects)
    objects->names[objects->count++] = info->dlpi_name;
  return 0;
}

void* In(const char* file, const char* name, const void* own) {
  void* handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  void* found = dlsym(handle, name);
  // It stays loaded: whoever loaded it holds it.
  dlclose(handle);
  return found == own ? nullptr : found;
}

void* Look(Library library, const char* name, const Object& caller, const void* own) {
  if (caller.found && caller.name[0] != 0) {
    if (void* found = In(caller.name, name, own)) return found;
  }
  if (void* found = dlsym(RTLD_NEXT, name); found != nullptr && found != own) return found;
  for (const char* const* file = NamesOf(library); *file != nullptr; ++file) {
    if (void* found = In(*file, name, own)) return found;
  }
  static Objects objects;  // 4 KiB: too much for a small stack. Two threads at once write the same
  objects.count = 0;
  dl_iterate_phdr(Collect, &objects);
  for (size_t i = 0; i < objects.count; ++i) {
    if (void* found = In(objects.names[i], name, own)) return found;
  }
  return nullptr;
}

__attribute__((noinline)) void* FindSlow(Target* target, Library library, const char* name, const void* caller, const void* own) {
  const int saved = errno;
  Object object = {reinterpret_cast<uintptr_t>(caller), 0, 0, {0}, false};
  dl_iterate_phdr(Holds, &object);
  void* found = nullptr;
  if (library == Library::kNccl) {
    char other[64] = "p";
    if (strlen(name) < sizeof(other) - 1) {
      memcpy(other + 1, name, strlen(name) + 1);
      found = Look(library, other, object, own);
    }
  }
  if (found == nullptr) found = Look(library, name, object, own);
  if (found == nullptr) found = reinterpret_cast<void*>(target->entry.load(std::memory_order_acquire));
  dlerror();  // what the application may ask for is its own errors
  // One writes; who comes meanwhile has its answer without it.
  uint64_t turn = target->turn.load(std::memory_order_relaxed);
  if (found != nullptr && object.found && (turn & 1) == 0 &&
      target->turn.compare_exchange_strong(turn, turn + 1, std::memory_order_acquire)) {
    target->low.store(object.low, std::memory_order_relaxed);
    target->high.store(object.high, std::memory_order_relaxed);
    target->function.store(reinterpret_cast<uintptr_t>(found), std::memory_order_relaxed);
    target->turn.store(turn + 2, std::memory_order_release);
  }
  errno = saved;
  return found;
}

}  // namespace

void* Find(Target* target, Library library, const char* name, const void* caller, const void* own) {
  const uint64_t turn = target->turn.load(std::memory_order_acquire);
  const auto at = reinterpret_cast<uintptr_t>(caller);
  if (__builtin_expect(at >= target->low.load(std::memory_order_relaxed) && at < target->high.load(std::memory_order_relaxed),
                       1)) {
    const uintptr_t function = target->function.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (__builtin_expect((turn & 1) == 0 && target->turn.load(std::memory_order_relaxed) == turn && function != 0, 1))
      return reinterpret_cast<void*>(function);
  }
  return FindSlow(target, library, name, caller, own);
}

}  // namespace ringscope::preload
