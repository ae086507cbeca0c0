// Notes of where each rank's program stood: "node0 rank 0: model.py:136 self.experts()  launch blocked".
#include <re2/re2.h>

#include <memory>
#include <string>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/readers/torch_text.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMost = 4096;
constexpr size_t kMostLine = 300;  // somebody typed it

class Positions : public LineReader {
 public:
  explicit Positions(const FileContext& context) : context_(context) {}
  bool Line(const TextLine& line) override {
    static const RE2& note = *new RE2(
        R"((?i)^\W*(?:[\w.-]{1,60}[ /:]{1,2})?rank[ _]?(\d{1,6})[ :=]{1,4}(?:at |in )?([\w./-]{1,200}\.py):(\d{1,7})\b:? *(.*)$)");
    auto& all = context_.evidence->work.positions;
    model::Position position;
    if (line.text.size() > kMostLine || all.size() >= kMost) return false;
    if (!RE2::PartialMatch(Piece(line.text), note, &position.rank, &position.file, &position.line, &position.rest)) return false;
    position.text = QuoteOf(line.text);
    position.where = line.where;
    all.push_back(std::move(position));
    return false;
  }

 private:
  const FileContext& context_;
};

const RegisterReader kRegister(LineReaderType{
    "notes on where ranks stand",
    {R"((?i)\brank[ _]?\d+[ :=]+(?:at |in )?[\w./-]+\.py:\d)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Positions>(context); }});

}  // namespace
}  // namespace ringscope::ingest
