#include "analyzer/compare/op_words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>

namespace ringscope::compare {
namespace {

uint64_t SizeOfType(trace::DataType type) {
  switch (type) {
    case trace::INT8:
    case trace::UINT8:
    case trace::FLOAT8_E4M3:
    case trace::FLOAT8_E5M2:
      return 1;
    case trace::FLOAT16:
    case trace::BFLOAT16:
      return 2;
    case trace::INT32:
    case trace::UINT32:
    case trace::FLOAT32:
      return 4;
    case trace::INT64:
    case trace::UINT64:
    case trace::FLOAT64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

uint64_t BytesOf(const model::OpRecord& op, int n_ranks) {
  const bool part = op.func() == trace::ALL_GATHER || op.func() == trace::REDUCE_SCATTER;
  const double bytes = static_cast<double>(op.count()) * static_cast<double>(SizeOfType(op.datatype())) * (part ? n_ranks : 1);
  return bytes < 9e18 ? static_cast<uint64_t>(bytes) : 0;
}

double BusFactor(trace::Func func, int n_ranks) {
  const double n = n_ranks;
  switch (func) {
    case trace::ALL_REDUCE:
      return 2 * (n - 1) / n;
    case trace::ALL_GATHER:
    case trace::REDUCE_SCATTER:
    case trace::ALL_TO_ALL:
      return (n - 1) / n;
    default:
      return 1;
  }
}

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
