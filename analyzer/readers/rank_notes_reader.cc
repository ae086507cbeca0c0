// What people write beside their logs to say which rank runs where, one rank a clause:
//   rank 2 = PCI 3b:00; rank 3 = PCI 5e:00        rank 5 -> b3:00.0 (no output after 1840 s)
//   rank 11: node2 GPU 3                          Rank 4 runs on host gpu-17, device 4, pid 3120
// and the device table that NCCL's tests print (common.cu):
//   #  Rank  1 Group  0 Pid 4242 on node7 device  1 [0x61] NVIDIA A100
// A clause counts only when all of it is understood: prose that happens to begin with "rank 3" says nothing.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kMostNotes = 65536;  // of a file
constexpr size_t kLongestClause = 120;
constexpr int kMostRanks = 1 << 22;

// Words without meaning of their own.
bool Filler(std::string_view word) {
  for (const char* filler :
       {"is", "=",     "->",     "=>",      ":",   "on",   "runs", "at",       "in",   "the", "of", "and", "with",        "bus",
        "id", "busid", "bus-id", "address", "pci", "pcie", "host", "hostname", "node", "-",   "|",  ",",   "\xe2\x86\x92"}) {
    if (word == filler) return true;
  }
  return false;
}

std::vector<std::string> Words(std::string_view clause) {
  std::vector<std::string> words;
  std::string word;
  const auto flush = [&] {
    while (!word.empty() && (word.back() == ',' || word.back() == ':' || word.back() == '.')) word.pop_back();
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const char c : clause) {
    if (c == ' ' || c == '\t' || c == '=' || c == '|' || c == ',' || c == '[' || c == ']') {
      flush();
    } else {
      word += c;
    }
  }
  flush();
  return words;
}

bool Index(std::string_view text, int64_t* value) {
  Scan scan(text);
  return scan.Number(value, 1, 7) && scan.rest.empty();
}

// "GPU3", "device3", "cuda:3": the number behind a word. The bare word lets the next one be it.
bool Device(const std::vector<std::string>& words, size_t* at, int64_t* device) {
  const std::string word = absl::AsciiStrToLower(words[*at]);
  for (const std::string_view name : {"gpu", "device", "dev", "cuda", "cudadev", "local_rank", "localrank"}) {
    if (!std::string_view(word).starts_with(name)) continue;
    std::string_view rest = std::string_view(word).substr(name.size());
    if (rest.empty()) {
      if (*at + 1 >= words.size() || !Index(words[*at + 1], device)) return false;
      ++*at;
      return true;
    }
    if (rest[0] == ':' || rest[0] == '#') rest.remove_prefix(1);  // "gpu-17" is a host
    return Index(rest, device);
  }
  return false;
}

bool HostName(std::string_view word) {
  if (word.size() < 2 || word.size() > 80 || !(Scan::Alpha(word[0]) || Scan::Digit(word[0]))) return false;
  bool digit = false;
  for (const char c : word) {
    if (!Scan::HostChar(c)) return false;
    digit |= Scan::Digit(c);
  }
  return digit;  // "times", "hangs" are no hosts; machines of a job carry numbers
}

bool ParseClause(std::string_view clause, model::LogRank* note) {
  while (!clause.empty() && (clause[0] == ' ' || clause[0] == '*' || clause[0] == '-' || clause[0] == '#' || clause[0] == '\t'))
    clause.remove_prefix(1);
  if (const size_t comment = clause.find(" ("); comment != clause.npos && comment > 0) clause = clause.substr(0, comment);
  if (clause.size() > kLongestClause) return false;
  const std::string lower = absl::AsciiStrToLower(Absl(clause));
  Scan scan(lower);
  int64_t rank = 0;
  if (!scan.Literal("rank")) return false;
  if (!scan.rest.empty() && (scan.rest[0] == '=' || scan.rest[0] == '#' || scan.rest[0] == '-' || scan.rest[0] == '_'))
    scan.rest.remove_prefix(1);
  scan.Spaces();
  if (!scan.Number(&rank, 1, 7) || rank > kMostRanks || scan.rest.empty() || Scan::Alpha(scan.rest[0])) return false;
  if (scan.rest[0] == '-' && !scan.rest.starts_with("->")) return false;
  const std::vector<std::string> words = Words(clause.substr(clause.size() - scan.rest.size()));
  note->rank = static_cast<int>(rank);
  bool told = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = absl::AsciiStrToLower(words[i]);
    int64_t number = 0;
    if (const auto bus = model::ParseBusId(words[i]); bus && word.find(':') != word.npos) {
      note->bus_id = bus;
      told = true;
    } else if (Device(words, &i, &number)) {
      note->cuda_device = static_cast<int>(number);
      told = true;
    } else if (word == "pid" && i + 1 < words.size() && Index(words[i + 1], &number)) {
      note->by.pid = number;
      ++i;
    } else if (Filler(word)) {
      if (word == "node" && i + 1 < words.size() && Index(words[i + 1], &number)) note->by.host = "node" + words[++i];
    } else if (note->by.host.empty() && HostName(words[i])) {
      note->by.host = words[i];
    } else {
      return false;
    }
  }
  return told;
}

