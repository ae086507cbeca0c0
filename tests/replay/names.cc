#include "tests/replay/names.h"

#include "tests/replay/event.h"

namespace ringscope::replay {
namespace {

constexpr const char* kTypes[] = {"Group",     "Coll",         "P2p",       "ProxyOp",  "ProxyStep",
                                  "ProxyCtrl", "KernelCh",     "NetPlugin", "GroupApi", "CollApi",
                                  "P2pApi",    "KernelLaunch", "CeColl",    "CeSync",   "CeBatch"};

struct NamedState {
  const char* name;
  uint32_t type;
};

constexpr NamedState kStates[] = {
    {"ProxyOpSendPosted", kProxyOp},       {"ProxyOpSendRemFifoWait", kProxyOp},
    {"ProxyOpSendTransmitted", kProxyOp},  {"ProxyOpSendDone", kProxyOp},
    {"ProxyOpRecvPosted", kProxyOp},       {"ProxyOpRecvReceived", kProxyOp},
    {"ProxyOpRecvTransmitted", kProxyOp},  {"ProxyOpRecvDone", kProxyOp},
    {"ProxyStepSendGPUWait", kProxyStep},  {"ProxyStepSendWait", kProxyStep},
    {"ProxyStepRecvWait", kProxyStep},     {"ProxyStepRecvFlushWait", kProxyStep},
    {"ProxyStepRecvGPUWait", kProxyStep},  {"ProxyCtrlIdle", kProxyCtrl},
    {"ProxyCtrlActive", kProxyCtrl},       {"ProxyCtrlSleep", kProxyCtrl},
    {"ProxyCtrlWakeup", kProxyCtrl},       {"ProxyCtrlAppend", kProxyCtrl},
    {"ProxyCtrlAppendEnd", kProxyCtrl},    {"ProxyOpInProgress", kProxyOp},
    {"ProxyStepSendPeerWait", kProxyStep}, {"NetPluginUpdate", kNetPlugin},
    {"KernelChStop", kKernelCh},           {"GroupStartApiStop", kGroupApi},
    {"GroupEndApiStart", kGroupApi},       {"CeCollStart", kCeColl},
    {"CeCollComplete", kCeColl},           {"CeSyncStart", kCeSync},
    {"CeSyncComplete", kCeSync},           {"CeBatchStart", kCeBatch},
    {"CeBatchComplete", kCeBatch},
};

}  // namespace

uint32_t TypeByName(absl::string_view name) {
  for (size_t bit = 0; bit < std::size(kTypes); ++bit) {
    if (name == kTypes[bit]) return 1u << bit;
  }
  return 0;
}

const char* TypeName(uint32_t type) {
  for (size_t bit = 0; bit < std::size(kTypes); ++bit) {
    if (type == 1u << bit) return kTypes[bit];
  }
  return "?";
}

int StateByName(absl::string_view name) {
  for (size_t state = 0; state < std::size(kStates); ++state) {
    if (name == kStates[state].name) return static_cast<int>(state);
  }
  return -1;
}

const char* StateName(uint32_t state) {
  return state < std::size(kStates) ? kStates[state].name : "?";
}

uint32_t TypeOfState(uint32_t state) {
  return state < std::size(kStates) ? kStates[state].type : 0;
}

}  // namespace ringscope::replay
