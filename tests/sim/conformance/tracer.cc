// A profiler plugin, table v5, that writes down all it is told, in the form of tests/replay/captures: one JSON line a callback,
// into RINGSCOPE_TRACER_FILE. Offsets of the descriptor: docs/nccl.md.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

namespace {

struct Event {
  int number = 0;
  uint64_t type = 0;
  bool stopped = false;
};
struct Context {
  int rank = 0;
};

std::mutex mutex;
FILE* out = nullptr;
int events = 0;

const std::map<uint64_t, const char*> kTypes = {
    {1, "Group"},     {2, "Coll"},         {4, "P2p"},         {8, "ProxyOp"},    {16, "ProxyStep"},      {32, "ProxyCtrl"},
    {64, "KernelCh"}, {0x100, "GroupApi"}, {0x200, "CollApi"}, {0x400, "P2pApi"}, {0x800, "KernelLaunch"}};
// Numbers of ncclProfilerEventState_v5_t.
const std::map<uint32_t, const char*> kStates = {
    {8, "ProxyStepSendGPUWait"},   {9, "ProxyStepSendWait"}, {10, "ProxyStepRecvWait"},  {11, "ProxyStepRecvFlushWait"},
    {12, "ProxyStepRecvGPUWait"},  {13, "ProxyCtrlIdle"},    {14, "ProxyCtrlActive"},    {15, "ProxyCtrlSleep"},
    {16, "ProxyCtrlWakeup"},       {17, "ProxyCtrlAppend"},  {18, "ProxyCtrlAppendEnd"}, {19, "ProxyOpInProgress"},
    {20, "ProxyStepSendPeerWait"}, {22, "KernelChStop"},     {23, "GroupStartApiStop"},  {24, "GroupEndApiStart"}};

template <typename Key>
std::string Name(const std::map<Key, const char*>& names, Key key) {
  const auto found = names.find(key);
  return found == names.end() ? "number " + std::to_string(key) : found->second;
}

void Line(const char* format, ...) __attribute__((format(printf, 1, 2)));
void Line(const char* format, ...) {
  if (out == nullptr) return;
  fprintf(out, "{\"tid\":%d,", gettid());
  va_list args;
  va_start(args, format);
  vfprintf(out, format, args);
  va_end(args);
  fputs("}\n", out);
  fflush(out);
}

template <typename T>
T At(const void* descriptor, size_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(descriptor) + offset, sizeof(value));
  return value;
}
std::string Text(const void* descriptor, size_t offset) {
  const char* text = At<const char*>(descriptor, offset);
  return text == nullptr ? "" : text;
}
std::string Quoted(const char* key, const std::string& value) { return std::string(",\"") + key + "\":\"" + value + '"'; }
std::string Plain(const char* key, long long value) { return std::string(",\"") + key + "\":" + std::to_string(value); }
std::string Ended(const char* key, const void* event) {
  const auto* parent = static_cast<const Event*>(event);
  return parent == nullptr ? "" : Quoted(key, Name(kTypes, parent->type));
}

