#include "catalog/nccl_release.h"

#include <string>

namespace ringscope::catalog {

int NcclRelease(std::string_view version) {
  int parts[3] = {0, 0, 0};
  size_t at = 0;
  for (int i = 0; i < 3; ++i) {
    size_t digits = 0;
    while (at < version.size() && version[at] >= '0' && version[at] <= '9' && digits < 3)
      parts[i] = parts[i] * 10 + (version[at++] - '0'), ++digits;
    if (digits == 0 && i < 2) return 0;
    if (at >= version.size() || version[at] != '.') break;
    ++at;
  }
  if (parts[0] < 2 || parts[1] > 99 || parts[2] > 99) return 0;
  return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

std::string NcclReleaseText(int release) {
  return std::to_string(release / 10000) + "." + std::to_string(release / 100 % 100) + "." + std::to_string(release % 100);
}

}  // namespace ringscope::catalog
