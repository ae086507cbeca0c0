#include "analyzer/report/cursors.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <utility>

namespace ringscope::report {
namespace {

using model::Op;
using model::Truth;

bool Open(const Op& op) { return op.full && op.raw.unfinished() && op.finished != Truth::kYes; }

std::string OpName(const Op& op) {
  if (!op.p2p()) return absl::StrCat("#", op.position(), " ", FuncName(op.raw.func()));
  std::string text = absl::StrCat("call ", op.position(), " ");
  if (op.raw.tail_tasks() > 0)
    return absl::StrCat(text, "(", op.raw.tail_tasks(), " sends and receives of one group)");
  absl::StrAppend(&text, FuncName(op.raw.func()));
  if (op.raw.peer() >= 0)
    absl::StrAppend(&text, op.raw.func() == trace::RECV ? " from " : " to ", op.raw.peer());
  return text;
}

std::string State(const model::Member& m, bool* open) {
  const Op* first = nullptr;
  const Op* newest = nullptr;  // newest collective kept
  const Op* done = nullptr;    // newest finished collective
  int unfinished = 0;
  for (const Op& op : m.ops) {
    if (Open(op)) {
      if (first == nullptr) first = &op;
      ++unfinished;
    }
    if (op.p2p()) continue;
    newest = &op;
    if (op.finished == Truth::kYes) done = &op;
  }
  *open = first != nullptr;
  std::string text;
  if (m.raw->collectives() == 0 && m.raw->p2ps() == 0) {
    text = "nothing entered";
  } else if (m.raw->collectives() > 0) {
    text = absl::StrCat("entered #", m.collectives);
    if (newest != nullptr && newest->position() == m.collectives)
      absl::StrAppend(&text, " ", FuncName(newest->raw.func()));
  } else {
    text = absl::StrCat("made ", m.raw->p2ps(), " send/receive calls");
  }
  if (first == nullptr) {
    if (done != nullptr && done->position() == m.collectives) absl::StrAppend(&text, ", finished");
    if (done == nullptr && m.raw->collectives() > 0)
      absl::StrAppend(&text, ", nothing known to be open");
  } else if (first == newest && first->position() == m.collectives) {
    absl::StrAppend(&text, ", ", Stage(*first));
  } else {
    absl::StrAppend(&text, "; oldest open: ", OpName(*first), ", ", Stage(*first));
  }
  if (unfinished > 1) absl::StrAppend(&text, "; ", unfinished, " open");
  if (m.finalized) absl::StrAppend(&text, m.finalized_open ? "; aborted" : "; destroyed");
  return text;
}

}  // namespace

std::string FuncName(trace::Func func) {
  std::string name = trace::Func_Name(func);
  if (name.empty() || func == trace::FUNC_UNKNOWN) return "operation";
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c == '_' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return name == "recv" ? "receive" : name;
}

std::string Stage(const Op& op) {
  if (op.finished == Truth::kYes) return "finished";
  if (op.started == Truth::kYes) return "running";
  if (op.enqueued == Truth::kYes) {
    return op.started == Truth::kNo ? "in the stream, not started"
                                    : "in the stream (completion not visible)";
  }
  if (op.returned == Truth::kYes) {
    return op.enqueued == Truth::kNo ? "call returned, not in the stream"
                                     : "call returned (launch not visible)";
  }
  if (op.returned == Truth::kNo) return "inside the call";
  return "launch not visible";
}

std::vector<CursorLine> CursorLines(const model::Communicator& communicator) {
  std::map<std::pair<bool, std::string>, CursorLine> groups;
  std::vector<int> absent;
  bool job_ranks = true;
  for (const model::Member& m : communicator.members) job_ranks &= m.job_rank >= 0;
  const auto number = [&](const model::Member& m) { return job_ranks ? m.job_rank : m.rank; };
  for (const model::Member& m : communicator.members) {
    if (!m.has_record()) {
      absent.push_back(number(m));
      continue;
    }
    bool open = false;
    const std::string state = State(m, &open);
    CursorLine& line = groups[{open, state}];
    line.state = state;
    line.open = open;
    line.job_ranks = job_ranks;
    line.ranks.push_back(number(m));
  }
  std::vector<CursorLine> lines;
  for (auto& [key, line] : groups) {
    std::sort(line.ranks.begin(), line.ranks.end());
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end(),
            [](const auto& a, const auto& b) { return a.ranks[0] < b.ranks[0]; });
  if (!absent.empty()) {
    std::sort(absent.begin(), absent.end());
    lines.push_back({absent, job_ranks, "no record", false});
  }
  return lines;
}

}  // namespace ringscope::report