std::string Fields(uint64_t type, const void* d) {
  switch (type) {
    case 1:  // Group
      return "";
    case 2:  // Coll
      return Quoted("func", Text(d, 32)) + Plain("seqNumber", At<long long>(d, 24)) + Plain("count", At<long long>(d, 56)) +
             Plain("root", At<int>(d, 64)) + Quoted("datatype", Text(d, 72)) + Plain("nChannels", At<uint8_t>(d, 80)) +
             Quoted("algo", Text(d, 88)) + Quoted("proto", Text(d, 96)) + Ended("parentGroup_type", At<void*>(d, 104));
    case 4:  // P2p
      return Quoted("func", Text(d, 24)) + Quoted("datatype", Text(d, 40)) + Plain("count", At<long long>(d, 48)) +
             Plain("peer", At<int>(d, 56)) + Plain("nChannels", At<uint8_t>(d, 60)) + Ended("parentGroup_type", At<void*>(d, 64));
    case 8:  // ProxyOp
      return std::string(",\"own_pid\":") + (At<int>(d, 24) == getpid() ? "true" : "false") +
             Plain("channelId", At<uint8_t>(d, 28)) + Plain("peer", At<int>(d, 32)) + Plain("nSteps", At<int>(d, 36)) +
             Plain("isSend", At<int>(d, 44));
    case 16:  // ProxyStep
      return Plain("step", At<int>(d, 24));
    case 64:  // KernelCh
      return Plain("channelId", At<uint8_t>(d, 24)) + Plain("pTimer", At<long long>(d, 32));
    case 0x100:  // GroupApi
      return Plain("graphCaptured", At<bool>(d, 24)) + Plain("groupDepth", At<int>(d, 28));
    case 0x200:  // CollApi
      return Quoted("func", Text(d, 24)) + Plain("count", At<long long>(d, 32)) + Quoted("datatype", Text(d, 40)) +
             Plain("root", At<int>(d, 48)) + Plain("graphCaptured", At<bool>(d, 64));
    case 0x400:  // P2pApi
      return Quoted("func", Text(d, 24)) + Plain("count", At<long long>(d, 32)) + Quoted("datatype", Text(d, 40)) +
             Plain("graphCaptured", At<bool>(d, 56));
    default:
      return "";
  }
}

int Init(void** context, uint64_t comm_id, int* mask, const char* comm_name, int n_nodes, int n_ranks, int rank,
         void (*)(int, unsigned long, const char*, int, const char*, ...)) {
  std::lock_guard<std::mutex> lock(mutex);
  const char* file = getenv("RINGSCOPE_TRACER_FILE");
  if (out == nullptr && file != nullptr) out = fopen(file, "we");
  *mask = 0x7fff;
  *context = new Context{rank};
  Line("\"cb\":\"init\",\"commId\":\"%#llx\",\"commName\":\"%s\",\"nNodes\":%d,\"nRanks\":%d,\"rank\":%d",
       static_cast<unsigned long long>(comm_id), comm_name == nullptr ? "" : comm_name, n_nodes, n_ranks, rank);
  return 0;
}
int Start(void* context, void** handle, void* descriptor) {
  std::lock_guard<std::mutex> lock(mutex);
  auto* event = new Event{++events, At<uint64_t>(descriptor, 0)};  // kept: what comes later may name it
  const auto* parent = At<const Event*>(descriptor, 8);
  std::string more = parent == nullptr ? std::string(",\"parent\":null")
                                       : Plain("parent", parent->number) + Quoted("parent_type", Name(kTypes, parent->type)) +
                                             (parent->stopped ? ",\"parent_stopped\":true" : "");
  more += Fields(event->type, descriptor);
  Line("\"cb\":\"start\",\"h\":%d,\"type\":\"%s\",\"rank\":%d%s", event->number, Name(kTypes, event->type).c_str(),
       static_cast<Context*>(context)->rank, more.c_str());
  *handle = event;
  return 0;
}
int Stop(void* handle) {
  std::lock_guard<std::mutex> lock(mutex);
  auto* event = static_cast<Event*>(handle);
  event->stopped = true;
  Line("\"cb\":\"stop\",\"h\":%d,\"type\":\"%s\"", event->number, Name(kTypes, event->type).c_str());
  return 0;
}
int State(void* handle, uint32_t state, void*) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto* event = static_cast<Event*>(handle);
  Line("\"cb\":\"state\",\"h\":%d,\"type\":\"%s\",\"state\":\"%s\"", event->number, Name(kTypes, event->type).c_str(),
       Name(kStates, state).c_str());
  return 0;
}
int Finalize(void* context) {
  std::lock_guard<std::mutex> lock(mutex);
  Line("\"cb\":\"finalize\",\"rank\":%d", static_cast<Context*>(context)->rank);
  delete static_cast<Context*>(context);
  return 0;
}

struct Table {
  const char* name;
  int (*init)(void**, uint64_t, int*, const char*, int, int, int,
              void (*)(int, unsigned long, const char*, int, const char*, ...));
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*state)(void*, uint32_t, void*);
  int (*finalize)(void*);
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Table ncclProfiler_v5 = {"tracer", Init, Start, Stop, State, Finalize};
