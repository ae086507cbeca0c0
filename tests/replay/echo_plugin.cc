// A profiler plugin that writes what it is called with, in the format of the captures: a replay of
// a capture through this plugin gives a capture again, which must be the same one. Its declarations
// are those of the documented ABI, written independently of the replayer's byte offsets.
//
// ECHO_OUT      folder for rank<RANK>.jsonl; the file is appended to, as the plugin is unloaded and
// loaded again ECHO_MASK     events asked for (default 0x7fff) ECHO_NULL     types answered with a
// NULL handle ECHO_LEAVE    types whose *eHandle is left as it was
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "tests/replay/names.h"

namespace {

using ringscope::replay::StateName;
using ringscope::replay::TypeName;

struct DescrV5 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      uint64_t seq;
      const char* func;
      const void* send_buff;
      void* recv_buff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t n_channels, n_warps;
      const char *algo, *proto;
      void* parent_group;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t n_channels;
      void* parent_group;
    } p2p;
    struct {
      pid_t pid;
      uint8_t channel;
      int peer, n_steps, chunk_size, is_send;
    } proxy_op;
    struct {
      int step;
    } proxy_step;
    struct {
      uint8_t channel;
      uint64_t p_timer;
    } kernel_ch;
    struct {
      int64_t id;
      void* data;
    } net;
    struct {
      bool graph_captured;
      int depth;
    } group_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool graph_captured;
    } coll_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool graph_captured;
    } p2p_api;
    struct {
      void* stream;
    } launch;
  };
};
static_assert(sizeof(DescrV5) == 112);

struct DescrV4 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      uint64_t seq;
      const char* func;
      const void* send_buff;
      void* recv_buff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t n_channels, n_warps;
      const char *algo, *proto;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t n_channels;
    } p2p;
    decltype(DescrV5::proxy_op) proxy_op;
    decltype(DescrV5::proxy_step) proxy_step;
    decltype(DescrV5::kernel_ch) kernel_ch;
    decltype(DescrV5::net) net;
  };
};
static_assert(sizeof(DescrV4) == 104);

struct DescrV1 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t hash, seq;
      uint8_t func;
      const void* send_buff;
      void* recv_buff;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t traffic;
      uint8_t n_channels, n_warps, algo, proto;
      int collnet, nvls;
    } coll;
    struct {
      const char* name;
      uint64_t hash;
      uint8_t func;
      void* buff;
      uint8_t datatype;
      size_t count;
      int peer;
    } p2p;
    decltype(DescrV5::proxy_op) proxy_op;
    decltype(DescrV5::proxy_step) proxy_step;
  };
};
static_assert(sizeof(DescrV1) == 120);

struct DescrV2 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t hash, seq;
      const char* func;
      const void* send_buff;
      void* recv_buff;
      size_t count;
      int root;
      const char* datatype;
      size_t traffic;
      uint8_t n_channels, n_warps;
      const char *algo, *proto;
    } coll;
    struct {
      const char* name;
      uint64_t hash;
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
    } p2p;
    decltype(DescrV5::proxy_op) proxy_op;
    decltype(DescrV5::proxy_step) proxy_step;
  };
};
static_assert(sizeof(DescrV2) == 128);

struct DescrV3 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t hash, seq;
      const char* func;
      const void* send_buff;
      void* recv_buff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t n_channels, n_warps;
      const char *algo, *proto;
    } coll;
    decltype(DescrV2::p2p) p2p;
    decltype(DescrV5::proxy_op) proxy_op;
    decltype(DescrV5::proxy_step) proxy_step;
    struct {
      uint8_t channel;
    } kernel_ch;
  };
};
static_assert(sizeof(DescrV3) == 120);

union EarlyArgs {
  struct {
    size_t trans_size;
    int steps;
  };
  int appended;
};

union Args {
  size_t trans_size;
  int appended;
  uint64_t p_timer;
};

