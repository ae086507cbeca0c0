#include "tests/sim/nccl/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "tests/sim/nccl/faults.h"
#include "tests/sim/nccl/profiler.h"

namespace ringscope::sim {
namespace {

constexpr uint64_t kMagic = 0x52534e43434c3031;
constexpr uint32_t kBye = 0xffffffff;  // instead of a length: the end of a connection that is ended in order

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Many ranks in one process need many sockets.
void RaiseLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

int Listen(uint16_t* port) {
  RaiseLimit();
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 4096) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    if (fd >= 0) close(fd);
    return -1;
  }
  *port = ntohs(address.sin_port);
  return fd;
}

int Connect(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const int on = 1;
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

bool WriteAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}
// Gives up when `stop` is set.
bool ReadAll(int fd, void* data, size_t size, const std::atomic<bool>* stop = nullptr) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    pollfd ready = {fd, POLLIN, 0};
    if (poll(&ready, 1, 50) == 0) {
      if (stop != nullptr && stop->load()) return false;
      continue;
    }
    const ssize_t n = recv(fd, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

struct Hello {
  uint64_t magic, hash;
  int32_t rank, n;
  Peer self;
};

// Answers when everybody has come; who connects with a wrong rank or number is turned away.
void Serve(int listening, uint64_t hash) {
  std::map<int, int> sockets;
  std::vector<Peer> peers;
  int n = 0;
  while (n == 0 || static_cast<int>(sockets.size()) < n) {
    const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      break;
    }
    Hello hello;
    if (!ReadAll(fd, &hello, sizeof(hello)) || hello.magic != kMagic || hello.hash != hash || hello.n < 1 || hello.rank < 0 ||
        hello.rank >= hello.n || (n != 0 && hello.n != n) || sockets.count(hello.rank) != 0) {
      close(fd);
      continue;
    }
    n = hello.n;
    peers.resize(static_cast<size_t>(n));
    peers[static_cast<size_t>(hello.rank)] = hello.self;
    sockets[hello.rank] = fd;
  }
  for (const auto& [rank, fd] : sockets) {
    WriteAll(fd, peers.data(), peers.size() * sizeof(Peer));
    close(fd);
  }
  close(listening);
}

// ---- the progress thread
struct Connection {
  std::mutex mutex;  // the progress thread moves data, whoever closes sends the rest
  int fd = -1;
  Route route;
  bool outgoing = false;
  FifoPtr fifo;
  uint64_t given = 0;  // slots that a stalled edge has told of
  // A slice on the way: its length first, of which `head` bytes have come.
  std::vector<char> buffer;
  size_t at = 0, head = 0;
  uint32_t length = 0;
  bool dead = false;
  bool ended = false;  // the other side said that nothing more comes
  // A slow edge's slice, whose sending is over at that time.
  bool held = false;
  std::chrono::steady_clock::time_point until;
};

