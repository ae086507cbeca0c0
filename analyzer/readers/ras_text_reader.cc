// The text answer of NCCL's RAS (ncclras, or the socket at NCCL_RAS_ADDR), NCCL 2.24 to 2.30 (src/ras/client_support.cc): one or
// several answers in a file, whole or only the part that somebody found worth pasting.
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

using model::RasCommunicator;
using model::RasRank;
using model::RasShare;

// The order in which an answer prints its parts: going back means that another answer begins.
enum class Part { kHead, kSummary, kTable, kErrors, kWarnings };

// A pasted answer may be followed by anything; lines that are none of ours end it after so many.
constexpr int kMostOther = 8;
constexpr size_t kMostFunctions = 32;

template <typename... Args>
bool Full(std::string_view text, const RE2& re, Args... args) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), re, args...);
}
template <typename... Args>
bool Within(std::string_view text, const RE2& re, Args... args) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), re, args...);
}

std::string_view Trim(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

// "0,2,5".
std::vector<int> Numbers(std::string_view text) {
  std::vector<int> numbers;
  int value = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      value = value < 0 ? c - '0' : value < 100000000 ? value * 10 + (c - '0') : value;
      continue;
    }
    if (value >= 0) numbers.push_back(value);
    value = -1;
  }
  if (value >= 0) numbers.push_back(value);
  return numbers;
}

class RasText : public LineReader {
 public:
  explicit RasText(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    where_ = line.where;
    const std::string_view text = Trim(line.text);
    if (text.empty() || text.find_first_not_of('=') == text.npos) return engaged_;
    if (Head(text) || Table(text) || Problem(text) || Rank(text) || Note(text)) {
      other_ = 0;
      engaged_ = true;
    } else if (++other_ > kMostOther) {
      engaged_ = false;
      rows_ = Rows::kNone;
    }
    return engaged_;
  }

 private:
  enum class Rows { kNone, kUniform, kTotals };
  enum class Processes { kNone, kMissing, kDead };
  enum class Named { kNone, kMissing, kCounts, kStatus, kInitErrors, kAsyncErrors };

  model::RasSnapshot& Now() { return context_.evidence->ras.snapshots[snapshot_]; }

  // A header or a detail of this part begins; `again`: this part cannot go on after what it already holds.
  void Enter(Part part, bool again = false) {
    if (snapshot_ < 0 || part < part_ || again) {
      snapshot_ = static_cast<int>(context_.evidence->ras.snapshots.size());
      context_.evidence->ras.snapshots.emplace_back();
      Now().where = where_;
      known_.clear();
      communicator_ = -1;
      processes_ = Processes::kNone;
      named_ = Named::kNone;
      rows_ = Rows::kNone;
    }
    part_ = part;
  }
  // The same for a title that an answer prints once.
  void Title(Part part) {
    Enter(part, snapshot_ >= 0 && part == titled_ && part == part_);
    titled_ = part;
    communicator_ = -1;
    named_ = Named::kNone;
    processes_ = Processes::kNone;
  }

  RasCommunicator& Current() {
    // Details whose "#0-0 (…)" line was not pasted.
    if (communicator_ < 0) {
      communicator_ = static_cast<int>(Now().communicators.size());
      Now().communicators.emplace_back();
      Now().communicators.back().where = where_;
    }
    return Now().communicators[communicator_];
  }

  bool Head(std::string_view text) {
    static const RE2& version = *new RE2(R"(NCCL version (\d+\.\d+\.\d+[\w.+-]*) compiled with CUDA \d+\.\d+)");
    static const RE2& uniform = *new RE2(R"(\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+))");
    static const RE2& totals = *new RE2(R"(\s*(\d+)\s+(\d+)\s+(\d+))");
    std::string value;
    if (Full(text, version, &value)) {
      Title(Part::kHead);
      Now().nccl_version = value;
      context_.evidence->versions.push_back({"nccl", value, where_, {}});
      return true;
    }
    if (text == "Job summary") {
      Title(Part::kSummary);
      return true;
    }
    // Both layouts: five columns where all nodes are alike, else several small tables that end with the totals.
    if (text.starts_with("(total)") && part_ == Part::kSummary) {
      rows_ = Contains(text, "per node") ? Rows::kUniform : Rows::kTotals;
      return true;
    }
    int a = 0, b = 0, c = 0, d = 0, e = 0;
    if (rows_ == Rows::kUniform && Full(text, uniform, &a, &b, &c, &d, &e)) {
      Now().nodes = a, Now().processes = d, Now().gpus = e;
      rows_ = Rows::kNone;
      return true;
    }
    if (rows_ == Rows::kTotals && Full(text, totals, &a, &b, &c)) {
      Now().nodes = a, Now().processes = b, Now().gpus = c;
      rows_ = Rows::kNone;
      return true;
    }
    return false;
  }

