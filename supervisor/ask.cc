#include "supervisor/ask.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "recorder/flight/ask.h"
#include "recorder/flight/format.h"
#include "recorder/flight/owner.h"
#include "recorder/flight/rows.h"

namespace ringscope::supervisor {
namespace {

using flight::Counter;
using flight::FileHeader;
using flight::Load;
using flight::Reason;

// A page and what lies behind it, as one copy: the process goes on writing.
struct Copy {
  alignas(8) char page[sizeof(FileHeader)];
  std::string text;
  uint64_t failed = 0;  // Counter::kTraceFailed
  const FileHeader& header() const { return *reinterpret_cast<const FileHeader*>(page); }
};

struct Target {
  Asked result;
  int fd = -1;
  uint64_t before_failed = 0, before_beats = 0;
  std::string folder;  // of its traces
  int64_t newest = 0;  // number of its newest trace there before it was asked
  bool over = false;
};

double Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// The table's place and size come from the file, so they are checked like any foreign number.
std::string ReadTable(int fd, const FileHeader& header, flight::Table table, size_t most) {
  const uint32_t count = std::min<uint32_t>(header.table_count, 8);
  for (uint32_t i = 0; i < count; ++i) {
    const flight::TableDesc& desc = header.tables[i];
    if (desc.table != static_cast<uint32_t>(table)) continue;
    if (desc.offset > uint64_t{1} << 30) return "";
    std::string bytes(std::min<uint64_t>(uint64_t{desc.row_bytes} * desc.rows, most), '\0');
    const ssize_t n = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(desc.offset));
    bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return bytes;
  }
  return "";
}

bool Read(int fd, Copy* copy) {
  if (pread(fd, copy->page, sizeof(copy->page), 0) != static_cast<ssize_t>(sizeof(copy->page))) return false;
  const FileHeader& h = copy->header();
  if (memcmp(h.magic, flight::kMagic, sizeof(flight::kMagic)) != 0 || h.version != flight::kVersion ||
      h.byte_order != flight::kByteOrder)
    return false;
  copy->text = ReadTable(fd, h, flight::Table::kText, flight::kTextBytes);
  const std::string counters = ReadTable(fd, h, flight::Table::kCounters, 512);
  const size_t at = static_cast<size_t>(Counter::kTraceFailed) * 8;
  if (counters.size() >= at + 8) memcpy(&copy->failed, counters.data() + at, 8);
  return true;
}

std::string TextValue(const std::string& text, const std::string& key) {
  for (size_t at = 0; at < text.size() && text[at] != '\0';) {
    const size_t end = std::min(text.find('\0', at), text.size());
    if (text.compare(at, key.size() + 1, key + "=") == 0) return text.substr(at + key.size() + 1, end - at - key.size() - 1);
    at = end + 1;
  }
  return "";
}

// As in recorder/flight/text.h (AddName): what the recorder makes of a name for its files.
std::string FileName(const std::string& name, const char* if_empty) {
  std::string out = name.empty() ? if_empty : name.substr(0, 64);
  for (size_t i = 0; i < out.size(); ++i) {
    const char c = out[i];
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c == '.' && i > 0);
    if (!plain) out[i] = '_';
  }
  return out;
}

std::string TraceFolder(const Copy& copy) {
  const std::string root = TextValue(copy.text, "traces");
  if (root.empty()) return "";
  const std::string restart = TextValue(copy.text, "restart");
  const FileHeader& h = copy.header();
  return root + "/" + FileName(TextValue(copy.text, "job"), "nojob") + "." + (restart.empty() ? "0" : restart) + "/" +
         FileName(std::string(h.host, strnlen(h.host, sizeof(h.host))), "nohost");
}

// Number and name of the newest trace of this process; 0 when there is none.
std::pair<int64_t, std::string> NewestTrace(const std::string& folder, int32_t pid, const char* ending) {
  std::pair<int64_t, std::string> newest;
  DIR* dir = folder.empty() ? nullptr : opendir(folder.c_str());
  if (dir == nullptr) return newest;
  const std::string mark = "-pid" + std::to_string(pid) + "-";
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    const size_t at = name.find(mark);
    const size_t tail = strlen(ending);
    if (at == std::string::npos || name.size() < tail || name.compare(name.size() - tail, tail, ending) != 0) continue;
    const int64_t number = strtoll(name.c_str() + at + mark.size(), nullptr, 10);
    if (number > newest.first) newest = {number, name};
  }
  closedir(dir);
  return newest;
}

