#include "tests/replay/release.h"

namespace ringscope::replay {

uint32_t StartedBy(Release release, uint32_t type) {
  constexpr uint32_t kCe = kCeColl | kCeSync | kCeBatch;
  const uint32_t ce = release >= 229 ? static_cast<uint32_t>(kCe) : 0;
  if (release <= 225) {
    switch (type) {
      case kGroup:
        return kColl | kP2p | kProxyOp | kProxyStep;
      case kColl:
      case kP2p:
        return kColl | kProxyOp | kProxyStep;
      case kProxyOp:
        return kProxyOp | kProxyStep;
      default:
        return type;
    }
  }
  constexpr uint32_t kBelowColl = kProxyOp | kProxyStep | kKernelCh | kNetPlugin;
  switch (type) {
    case kGroup:
      return kGroup | kColl | kP2p | kBelowColl;
    case kColl:
      return kColl | kBelowColl;
    case kP2p:
      return kP2p | kProxyOp | kProxyStep | kKernelCh |
             (release >= 228 ? static_cast<uint32_t>(kNetPlugin) : 0);
    case kProxyOp:
      return kProxyOp | kProxyStep | kNetPlugin;
    case kProxyStep:
      return kProxyStep | kNetPlugin;
    case kGroupApi:
      return kGroup | kColl | kP2p | kBelowColl | kGroupApi | kCollApi | kP2pApi | kKernelLaunch |
             ce;
    case kCollApi:
      return kCollApi | kColl | kBelowColl | ce;
    case kP2pApi:
      return kP2pApi | kP2p | kBelowColl;
    case kCeColl:
      return kCe;
    default:  // KernelCh, NetPlugin, ProxyCtrl, KernelLaunch, CeSync, CeBatch
      return type;
  }
}

}  // namespace ringscope::replay
