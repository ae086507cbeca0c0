// One line of a log as readers see it: without what launchers, terminals and NCCL's own prefix wrapped around it.
#ifndef RINGSCOPE_ANALYZER_INGEST_TEXT_LINE_H_
#define RINGSCOPE_ANALYZER_INGEST_TEXT_LINE_H_

#include <string>
#include <string_view>

#include "analyzer/model/evidence_place.h"

namespace ringscope::ingest {

// Valid during the call that hands it out.
struct TextLine {
  // The message: wrappers, colours, carriage returns, time stamps and NCCL's prefix removed. Signatures and triggers are
  // matched against this.
  std::string_view text;
  // The same with NCCL's prefix ("host:pid:tid [dev] file:line NCCL WARN "): what a person would quote.
  std::string_view quote;
  // The line as it stands in the file, for readers of tables whose columns count (at most kMaxLine bytes, without the newline).
  std::string_view raw;
  model::Where where;
  model::Speaker by;   // from wrappers, NCCL's prefix, else the file's name
  model::Stamp time;
  enum class Nccl : uint8_t { kNone, kInfo, kWarn, kTrace } nccl = Nccl::kNone;
  std::string_view nccl_source;  // "transport/net_ib.cc:1909" of a warning
};

// Longer lines are cut here (and counted): no program that matters writes them, a core dump does.
inline constexpr size_t kMaxLine = 1 << 16;

// Takes a line apart. Keeps buffers, so it is cheap to call again and again; one a thread.
class LineCleaner {
 public:
  // What the file's name says; used where the line is silent.
  explicit LineCleaner(int file_rank = -1, std::string file_host = "")
      : file_rank_(file_rank), file_host_(std::move(file_host)) {}
  // `raw` must live as long as the result is used.
  TextLine Clean(std::string_view raw, model::Where where);

 private:
  std::string_view Plain(std::string_view raw);  // colours, HTML and Markdown damage removed
  int file_rank_;
  std::string file_host_;
  std::string buffer_;
};

// "rank-3.log", "nccl.hostA.rank3.log.gz", "dmesg-node7.txt": what a file's name says of rank and host. -1, "" when nothing.
struct NameHints {
  int rank = -1;
  std::string host;
};
NameHints HintsOfName(std::string_view path);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_TEXT_LINE_H_
