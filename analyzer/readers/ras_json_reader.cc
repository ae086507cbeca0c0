// The JSON answer of NCCL's RAS (`ncclras -f json`, NCCL 2.28.7 and later): as a document, or as part of a text.
//
// Mended before it is parsed: NCCL 2.28.7 to 2.28.9 leave out the comma after a missing rank's "nvml_dev"
// (jsonWriteMissingRank, src/ras/client_support.cc), so their answer is no JSON just when it matters; an answer may be cut
// short when the job ends under it; and several may stand one after the other.
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"
#include "analyzer/ingest/time_stamp.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

using nlohmann::json;

constexpr size_t kMostText = 64 << 20;
constexpr size_t kMostFunctions = 32;  // NCCL has five
constexpr int kMostDepth = 64;  // RAS nests five deep

// The first object of `text`, with the commas that its writer forgot and the brackets that were cut off. Moves `text` behind
// it. Empty when there is none.
std::string Mended(std::string_view* text) {
  size_t i = text->find('{');
  if (i == text->npos) {
    *text = {};
    return "";
  }
  std::string out, open;
  bool value_before = false;  // a value ended; a comma, a colon or a closing bracket must come
  size_t whole = 0;           // of `out`: up to here all is complete
  for (; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '}' || c == ']') {
      while (!out.empty() && out.back() == ',') out.pop_back();
      if (open.empty() || open.back() != (c == '}' ? '{' : '[')) break;
      open.pop_back();
      out += c;
      value_before = true;
      whole = out.size();
      if (open.empty()) {
        text->remove_prefix(i + 1);
        return out;
      }
      continue;
    }
    if (c == ',' || c == ':') {
      out += c;
      value_before = false;
      continue;
    }
    if (value_before) out += ',';
    value_before = true;
    if (c == '{' || c == '[') {
      if (open.size() >= kMostDepth) break;
      open += c;
      out += c;
      value_before = false;
    } else if (c == '"') {
      const size_t start = i++;
      while (i < text->size() && (*text)[i] != '"') i += (*text)[i] == '\\' ? 2 : 1;
      if (i >= text->size()) break;
      out.append(*text, start, i + 1 - start);
    } else {
      const size_t start = i;
      while (i < text->size() && Contains("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", text->substr(i, 1)))
        ++i;
      if (i == start) break;  // nothing that JSON has
      out.append(*text, start, i - start);
      --i;
    }
  }
  // Cut short: what is complete stays.
  text->remove_prefix(std::min(i + 1, text->size()));
  out.resize(whole);
  open.clear();
  bool quoted = false;
  for (size_t j = 0; j < out.size(); ++j) {
    if (quoted) {
      if (out[j] == '\\')
        ++j;
      else if (out[j] == '"')
        quoted = false;
    } else if (out[j] == '"') {
      quoted = true;
    } else if (out[j] == '{' || out[j] == '[') {
      open += out[j];
    } else if (out[j] == '}' || out[j] == ']') {
      open.pop_back();
    }
  }
  for (; !open.empty(); open.pop_back()) out += open.back() == '{' ? '}' : ']';
  return out;
}

// RAS writes names, addresses and numbers; anything else is damage.
std::string Plain(std::string text) {
  for (char& c : text) {
    if (!Scan::HostChar(c) && c != ':' && c != '%' && c != '+' && c != ' ') c = '?';
  }
  return text;
}

