// What ProcessGroupNCCL's watchdog says of a work that did not end, and how far a rank had come in its process groups.
//
// Wordings: "Timeout at NCCL work: 5, last enqueued NCCL work: …" (torch 2.3), "Exception (either an error or timeout) detected by
// watchdog at work: 5, last enqueued …" (2.4, 2.5), "failure detected by watchdog at work sequence id: 5 PG status: last enqueued
// work: …" (2.6+); dumps asked for by another rank end in "Last enqueued NCCL work: …" (2.3+).
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/torch_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 16;     // of a kind, in one file
constexpr size_t kMostJoined = 4096;  // bytes of a line that a terminal broke

// "-1", and the same as an unsigned number.
int64_t Cursor(std::string_view text) {
  int64_t n = -1;
  if (text.empty() || text[0] == '-') return -1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i >= 18) return -1;
    n = (i == 0 ? 0 : n * 10) + (text[i] - '0');
  }
  return n;
}

class Watchdog : public LineReader {
 public:
  explicit Watchdog(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (!open_.empty()) {
      // The terminal's or the mail's line break stands inside a token: join without a space.
      if (!line.text.starts_with("[") && !Contains(line.text, "last enqueued") && !Contains(line.text, "Watchdog caught") &&
          !(Contains(line.text, "CCL(") && Contains(open_, "CCL("))) {
        open_ += std::string(line.text.substr(0, kMostJoined));
        return Timeout(open_line_, open_, /*last=*/++joined_ > 2 || open_.size() > kMostJoined);
      }
      Timeout(open_line_, open_, /*last=*/true);
    }
    const bool more = ReadCursor(line) ? false : IsTimeout(line.text) && Start(line);
    return more;
  }

  void End() override {
    if (!open_.empty()) Timeout(open_line_, open_, /*last=*/true);
    // A timeout names no group; the line that follows with the cursors does.
    for (size_t i = first_timeout_; i < facts().timeouts.size(); ++i) {
      model::WorkTimeout& timeout = facts().timeouts[i];
      if (timeout.group.known() || !timeout.seq) continue;
      const auto it = groups_.find({timeout.by.rank, *timeout.seq});
      if (it != groups_.end()) timeout.group = it->second;
    }
  }

 private:
  model::WorkFacts& facts() { return context_.evidence->work; }

  static bool IsTimeout(std::string_view text) {
    return Contains(text, "collective operation timeout") || Contains(text, "Watchdog caught") || Contains(text, "CCL(");
  }

  static model::WorkGroup Group(std::string_view text, int* rank) {
    static const RE2& label =
        *new RE2(R"(\[PG (?:ID )?(\d{1,9})\s*(?:\(([^)\]]{0,80})\)\s*)?(?:PG GUID ([^\s(\]]{1,80})\s*(?:\(([^)\]]{0,80})\))?\s*)?Rank )"
                 R"((\d{1,7})\])");
    model::WorkGroup group;
    std::string desc_new;
    if (RE2::PartialMatch(Piece(text), label, &group.id, &group.desc, &group.guid, &desc_new, rank) && !desc_new.empty())
      group.desc = desc_new;
    return group;
  }

  bool ReadCursor(const TextLine& line) {
    static const RE2& cursors =
        *new RE2(R"((?i)last enqueued (?:\w+ )?work: (-?\d{1,20}), last (?:started (?:\w+ )?work: -?\d{1,20}, last )?completed )"
                 R"((?:\w+ )?work: (-?\d{1,20}))");
    static const RE2& failed = *new RE2(R"((?:at \w+ work|by watchdog at work|work sequence id): (\d{1,18}))");
    std::string enqueued, completed, at;
    if (!RE2::PartialMatch(Piece(line.text), cursors, &enqueued, &completed)) return false;
    if (facts().cursors.size() >= kMost) return true;
    model::WorkCursor cursor;
    cursor.group = Group(line.text, &cursor.group_rank);
    cursor.enqueued = Cursor(enqueued);
    cursor.completed = Cursor(completed);
    if (RE2::PartialMatch(Piece(line.text), failed, &at)) cursor.failed = Cursor(at);
    cursor.text = QuoteOf(line.quote);
    cursor.where = line.where;
    cursor.by = line.by;
    if (cursor.by.rank < 0 && cursor.group.spans_job()) cursor.by.rank = cursor.group_rank;
    cursor.time = line.time;
    if (cursor.failed && cursor.group.known()) groups_.emplace(std::make_pair(cursor.by.rank, *cursor.failed), cursor.group);
    facts().cursors.push_back(std::move(cursor));
    return true;
  }

