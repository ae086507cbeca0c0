// One record (trace or flight file) for people: `ringscope show`. Everything it holds, nothing
// concluded.
#ifndef RINGSCOPE_ANALYZER_REPORT_RECORD_TEXT_H_
#define RINGSCOPE_ANALYZER_REPORT_RECORD_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analyzer/model/model.h"

namespace ringscope::report {

struct RecordTextOptions {
  bool colour = false;
  int operations =
      20;          // newest operations shown per communicator, besides all unfinished ones; -1 all
  int edges = 64;  // edges shown, those with something open first; -1 all
};

// An edge that the process drives for another one (PXN), as the owner's record tells whose it is.
struct ForeignEdge {
  std::string owner;      // "rank 1 in world"
  uint64_t position = 0;  // of the owner's operation; 0 unknown
  bool position_p2p = false;
};
// By the source of the relay's record and the edge's table entry there.
using ForeignEdges = std::map<std::pair<std::string, uint32_t>, ForeignEdge>;
ForeignEdges ForeignEdgesOf(const model::Job& job);

// Times are shown as seconds before the record was written ("-12.345s"), 0 as "-". `foreign`: what
// other records tell.
std::string RenderRecord(const model::Record& record, const RecordTextOptions& options,
                         const ForeignEdges& foreign = {});

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_RECORD_TEXT_H_
