#include "analyzer/compare/op_words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>

namespace ringscope::compare {
std::string CallText(const model::OpRecord& op) {
  // ALL_REDUCE -> AllReduce.
  std::string func;
  bool upper = true;
  for (char c : trace::Func_Name(op.func())) {
    if (c == '_') {
      upper = true;
      continue;
    }
    func += upper ? c : absl::ascii_tolower(static_cast<unsigned char>(c));
    upper = false;
  }
  const std::string type = absl::AsciiStrToLower(trace::DataType_Name(op.datatype()));
  return absl::StrCat(func, " of ", op.count(), " ", type);
}

std::string SizeText(uint64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes >= 1u << 30) return absl::StrFormat("%.1f GiB", b / (1u << 30));
  if (bytes >= 1u << 20) return absl::StrFormat("%.1f MiB", b / (1u << 20));
  if (bytes >= 1u << 10) return absl::StrFormat("%.0f KiB", b / (1u << 10));
  return absl::StrCat(bytes, " B");
}

std::string TimeText(double ns) {
  if (ns >= 1e9) return absl::StrFormat("%.2f s", ns / 1e9);
  if (ns >= 1e6) return absl::StrFormat("%.2f ms", ns / 1e6);
  return absl::StrFormat("%.0f us", ns / 1e3);
}

}  // namespace ringscope::compare
