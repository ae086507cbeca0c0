// Words that say nothing of anybody: of systems, public software and logs. They are never taken for a name.
#ifndef RINGSCOPE_ANALYZER_SCRUB_VOCABULARY_H_
#define RINGSCOPE_ANALYZER_SCRUB_VOCABULARY_H_

#include <string_view>

namespace ringscope::scrub {

// A word of the catalogue's signatures, or of the list here; in any case, with or without digits at its end ("python3", "v2").
bool PublicWord(std::string_view word);
// All of its parts between "-", "_", "." and "+" are.
bool PublicWords(std::string_view name);
// "eth0", "mlx5_2", "ib0", "enp65s0f1np1", "bond0", "rank3", "gpu1": what names no machine.
bool DeviceName(std::string_view word);
// A host of the public that a log refers to ("github.com", "pytorch.org").
bool PublicHost(std::string_view name);
// "root", "ubuntu", "nobody".
bool PublicUser(std::string_view name);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_VOCABULARY_H_
