#include "supervisor/collector.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace ringscope::supervisor {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr int kMostFiles = 99;  // of one name; a job that stalls more often has been looked at

std::vector<Collector>& Registry() {
  static auto& registry = *new std::vector<Collector>;
  return registry;
}

bool AllDigits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

}  // namespace

Output::Output(std::string directory, std::string before, std::string name, std::function<void(const std::string&)> opened)
    : directory_(std::move(directory)), before_(std::move(before)), name_(std::move(name)), opened_(std::move(opened)) {}

Output::~Output() {
  if (fd_ >= 0) close(fd_);
}

void Output::Open() {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) {
    status_ = absl::UnavailableError(absl::StrCat("cannot be written to ", directory_, ": ", error.message()));
    return;
  }
  for (int n = 1; n <= kMostFiles; ++n) {
    const std::string path = absl::StrCat(directory_, "/", before_, n == 1 ? "" : absl::StrCat(".", n), ".", name_, ".txt");
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ >= 0) {
      opened_(path);
      return;
    }
    if (errno != EEXIST) {
      status_ = absl::ErrnoToStatus(errno, absl::StrCat("cannot be written to ", directory_));
      return;
    }
  }
  status_ = absl::ResourceExhaustedError(absl::StrCat(directory_, " has ", kMostFiles, " of this name already"));
}

void Output::Write(std::string_view text) {
  if (text.empty() || !status_.ok() || cut_) return;
  if (fd_ < 0) Open();
  if (!status_.ok()) return;
  constexpr std::string_view kCut = "\n[cut here: more than 64 MiB]\n";
  cut_ = bytes_ + text.size() > kMostBytes;
  if (cut_) text = kCut;
  bytes_ += text.size();
  while (!text.empty()) {
    const ssize_t n = write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      status_ = absl::ErrnoToStatus(errno, absl::StrCat("not all could be written to ", directory_));
      return;
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
}

RegisterCollector::RegisterCollector(Collector collector) { Registry().push_back(std::move(collector)); }

const std::vector<Collector>& Collectors() {
  std::vector<Collector>& all = Registry();
  std::sort(all.begin(), all.end(), [](const Collector& a, const Collector& b) { return a.name < b.name; });
  return all;
}

bool WantedOfHost(const CollectOptions& options) { return options.of_host; }
bool WantedAtStall(const CollectOptions& options) { return options.when == "stall"; }

std::string IsoTime(int64_t ns) {
  const time_t seconds = static_cast<time_t>(ns / 1000000000);
  tm utc;
  gmtime_r(&seconds, &utc);
  char day[64], whole[96];
  strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(whole, sizeof(whole), "%s.%06d+0000", day, static_cast<int>(ns % 1000000000 / 1000));
  return whole;
}

std::string Prompt(const CollectOptions& options, std::string_view command) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return absl::StrCat(IsoTime(int64_t{now.tv_sec} * 1000000000 + now.tv_nsec), " ringscope@", options.host, ":/$ ",
                      absl::string_view(command.data(), command.size()), "\n");
}

std::string SmallFile(const std::string& path, size_t most) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return text;
  char piece[4096];
  while (text.size() < most) {
    const ssize_t n = read(fd, piece, std::min(sizeof(piece), most - text.size()));
    if (n <= 0) break;
    text.append(piece, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

std::string FirstLine(const std::string& path) {
  std::string text = SmallFile(path, 4096);
  text.resize(std::min(text.find('\n'), text.size()));
  absl::StripTrailingAsciiWhitespace(&text);
  return text;
}

std::vector<std::string> Names(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    if (AllDigits(a) && AllDigits(b) && a.size() != b.size()) return a.size() < b.size();
    return a < b;
  });
  return names;
}

}  // namespace ringscope::supervisor
