// One subcommand of `ringscope`: one file that defines one Command, and one line in main.cc.
#ifndef RINGSCOPE_TOOLS_COMMAND_H_
#define RINGSCOPE_TOOLS_COMMAND_H_

#include <string>
#include <vector>

namespace ringscope::tools {

// Exit codes; printed by --help.
enum Exit {
  kNothingWrong = 0,
  kFaultFound = 1,
  kUndetermined = 2,
  kUsage = 64,
  kDamaged = 65,  // only damaged or unusable input
  kNoInput = 66,  // input missing or unreadable
  kInternal = 70,
};

struct Flag {
  const char* name;                  // without the dashes
  std::vector<const char*> choices;  // empty: any value
  const char* default_value;
  const char* meaning;
  const char* value = "N";  // what --help calls a value that is not a choice
};

class Arguments;

struct Command {
  const char* name;
  const char* synopsis;  // what follows "ringscope NAME"
  const char* summary;   // one line
  const char* help;      // paragraphs
  std::vector<Flag> flags;
  int (*run)(const Arguments& arguments);
};

extern const Command kDiagnose;
extern const Command kDiff;
extern const Command kScrub;
extern const Command kShow;
extern const Command kTimeline;
extern const Command kRun;
extern const Command kSnapshot;
extern const Command kExplain;
extern const Command kDoctor;
extern const Command kEnv;

// What was given to a command, checked against its flags.
class Arguments {
 public:
  // False after a message on stderr that names the mistake and the nearest right word.
  bool Parse(const Command& command, const std::vector<std::string>& words);
  const std::vector<std::string>& positional() const { return positional_; }
  // Value given, else the flag's default.
  std::string Get(const std::string& flag) const;
  bool help() const { return help_; }

 private:
  const Command* command_ = nullptr;
  std::vector<std::string> positional_;
  std::vector<std::pair<std::string, std::string>> values_;
  bool help_ = false;
};

// The flag that every command with text output has, and what it means: true on a terminal without
// NO_COLOR.
Flag ColourFlag();
bool UseColour(const std::string& value);

}  // namespace ringscope::tools

#endif  // RINGSCOPE_TOOLS_COMMAND_H_
