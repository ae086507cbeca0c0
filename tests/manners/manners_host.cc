// A program that uses the library and then does one thing (tests/manners).
//
//   manners_host LIBRARY hang      records, writes "r" to stdout, waits to be killed
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/manners/host.h"

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[2], "hang") != 0) {
    std::fputs("usage: manners_host LIBRARY hang\n", stderr);
    return 64;
  }
  ringscope::manners::Host host(argv[1]);
  void* context = host.Init();
  host.Complete(context, 20);
  host.Open(context);
  if (write(1, "r", 1) != 1) return 1;
  for (;;) pause();
}
