#include "tests/replay/shim.h"

#include <cstddef>
#include <cstring>
#include <iterator>

namespace ringscope::replay {
namespace {

// Index = NCCL's number.
constexpr const char* kFuncs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                  "AllReduce", "SendRecv", "Send",      "Recv"};
constexpr const char* kDatatypes[] = {"ncclInt8",     "ncclUint8",      "ncclInt32",
                                      "ncclUint32",   "ncclInt64",      "ncclUint64",
                                      "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                      "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
constexpr const char* kAlgos[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                  "NVLS_TREE", "PAT"};
constexpr const char* kProtos[] = {"LL", "LL128", "SIMPLE"};

template <size_t n>
int Number(const char* const (&names)[n], const char* name, int otherwise) {
  if (name == nullptr) return otherwise;
  for (size_t i = 0; i < n; ++i) {
    if (std::strcmp(names[i], name) == 0) return static_cast<int>(i);
  }
  return otherwise;
}
template <size_t n>
const char* Name(const char* const (&names)[n], int number) {
  return number >= 0 && static_cast<size_t>(number) < n ? names[number] : nullptr;
}

}  // namespace

int NativeApi(Release release) {
  if (release <= 223) return 1;
  if (release <= 225) return 2;
  return release >= 229 ? 6 : release - 223;
}

bool TableHas(int api, uint32_t type) {
  switch (type) {
    case kKernelCh:
    case kNetPlugin:
      return api >= 3;
    case kGroupApi:
    case kCollApi:
    case kP2pApi:
    case kKernelLaunch:
      return api >= 5;
    case kCeColl:
    case kCeSync:
    case kCeBatch:
      return api >= 6;
    default:
      return true;
  }
}

bool TableGets(Release release, int api, uint32_t state) {
  if (api >= 5 || api >= NativeApi(release)) return true;
  if (api == 4) return state < kGroupStartApiStop;
  // Up to 2.26 states pass through unchanged.
  return NativeApi(release) <= 3 ||
         (state >= kProxyStepSendGPUWait && state <= kProxyCtrlAppendEnd);
}

bool ArgumentsLost(Release release, int api, uint32_t state) {
  return api <= 3 && NativeApi(release) >= 4 && state >= kProxyStepSendGPUWait &&
         state <= kProxyStepRecvGPUWait;
}

int FuncNumber(const char* name) { return Number(kFuncs, name, 6); }
int DatatypeNumber(const char* name) { return Number(kDatatypes, name, 8); }
int AlgoNumber(const char* name) { return Number(kAlgos, name, 6); }
int ProtoNumber(const char* name) { return Number(kProtos, name, 2); }
const char* FuncName(int number) { return Name(kFuncs, number); }
const char* DatatypeName(int number) { return Name(kDatatypes, number); }
const char* AlgoName(int number) { return Name(kAlgos, number); }
const char* ProtoName(int number) { return Name(kProtos, number); }

}  // namespace ringscope::replay