struct Socket {
  uint8_t type;
  struct {
    int fd, op;
    size_t length;
  } sock;
};

uint64_t Number(const char* name, uint64_t fallback) {
  const char* text = getenv(name);
  return text != nullptr ? strtoull(text, nullptr, 0) : fallback;
}

// Everything here is lost when the plugin is unloaded.
std::atomic<uint64_t> next_n{1}, next_id{1};
std::mutex mutex;
std::set<uint64_t> stopped, seen_threads;

uint64_t Pid() { return static_cast<uint64_t>(getpid()); }
uint64_t Tid() { return static_cast<uint64_t>(syscall(SYS_gettid)); }

// Handles and contexts say whose they are; they point nowhere.
uint64_t Own(uint64_t id) { return Pid() << 32 | id; }
bool IsOwn(uint64_t value) { return value >> 32 == Pid(); }

class Line {
 public:
  explicit Line(const char* cb) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto ns =
        static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
    Add("{\"n\":%lu,\"t\":%lu,\"tid\":%lu,\"cb\":\"%s\"", next_n++, ns, Tid(), cb);
  }

  template <typename... A>
  void Add(const char* format, A... values) {
    char buffer[512];
    const int length = std::snprintf(buffer, sizeof buffer, format, values...);
    text_.append(buffer, static_cast<size_t>(length));
  }
  void Text(const char* key, const char* value) {
    Add(",\"%s\":\"%s\"", key, value != nullptr ? value : "(null)");
  }
  void Pointer(const char* key, const void* value) { Add(",\"%s\":\"%p\"", key, value); }

  void Reference(const char* key, const void* pointer) {
    const auto value = reinterpret_cast<uint64_t>(pointer);
    if (value == 0) {
      Add(",\"%s\":null", key);
    } else if (IsOwn(value)) {
      Add(",\"%s\":%lu", key, value & 0xffffffff);
    } else {
      Add(",\"%s\":\"foreign:0x%lx\"", key, value);
    }
  }

  ~Line() {
    std::lock_guard<std::mutex> guard(mutex);
    if (seen_threads.insert(Tid()).second) {
      char name[16] = "";
      pthread_getname_np(pthread_self(), name, sizeof name);
      Write("{\"cb\":\"thread\",\"tid\":" + std::to_string(Tid()) + ",\"name\":\"" + name +
            "\"}\n");
    }
    Write(text_ + "}\n");
  }

 private:
  static void Write(const std::string& text) {
    const char* out = getenv("ECHO_OUT");
    const char* rank = getenv("RANK");
    if (out == nullptr || rank == nullptr) return;
    const std::string path = std::string(out) + "/rank" + rank + ".jsonl";
    FILE* file = std::fopen(path.c_str(), "a");
    if (file == nullptr) return;
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }

  std::string text_;
};

int DoInit(void** context, uint64_t id, int* mask, const char* name, int n_nodes, int n_ranks,
           int rank, int version) {
  const uint64_t number = next_id++;
  Line line("init");
  const int asked = static_cast<int>(Number("ECHO_MASK", 0x7fff));
  line.Add(",\"ver\":%d,\"ctx\":%lu,\"commId\":\"0x%lx\"", version, number, id);
  line.Text("commName", name);
  line.Add(",\"nNodes\":%d,\"nRanks\":%d,\"rank\":%d,\"mask_in\":%d,\"mask_out\":%d,\"pid\":%lu",
           n_nodes, n_ranks, rank, *mask, asked, Pid());
  char host[64] = "";
  gethostname(host, sizeof host);
  line.Text("host", host);
  line.Text("job", getenv("RINGSCOPE_JOB"));
  *mask = asked;
  *context = reinterpret_cast<void*>(Own(number));
  return 0;
}

// Names are numbers in v1.
void Named(Line& line, const char* key, const char* value) { line.Text(key, value); }
void Named(Line& line, const char* key, uint8_t value) { line.Add(",\"%s\":%d", key, value); }

