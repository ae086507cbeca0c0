#include "analyzer/model/evidence.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"

namespace ringscope::model {

std::string_view Event::Field(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

std::optional<int64_t> Event::Number(std::string_view name) const {
  const absl::string_view field = Absl(Field(name));
  int64_t value = 0;
  const bool hex = field.substr(0, 2) == "0x";
  if (hex ? absl::SimpleHexAtoi(field, &value) : absl::SimpleAtoi(field, &value)) return value;
  return std::nullopt;
}

std::string_view Evidence::Path(Where where) const {
  return where.file < 0 || where.file >= static_cast<int32_t>(files.size()) ? std::string_view()
                                                                            : std::string_view(files[where.file].path);
}

std::string Evidence::PlaceText(Where where) const {
  return where.line == 0 ? std::string(Path(where)) : absl::StrCat(Absl(Path(where)), ":", where.line);
}

}  // namespace ringscope::model
