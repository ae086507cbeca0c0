#include "analyzer/reasoning/pcie_access.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace ringscope::reasoning {

std::vector<const model::PciFunction*> AcsRedirects(const model::Job& job) {
  std::vector<const model::PciFunction*> found;
  for (const model::PciFunction& f : job.evidence.network.pci) {
    // Access control of an endpoint (an adapter with virtual functions) does not turn the way of others.
    if (f.has_acs && f.acs_redirects && (!f.bus_id || f.name.empty() || f.Bridge())) found.push_back(&f);
  }
  return found;
}

bool AcsShownOff(const model::Job& job) {
  const auto& pci = job.evidence.network.pci;
  return AcsRedirects(job).empty() &&
         std::any_of(pci.begin(), pci.end(), [](const model::PciFunction& f) { return f.has_acs; });
}

void CiteAcs(const model::Job& job, size_t most, Finding* finding) {
  size_t cited = 0;
  for (const model::PciFunction* f : AcsRedirects(job)) {
    if (cited++ >= most) break;
    Cite(job, f->acs_where,
         absl::StrCat(f->bus_id      ? absl::StrCat(model::BusIdText(*f->bus_id), " ", f->name, ": ")
                      : f->count > 1 ? absl::StrCat(f->count, " functions: ")
                                     : "",
                      f->acs_line),
         finding);
  }
}

}  // namespace ringscope::reasoning
