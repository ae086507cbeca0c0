// Manual pages from what --help is made of, so that both say the same. `ringscope --man=COMMAND` prints one; the build runs it.
#ifndef RINGSCOPE_TOOLS_MAN_PAGE_H_
#define RINGSCOPE_TOOLS_MAN_PAGE_H_

#include <string>
#include <vector>

#include "tools/command.h"

namespace ringscope::tools {

// The page of one command: ringscope-NAME(1).
std::string ManPage(const Command& command, const std::string& version);
// ringscope(1): `help` is what `ringscope --help` prints.
std::string ManPage(const std::vector<const Command*>& commands, const std::string& help, const std::string& version);

}  // namespace ringscope::tools

#endif  // RINGSCOPE_TOOLS_MAN_PAGE_H_
