// A new file, gzip'd or not. Never an existing one, never through a link.
#ifndef RINGSCOPE_ANALYZER_SCRUB_OUT_FILE_H_
#define RINGSCOPE_ANALYZER_SCRUB_OUT_FILE_H_

#include <absl/status/status.h>

#include <string>
#include <string_view>

struct gzFile_s;

namespace ringscope::scrub {

class OutFile {
 public:
  OutFile() = default;
  OutFile(const OutFile&) = delete;
  ~OutFile();
  absl::Status Open(const std::string& path, bool gzip);
  absl::Status Write(std::string_view bytes);
  absl::Status Close();

 private:
  absl::Status Failed(const char* why) const;
  std::string path_;
  int fd_ = -1;
  gzFile_s* gzip_ = nullptr;
};

// `text` under `path` with mode 0600: written beside it and renamed, so that a reader sees the old or the new.
absl::Status ReplacePrivate(const std::string& path, std::string_view text);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_OUT_FILE_H_
