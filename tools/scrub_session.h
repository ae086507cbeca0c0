// What `scrub` and `diagnose --scrubbed` share: the map, the two passes, the report's texts.
#ifndef RINGSCOPE_TOOLS_SCRUB_SESSION_H_
#define RINGSCOPE_TOOLS_SCRUB_SESSION_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "analyzer/scrub/scrub_files.h"

namespace ringscope::tools {

class ScrubSession {
 public:
  ScrubSession() = default;
  ScrubSession(const ScrubSession&) = delete;
  ~ScrubSession();
  // The map of --map (empty: none) and the words of --also (between commas). False after a message on stderr.
  bool Open(const std::string& command, const std::string& map, const std::string& also);
  // Finds the inputs and learns from them.
  void Learn(const std::vector<std::string>& paths, const std::string& out);
  // Writes masked copies into a folder of this process and goes there; it goes away with this object. False after a message on stderr.
  bool EnterCopies();
  // Writes the map back. False after a message on stderr.
  bool Save();

  std::string Text(std::string text);
  // Every text of the message.
  void Message(google::protobuf::Message* message);

  scrub::Files& files() { return files_; }
  scrub::Masks& masks() { return masks_; }

 private:
  std::string command_, map_, copies_, came_from_;
  scrub::Masks masks_;
  scrub::Scrubber scrubber_{&masks_};
  scrub::Files files_{&scrubber_};
};

}  // namespace ringscope::tools

#endif  // RINGSCOPE_TOOLS_SCRUB_SESSION_H_