  bool Table(std::string_view text) {
    static const RE2& begin = *new RE2(R"(Communicators\.\.\. \([\d.]+s\))");
    static const RE2& row = *new RE2(
        R"((\d+)\s+(\d+)\s+(\d+)\s+\d+(?:-\d+)?\s+(\d+)\s+(\d+)\s+(NOCOMM|UNKNOWN|INIT|RUNNING|FINALIZE|ABORT)\s+([A-Z]+(?:,[A-Z]+)*))");
    if (Full(text, begin)) {
      Title(Part::kTable);
      return true;
    }
    if (text.starts_with("Group") && Contains(text, "Ranks") && Contains(text, "Status")) {
      Enter(Part::kTable, part_ == Part::kTable && snapshot_ >= 0 && !Now().groups.empty());
      return true;
    }
    if (text == "No communicator data collected!") {
      Enter(Part::kTable);
      Now().no_communicators = true;
      return true;
    }
    model::RasGroup group;
    if (!Full(text, row, &group.number, &group.communicators, &group.nodes, &group.ranks_per_communicator, &group.ranks, &group.status,
              &group.errors))
      return false;
    Enter(Part::kTable,
          part_ == Part::kTable && snapshot_ >= 0 && !Now().groups.empty() && Now().groups.back().number >= group.number);
    group.where = where_;
    Now().groups.push_back(std::move(group));
    return true;
  }

  bool Problem(std::string_view text) {
    static const RE2& communicator = *new RE2(R"(#(\d+)-(\d+) \(([0-9a-f]{8,16})\) (INCOMPLETE|ERROR|MISMATCH))");
    static const RE2& no_data = *new RE2(R"(Missing communicator data from (\d+) (job process|rank)(?:es|s)?)");
    static const RE2& dead = *new RE2(R"((\d+) job process(?:es are| is) considered dead.*)");
    static const RE2& process = *new RE2(R"(Process (\d+) on node ([\w.:%-]+) managing GPUs? ([\d,]+)(?: \(NVML [\d,]+\))?)");
    static const RE2& timeouts = *new RE2(R"(Encountered (\d+) communication timeouts? while gathering.*)");
    static const RE2& ranks = *new RE2(R"(The (missing|unknown) ranks?: ([\d, ]+))");
    if (text == "Errors" || text == "Warnings") {
      if (!engaged_) return false;  // a word that any log may hold
      Title(text == "Errors" ? Part::kErrors : Part::kWarnings);
      return true;
    }
    if (text == "INCOMPLETE" || text == "DEAD" || text == "TIMEOUT") return engaged_;
    std::string kind, hash;
    int n = 0, index = 0;
    if (Full(text, communicator, &n, &index, &hash, &kind)) {
      const Part part = kind == "MISMATCH" ? Part::kWarnings : Part::kErrors;
      const std::string key = std::string(text.substr(0, text.find(')')));
      const auto flag = [&](RasCommunicator& c) -> bool& {
        return kind == "INCOMPLETE" ? c.incomplete : kind == "ERROR" ? c.error : c.mismatch;
      };
      const auto known = snapshot_ >= 0 && part >= part_ ? known_.find(key) : known_.end();
      Enter(part, known != known_.end() && flag(Now().communicators[known->second]));
      const auto [place, fresh] = known_.emplace(key, static_cast<int>(Now().communicators.size()));
      if (fresh) {
        RasCommunicator& c = Now().communicators.emplace_back();
        c.group = n, c.index = index, c.hash = std::string(16 - hash.size(), '0') + hash, c.where = where_;
      }
      communicator_ = place->second;
      flag(Current()) = true;
      named_ = Named::kNone;
      processes_ = Processes::kNone;
      return true;
    }
    if (Full(text, no_data, &n, &kind)) {
      Enter(Part::kErrors);
      if (kind == "rank") {
        Current().missing = n;
        Current().incomplete = true;
        named_ = Named::kMissing;
        processes_ = Processes::kNone;
      } else {
        Now().missing_processes = n;
        processes_ = Processes::kMissing;
      }
      return true;
    }
    if (Full(text, dead, &n)) {
      Enter(Part::kErrors);
      Now().dead_processes = n;
      processes_ = Processes::kDead;
      return true;
    }
    model::RasProcess found;
    if (Full(text, process, &found.pid, &found.node, &kind)) {
      if (snapshot_ < 0 || processes_ == Processes::kNone) return false;
      found.gpus = Numbers(kind);
      found.where = where_;
      (processes_ == Processes::kDead ? Now().dead : Now().missing).push_back(std::move(found));
      return true;
    }
    if (Full(text, timeouts, &n)) {
      Enter(Part::kWarnings);
      Now().timeouts = n;
      return true;
    }
    if (Full(text, ranks, &kind, &hash)) {  // 2.24, 2.25
      if (snapshot_ < 0) Enter(Part::kErrors);
      if (kind == "unknown" && Current().statuses.empty()) return true;
      std::vector<RasRank>& list = kind == "missing" ? Current().missing_ranks : Current().statuses.back().named;
      for (const int rank : Numbers(hash)) {
        RasRank r;
        r.rank = rank, r.where = where_;
        list.push_back(r);
      }
      return true;
    }
    return false;
  }

