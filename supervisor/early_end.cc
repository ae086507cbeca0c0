#include "supervisor/early_end.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace ringscope::supervisor {
namespace {

// The environment stands near the beginning of a trace.
constexpr size_t kHead = 256 << 10;
constexpr size_t kMostFiles = 100000;

std::string HostWord(const std::map<std::string, std::string>& environment) {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  const auto given = environment.find("RINGSCOPE_HOST");
  std::string host = given != environment.end() && !given->second.empty() ? given->second : name;
  for (char& c : host) {
    if (!isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '_') c = '_';
  }
  return host.empty() ? "nohost" : host.substr(0, 64);
}

std::string RankOf(const std::map<std::string, std::string>& environment) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const auto found = environment.find(name);
    if (found == environment.end()) continue;
    const std::string& rank = found->second;
    if (!rank.empty() && rank.size() <= 7 && rank.find_first_not_of("0123456789") == std::string::npos) return rank;
  }
  return "";
}

}  // namespace

bool LeftATrace(const std::string& directory, const std::string& run, int64_t since_ns) {
  namespace fs = std::filesystem;
  std::error_code error;
  size_t files = 0;
  for (fs::recursive_directory_iterator at(directory, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".trace" || ++files > kMostFiles) continue;
    struct stat about;
    if (stat(at->path().c_str(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_mtim.tv_sec < since_ns / 1000000000 - 1)
      continue;
    std::ifstream file(at->path(), std::ios::binary);
    std::string head(kHead, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<size_t>(file.gcount()));
    if (head.find(run) != std::string::npos) return true;
  }
  return false;
}

std::string NoteEarlyEnd(const std::string& directory, const std::map<std::string, std::string>& environment, int exit_code) {
  const std::string folder = directory + "/evidence";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return "";
  const std::string path = folder + "/" + HostWord(environment) + ".end." + std::to_string(getpid() % 1000000) + ".command.txt";
  const std::string rank = RankOf(environment);
  std::ofstream file(path, std::ios::binary);
  file << "ringscope run: " << (rank.empty() ? "" : "rank " + rank + ": ") << "the command ended with exit code " << exit_code
       << ", and none of its processes left a record of a communicator\n";
  file.close();
  return file.good() ? path : "";
}

}  // namespace ringscope::supervisor