void Traffic(Line& line, DescrV1* d) {
  line.Add(",\"op\":%d,\"trafficBytes\":%lu", static_cast<int>(d->coll.op), d->coll.traffic);
}
void Traffic(Line& line, DescrV2* d) { line.Add(",\"trafficBytes\":%lu", d->coll.traffic); }
void Traffic(Line&, DescrV3*) {}

// Events up to v3.
template <typename D>
void Early(Line& line, D* d) {
  switch (d->type) {
    case 0x2:
      line.Text("name", d->coll.name);
      line.Add(",\"commHash\":%lu,\"seqNumber\":%lu", d->coll.hash, d->coll.seq);
      Named(line, "func", d->coll.func);
      line.Pointer("sendBuff", d->coll.send_buff);
      line.Pointer("recvBuff", d->coll.recv_buff);
      line.Add(",\"count\":%lu,\"root\":%d", d->coll.count, d->coll.root);
      Named(line, "datatype", d->coll.datatype);
      Traffic(line, d);
      line.Add(",\"nMaxChannels\":%d,\"nWarps\":%d", d->coll.n_channels, d->coll.n_warps);
      Named(line, "algo", d->coll.algo);
      Named(line, "proto", d->coll.proto);
      break;
    case 0x4:
      line.Text("name", d->p2p.name);
      line.Add(",\"commHash\":%lu", d->p2p.hash);
      Named(line, "func", d->p2p.func);
      line.Pointer("buff", d->p2p.buff);
      Named(line, "datatype", d->p2p.datatype);
      line.Add(",\"count\":%lu,\"peer\":%d", d->p2p.count, d->p2p.peer);
      break;
    default:
      break;
  }
}

void ProxyFields(Line& line, const decltype(DescrV5::proxy_op)& op) {
  line.Add(
      ",\"pid\":%d,\"own_pid\":%s,\"channelId\":%d,\"peer\":%d,\"nSteps\":%d,\"chunkSize\":%d,"
      "\"isSend\":%d",
      op.pid, static_cast<uint64_t>(op.pid) == Pid() ? "true" : "false", op.channel, op.peer,
      op.n_steps, op.chunk_size, op.is_send);
}

template <typename D>
void EarlyCommon(Line& line, D* d) {
  if (d->type == 0x8) ProxyFields(line, d->proxy_op);
  if (d->type == 0x10) line.Add(",\"step\":%d", d->proxy_step.step);
  Early(line, d);
}
void Common(Line& line, DescrV1* d) { EarlyCommon(line, d); }
void Common(Line& line, DescrV2* d) { EarlyCommon(line, d); }
void Common(Line& line, DescrV3* d) {
  if (d->type == 0x40) line.Add(",\"channelId\":%d", d->kernel_ch.channel);
  EarlyCommon(line, d);
}

