// Numbers as people write them into settings: the whole text, or nothing.
#ifndef RINGSCOPE_TESTS_SIM_SETUP_NUMBER_H_
#define RINGSCOPE_TESTS_SIM_SETUP_NUMBER_H_

#include <cstdint>
#include <optional>
#include <string>

namespace ringscope::sim {

// Decimal digits only, within the limits.
std::optional<int64_t> Whole(const std::string& text, int64_t least, int64_t most);
// "1b": hexadecimal digits only.
std::optional<int64_t> Hexadecimal(const std::string& text, int64_t least, int64_t most);
// "1.5": digits with at most one point.
std::optional<double> Decimal(const std::string& text, double more_than, double most);

// A name or text of somebody else's as it may stand in a message: what does not print is replaced, what is long is cut.
std::string Shown(const std::string& text);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_SETUP_NUMBER_H_
