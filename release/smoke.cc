// Loads libringscope.so as NCCL does, runs one all-reduce through its newest table, and looks at
// the flight file.
//
// usage: smoke LIBRARY
// Needs nothing but the C library's loader, so that it runs where the release build runs.
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/abi.h"
#include "recorder/flight/format.h"

namespace {

using namespace ringscope;

int Fail(const char* what) {
  fprintf(stderr, "smoke: FAILED: %s\n", what);
  return 1;
}

abi::v5::Descr Of(abi::EventType type, void* parent) {
  abi::v5::Descr d = {};
  d.type = type;
  d.parent = parent;
  return d;
}

// True when a file of `folder` begins as a flight file does and says that it records; all are
// removed.
bool FoundFlightFile(const char* folder) {
  DIR* directory = opendir(folder);
  bool found = false;
  while (const dirent* entry = directory != nullptr ? readdir(directory) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    alignas(8) static char page[4096];
    FILE* file = fopen(path, "rb");
    if (file != nullptr && fread(page, 1, sizeof(page), file) == sizeof(page)) {
      const auto* header = reinterpret_cast<const flight::FileHeader*>(page);
      found |= memcmp(header->magic, flight::kMagic, sizeof(flight::kMagic)) == 0 &&
               (header->state.load() & flight::kStateRecording) != 0 && header->pid == getpid();
    }
    if (file != nullptr) fclose(file);
    unlink(path);
  }
  if (directory != nullptr) closedir(directory);
  rmdir(folder);
  return found;
}

int Run(const char* library, const char* folder) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Fail(dlerror());
  const auto* table = static_cast<const abi::TableV5*>(dlsym(handle, "ncclProfiler_v6"));
  if (table == nullptr) return Fail("no ncclProfiler_v6");

  void* context = nullptr;
  int mask = 0, failures = 0;
  failures += table->init(&context, 0x1234, &mask, "smoke", 1, 2, 0, nullptr) != 0;
  if (context == nullptr || mask == 0) return Fail("init gave no context or no mask");
  int missing = 0;
  const auto start = [&](abi::v5::Descr d) {
    void* event = nullptr;
    failures += table->start_event(context, &event, &d) != 0;
    missing += event == nullptr;
    return event;
  };
  const auto stop = [&](void* event) { failures += table->stop_event(event) != 0; };

  void* group = start(Of(abi::kGroupApi, nullptr));
  abi::v5::Descr api = Of(abi::kCollApi, group);
  api.coll_api.func = "AllReduce";
  api.coll_api.count = 4;
  api.coll_api.datatype = "ncclFloat32";
  void* call = start(api);
  stop(call);
  abi::v5::Descr launch = Of(abi::kColl, call);
  launch.coll.func = "AllReduce";
  launch.coll.count = 4;
  launch.coll.datatype = "ncclFloat32";
  launch.coll.channels = 1;
  launch.coll.algo = "RING";
  launch.coll.proto = "LL";
  void* coll = start(launch);
  stop(coll);
  stop(group);
  void* kernel = start(Of(abi::kKernelCh, coll));
  stop(kernel);
  if (missing != 0) return Fail("an event got a NULL handle");
  failures += table->finalize(context) != 0;
  if (failures != 0) return Fail("a callback did not return 0");
  // NCCL closes the library with its last communicator; it must stay mapped (-z nodelete).
  dlclose(handle);
  if (dlopen(library, RTLD_NOW | RTLD_NOLOAD) == nullptr)
    return Fail("dlclose unloaded the library");
  if (!FoundFlightFile(folder)) return Fail("no flight file, or not ours");
  printf("smoke: one all-reduce recorded through %s (mask 0x%x)\n", library,
         static_cast<unsigned>(mask));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("usage: smoke LIBRARY\n", stderr);
    return 64;
  }
  char folder[] = "/tmp/ringscope-smoke.XXXXXX";
  if (mkdtemp(folder) == nullptr) return Fail("cannot make a folder in /tmp");
  setenv("RINGSCOPE_FLIGHT_DIR", folder, 1);
  setenv("RINGSCOPE_DIR", folder, 1);
  setenv("RINGSCOPE_TRACES", "0", 1);
  return Run(argv[1], folder);
}