  // " -- GPU 0 (NVML 3) managed by process 7 on node 10.0.0.1".
  bool Managed(std::string_view text, RasRank* rank) {
    static const RE2& managed =
        *new RE2(R"(-- (?:GPU (\d+)(?: \(NVML (\d+)\))? managed by process (\d+) on node ([\w.:%-]+)|\[process information not found\]))");
    std::string gpu, nvml, pid, node;
    if (!Within(text, managed, &gpu, &nvml, &pid, &node)) return false;
    const auto number = [](const std::string& digits) { return digits.empty() || digits.size() > 9 ? -1 : std::stoi(digits); };
    rank->cuda_device = number(gpu);
    rank->nvml_device = nvml.empty() ? rank->cuda_device : number(nvml);
    rank->pid = number(pid);
    rank->node = node;
    rank->where = where_;
    return true;
  }

  std::vector<RasShare>* Shares() {
    switch (named_) {
      case Named::kCounts:
        return &Current().counts.back().shares;
      case Named::kStatus:
        return &Current().statuses;
      case Named::kInitErrors:
        return &Current().init_errors;
      case Named::kAsyncErrors:
        return &Current().async_errors;
      default:
        return nullptr;
    }
  }

  void BeginCounts(std::string function) {
    if (function == "collective") function.clear();
    Current().mismatch = true;
    // NCCL has five functions; more of them are damage.
    named_ = Current().counts.size() < kMostFunctions ? Named::kCounts : Named::kNone;
    if (named_ == Named::kCounts) Current().counts.push_back({std::move(function), {}, where_});
  }

