// One record (trace or flight file) for people: `ringscope show`. Everything it holds, nothing
// concluded.
#ifndef RINGSCOPE_ANALYZER_REPORT_RECORD_TEXT_H_
#define RINGSCOPE_ANALYZER_REPORT_RECORD_TEXT_H_

#include <string>

#include "analyzer/model/model.h"

namespace ringscope::report {

struct RecordTextOptions {
  bool colour = false;
  int operations =
      20;          // newest operations shown per communicator, besides all unfinished ones; -1 all
  int edges = 64;  // edges shown, those with something open first; -1 all
};

// Times are shown as seconds before the record was written ("-12.345s"), 0 as "-".
std::string RenderRecord(const model::Record& record, const RecordTextOptions& options);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_RECORD_TEXT_H_
