#ifndef RINGSCOPE_TOOLS_PROGRESS_H_
#define RINGSCOPE_TOOLS_PROGRESS_H_

#include <cstdint>
#include <string>

#include "analyzer/ingest/file_bytes.h"

namespace ringscope::tools {

// One line on stderr that says what is being read, when that takes longer than a second and stderr
// is a terminal. Erased by the destructor.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ingest::Progress callback();

 private:
  void Show(const std::string& path, uint64_t done, uint64_t total);
  bool terminal_;
  bool shown_ = false;
  double begin_;
  double last_ = 0;
  uint64_t files_ = 0;
};

}  // namespace ringscope::tools

#endif  // RINGSCOPE_TOOLS_PROGRESS_H_
