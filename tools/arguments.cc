#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "tools/command.h"
#include "tools/nearest.h"

namespace ringscope::tools {

bool Arguments::Parse(const Command& command, const std::vector<std::string>& words) {
  command_ = &command;
  bool only_paths = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_paths || word.size() < 2 || word[0] != '-') {
      positional_.push_back(word);
      continue;
    }
    if (word == "--") {
      only_paths = true;
      continue;
    }
    if (word == "--help" || word == "-h") {
      help_ = true;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto flag = std::find_if(command.flags.begin(), command.flags.end(),
                                   [&](const Flag& f) { return name == std::string("--") + f.name; });
    if (flag == command.flags.end()) {
      std::vector<std::string> names = {"--help"};
      for (const Flag& f : command.flags) names.push_back(std::string("--") + f.name);
      fprintf(stderr, "ringscope %s: unknown flag %s%s\n", command.name, name.c_str(), DidYouMean(name, names).c_str());
      return false;
    }
    // `--list` alone means yes.
    const bool switch_ =
        flag->choices.size() == 2 && std::string(flag->choices[0]) == "yes" && std::string(flag->choices[1]) == "no";
    const bool alone = i + 1 == words.size() || (words[i + 1] != "yes" && words[i + 1] != "no");
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (switch_ && alone) {
      value = "yes";
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      fprintf(stderr, "ringscope %s: %s needs a value\n", command.name, name.c_str());
      return false;
    }
    const std::vector<std::string> choices(flag->choices.begin(), flag->choices.end());
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
      std::string list;
      for (const auto& c : choices) list += (list.empty() ? "" : ", ") + c;
      fprintf(stderr, "ringscope %s: %s=%s is none of %s%s\n", command.name, name.c_str(), value.c_str(), list.c_str(),
              DidYouMean(value, choices).c_str());
      return false;
    }
    values_.emplace_back(flag->name, value);
  }
  return true;
}

std::string Arguments::Get(const std::string& flag) const {
  for (size_t i = values_.size(); i-- > 0;) {
    if (values_[i].first == flag) return values_[i].second;
  }
  for (const Flag& f : command_->flags) {
    if (flag == f.name) return f.default_value;
  }
  return "";
}

Flag ColourFlag() {
  return {"color", {"auto", "always", "never"}, "auto", "colour: on a terminal unless NO_COLOR is set, always, never"};
}

bool UseColour(const std::string& value) {
  if (value != "auto") return value == "always";
  const char* no_color = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  if (no_color != nullptr && no_color[0] != 0) return false;
  return isatty(STDOUT_FILENO) != 0 && !(term != nullptr && strcmp(term, "dumb") == 0);
}

}  // namespace ringscope::tools
