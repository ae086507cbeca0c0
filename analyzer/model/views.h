// Debian 12's abseil and RE2 have string_view types of their own that std::string_view does not convert to.
#ifndef RINGSCOPE_ANALYZER_MODEL_VIEWS_H_
#define RINGSCOPE_ANALYZER_MODEL_VIEWS_H_

#include <absl/strings/string_view.h>

#include <string_view>

namespace ringscope {

// For StrCat, SimpleAtoi and the like. (std::string_view itself has starts_with and ends_with.)
inline absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }
inline bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace ringscope

#endif  // RINGSCOPE_ANALYZER_MODEL_VIEWS_H_