class Progress {
 public:
  Progress() : bell_(std::make_shared<Bell>()) {
    listening_ = Listen(&port_);
    wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    std::thread([this] { Loop(); }).detach();
    std::thread([this] { Ring(); }).detach();
    if (listening_ >= 0) std::thread([this] { Accept(); }).detach();
  }
  uint16_t port() const { return port_; }
  std::shared_ptr<Bell> bell() { return bell_; }
  void SetIncoming(std::function<FifoPtr(const Route&)> incoming) {
    std::lock_guard<std::mutex> lock(mutex_);
    incoming_ = std::move(incoming);
  }
  void SetLost(std::function<void(const Route&)> lost) {
    std::lock_guard<std::mutex> lock(mutex_);
    lost_ = std::move(lost);
  }
  void Post(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    posted_.push_back(std::move(work));
    Wake();
  }
  void Add(int fd, const Route& route, bool outgoing, FifoPtr fifo) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    auto connection = std::make_shared<Connection>();
    connection->fd = fd;
    connection->route = route;
    connection->outgoing = outgoing;
    connection->fifo = std::move(fifo);
    std::lock_guard<std::mutex> lock(mutex_);
    connections_.push_back(std::move(connection));
    Wake();
  }
  bool Idle(uint64_t communicator, int32_t rank) {
    std::lock_guard<std::mutex> lock(mutex_);
    bool idle = true;
    for (const auto& c : connections_) {
      if (c->route.communicator != communicator || (c->outgoing ? c->route.from : c->route.to) != rank) continue;
      std::lock_guard<std::mutex> alone(c->mutex);
      if (c->fifo->events == nullptr || c->dead || c->fd < 0) continue;
      c->fifo->events->Advance(c->fifo->Taken());
      idle = idle && c->fifo->events->Idle();
    }
    return idle;
  }
  // `drain`: what kernels have put into the slots still goes to the peers.
  void Close(uint64_t communicator, int32_t rank, bool drain) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(connections_, [&](const std::shared_ptr<Connection>& c) {
      const bool its = c->route.communicator == communicator && (c->outgoing ? c->route.from : c->route.to) == rank;
      if (!its) return false;
      std::lock_guard<std::mutex> alone(c->mutex);
      if (c->outgoing && c->fd >= 0 && !c->dead) {
        fcntl(c->fd, F_SETFL, 0);
        bool sent = !drain || c->buffer.empty() || WriteAll(c->fd, c->buffer.data() + c->at, c->buffer.size() - c->at);
        while (drain && sent && c->fifo->TryTake([&](const char* data, size_t size) {
          const uint32_t length = static_cast<uint32_t>(size);
          sent = WriteAll(c->fd, &length, sizeof(length)) && WriteAll(c->fd, data, size);
        })) {
        }
        if (drain && sent) WriteAll(c->fd, &kBye, sizeof(kBye));
      }
      if (c->fd >= 0) close(c->fd);
      c->fd = -1;
      return true;
    });
    Wake();
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(wake_, &one, sizeof(one));
  }
  // Kernels ring the bell; poll() hears the descriptor.
  void Ring() {
    uint64_t heard = 0;
    while (true) {
      {
        std::unique_lock<std::mutex> lock(bell_->mutex);
        bell_->rings.wait(lock, [&] { return bell_->count != heard; });
        heard = bell_->count;
      }
      Wake();
    }
  }
  void Accept() {
    while (true) {
      const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        return;
      }
      struct {
        uint64_t magic;
        Route route;
      } head;
      if (!ReadAll(fd, &head, sizeof(head)) || head.magic != kMagic) {
        close(fd);
        continue;
      }
      std::function<FifoPtr(const Route&)> incoming;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        incoming = incoming_;
      }
      FifoPtr fifo = incoming ? incoming(head.route) : nullptr;
      if (fifo == nullptr) {
        close(fd);
        continue;
      }
      Add(fd, head.route, /*outgoing=*/false, std::move(fifo));
    }
  }

  void Loop() {
    std::vector<std::shared_ptr<Connection>> now;
    std::vector<pollfd> polled;
    while (true) {
      while (ProxyStopped()) pause();
      bool slow = false;
      std::vector<std::function<void()>> posted;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        now = connections_;
        posted.swap(posted_);
      }
      for (const auto& work : posted) work();
      polled.assign(1, {wake_, POLLIN, 0});
      std::vector<std::shared_ptr<Connection>> lost;
      for (const auto& c : now) {
        std::lock_guard<std::mutex> alone(c->mutex);
        if (c->fd >= 0 && c->fifo->events != nullptr) c->fifo->events->Advance(c->fifo->Taken());
        if (c->dead || c->ended || c->fd < 0) continue;
        // Faults are of the network; control and edges inside a host are not its business.
        const EdgeFault fault = c->fifo->events == nullptr ? EdgeFault{} : OnEdge(c->outgoing ? c->route.to : -1);
        slow |= fault.kind == EdgeFault::kSlow;
        if (fault.kind == EdgeFault::kStalled) {
          if (c->outgoing) Hold(c.get());
          continue;
        }
        if (fault.kind == EdgeFault::kDrop && c->outgoing) Drop(c.get());
        if (fault.kind == EdgeFault::kFailed || !(c->outgoing ? Send(c.get(), fault) : Receive(c.get()))) {
          c->dead = true;
          lost.push_back(c);
          continue;
        }
        const short events =
            c->outgoing ? static_cast<short>(c->buffer.empty() ? 0 : POLLOUT) : static_cast<short>(c->fifo->Full() ? 0 : POLLIN);
        polled.push_back({c->fd, events, 0});
      }
      std::function<void(const Route&)> tell;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        tell = lost_;
      }
      for (const auto& c : lost) {
        if (tell) tell(c->route);
      }
      poll(polled.data(), polled.size(), slow ? 1 : 200);
      uint64_t drained;
      while (read(wake_, &drained, sizeof(drained)) > 0) {
      }
    }
  }

  // False: the connection is gone.
  static bool Send(Connection* c, const EdgeFault& fault) {
    while (true) {
      if (c->held) {
        if (std::chrono::steady_clock::now() < c->until) return true;
        c->held = false;
        if (c->fifo->events != nullptr) c->fifo->events->Sent();
      }
      if (c->buffer.empty()) {
        const bool taken = c->fifo->TryTake([&](const char* data, size_t size) {
          const uint32_t length = static_cast<uint32_t>(size);
          c->buffer.resize(sizeof(length) + size);
          memcpy(c->buffer.data(), &length, sizeof(length));
          if (size != 0) memcpy(c->buffer.data() + sizeof(length), data, size);
          c->at = 0;
        });
        if (!taken) return true;
        if (c->fifo->events != nullptr) c->fifo->events->Moved();
      }
      const ssize_t n = send(c->fd, c->buffer.data() + c->at, c->buffer.size() - c->at, MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      c->at += static_cast<size_t>(n);
      if (c->at < c->buffer.size()) continue;
      c->buffer.clear();
      c->held = fault.kind == EdgeFault::kSlow;
      if (c->held) {
        c->until = std::chrono::steady_clock::now() + std::chrono::milliseconds(fault.ms);
        continue;
      }
      if (c->fifo->events != nullptr) c->fifo->events->Sent();
    }
  }
  // What kernels put into the slots is given to the network, which does not take it.
  static void Hold(Connection* c) {
    for (c->given = std::max(c->given, c->fifo->Taken()); c->given < c->fifo->Put(); ++c->given) c->fifo->events->Moved();
  }
  // The network takes it, and nothing arrives.
  static void Drop(Connection* c) {
    while (c->fifo->TryTake([](const char*, size_t) {})) {
      c->fifo->events->Moved();
      c->fifo->events->Sent();
    }
  }
  // What one read gives; false: the connection is gone. `*some`: something came.
  static bool Read(int fd, char* into, size_t size, size_t* got, bool* some) {
    const ssize_t n = recv(fd, into, size, 0);
    *some = n > 0;
    if (n > 0) *got += static_cast<size_t>(n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }
  static bool Receive(Connection* c) {
    while (!c->fifo->Full()) {
      bool some = true;
      if (c->head < sizeof(c->length)) {
        if (!Read(c->fd, reinterpret_cast<char*>(&c->length) + c->head, sizeof(c->length) - c->head, &c->head, &some))
          return false;
        if (c->head < sizeof(c->length)) {
          if (!some) return true;
          continue;
        }
        if (c->length == kBye) c->ended = true;
        if (c->length > kSliceBytes) return c->ended;
        c->buffer.assign(c->length, 0);
        c->at = 0;
      }
      while (c->at < c->length) {
        if (!Read(c->fd, c->buffer.data() + c->at, c->length - c->at, &c->at, &some)) return false;
        if (!some) return true;
      }
      if (c->fifo->events != nullptr) c->fifo->events->Moved();
      c->fifo->TryPut(c->buffer.data(), c->length);
      c->head = 0;
    }
    return true;
  }

  std::shared_ptr<Bell> bell_;
  int listening_ = -1, wake_ = -1;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::function<FifoPtr(const Route&)> incoming_;
  std::function<void(const Route&)> lost_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<std::function<void()>> posted_;
};

Progress& TheProgress() {
  static auto* const progress = new Progress;
  return *progress;
}

}  // namespace

