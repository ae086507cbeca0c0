#include "tools/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/report/style.h"

namespace ringscope::tools {
namespace {

double Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0), begin_(Now()) {}

ProgressLine::~ProgressLine() {
  if (shown_) fprintf(stderr, "\r\x1b[K");
}

ingest::Progress ProgressLine::callback() {
  if (!terminal_) return nullptr;
  return
      [this](const std::string& path, uint64_t done, uint64_t total) { Show(path, done, total); };
}

void ProgressLine::Show(const std::string& path, uint64_t done, uint64_t total) {
  if (done == 0) ++files_;
  const double now = Now();
  if (now - begin_ < 1 || now - last_ < 0.2) return;
  last_ = now;
  shown_ = true;
  std::string name = report::Printable(path);
  if (name.size() > 60) name = "..." + name.substr(name.size() - 57);
  fprintf(stderr, "\r\x1b[Kreading file %llu: %s", static_cast<unsigned long long>(files_),
          name.c_str());
  if (total > (1u << 20))
    fprintf(stderr, " (%llu of %llu MiB)", static_cast<unsigned long long>(done >> 20),
            static_cast<unsigned long long>(total >> 20));
  fflush(stderr);
}

}  // namespace ringscope::tools