void Open(const std::string& path, const std::vector<int32_t>& pids, std::vector<Target>* targets) {
  Target t;
  t.fd = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (t.fd < 0) return;
  struct stat st;
  Copy copy;
  const bool usable = fstat(t.fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size >= 4096 &&
                      Read(t.fd, &copy) && flight::ProbeOwnerLock(t.fd) == flight::OwnerLock::kHeld;
  const int32_t pid = usable ? copy.header().pid : 0;
  if (!usable || (!pids.empty() && std::find(pids.begin(), pids.end(), pid) == pids.end())) {
    close(t.fd);
    return;
  }
  t.result.pid = pid;
  t.result.flight_file = path;
  const uint32_t rank = copy.header().rank_hint;
  if (rank != 0xffffffff) t.result.rank = rank;
  t.before_failed = copy.failed;
  t.before_beats = Load(copy.header().heartbeats);
  t.folder = TraceFolder(copy);
  t.newest = NewestTrace(t.folder, pid, ".trace").first;
  if (TextValue(copy.text, "env.RINGSCOPE_TRACES") == "0") {
    t.over = true;
    t.result.why_not = "it writes no traces (RINGSCOPE_TRACES=0); its flight file is the record";
  } else if (!flight::AskOwner(t.fd, geteuid(), flight::ReasonBit(Reason::kRequest), 0)) {
    t.over = true;
    t.result.why_not = "its flight file cannot be written to";
  }
  targets->push_back(std::move(t));
}

// What has come of it so far.
void Look(Target* t) {
  Copy copy;
  if (!Read(t->fd, &copy)) return;
  const FileHeader& h = copy.header();
  const auto newest = NewestTrace(t->folder, t->result.pid, "-request.trace");
  const bool heard = (Load(h.asked_reasons) & flight::ReasonBit(Reason::kRequest)) == 0;
  if (newest.first > t->newest) {
    t->result.wrote = t->over = true;
    t->result.trace = t->folder + "/" + newest.second;
  } else if (copy.failed > t->before_failed) {
    t->over = true;
    t->result.why_not = "the trace could not be written to " + t->folder;
  } else if (heard && Load(h.last_reason) == static_cast<uint64_t>(Reason::kRequest) && access(t->folder.c_str(), F_OK) != 0) {
    t->result.wrote = t->over = true;
  } else if (flight::ProbeOwnerLock(t->fd) == flight::OwnerLock::kFree) {
    t->over = true;
    t->result.why_not = "it ended meanwhile; its flight file is the record";
  }
}

// Longer than any time between two heartbeats of a process that runs.
constexpr double kSurelyABeat = 2;

std::string WhyLate(const Target& t, double waited) {
  Copy copy;
  if (!Read(t.fd, &copy)) return "its flight file cannot be read any more";
  const FileHeader& h = copy.header();
  if (Load(h.thread_in_call) != 0) return "its recorder thread waits for a file system (" + t.folder + ")";
  if (Load(h.heartbeats) == t.before_beats && waited >= kSurelyABeat)
    return "it does not run (stopped, frozen or starved); its flight file is the record";
  return "it has not written one in this time";
}

}  // namespace

std::vector<Asked> AskForTraces(const std::vector<std::string>& directories, const std::vector<int32_t>& pids, double seconds) {
  std::vector<Target> targets;
  for (const std::string& directory : directories) {
    DIR* dir = opendir(directory.c_str());
    if (dir == nullptr) continue;
    std::vector<std::string> names;
    while (const dirent* entry = readdir(dir)) {
      const std::string name = entry->d_name;
      if (name.size() > 7 && name.compare(name.size() - 7, 7, ".flight") == 0) names.push_back(name);
    }
    closedir(dir);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) Open(directory + "/" + name, pids, &targets);
  }
  const double until = Now() + seconds;
  for (;;) {
    bool waits = false;
    for (Target& t : targets) {
      if (!t.over) Look(&t);
      waits |= !t.over;
    }
    if (!waits || Now() >= until) break;
    usleep(50000);
  }
  std::vector<Asked> results;
  for (Target& t : targets) {
    if (!t.over) t.result.why_not = WhyLate(t, seconds);
    close(t.fd);
    results.push_back(std::move(t.result));
  }
  return results;
}

}  // namespace ringscope::supervisor
