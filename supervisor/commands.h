// Runs other programs inside a collector's process and hands on what they print.
#ifndef RINGSCOPE_SUPERVISOR_COMMANDS_H_
#define RINGSCOPE_SUPERVISOR_COMMANDS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringscope::supervisor {

struct CommandEnd {
  bool late = false;  // over its time, killed
  int status = 0;     // as waitpid tells it; 127 as exit code: it could not be started
  bool good() const { return !late && status == 0; }
  // "exit code 1", "signal 9 (Killed)", "not done in 5 s"; empty when good.
  std::string Words(double seconds) const;
};

// Runs all of `commands` at the same time, at most `seconds` each, without standard input and with `environment` added to this
// process's own. What each prints, on either stream, comes piece by piece to `on_output` with its index. Returns when all have
// ended; what they leave running in the background may go on printing unheard. They die with the calling process.
std::vector<CommandEnd> RunCommands(const std::vector<std::vector<std::string>>& commands,
                                    const std::map<std::string, std::string>& environment, double seconds,
                                    const std::function<void(size_t, std::string_view)>& on_output);

// Whether PATH leads to a program of this name.
bool OnPath(const std::string& program);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_COMMANDS_H_
