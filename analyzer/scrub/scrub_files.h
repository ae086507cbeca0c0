// What `ringscope scrub` and `diagnose --scrubbed` are given: files found, learned from, written.
#ifndef RINGSCOPE_ANALYZER_SCRUB_SCRUB_FILES_H_
#define RINGSCOPE_ANALYZER_SCRUB_SCRUB_FILES_H_

#include <absl/status/status.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/scrub/scrub_text.h"
#include "analyzer/scrub/scrubber.h"

namespace ringscope::scrub {

class Files {
 public:
  // `scrubber` must outlive it.
  explicit Files(Scrubber* scrubber) : scrubber_(scrubber) {}

  // Files and directories (searched with everything below, links to directories not followed), "-" for standard input, which is
  // kept in a file without a name while it is worked on. `out`: a directory below that is left alone; may be empty.
  void Find(const std::vector<std::string>& paths, const std::string& out);
  // The first pass over all of them; then Scrubber::Learned().
  void Learn();

  size_t size() const { return inputs_.size(); }
  bool records() const;  // traces, flight files, streams, pickles among them
  // All of them below the directory `out`, which is made if need be; existing files are never overwritten.
  absl::Status WriteAll(const std::string& out);
  // The only one, a text.
  absl::Status WriteOnly(const Write& write);

  // "/data/acme/rank0.log" -> "rank0.log": each input and the name that it has or would have below `out`, longest path first.
  std::vector<std::pair<std::string, std::string>> Names();

  int written() const { return written_; }
  const std::vector<std::string>& notes() const { return notes_; }        // what was changed besides masks
  const std::vector<std::string>& problems() const { return problems_; }  // "file: what; remedy", what was left out
  int missing() const { return missing_; }

 private:
  enum class Type { kText, kTrace, kFlight, kStream, kPickle };
  struct Input {
    std::string path;   // to open
    std::string shown;  // for messages
    std::string name;   // relative, as it was
    Type type = Type::kText;
    bool gzip = false;
    std::string target;  // relative, masked
  };
  void Directory(const std::string& path, const std::string& name, int depth);
  void File(const std::string& path, const std::string& name, bool given);
  void StandardInput();
  bool OfType(Input* input);
  void LearnOne(const Input& input);
  absl::StatusOr<std::string> RecordBytes(const Input& input);
  absl::Status WriteOne(const Input& input, const std::string& path);
  void Problem(std::string text) { problems_.push_back(std::move(text)); }
  void Targets();

  Scrubber* scrubber_;
  std::vector<Input> inputs_;
  std::vector<std::string> notes_, problems_;
  std::set<std::pair<uint64_t, uint64_t>> seen_;
  std::string out_;
  int written_ = 0, missing_ = 0, spool_ = -1;
};

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_SCRUB_FILES_H_
