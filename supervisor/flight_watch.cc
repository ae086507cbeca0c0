#include "supervisor/flight_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "recorder/flight/format.h"
#include "recorder/flight/owner.h"
#include "recorder/flight/rows.h"

namespace ringscope::supervisor {
namespace {

using flight::FileHeader;
using flight::Load;

struct Page {
  alignas(8) char bytes[sizeof(FileHeader)];
  const FileHeader& header() const { return *reinterpret_cast<const FileHeader*>(bytes); }
};

bool OfRun(int fd, const FileHeader& header, const std::string& run) {
  const std::string wanted = "env.RINGSCOPE_RUN=" + run;
  std::string text(flight::kTextBytes, '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), static_cast<off_t>(header.tables[0].offset & 0xffffff));
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  for (size_t at = 0; at < text.size() && text[at] != 0; at = text.find('\0', at) + 1) {
    if (text.compare(at, wanted.size() + 1, wanted.c_str(), wanted.size() + 1) == 0) return true;
    if (text.find('\0', at) == text.npos) break;
  }
  return false;
}

}  // namespace

std::vector<Watched> LookAtRun(const std::string& directory, const std::string& run) {
  std::vector<Watched> found;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return found;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name.size() > 7 && name.compare(name.size() - 7, 7, ".flight") == 0) names.push_back(name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Watched w;
    w.path = directory + "/" + name;
    const int fd = open(w.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) continue;
    struct stat st;
    Page page;
    const bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                      pread(fd, page.bytes, sizeof(page.bytes), 0) == static_cast<ssize_t>(sizeof(page.bytes)) &&
                      memcmp(page.header().magic, flight::kMagic, sizeof(flight::kMagic)) == 0 &&
                      page.header().version == flight::kVersion && OfRun(fd, page.header(), run);
    if (ours) {
      const FileHeader& h = page.header();
      w.pid = h.pid;
      if (h.rank_hint != 0xffffffff) w.rank = h.rank_hint;
      w.host.assign(h.host, strnlen(h.host, sizeof(h.host)));
      w.alive = flight::ProbeOwnerLock(fd) == flight::OwnerLock::kHeld;
      w.clean = (Load(h.state) & flight::kStateClean) != 0;
      w.woken = Load(h.woken_by) != 0;
      for (const flight::StallFinding& stall : h.stalls) w.stalls += (Load(stall.what) >> 63) != 0 && Load(stall.resolved) == 0;
      found.push_back(w);
    }
    close(fd);
  }
  return found;
}

bool CopyOut(const Watched& file, const std::string& into, std::string* why_not) {
  std::error_code error;
  std::filesystem::create_directories(into, error);
  const std::string name = file.path.substr(file.path.rfind('/') + 1), whole = into + "/" + name, part = whole + ".part";
  if (!error) std::filesystem::copy_file(file.path, part, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) std::filesystem::rename(part, whole, error);
  if (!error) return true;
  *why_not = file.path + ": " + error.message();
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  return false;
}

}  // namespace ringscope::supervisor
