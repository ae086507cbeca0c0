// An entry of the failure catalogue as a page for a terminal.
#ifndef RINGSCOPE_ANALYZER_REPORT_ENTRY_TEXT_H_
#define RINGSCOPE_ANALYZER_REPORT_ENTRY_TEXT_H_

#include <string>

#include "proto/catalog.pb.h"

namespace ringscope::report {

struct EntryTextOptions {
  bool colour = false;
  int width = 100;
  bool all = false;  // also perspectives, alerts, settings and references
};

// Quick answer first, then how to confirm, refute, fix and verify; what is behind it after that.
std::string RenderEntry(const catalog::Entry& entry, const EntryTextOptions& options);

// "network", "NCCL", "user code": where a failure arises.
std::string LayerName(catalog::Layer::Value layer);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_ENTRY_TEXT_H_