// "node2: ranks 8-15", "ranks 8-15 on node2": launchers hand out the ranks of a host in the order of its devices.
struct Range {
  int64_t first = 0, last = -1;
  std::string host;
};
bool ParseRange(std::string_view clause, Range* range) {
  if (clause.size() > kLongestClause) return false;
  bool ranks = false;
  for (const std::string& word : Words(clause)) {
    const std::string lower = absl::AsciiStrToLower(word);
    Scan scan(lower);
    int64_t first = 0, last = 0;
    if (lower == "ranks") {
      ranks = true;
    } else if (ranks && range->last < 0 && scan.Number(&first, 1, 7) && (scan.Char('-') || scan.Literal("..")) &&
               scan.Number(&last, 1, 7) && scan.rest.empty()) {
      if (last <= first || last - first >= 64) return false;  // no host has more GPUs
      range->first = first;
      range->last = last;
    } else if (!Filler(lower) && range->host.empty() && HostName(word)) {
      range->host = word;
    } else if (!Filler(lower)) {
      return false;
    }
  }
  return range->last >= 0 && !range->host.empty();
}

class RankNotes : public LineReader {
 public:
  explicit RankNotes(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    if (line.nccl != TextLine::Nccl::kNone) return false;
    if (TestTable(line)) return false;
    std::string_view rest = line.text;
    for (int clauses = 0; !rest.empty() && clauses < 64; ++clauses) {
      const size_t end = rest.find(';');
      model::LogRank note;
      Range range;
      if (ParseClause(rest.substr(0, end), &note)) {
        Keep(std::move(note), line);
      } else if (ParseRange(rest.substr(0, end), &range)) {
        for (int64_t rank = range.first; rank <= range.last; ++rank) {
          model::LogRank one;
          one.rank = static_cast<int>(rank);
          one.cuda_device = static_cast<int>(rank - range.first);
          one.by.host = range.host;
          Keep(std::move(one), line);
        }
      }
      rest = end == rest.npos ? "" : rest.substr(end + 1);
    }
    return false;
  }

 private:
  bool TestTable(const TextLine& line) {
    Scan scan(line.text);
    int64_t rank = 0, group = 0, pid = 0, device = 0;
    if (!scan.Char('#')) return false;
    scan.Spaces();
    if (!scan.Literal("Rank")) return false;
    scan.Spaces();
    if (!scan.Number(&rank, 1, 7)) return false;
    scan.Spaces();
    if (scan.Literal("Group")) {
      scan.Spaces();
      if (!scan.Number(&group, 1, 7)) return false;
      scan.Spaces();
    }
    if (!scan.Literal("Pid")) return false;
    scan.Spaces();
    if (!scan.Number(&pid) || !scan.Literal(" on ")) return false;
    scan.Spaces();
    const std::string_view host = scan.While(Scan::HostChar);
    scan.Spaces();
    if (host.empty() || !scan.Literal("device")) return false;
    scan.Spaces();
    if (!scan.Number(&device, 1, 4)) return false;
    scan.Spaces();
    model::LogRank note;
    note.rank = static_cast<int>(rank);
    note.by.pid = pid;
    note.by.host = std::string(host.substr(0, host.find('.')));  // NCCL's log cuts at the dot too
    note.cuda_device = static_cast<int>(device);
    if (scan.Char('[')) {
      const std::string_view bus = scan.While([](char c) { return c != ']'; });
      note.bus_id = bus.find(':') == bus.npos
                        ? model::ParseBusId(std::string(bus.starts_with("0x") ? bus.substr(2) : bus) + ":00.0")
                        : model::ParseBusId(bus);
    }
    Keep(std::move(note), line);
    return true;
  }

  void Keep(model::LogRank note, const TextLine& line) {
    if (kept_++ >= kMostNotes) return;
    note.noted = true;
    note.started = line.where;
    context_.evidence->log_ranks.push_back(std::move(note));
  }

  const FileContext& context_;
  size_t kept_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "notes on ranks",
    {R"((?i)^[\s*#-]*rank[ =#_-]?\d+[^]\w])", R"(^#\s+Rank\s+\d+\s.*Pid\s+\d+ on )", R"((?i); *rank \d+ ?(=|->|:))",
     R"((?i)^[\w.-]+ ?[:=|] *ranks \d+ ?(-|\.\.) ?\d+)", R"((?i)^[\s*#-]*ranks \d+-\d+ )"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<RankNotes>(context); }});

}  // namespace
}  // namespace ringscope::ingest