  bool Start(const TextLine& line) {
    open_ = std::string(line.text.substr(0, kMostJoined));
    open_quote_ = QuoteOf(line.quote);
    joined_ = 0;
    open_line_.where = line.where;
    open_line_.by = line.by;
    // A progress bar or an exception's heading may stand before torch's own prefix.
    static const RE2& named = *new RE2(R"(\[Rank (\d{1,7})\]\s+Watchdog caught)");
    int rank = -1;
    if (line.by.rank < 0 && RE2::PartialMatch(Piece(line.text), named, &rank)) open_line_.by.rank = rank;
    open_line_.time = line.time;
    return Timeout(open_line_, open_, /*last=*/false);
  }

  // Returns true when the line goes on behind a break. Never reads a line as a whole before its end was seen or given up.
  bool Timeout(const model::WorkTimeout& head, const std::string text, bool last) {  // NOLINT: a copy, open_ is cleared
    static const RE2& work = *new RE2(R"(Work\w{0,12}\((.*)$)");
    static const RE2& whole = *new RE2(R"(Timeout\(ms\)=\d+\))");
    static const RE2& ran = *new RE2(R"(\) ran for (\d{1,15}) milliseconds)");
    std::string inside;
    model::WorkTimeout timeout = head;
    RE2::PartialMatch(text, ran, &timeout.ran_ms);
    const bool complete = RE2::PartialMatch(text, whole);
    if (!complete && !last) return true;
    open_.clear();
    if (!RE2::PartialMatch(text, work, &inside)) return false;
    static const RE2& op = *new RE2(R"(OpType=(\w{1,60}))");
    static const RE2& seq = *new RE2(R"(SeqNum=(\d{1,18}))");
    static const RE2& shape = *new RE2(R"(TensorShape=(\[[^\]]{0,400}\]))");
    static const RE2& in = *new RE2(R"(NumelIn=(\d{1,20}))");
    static const RE2& out = *new RE2(R"(NumelOut=(\d{1,20}))");
    static const RE2& limit = *new RE2(R"(Timeout\(ms\)=(\d{1,15}))");
    if (!RE2::PartialMatch(inside, op, &timeout.op)) return false;
    int64_t n = 0;
    uint64_t count = 0;
    if (RE2::PartialMatch(inside, seq, &n)) timeout.seq = n;
    RE2::PartialMatch(inside, shape, &timeout.shape);
    // 2^64-1 stands for "no such tensor".
    if (RE2::PartialMatch(inside, in, &count) && count != UINT64_MAX) timeout.numel_in = count;
    if (RE2::PartialMatch(inside, out, &count) && count != UINT64_MAX) timeout.numel_out = count;
    RE2::PartialMatch(inside, limit, &timeout.timeout_ms);
    int group_rank = -1;
    timeout.group = Group(text, &group_rank);
    timeout.text = joined_ > 0 ? QuoteOf(text) : open_quote_;
    // The same timeout is told again by the exception that it becomes.
    if (seen_.size() >= kMost || !seen_.emplace(Key(timeout), true).second) return false;
    if (first_timeout_ == SIZE_MAX) first_timeout_ = facts().timeouts.size();
    facts().timeouts.push_back(std::move(timeout));
    return false;
  }

  static std::tuple<int, int, int64_t, std::string> Key(const model::WorkTimeout& t) {
    return {t.by.rank, t.by.local_rank, t.seq.value_or(-1), t.op};
  }

  const FileContext& context_;
  std::string open_, open_quote_;  // a timeout whose end is still to come
  model::WorkTimeout open_line_;
  int joined_ = 0;
  size_t first_timeout_ = SIZE_MAX;
  std::map<std::tuple<int, int, int64_t, std::string>, bool> seen_;
  std::map<std::pair<int, int64_t>, model::WorkGroup> groups_;
};

const RegisterReader kRegister(LineReaderType{
    "torch watchdog",
    {R"(Watchdog caught collective)", R"(Work[A-Z]\w*CCL\((?:SeqNum|OpType)=)", R"(collective operation timeout: *$)",
     R"((?i)last enqueued (?:\w+ )?work: -?\d)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Watchdog>(context); }});

}  // namespace
}  // namespace ringscope::ingest