template <typename D>
void Common(Line& line, D* d) {
  switch (d->type) {
    case 0x2:
      line.Add(",\"seqNumber\":%lu", d->coll.seq);
      line.Text("func", d->coll.func);
      line.Pointer("sendBuff", d->coll.send_buff);
      line.Pointer("recvBuff", d->coll.recv_buff);
      line.Add(",\"count\":%lu,\"root\":%d", d->coll.count, d->coll.root);
      line.Text("datatype", d->coll.datatype);
      line.Add(",\"nChannels\":%d,\"nWarps\":%d", d->coll.n_channels, d->coll.n_warps);
      line.Text("algo", d->coll.algo);
      line.Text("proto", d->coll.proto);
      break;
    case 0x4:
      line.Text("func", d->p2p.func);
      line.Pointer("buff", d->p2p.buff);
      line.Text("datatype", d->p2p.datatype);
      line.Add(",\"count\":%lu,\"peer\":%d,\"nChannels\":%d", d->p2p.count, d->p2p.peer,
               d->p2p.n_channels);
      break;
    case 0x8:
      ProxyFields(line, d->proxy_op);
      break;
    case 0x10:
      line.Add(",\"step\":%d", d->proxy_step.step);
      break;
    case 0x40:
      line.Add(",\"channelId\":%d,\"pTimer\":%lu", d->kernel_ch.channel, d->kernel_ch.p_timer);
      break;
    case 0x80: {
      line.Add(",\"net_id\":\"0x%lx\"", static_cast<uint64_t>(d->net.id));
      const auto* socket = static_cast<const Socket*>(d->net.data);
      if ((d->net.id & ~0xffffll) == 2 << 16 && socket != nullptr) {
        line.Add(",\"sock_type\":%d,\"sock_fd\":%d,\"sock_op\":%d,\"sock_len\":%lu", socket->type,
                 socket->sock.fd, socket->sock.op, socket->sock.length);
      }
      break;
    }
    default:
      break;
  }
}

void Special(Line&, DescrV1*) {}
void Special(Line&, DescrV2*) {}
void Special(Line&, DescrV3*) {}
void Special(Line&, DescrV4*) {}
void Special(Line& line, DescrV5* d) {
  switch (d->type) {
    case 0x2:
      line.Reference("parentGroup", d->coll.parent_group);
      break;
    case 0x4:
      line.Reference("parentGroup", d->p2p.parent_group);
      break;
    case 0x100:
      line.Add(",\"graphCaptured\":%d,\"groupDepth\":%d", d->group_api.graph_captured,
               d->group_api.depth);
      break;
    case 0x200:
      line.Text("func", d->coll_api.func);
      line.Add(",\"count\":%lu", d->coll_api.count);
      line.Text("datatype", d->coll_api.datatype);
      line.Add(",\"root\":%d", d->coll_api.root);
      line.Pointer("stream", d->coll_api.stream);
      line.Add(",\"graphCaptured\":%d", d->coll_api.graph_captured);
      break;
    case 0x400:
      line.Text("func", d->p2p_api.func);
      line.Add(",\"count\":%lu", d->p2p_api.count);
      line.Text("datatype", d->p2p_api.datatype);
      line.Pointer("stream", d->p2p_api.stream);
      line.Add(",\"graphCaptured\":%d", d->p2p_api.graph_captured);
      break;
    case 0x800:
      line.Pointer("stream", d->launch.stream);
      break;
    default:
      break;
  }
}

template <typename D>
int Start(void* context, void** handle, D* d) {
  const uint64_t id = next_id++, type = d->type;
  Line line("start");
  line.Add(",\"h\":%lu,\"type\":\"%s\"", id, TypeName(static_cast<uint32_t>(type)));
  const auto ctx = reinterpret_cast<uint64_t>(context);
  if (IsOwn(ctx)) {
    line.Add(",\"ctx\":%lu", ctx & 0xffffffff);
  } else {
    line.Add(",\"ctx\":-1,\"ctx_foreign\":\"0x%lx\"", ctx);
  }
  line.Add(",\"rank\":%d", d->rank);
  line.Reference("parent", d->parent);
  line.Pointer("hin", *handle);
  Common(line, d);
  Special(line, d);
  if ((Number("ECHO_LEAVE", 0) & type) != 0) {
    line.Add(",\"returned\":\"%s\"", "untouched");
  } else if ((Number("ECHO_NULL", 0) & type) != 0) {
    line.Add(",\"returned\":%s", "null");
    *handle = nullptr;
  } else {
    *handle = reinterpret_cast<void*>(Own(id));
  }
  return 0;
}

int Stop(void* handle) {
  Line line("stop");
  line.Reference("h", handle);
  return 0;
}

