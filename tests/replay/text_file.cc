#include "tests/replay/text_file.h"

#include <unistd.h>
#include <zlib.h>

#include "absl/strings/str_cat.h"

namespace ringscope::replay {

absl::StatusOr<std::string> ReadText(const std::string& name) {
  std::string path = name;
  if (access(path.c_str(), R_OK) != 0) path += ".gz";
  if (access(path.c_str(), R_OK) != 0)
    return absl::NotFoundError(absl::StrCat(name, ": no such file"));
  // gzread hands plain files through unchanged.
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  gzbuffer(file, 1 << 17);
  std::string text;
  char block[1 << 16];
  int got;
  while ((got = gzread(file, block, sizeof block)) > 0)
    text.append(block, static_cast<size_t>(got));
  int code = Z_OK;
  const std::string message = got < 0 ? gzerror(file, &code) : "";
  // A stream that ends too early is only noticed when the file is closed.
  const int closed = gzclose_r(file);
  if (got < 0 || closed != Z_OK) {
    return absl::DataLossError(absl::StrCat(path, ": damaged after ", text.size(),
                                            " bytes of text ", message,
                                            "; copy the capture again"));
  }
  return text;
}

std::vector<absl::string_view> Lines(absl::string_view text) {
  std::vector<absl::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == absl::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace ringscope::replay
