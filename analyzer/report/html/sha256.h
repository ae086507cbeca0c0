// SHA-256 (FIPS 180-4): a page names the hash of each style and script that it may run.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_SHA256_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_SHA256_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace ringscope::report::html {

std::array<uint8_t, 32> Sha256(std::string_view bytes);

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_SHA256_H_