int State(void* handle, uint32_t state, Args* args) {
  Line line("state");
  line.Reference("h", handle);
  line.Text("state", StateName(state));
  if (args == nullptr) {
    line.Add(",\"args\":%s", "null");
  } else if ((state >= 8 && state <= 12) || state == 20) {
    line.Add(",\"transSize\":%lu", args->trans_size);
  } else if (state >= 13 && state <= 18) {
    line.Add(",\"appendedProxyOps\":%d", args->appended);
  } else if (state == 22) {
    line.Add(",\"pTimer\":%lu", args->p_timer);
  }
  return 0;
}

int EarlyState(void* handle, uint32_t state, EarlyArgs* args) {
  if (state > 7) {
    // The size of a step's transfer is not in these tables.
    Args later = {};
    if (args != nullptr && state >= 13) later.appended = args->appended;
    return State(handle, state, args == nullptr ? nullptr : &later);
  }
  Line line("state");
  line.Reference("h", handle);
  line.Text("state", StateName(state));
  if (args == nullptr) {
    line.Add(",\"args\":%s", "null");
  } else {
    line.Add(",\"transSize\":%lu,\"steps\":%d", args->trans_size, args->steps);
  }
  return 0;
}

int Finalize(void* context) {
  Line line("finalize");
  line.Add(",\"ctx\":%lu", reinterpret_cast<uint64_t>(context) & 0xffffffff);
  return 0;
}

using Log = void (*)(int, unsigned long, const char*, int, const char*, ...);

template <int version>
int InitEarly(void** context, int* mask) {
  return DoInit(context, 0, mask, nullptr, -1, -1, 0, version);
}
int InitV4(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank,
           Log) {
  return DoInit(context, id, mask, name, nodes, ranks, rank, 4);
}
int InitV5(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
           Log) {
  return DoInit(context, id, mask, name, nodes, ranks, rank, 5);
}

template <typename Init, typename D, typename A = Args>
struct Table {
  const char* name;
  Init init;
  int (*start)(void*, void**, D*);
  int (*stop)(void*);
  int (*state)(void*, uint32_t, A*);
  int (*finalize)(void*);
};

}  // namespace

using InitOfEarly = int (*)(void**, int*);
template <typename D>
using EarlyTable = Table<InitOfEarly, D, EarlyArgs>;

extern "C" {
extern __attribute__((visibility("default"))) const EarlyTable<DescrV1> ncclProfiler_v1;
extern __attribute__((visibility("default"))) const EarlyTable<DescrV2> ncclProfiler_v2;
extern __attribute__((visibility("default"))) const EarlyTable<DescrV3> ncclProfiler_v3;
const EarlyTable<DescrV1> ncclProfiler_v1 = {"echo", InitEarly<1>, Start<DescrV1>,
                                             Stop,   EarlyState,   Finalize};
const EarlyTable<DescrV2> ncclProfiler_v2 = {"echo", InitEarly<2>, Start<DescrV2>,
                                             Stop,   EarlyState,   Finalize};
const EarlyTable<DescrV3> ncclProfiler_v3 = {"echo", InitEarly<3>, Start<DescrV3>,
                                             Stop,   EarlyState,   Finalize};
extern __attribute__((visibility("default"))) const Table<decltype(&InitV4), DescrV4>
    ncclProfiler_v4;
extern __attribute__((visibility("default"))) const Table<decltype(&InitV5), DescrV5>
    ncclProfiler_v5, ncclProfiler_v6;
const Table<decltype(&InitV4), DescrV4> ncclProfiler_v4 = {"echo", InitV4, Start<DescrV4>,
                                                           Stop,   State,  Finalize};
const Table<decltype(&InitV5), DescrV5> ncclProfiler_v5 = {"echo", InitV5, Start<DescrV5>,
                                                           Stop,   State,  Finalize};
const Table<decltype(&InitV5), DescrV5> ncclProfiler_v6 = {"echo", InitV5, Start<DescrV5>,
                                                           Stop,   State,  Finalize};
}