  bool Rank(std::string_view text) {
    static const RE2& counts = *new RE2(R"(Communicator ranks have different (\w+) operation counts)");
    static const RE2& errors = *new RE2(R"((Initialization|Asynchronous) errors? on \d+ ranks?)");
    static const RE2& many = *new RE2(
        R"((\d+) ranks (?:have launched up to operation (\d+)|(have not launched any operations)|have status (\w+)|reported ([\w ]+)))");
    static const RE2& one = *new RE2(R"(Rank (\d+)(?: has launched up to operation (\d+)| (has not launched any operations))"
                                     R"(| has status (\w+)| reported ([\w ]+?))?(?: --.*)?)");
    std::string a, count, none, status, error;
    if (Full(text, counts, &a)) {
      Enter(Part::kWarnings);
      BeginCounts(a);
      return true;
    }
    if (text == "Communicator ranks have different status") {
      Enter(Part::kWarnings);
      Current().mismatch = true;
      named_ = Named::kStatus;
      return true;
    }
    if (Full(text, errors, &a)) {
      Enter(Part::kErrors);
      Current().error = true;
      named_ = a == "Initialization" ? Named::kInitErrors : Named::kAsyncErrors;
      return true;
    }
    int n = 0;
    const bool several = Full(text, many, &n, &count, &none, &status, &error);
    RasRank rank;
    if (!several && (!Full(text, one, &rank.rank, &count, &none, &status, &error))) return false;
    const bool placed = several || Managed(text, &rank);
    const bool value = !count.empty() || !none.empty() || !status.empty() || !error.empty();
    // "Rank 3 has status NOCOMM" stands without a process in 2.24; a bare "Rank 3" is nobody's.
    if (!placed && !value) return false;
    rank.where = where_;
    if (!value) {
      if (snapshot_ < 0) return false;
      if (named_ == Named::kMissing) {
        Current().missing_ranks.push_back(rank);
      } else if (std::vector<RasShare>* shares = Shares(); shares != nullptr && !shares->empty()) {
        shares->back().named.push_back(rank);
      } else {
        return false;
      }
      return true;
    }
    // The heading was not pasted: what kind of value it is says enough.
    if (!count.empty() || !none.empty()) {
      if (snapshot_ < 0 || named_ != Named::kCounts) {
        Enter(Part::kWarnings);
        BeginCounts("");
      }
    } else if (!status.empty() && (snapshot_ < 0 || named_ != Named::kStatus)) {
      Enter(Part::kWarnings);
      named_ = Named::kStatus;
    } else if (!error.empty() && Shares() == nullptr) {
      return false;
    }
    RasShare share;
    share.count = count.empty() || count.size() > 18 ? 0 : std::stoull(count);
    share.value = status.empty() ? error : status;
    share.ranks = several ? n : 1;
    if (!several) share.named.push_back(rank);
    share.where = where_;
    std::vector<RasShare>* shares = Shares();
    if (shares == nullptr) return false;
    shares->push_back(std::move(share));
    return true;
  }

  // "(identical 10 minutes later)": people paste one of two equal answers.
  bool Note(std::string_view text) {
    static const RE2& same = *new RE2(R"((?i)\b(?:identical|unchanged|same|not changed|no change|did not change)\b.{0,60}\b)"
                                      R"((?:later|after|minutes?|mins?|seconds?|secs?|hours?)\b)");
    if (snapshot_ < 0 || !engaged_ || text.size() > 200 || !Within(text, same)) return false;
    Now().said_unchanged = where_;
    return true;
  }

  const FileContext& context_;
  model::Where where_;
  std::map<std::string, int> known_;  // communicators of this answer, by "#0-1 (hash"
  int snapshot_ = -1, communicator_ = -1, other_ = 0;
  Part part_ = Part::kHead, titled_ = Part::kHead;
  Rows rows_ = Rows::kNone;
  Processes processes_ = Processes::kNone;
  Named named_ = Named::kNone;
  bool engaged_ = false;
};

const RegisterReader kRegister(LineReaderType{
    "NCCL RAS answer",
    {R"(NCCL version \d+\.\d+\.\d+\S* compiled with CUDA)", R"(^\s*Job summary$)", R"(^\s*Communicators\.\.\. \([\d.]+s\))",
     R"(^\s*Group +Comms +Nodes +Ranks)", R"(\d +\d+ +\d+ +(?:NOCOMM|UNKNOWN|INIT|RUNNING|FINALIZE|ABORT) +[A-Z,]+$)",
     R"(^\s*No communicator data collected!)", R"(^\s*#\d+-\d+ \([0-9a-f]{8,16}\) (?:INCOMPLETE|ERROR|MISMATCH))",
     R"(Missing communicator data from \d+ (?:job process|rank))", R"(\d+ job process(?:es are| is) considered dead)",
     R"(Communicator ranks have different \w+)",
     R"([Rr]anks? (?:\d+ )?ha(?:ve|s) (?:launched up to operation|not launched any operations))",
     R"(Encountered \d+ communication timeouts? while gathering)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<RasText>(context); }});

}  // namespace
}  // namespace ringscope::ingest