const json* Member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(name);
  return it == object.end() ? nullptr : &*it;
}
int64_t Number(const json& object, const char* name, int64_t otherwise = -1) {
  const json* value = Member(object, name);
  return value == nullptr || !value->is_number_integer() ? otherwise : value->get<int64_t>();
}
int Small(const json& object, const char* name, int otherwise = -1) {
  const int64_t n = Number(object, name, otherwise);
  return n < -1 || n > 1 << 30 ? otherwise : static_cast<int>(n);
}
bool True(const json& object, const char* name) {
  const json* value = Member(object, name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}
std::string Text(const json& object, const char* name) {
  const json* value = Member(object, name);
  return value == nullptr || !value->is_string() ? "" : Plain(value->get<std::string>());
}

// ncclErrorToString of src/ras/client_support.cc; 7 (in progress) is no error.
std::string ErrorText(int64_t code) {
  switch (code) {
    case 1:
      return "Unhandled CUDA error";
    case 2:
      return "System error";
    case 3:
      return "Internal error";
    case 4:
      return "Invalid argument";
    case 5:
      return "Invalid usage";
    case 6:
      return "Remote process error";
    default:
      return "Unexpected error";
  }
}
bool IsError(int64_t code) { return code > 0 && code != 7; }

model::RasRank RankOf(const json& entry, model::Where where) {
  model::RasRank rank;
  rank.rank = Small(entry, "rank");
  rank.cuda_device = Small(entry, "cuda_dev");
  rank.nvml_device = Small(entry, "nvml_dev");
  rank.pid = Number(entry, "pid");
  if (std::string host = Text(entry, "host"); host != "unknown") rank.node = std::move(host);
  rank.where = where;
  return rank;
}

// Ranks by the value that they share, the most frequent first, as the text has them.
template <typename Key>
std::vector<model::RasShare> Shares(const std::map<Key, std::vector<model::RasRank>>& by_value, model::Where where) {
  std::vector<model::RasShare> shares;
  for (const auto& [value, ranks] : by_value) {
    model::RasShare share;
    if constexpr (std::is_integral_v<Key>) {
      share.count = value;
    } else {
      share.value = value;
    }
    share.ranks = static_cast<int>(ranks.size());
    share.named = ranks;
    share.where = where;
    shares.push_back(std::move(share));
  }
  std::stable_sort(shares.begin(), shares.end(), [](const model::RasShare& a, const model::RasShare& b) {
    return a.ranks != b.ranks ? a.ranks > b.ranks : a.count > b.count;
  });
  return shares;
}

model::RasCommunicator CommunicatorOf(const json& entry, model::Where where) {
  model::RasCommunicator c;
  c.where = where;
  c.every_rank = true;
  c.size = Small(entry, "size");
  std::string hash = Text(entry, "hash");
  if (hash.size() > 2 && hash[1] == 'x') hash.erase(0, 2);
  c.hash = hash.size() < 16 ? std::string(16 - hash.size(), '0') + hash : hash.substr(0, 16);

  std::map<std::string, std::map<uint64_t, std::vector<model::RasRank>>> counts;
  std::map<std::string, std::vector<model::RasRank>> statuses, init_errors, async_errors;
  if (const json* ranks = Member(entry, "ranks"); ranks != nullptr && ranks->is_array()) {
    for (const json& r : *ranks) {
      const model::RasRank rank = RankOf(r, where);
      const json* status = Member(r, "status");
      static const json& none = *new json(json::object());
      const json& s = status == nullptr ? none : *status;
      const int64_t init = Number(s, "init_state", 0), async = Number(s, "async_error", 0);
      // The order of rasClientRunComms.
      statuses[True(s, "abort_flag")                                   ? "ABORT"
               : True(s, "finalize_called") || True(s, "destroy_flag") ? "FINALIZE"
               : init == 0                                             ? "RUNNING"
                                                                       : "INIT"]
          .push_back(rank);
      if (IsError(init)) init_errors[ErrorText(init)].push_back(rank);
      if (IsError(async)) async_errors[ErrorText(async)].push_back(rank);
      const json* launched = Member(r, "collective_counts");
      if (launched == nullptr || !launched->is_object()) continue;
      for (const auto& [function, n] : launched->items()) {
        if (n.is_number_unsigned() && (counts.size() < kMostFunctions || counts.count(Plain(function)) > 0))
          counts[Plain(function)][n.get<uint64_t>()].push_back(rank);
      }
    }
  }
  if (const json* missing = Member(entry, "missing_ranks"); missing != nullptr && missing->is_array()) {
    for (const json& r : *missing) {
      model::RasRank rank = RankOf(r, where);
      if (const json* status = Member(r, "status"); status != nullptr) {
        rank.dead = True(*status, "considered_dead");
        rank.answered = Member(*status, "unresponsive") != nullptr && !True(*status, "unresponsive");
      }
      if (rank.answered && !rank.dead) {
        statuses["NOCOMM"].push_back(rank);
      } else {
        c.missing_ranks.push_back(rank);
      }
    }
  }
  c.missing = static_cast<int>(c.missing_ranks.size());
  c.incomplete = c.missing > 0;
  c.mismatch = statuses.size() > 1;
  for (const auto& [function, by_count] : counts) {
    c.mismatch |= by_count.size() > 1;
    c.counts.push_back({function, Shares(by_count, where), where});
  }
  c.statuses = Shares(statuses, where);
  c.init_errors = Shares(init_errors, where);
  c.async_errors = Shares(async_errors, where);
  c.error = !init_errors.empty() || !async_errors.empty();
  return c;
}

// "2026-02-03 04:05:06", the local time of whoever answered.
model::Stamp TimeOf(const std::string& text) {
  Scan scan(text);
  model::Stamp stamp;
  return TakeDateTime(&scan, &stamp) ? stamp : model::Stamp{};
}

bool Take(const json& document, model::Where where, model::Evidence* evidence) {
  const json* communicators = Member(document, "communicators");
  if (communicators == nullptr || !communicators->is_array()) return false;
  model::RasSnapshot snapshot;
  snapshot.where = where;
  snapshot.json = true;
  snapshot.time = TimeOf(Text(document, "timestamp"));
  snapshot.nccl_version = Text(document, "nccl_version");
  if (const json* ras = Member(document, "ras"); ras != nullptr) snapshot.timeouts = std::max(0, Small(*ras, "timeouts_count", 0));
  std::set<std::pair<std::string, int64_t>> missing, dead;
  for (const json& entry : *communicators) {
    snapshot.communicators.push_back(CommunicatorOf(entry, where));
    for (const model::RasRank& r : snapshot.communicators.back().missing_ranks) {
      if (r.pid < 0 || !(r.dead ? dead : missing).insert({r.node, r.pid}).second) continue;
      (r.dead ? snapshot.dead : snapshot.missing).push_back({r.pid, r.node, {r.cuda_device}, where});
    }
  }
  snapshot.no_communicators = snapshot.communicators.empty();
  snapshot.missing_processes = static_cast<int>(snapshot.missing.size());
  snapshot.dead_processes = static_cast<int>(snapshot.dead.size());
  if (!snapshot.nccl_version.empty()) evidence->versions.push_back({"nccl", snapshot.nccl_version, where, {}});
  evidence->ras.snapshots.push_back(std::move(snapshot));
  return true;
}

// Every answer in `text`; how many.
int TakeAll(std::string_view text, model::Where where, const FileContext& context) {
  int found = 0;
  while (!text.empty()) {
    const std::string whole = Mended(&text);
    if (whole.empty()) continue;
    const json document = json::parse(whole, nullptr, /*allow_exceptions=*/false);
    if (!document.is_discarded()) found += Take(document, where, context.evidence);
  }
  return found;
}

// What a terminal or telnet leaves before it ("OK", "SERVER PROTOCOL 2", a prompt) is passed over.
bool LooksLike(std::string_view head) {
  size_t lines = 0, start = 0;
  while (start < head.size() && lines < 8) {
    const size_t end = std::min(head.find('\n', start), head.size());
    const size_t first = head.find_first_not_of(" \t\r", start);
    if (first < end && head[first] == '{') {
      const std::string_view begin = head.substr(first, 1024);
      return Contains(begin, "\"communicators\"") &&
             (Contains(begin, "\"nccl_version\"") || Contains(begin, "\"communicators_count\""));
    }
    if (end - start > 200) return false;
    start = end + 1;
    ++lines;
  }
  return false;
}

absl::Status ReadDocument(std::string_view bytes, const FileContext& context) {
  context.info().lines = std::count(bytes.begin(), bytes.end(), '\n');
  if (TakeAll(bytes, {context.file, 1}, context) == 0)
    return absl::InvalidArgumentError(
        "looks like an answer of NCCL's RAS in JSON, but holds no communicators; collect it again with `ncclras -f json`");
  return absl::OkStatus();
}

// The same pasted into a text.
class RasJsonLines : public LineReader {
 public:
  explicit RasJsonLines(const FileContext& context) : context_(context) {}
  bool Line(const TextLine& line) override {
    if (text_.empty()) {
      text_ = "{";
      where_ = line.where;
      depth_ = 1;
      const size_t brace = line.text.find('{');
      text_.append(brace == line.text.npos ? line.text : line.text.substr(brace + 1));
      Count(std::string_view(text_).substr(1));
    } else {
      text_.append(line.text);
      Count(line.text);
    }
    text_ += '\n';
    if (depth_ > 0 && text_.size() < kMostText) return true;
    End();
    return false;
  }
  void End() override {
    if (!text_.empty()) TakeAll(text_, where_, context_);
    text_.clear();
  }

 private:
  void Count(std::string_view text) {
    for (const char c : text) depth_ += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
  const FileContext& context_;
  std::string text_;
  model::Where where_;
  int64_t depth_ = 0;
};

const RegisterReader kDocument(DocumentReaderType{"NCCL RAS answer (JSON)", LooksLike, kMostText, ReadDocument});
const RegisterReader kLines(LineReaderType{
    "NCCL RAS answer (JSON in a text)",
    {R"("nccl_version"\s*:\s*"\d)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<RasJsonLines>(context); }});

}  // namespace
}  // namespace ringscope::ingest