bool StartRoot(RootAddress* root) {
  std::random_device random;
  root->magic = kMagic;
  root->hash = static_cast<uint64_t>(random()) << 32 | random();
  const int fd = Listen(&root->port);
  if (fd < 0) return false;
  std::thread(Serve, fd, root->hash).detach();
  return true;
}

std::vector<Peer> JoinRoot(const RootAddress& root, const Peer& self, int n, const std::atomic<bool>& stop, std::string* error) {
  std::vector<Peer> peers(static_cast<size_t>(n));
  const int fd = Connect(root.port);
  const Hello hello = {kMagic, root.hash, self.rank, n, self};
  if (fd < 0 || !WriteAll(fd, &hello, sizeof(hello))) {
    *error = "connect to the root of the communicator failed";
    if (fd >= 0) close(fd);
    return {};
  }
  const bool came = ReadAll(fd, peers.data(), peers.size() * sizeof(Peer), &stop);
  close(fd);
  if (came) return peers;
  *error = stop.load() ? "aborted" : "Connection closed by the root of the communicator";
  return {};
}

uint16_t ListenPort() { return TheProgress().port(); }
void SetIncoming(std::function<FifoPtr(const Route&)> incoming) { TheProgress().SetIncoming(std::move(incoming)); }
std::shared_ptr<Bell> ProgressBell() { return TheProgress().bell(); }
void OnProgress(std::function<void()> work) { TheProgress().Post(std::move(work)); }
void SetLost(std::function<void(const Route&)> lost) { TheProgress().SetLost(std::move(lost)); }
bool EdgesIdle(uint64_t communicator, int32_t rank) { return TheProgress().Idle(communicator, rank); }
void CloseRoutes(uint64_t communicator, int32_t rank, bool drain) { TheProgress().Close(communicator, rank, drain); }

bool ConnectOut(const Route& route, uint16_t port, FifoPtr fifo) {
  const int fd = Connect(port);
  struct {
    uint64_t magic;
    Route route;
  } head = {kMagic, route};
  if (fd < 0 || !WriteAll(fd, &head, sizeof(head))) {
    if (fd >= 0) close(fd);
    return false;
  }
  TheProgress().Add(fd, route, /*outgoing=*/true, std::move(fifo));
  return true;
}

}  // namespace ringscope::sim
