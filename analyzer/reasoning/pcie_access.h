// Shared by the finders about peer access over PCIe: whether access control (ACS) redirects it.
#ifndef RINGSCOPE_ANALYZER_REASONING_PCIE_ACCESS_H_
#define RINGSCOPE_ANALYZER_REASONING_PCIE_ACCESS_H_

#include <vector>

#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {

// Functions whose ACS sends peer-to-peer requests up to the root complex, where the IOMMU may change or refuse them.
std::vector<const model::PciFunction*> AcsRedirects(const model::Job& job);
// lspci was read and shows access control that redirects nothing.
bool AcsShownOff(const model::Job& job);
void CiteAcs(const model::Job& job, size_t most, Finding* finding);

// What to do about it, and how to tell.
inline constexpr char kAcsRemedy[] =
    "Turn ACS off on the PCIe switches and root ports above GPUs and adapters (BIOS, or setpci on each bridge: "
    "ECAP_ACS+6.w=0000) and set the IOMMU to passthrough "
    "(iommu=pt) or off.";
inline constexpr char kAcsCommand[] = "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'; cat /proc/cmdline";

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_PCIE_ACCESS_H_
