// What `ringscope doctor` prints: what is wrong first, with its fix, then a line for each of the other checks.
#ifndef RINGSCOPE_ANALYZER_REPORT_NODE_TEXT_H_
#define RINGSCOPE_ANALYZER_REPORT_NODE_TEXT_H_

#include <string>

#include "proto/node.pb.h"

namespace ringscope::report {

struct NodeTextOptions {
  bool colour = false;
  int width = 80;
  bool quiet = false;  // only what is wrong
};

std::string RenderNode(const node::Report& report, const NodeTextOptions& options);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_NODE_TEXT_H_
