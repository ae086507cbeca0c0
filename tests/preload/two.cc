// Loads the libraries given, none of them for all to see, and calls each twice in turn.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int (*use[8])() = {};
  for (int i = 1; i < argc && i < 8; ++i) {
    void* handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      printf("%s\n", dlerror());
      return 1;
    }
    use[i] = reinterpret_cast<int (*)()>(dlsym(handle, "Use"));
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 1; i < argc && i < 8; ++i) {
      if (use[i]() != 0) return 2;
    }
  }
  return 0;
}
