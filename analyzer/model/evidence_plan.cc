#include "analyzer/model/evidence_plan.h"

#include <array>

namespace ringscope::model {
namespace {

// In the order of the enumeration (topoPathTypeStr in src/graph/topo.cc).
constexpr std::array<std::string_view, 13> kNames = {"?",   "LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                     "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

}  // namespace

PathType ParsePathType(std::string_view text) {
  if (text == "NODE") return PathType::kPhb;
  if (text.size() > 2 && text.starts_with("NV") && text[2] >= '0' && text[2] <= '9') return PathType::kNvl;
  if (text == "P2B") return PathType::kPhb;
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<PathType>(i);
  }
  return PathType::kUnknown;
}

std::string_view PathTypeText(PathType type) {
  const auto index = static_cast<size_t>(type);
  return index < kNames.size() ? kNames[index] : kNames[0];
}

}  // namespace ringscope::model
