#include "supervisor/turn.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>

namespace ringscope::supervisor {

// An abstract socket's name goes with its process, however that ends, and leaves nothing on a disk; locks on network file systems
// are not to be relied on. Nobody listens on it.
int TakeTurn(const std::string& directory, const std::string& what) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(directory, error);
  const std::string name = "ringscope-evidence." + std::to_string(geteuid()) + "." + what + "." +
                           std::to_string(std::hash<std::string>{}(error ? directory : whole.string()));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  name.copy(address.sun_path + 1, length);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -2;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  const bool taken = errno == EADDRINUSE;
  close(fd);
  return taken ? -1 : -2;
}

}  // namespace ringscope::supervisor
