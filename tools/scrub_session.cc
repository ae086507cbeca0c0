#include "tools/scrub_session.h"

#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <filesystem>

#include "analyzer/ingest/file_bytes.h"
#include "analyzer/scrub/out_file.h"
#include "analyzer/scrub/scrub_record.h"

namespace ringscope::tools {

bool ScrubSession::Open(const std::string& command, const std::string& map, const std::string& also) {
  command_ = command;
  if (!map.empty()) map_ = std::filesystem::absolute(map).string();
  for (const absl::string_view word : absl::StrSplit(also, ',', absl::SkipEmpty())) scrubber_.Also({word.data(), word.size()});
  struct stat st;
  if (map.empty() || (stat(map.c_str(), &st) != 0 && errno == ENOENT)) return true;
  auto text = ingest::ReadWhole(map, uint64_t{1} << 30);
  const absl::Status status = text.ok() ? masks_.Load(*text, map) : text.status();
  if (!status.ok()) fprintf(stderr, "ringscope %s: %s\n", command.c_str(), std::string(status.message()).c_str());
  return status.ok();
}

void ScrubSession::Learn(const std::vector<std::string>& paths, const std::string& out) {
  files_.Find(paths, out);
  files_.Learn();
}

ScrubSession::~ScrubSession() {
  if (copies_.empty()) return;
  std::error_code error;
  std::filesystem::current_path(came_from_, error);
  std::filesystem::remove_all(copies_, error);
}

bool ScrubSession::EnterCopies() {
  const char* scratch = getenv("TMPDIR");
  std::string folder = std::string(scratch != nullptr && scratch[0] != 0 ? scratch : "/tmp") + "/ringscope-scrub-XXXXXX";
  std::error_code error;
  came_from_ = std::filesystem::current_path(error).string();
  if (mkdtemp(folder.data()) == nullptr) {
    fprintf(stderr, "ringscope %s: %s: %s; set TMPDIR to a directory with room\n", command_.c_str(), folder.c_str(), strerror(errno));
    return false;
  }
  copies_ = folder;
  const absl::Status status = files_.WriteAll(folder);
  if (status.ok()) std::filesystem::current_path(folder, error);
  if (!status.ok() || error) {
    fprintf(stderr, "ringscope %s: %s\n", command_.c_str(), status.ok() ? error.message().c_str() : std::string(status.message()).c_str());
    return false;
  }
  return true;
}

bool ScrubSession::Save() {
  if (map_.empty()) return true;
  const absl::Status status = scrub::ReplacePrivate(map_, masks_.Save());
  if (!status.ok()) fprintf(stderr, "ringscope %s: %s\n", command_.c_str(), std::string(status.message()).c_str());
  return status.ok();
}

std::string ScrubSession::Text(std::string text) {
  for (const auto& [path, name] : files_.Names()) absl::StrReplaceAll({{path, name}}, &text);
  return scrubber_.Text(text);
}

void ScrubSession::Message(google::protobuf::Message* message) { scrub::ScrubMessage(message, &scrubber_, files_.Names()); }

}  // namespace ringscope::tools
