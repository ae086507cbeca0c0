// Every libnccl.so.2 that a program could load here, and its release: LD_LIBRARY_PATH, the environment's Python packages, the
// usual folders.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "doctor/probe.h"
#include "supervisor/collector.h"

namespace ringscope::doctor {
namespace {

constexpr const char* kFolders[] = {
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib",
    "/usr/local/cuda/lib64",     "/usr/local/nccl/lib"};

// The banner is in the library as one text ("NCCL version 2.27.7+cuda12.9"), whatever packed it; loading it instead would run its
// constructors.
void ReadBanner(const std::string& file, node::Library* library) {
  constexpr absl::string_view kBanner = "NCCL version ";
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return;
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
    close(fd);
    return;
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return;
  const absl::string_view all(static_cast<const char*>(memory), size);
  // Other texts begin like it ("NCCL version %d.%d.%d"): the first with a release counts.
  for (size_t at = 0; library->nccl().empty();) {
    const void* found = memmem(all.data() + at, all.size() - at, kBanner.data(), kBanner.size());
    if (found == nullptr) break;
    at = static_cast<size_t>(static_cast<const char*>(found) - all.data()) + kBanner.size();
    const absl::string_view rest = all.substr(at, 48);
    size_t end = 0;
    while (end < rest.size() && (absl::ascii_isdigit(static_cast<unsigned char>(rest[end])) || rest[end] == '.')) ++end;
    if (end < 5) continue;
    library->set_nccl(std::string(rest.substr(0, end)));
    int major = 0, minor = 0;
    if (sscanf(std::string(rest.substr(end)).c_str(), "+cuda%d.%d", &major, &minor) == 2)
      library->set_cuda(major * 1000 + minor * 10);
  }
  munmap(memory, size);
}

std::vector<std::string> PythonFolders(const Place& place) {
  std::vector<std::string> folders;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = place.Variable(variable);
    if (prefix.empty()) continue;
    const std::string lib = absl::StrCat(place.root, prefix, "/lib");
    for (const std::string& python : supervisor::Names(lib)) {
      if (python.rfind("python3", 0) == 0) folders.push_back(absl::StrCat(lib, "/", python, "/site-packages/nvidia/nccl/lib"));
    }
    folders.push_back(lib);
  }
  for (const char* lib : {"/usr/local/lib", "/usr/lib", "/opt/conda/lib"}) {
    for (const std::string& python : supervisor::Names(place.root + lib)) {
      if (python.rfind("python3", 0) != 0) continue;
      for (const char* packages : {"dist-packages", "site-packages"})
        folders.push_back(absl::StrCat(place.root, lib, "/", python, "/", packages, "/nvidia/nccl/lib"));
    }
  }
  return folders;
}

absl::Status Libraries(const Place& place, node::Node* node) {
  std::vector<std::string> folders;
  for (const absl::string_view folder : absl::StrSplit(place.Variable("LD_LIBRARY_PATH"), ':', absl::SkipEmpty()))
    folders.push_back(absl::StrCat(place.root, folder));
  for (std::string& folder : PythonFolders(place)) folders.push_back(std::move(folder));
  for (const char* folder : kFolders) folders.push_back(absl::StrCat(place.root, folder));
  std::set<std::string> seen;
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::string file = std::filesystem::canonical(folder + "/libnccl.so.2", error).string();
    if (error || !seen.insert(file).second) continue;
    node::Library* library = node->add_libraries();
    library->set_file(file.substr(file.rfind(place.root, 0) == 0 ? place.root.size() : 0));
    ReadBanner(file, library);
  }
  return node->libraries_size() > 0 ? absl::OkStatus() : absl::NotFoundError("no libnccl.so.2 in the usual places");
}

const RegisterProbe kRegister({"libraries", Libraries});

}  // namespace
}  // namespace ringscope::doctor
