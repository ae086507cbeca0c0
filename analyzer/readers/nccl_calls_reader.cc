// NCCL_DEBUG_SUBSYS=COLL: one line a call. Large logs are mostly made of them, so they are taken apart by hand.
#include <charconv>
#include <memory>
#include <string>
#include <tuple>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

using model::CallHistory;
using model::LoggedCall;

// The value behind " name ", as far as the next space.
std::string_view After(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == text.npos) return {};
  text.remove_prefix(at + name.size());
  return text.substr(0, text.find(' '));
}

template <typename Int>
bool Number(std::string_view text, int base, Int* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

class NcclCalls : public LineReader {
 public:
  explicit NcclCalls(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    const std::string_view text = line.text;
    const size_t colon = text.find(": opCount ");
    if (colon == text.npos) return false;
    const size_t space = text.rfind(' ', colon);
    const std::string_view name = text.substr(space == text.npos ? 0 : space + 1, colon - (space == text.npos ? 0 : space + 1));
    LoggedCall call;
    constexpr uint8_t kFunctions = std::size(model::kLoggedFunctions);
    while (call.function < kFunctions && name != model::kLoggedFunctions[call.function]) ++call.function;
    const std::string_view rest = text.substr(colon);
    const std::string_view communicator = After(rest, " comm ");
    // A terminal cuts long lines ("… coun$"): such a line says too little.
    if (call.function == kFunctions || communicator.size() < 3 || !Number(After(rest, "opCount "), 16, &call.op_count) ||
        !Number(After(rest, " count "), 10, &call.count) || !Number(After(rest, " datatype "), 10, &call.datatype)) {
      if (skipped_++ == 0) context_.Note("line " + std::to_string(line.where.line) + ": a call of NCCL's log is cut or unknown; left out");
      return false;
    }
    Number(After(rest, " op "), 10, &call.op);
    Number(After(rest, " root "), 10, &call.root);
    call.where = line.where;
    CallHistory& history = HistoryOf(line, communicator);
    Number(After(rest, "[nranks=").substr(0, After(rest, "[nranks=").find(']')), 10, &history.n_ranks);
    if (call.function >= model::kFirstMessage) {
      ++history.messages;
      return false;
    }
    call.number = ++history.collectives;
    if (history.calls.size() >= 2 * model::kLoggedCalls)
      history.calls.erase(history.calls.begin(), history.calls.end() - model::kLoggedCalls);
    history.calls.push_back(call);
    return false;
  }

 private:
  CallHistory& HistoryOf(const TextLine& line, std::string_view communicator) {
    model::CallFacts& facts = context_.evidence->calls;
    const auto [it, fresh] = facts.index.try_emplace({line.by.host, line.by.pid, std::string(communicator)}, facts.histories.size());
    if (fresh) {
      facts.histories.emplace_back();
      facts.histories.back().by = line.by;
      facts.histories.back().communicator = communicator;
    }
    return facts.histories[it->second];
  }

  const FileContext& context_;
  uint64_t skipped_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "NCCL calls", {R"(\w+: opCount [0-9a-f]+ sendbuff 0x)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NcclCalls>(context); }});

}  // namespace
}  // namespace ringscope::ingest
