#include "analyzer/model/bus_id.h"

#include <absl/strings/str_format.h>

#include <charconv>

namespace ringscope::model {
namespace {

bool Hex(std::string_view text, uint64_t most, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return error == std::errc() && end == text.data() + text.size() && *value <= most;
}

}  // namespace

std::optional<BusId> ParseBusId(std::string_view text) {
  if (text.starts_with("PCI:")) text.remove_prefix(4);
  uint64_t domain = 0, bus = 0, device = 0, function = 0;
  if (const size_t dot = text.rfind('.'); dot != text.npos) {
    if (!Hex(text.substr(dot + 1), 7, &function)) return std::nullopt;
    text = text.substr(0, dot);
  }
  const size_t last = text.rfind(':');
  if (last == text.npos || !Hex(text.substr(last + 1), 31, &device)) return std::nullopt;
  text = text.substr(0, last);
  if (const size_t first = text.rfind(':'); first != text.npos) {
    if (!Hex(text.substr(0, first), 0xffffffff, &domain)) return std::nullopt;
    text = text.substr(first + 1);
  }
  if (text.size() > 2 || !Hex(text, 0xff, &bus)) return std::nullopt;
  return domain << 20 | bus << 12 | device << 4 | function;
}

std::optional<BusId> ParseNcclBusId(std::string_view text) {
  uint64_t value = 0;
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (text.empty() || text.size() > 13 || !Hex(text, UINT64_MAX, &value)) return std::nullopt;
  return value;
}

std::string BusIdText(BusId id) {
  return absl::StrFormat("%04x:%02x:%02x.%x", id >> 20, id >> 12 & 0xff, id >> 4 & 0xff, id & 0xf);
}

}  // namespace ringscope::model
