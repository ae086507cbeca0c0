// Addresses, GUIDs and UUIDs where they stand in a text.
#ifndef RINGSCOPE_ANALYZER_SCRUB_ADDRESS_TEXT_H_
#define RINGSCOPE_ANALYZER_SCRUB_ADDRESS_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "analyzer/scrub/masks.h"

namespace ringscope::scrub {

// What stands at `at` (the start of a word) and is an IPv4 or IPv6 address, a MAC, a GUID or a UUID: its length, and the mask in
// `mask`, written as the original was. 0: none of them. Versions of four parts, bus ids, times and C++ names are none.
size_t MaskAddressAt(std::string_view text, size_t at, Masks* masks, std::string* mask);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_ADDRESS_TEXT_H_
