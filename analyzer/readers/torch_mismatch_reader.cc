// Who runs what, as torch itself compared it: collective fingerprints (TORCH_DISTRIBUTED_DEBUG=DETAIL, torch 1.9+) and the desync
// report (TORCH_NCCL_DESYNC_DEBUG, 1.13+).
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/torch_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 1 << 14;

class Mismatch : public LineReader {
 public:
  explicit Mismatch(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (Contains(line.text, "CollectiveFingerPrint")) {
      Fingerprints(line);
      return false;
    }
    return Desync(line);
  }

 private:
  // `text` starts behind "CollectiveFingerPrint(".
  static void Read(std::string_view text, model::FingerPrint* print) {
    static const RE2& seq = *new RE2(R"(SequenceNumber=(\d{1,18}))");
    static const RE2& op = *new RE2(R"(OpType=(\w{1,60}))");
    // Shapes of several tensors follow each other: "[2, 3][4]", "[2, 3], [4]".
    static const RE2& shape = *new RE2(R"(TensorShape=((?:\[[^\]]{0,400}\](?:, (?:\[))?)+))");
    static const RE2& shape_one = *new RE2(R"(TensorShape=(\[[^\]]{0,400}\]))");
    static const RE2& type = *new RE2(R"(TensorDtypes=(\w{1,40}))");
    int64_t n = 0;
    if (RE2::PartialMatch(Piece(text), seq, &n)) print->seq = n;
    RE2::PartialMatch(Piece(text), op, &print->op);
    if (!RE2::PartialMatch(Piece(text), shape_one, &print->shapes)) RE2::PartialMatch(Piece(text), shape, &print->shapes);
    RE2::PartialMatch(Piece(text), type, &print->dtypes);
  }

  void Fingerprints(const TextLine& line) {
    static const RE2& pair =
        *new RE2(R"(Rank (\d{1,7}) is running (?:inconsistent )?collective: CollectiveFingerPrint\((.*?), but Rank (\d{1,7}) )"
                 R"(is running (?:inconsistent )?collective: CollectiveFingerPrint\((.*)$)");
    model::FingerPrintMismatch found;
    std::string own, other;
    if (!RE2::PartialMatch(Piece(line.text), pair, &found.own.rank, &own, &found.other.rank, &other)) {
      // torch 1.9 and 1.10 name one rank only.
      static const RE2& single = *new RE2(R"(Rank (\d{1,7}) is running (?:inconsistent )?collective: CollectiveFingerPrint\((.*)$)");
      if (!RE2::PartialMatch(Piece(line.text), single, &found.own.rank, &own)) return;
    }
    const size_t differ = other.find("Collectives differ in the following aspects:");
    if (differ != other.npos) {
      found.differ = QuoteOf(std::string_view(other).substr(differ));
      other.resize(differ);
    }
    Read(own, &found.own);
    Read(other, &found.other);
    found.text = QuoteOf(line.quote);
    found.where = line.where;
    found.by = line.by;
    if (facts().fingerprints.size() < kMost) facts().fingerprints.push_back(std::move(found));
  }

  bool Desync(const TextLine& line) {
    using State = model::DesyncLine::State;
    static const RE2& never = *new RE2(R"(ranks \[([\d, ]+)\] are the lagging ranks that caused this timeout)");
    static const RE2& joined = *new RE2(R"(\[([\d, ]+)\] joined but didn't finish collective #(\d{1,18}))");
    static const RE2& next = *new RE2(R"(\[([\d, ]+)\] finished collective #(\d{1,18}), but didn't join)");
    static const RE2& heading = *new RE2(R"(#(\d{1,18}) (started|finished) ranks:)");
    static const RE2& state = *new RE2(R"(^\s*\[([\d, ]+)\] (started|finished) (\w{1,60})\s*$)");
    static const RE2& inside =
        *new RE2(R"(Timeout at collective: |the lagging/dead/mismatched ranks|Snapshot of ranks' latest states)");
    model::DesyncLine found;
    std::string ranks, word;
    if (RE2::PartialMatch(Piece(line.text), never, &ranks)) {
      found.state = State::kNeverJoined;
    } else if (RE2::PartialMatch(Piece(line.text), joined, &ranks, &found.seq)) {
      found.state = State::kJoinedNotFinished;
    } else if (RE2::PartialMatch(Piece(line.text), next, &ranks, &found.seq)) {
      found.state = State::kFinishedNotJoinedNext;
    } else if (RE2::PartialMatch(Piece(line.text), heading, &seq_, &word)) {
      return true;
    } else if (RE2::PartialMatch(Piece(line.text), state, &ranks, &word, &found.op)) {
      found.state = word == "started" ? State::kStarted : State::kFinished;
      found.seq = seq_;
    } else {
      return RE2::PartialMatch(Piece(line.text), inside);
    }
    found.ranks = RankList(ranks);
    found.text = QuoteOf(line.quote);
    found.where = line.where;
    found.by = line.by;
    if (!found.ranks.empty() && facts().desync.size() < kMost) facts().desync.push_back(std::move(found));
    return true;
  }

  model::WorkFacts& facts() { return context_.evidence->work; }
  const FileContext& context_;
  int64_t seq_ = -1;
};

const RegisterReader kRegister(LineReaderType{
    "torch mismatch report",
    {R"(is running (?:inconsistent )?collective: CollectiveFingerPrint\()", R"(\] Timeout at collective: )",
     R"(the lagging/dead/mismatched ranks)", R"(are the lagging ranks that caused this timeout)",
     R"(\] joined but didn't finish collective #\d)", R"(\] finished collective #\d+, but didn't join)",
     R"(#\d+ (?:started|finished) ranks:)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Mismatch>(context); }});

}  // namespace
}  // namespace ringscope::ingest
