// nvidia-smi's text: `nvlink -s/-e/-ec/-R/-c`, `-L`, `-q` and its excerpts, --query-gpu as CSV, the default table, dmon.
//
// Forms checked against outputs of drivers 390 to 590. One reader for all of them, because pastes put one after the other and
// a heading ("node7:~$ nvidia-smi nvlink -e -i 5", "# after") counts for what follows, whatever it is.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <re2/re2.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/model/views.h"
#include "analyzer/readers/gpu_snapshots.h"
#include "analyzer/readers/smi_keys.h"
#include "analyzer/readers/smi_table.h"

namespace ringscope::ingest {
namespace {

constexpr char kNvlink[] = "nvidia-smi nvlink";
constexpr char kQuery[] = "nvidia-smi -q";
constexpr char kCsv[] = "nvidia-smi --query-gpu";
constexpr int kMostLink = 99;
// Lines without anything known, after which a text is something else again.
constexpr int kPatience = 4;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "Recovery Errors" -> "recovery"; empty for traffic, rates and corrected bits, which say nothing is wrong.
std::string CounterName(std::string_view words) {
  const std::string name = NormalKey(words);
  const auto has = [&](std::string_view part) { return Contains(name, part); };
  if (has("packets") || has("bytes") || has("ber") || has("fec") || has("kib") || has("data_tx") || has("data_rx")) return "";
  if (has("recovery")) return has("failed") ? "recovery_failed" : has("success") ? "recovery_successful" : "recovery";
  if (has("replay")) return "replay";
  if (has("crc")) return has("data") ? "crc_data" : "crc";
  if (has("symbol")) return "symbol_errors";
  if (has("effective")) return "effective_errors";
  if (has("integrity")) return "link_integrity";
  if (has("error") || has("discard")) return name;
  return "";
}

class NvidiaSmi : public LineReader {
 public:
  explicit NvidiaSmi(const FileContext& context) : context_(context), out_(context), table_(context, &out_) {}

  bool Line(const TextLine& whole) override {
    TextLine line = whole;
    HostPrefix(&line);
    if (Csv(line) || Nvlink(line) || table_.Line(line) || Query(line)) {
      idle_ = 0;
      return true;
    }
    if (Unchanged(line)) return true;
    if (out_.Heading(line)) {
      compared_ = Contains(line.text, "diff") && Contains(line.text, "nvlink");
      csv_.clear();
      sections_.clear();
      query_ = false;
      idle_ = 0;
      return true;
    }
    return ++idle_ < kPatience;
  }

 private:
  // "node7: GPU 0: …" of pdsh and clush; they put it before every line.
  static void HostPrefix(TextLine* line) {
    static const RE2& shape = *new RE2(R"(^([A-Za-z0-9][\w.-]*): +(?:GPU \d+: |\s*Link \d+|\||\+-))");
    std::string host;
    if (!RE2::PartialMatch(Piece(line->text), shape, &host) || host == "NVML") return;
    line->text.remove_prefix(line->text.find(": ") + 2);
    line->by.host = host;
  }

  // People compare by themselves: "# diff of nvidia-smi nvlink -e before/after" and "(no difference)".
  bool Unchanged(const TextLine& line) {
    static const RE2& same =
        *new RE2(R"((?i)^\W*(?:no differences?|no changes?|identical|unchanged|all (?:counters )?unchanged|empty)\W*$)");
    if (!compared_ || !RE2::PartialMatch(Piece(line.text), same)) return false;
    model::ToolVerdict verdict;
    verdict.tool = "nvidia-smi nvlink";
    verdict.test = "counters compared";
    verdict.result = "unchanged";
    verdict.where = line.where;
    verdict.by = line.by;
    verdict.quote = "NVLink counters before and after: " + QuoteLine(line.text);
    context_.evidence->hardware.verdicts.push_back(std::move(verdict));
    compared_ = false;
    return true;
  }

  bool Nvlink(const TextLine& line) {
    static const RE2& header = *new RE2(R"(^\s*GPU (\d{1,4}): (.*?) ?\(UUID: ?((?:GPU|MIG)?-?[\w./-]*|\.\.\.)\))");
    int index = -1;
    std::string product, uuid;
    if (RE2::PartialMatch(Piece(line.text), header, &index, &product, &uuid)) {
      sections_.clear();
      out_.Gpu(kNvlink, {index, {}, uuid, product}, line);
      return true;
    }
    static const RE2& none = *new RE2(R"((?i)unable to retrieve nvlink information as all links are inactive)");
    if (RE2::PartialMatch(Piece(line.text), none)) {
      out_.Current(kNvlink, line)->all_links_inactive = true;
      return true;
    }
    static const RE2& link = *new RE2(R"(^\s*Link (\d{1,3})(?:, ?| )?(?:Lane \d{1,2})?: ?(.*)$)");
    std::string rest;
    if (!RE2::PartialMatch(Piece(line.text), link, &index, &rest)) {
      static const RE2& capability = *new RE2(R"(^\s*Link (\d{1,3}), [A-Z].*: (?:true|false)\s*$)");
      return RE2::PartialMatch(Piece(line.text), capability);
    }
    if (index > kMostLink) return false;
    return LinkLine(index, Trim(rest), line);
  }

  bool LinkLine(int index, std::string_view rest, const TextLine& line) {
    static const RE2& speed = *new RE2(R"(^([\d.]+) ?GB/s)");
    static const RE2& counter = *new RE2(R"(^([A-Za-z][\w /-]*?)\s*(?:[:=]|- \d+:)\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)");
    static const RE2& bare = *new RE2(R"(^\d+$)");
    static const RE2& remote = *new RE2(R"(^(?:Remote Device )?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\b)");
    double value = 0;
    std::string name;
    using State = model::LinkReading::State;
    const auto state = [&](State s) {
      model::LinkReading* link = out_.Link(kNvlink, index, line);
      // A second state of the same link is another moment.
      if (link->state != State::kUnknown) {
        AgainFor(line);
        link = out_.Link(kNvlink, index, line);
      }
      link->state = s;
      link->where = line.where;
      link->quote = QuoteLine(line.text);
      return link;
    };
    if (RE2::PartialMatch(Piece(rest), speed, &value)) {
      state(State::kActive)->gbps = value;
    } else if (const std::string low = absl::AsciiStrToLower(Absl(rest)); Contains(low, "inactive") || low == "down") {
      state(State::kInactive);
    } else if (Contains(low, "disabled")) {
      state(State::kDisabled);
    } else if (RE2::PartialMatch(Piece(rest), counter, &name, &value)) {
      Counter(index, CounterName(name), value, line);
    } else if (RE2::PartialMatch(Piece(rest), bare)) {
      // `nvlink -ec`, one number a lane.
      if (Contains(line.text, "Lane") && absl::SimpleAtod(Absl(rest), &value)) Counter(index, "crc", value, line);
    } else if (RE2::PartialMatch(Piece(rest), remote, &name)) {
      out_.Link(kNvlink, index, line)->remote = name;
    } else if (!rest.empty() && !RE2::PartialMatch(Piece(rest), R"(^[A-Za-z][\w /-]*: *(?:N/A|\S*)$)")) {
      return false;
    }
    return true;
  }

  void Counter(int index, const std::string& name, double value, const TextLine& line) {
    if (name.empty()) return;
    model::LinkReading* link = out_.Link(kNvlink, index, line);
    // Lanes of one link follow each other and are added up.
    const bool lane = Contains(line.text, "Lane");
    if (link->counters.count(name) > 0 && !lane) {
      AgainFor(line);
      link = out_.Link(kNvlink, index, line);
    }
    link->counters[name] += value;
    if (!link->where.known()) {
      link->where = line.where;
      link->quote = QuoteLine(line.text);
    }
    if (value > 0 || link->counter_lines.count(name) == 0)
      link->counter_lines[name] = {std::string(), line.where, QuoteLine(line.text)};
  }

  // The same GPU once more: a later output without a heading of its own.
  void AgainFor(const TextLine& line) {
    const model::GpuReading last = *out_.Current(kNvlink, line);
    const std::string bus = last.bus_id ? model::BusIdText(*last.bus_id) : "";
    out_.Gpu(kNvlink, {last.index, bus, last.uuid, last.product}, line);
  }

  bool Query(const TextLine& line) {
    std::string_view text = line.text;
    if (Contains(text, "NVSMI LOG")) {
      out_.Begin(kQuery, line);
      out_.Snapshot(line)->whole = true;
      sections_.clear();
      query_ = true;
      return true;
    }
    static const RE2& header = *new RE2(R"(^\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$)");
    std::string bus;
    if (RE2::PartialMatch(Piece(text), header, &bus)) {
      sections_.clear();
      query_ = true;
      out_.Gpu(kQuery, {-1, bus, {}, {}}, line);
      return true;
    }
    const size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
    const size_t colon = text.find(" : ") != text.npos ? text.find(" : ") : text.find(':');
    if (colon == text.npos) return Section(indent, Trim(text));
    const std::string_view raw_key = Trim(text.substr(0, colon));
    std::string_view value = text.substr(colon);
    value = Trim(value.substr(value.find(':') + 1));
    if (raw_key.empty() || raw_key.size() > 60) return false;
    while (!sections_.empty() && sections_.back().first >= indent) sections_.pop_back();
    std::vector<std::string> path;
    for (const auto& [at, name] : sections_) path.push_back(name);
    // `grep -A` keeps the heading of the fabric or cuts it off; these two appear nowhere else beside such values.
    const std::string name = NormalKey(raw_key);
    if (path.empty() && (name == "state" || name == "status") && FabricValue(value)) path.push_back("fabric");
    if (path.empty() && (name == "driver_version" || name == "cuda_version") && out_.Snapshot(line) != nullptr) {
      (name == "driver_version" ? out_.Snapshot(line)->driver : out_.Snapshot(line)->cuda) = std::string(value.substr(0, 40));
      return true;
    }
    const std::string key = SmiKey(path, name);
    if (key.empty()) return !sections_.empty() || (query_ && indent > 0);
    if (value.empty() || value == "N/A" || value == "[N/A]") return true;
    if (value == "Unknown Error" || value == "GPU is lost" || value == "[GPU is lost]" || value == "[Unknown Error]") {
      if (!key.starts_with("fabric.")) out_.Current(kQuery, line)->lost = true;
    }
    Set(key, value, line);
    return true;
  }

  void Set(const std::string& key, std::string_view value, const TextLine& line) {
    out_.Put(kQuery, key, WithoutUnit(value), line);
    model::GpuReading* gpu = out_.Current(kQuery, line);
    if (key == "name") gpu->product = std::string(value.substr(0, 80));
    if (key == "uuid") gpu->uuid = std::string(value.substr(0, 80));
    if (key == "pci.bus_id" && !gpu->bus_id) gpu->bus_id = model::ParseBusId(value);
    // The minor number is nvidia-smi's index on all but odd machines; the bus id decides where both are told.
    int minor = -1;
    if (key == "minor" && gpu->index < 0 && absl::SimpleAtoi(Absl(value), &minor)) gpu->index = minor;
  }

  static bool FabricValue(std::string_view value) {
    return value == "Completed" || value == "In Progress" || value == "Not Started" || value == "Success" ||
           value == "Insufficient Resources";
  }

  bool Section(size_t indent, std::string_view name) {
    static const RE2& words = *new RE2(R"(^[A-Z][A-Za-z0-9 ./()&-]{1,50}$)");
    if (name == "--") {  // of grep -A
      sections_.clear();
      return true;
    }
    if (!RE2::FullMatch(Piece(name), words)) return false;
    const std::string normal = NormalKey(name);
    while (!sections_.empty() && sections_.back().first >= indent) sections_.pop_back();
    if (sections_.size() >= 8) return false;
    const bool known = normal == "fabric" || normal == "clocks_event_reasons" || normal == "clocks_throttle_reasons" ||
                       normal == "clocks" || normal == "max_clocks" || normal == "temperature" || normal == "ecc_errors" ||
                       normal == "remapped_rows" || normal == "retired_pages" || normal == "pci" || normal == "gpu_link_info" ||
                       normal == "pcie_generation" || normal == "link_width" || normal == "utilization" || normal == "ecc_mode" ||
                       normal == "volatile" || normal == "aggregate" || normal == "health" || normal == "fb_memory_usage" ||
                       normal == "gpu_power_readings" || normal == "power_readings" || normal == "clocks_event_reasons_counters";
    if (!known && indent == 0) return false;
    sections_.emplace_back(indent, normal);
    return known || query_;
  }

  bool Csv(const TextLine& line) {
    const std::string_view text = Trim(line.text);
    // "$ nvidia-smi --query-gpu=index,pstate --format=csv,noheader": only the command says what the rows hold.
    static const RE2& command = *new RE2(R"(\bnvidia-smi\b.*--query-gpu=([a-z0-9_.,]+).*\bnoheader\b)");
    if (std::string asked; RE2::PartialMatch(Piece(text), command, &asked)) {
      csv_.clear();
      for (const absl::string_view column : absl::StrSplit(asked, ',')) csv_.push_back(SmiColumnKey({column.data(), column.size()}));
      return true;
    }
    if (text.find(',') == text.npos) return false;
    static const RE2& header =
        *new RE2(R"(^[a-z][a-z0-9_.]*(?: \[[A-Za-z/%.]*\])?(?:, ?[a-z][a-z0-9_.]*(?: \[[A-Za-z/%.]*\])?)+$)");
    if (RE2::FullMatch(Piece(text), header)) {
      std::vector<std::string> columns;
      int known = 0;
      for (const absl::string_view column : absl::StrSplit(Absl(text), ',')) {
        columns.push_back(SmiColumnKey({column.data(), column.size()}));
        known += Contains(columns.back(), ".") || columns.back() == "index" || columns.back() == "name" ||
                 columns.back() == "uuid" || columns.back() == "pstate" || columns.back() == "timestamp";
      }
      if (known < 2 && !Contains(columns.back(), ".")) return false;
      csv_ = std::move(columns);
      return true;
    }
    if (csv_.empty()) return false;
    std::vector<std::string_view> cells;
    for (const absl::string_view cell : absl::StrSplit(Absl(text), ',')) cells.push_back(Trim({cell.data(), cell.size()}));
    if (cells.size() != csv_.size()) return false;
    CsvRow(cells, line);
    return true;
  }

  void CsvRow(const std::vector<std::string_view>& cells, const TextLine& line) {
    GpuId id;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (csv_[i] == "index") {
        if (!absl::SimpleAtoi(Absl(cells[i]), &id.index)) id.index = -1;
      } else if (csv_[i] == "name") {
        id.product = cells[i];
      } else if (csv_[i] == "uuid") {
        id.uuid = cells[i];
      } else if (csv_[i] == "pci.bus_id") {
        id.bus_id = cells[i];
      }
    }
    out_.Gpu(kCsv, id, line);
    const std::string who = id.index >= 0 ? "GPU " + std::to_string(id.index) : std::string(id.bus_id.substr(0, 20));
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string& key = csv_[i];
      const std::string_view value = cells[i];
      if (value.empty() || value == "[N/A]" || value == "N/A" || value == "[Not Supported]") continue;
      if (Contains(value, "GPU is lost") || Contains(value, "Unknown Error")) out_.Current(kCsv, line)->lost = true;
      const std::string quote = who + (who.empty() ? "" : ": ") + key + " " + std::string(value.substr(0, 80));
      if (key == "throttle_mask.active") {
        unsigned long long mask = 0;
        const absl::string_view hex = Absl(value);
        if (hex.substr(0, 2) == "0x" && absl::SimpleHexAtoi(hex, &mask)) {
          for (const std::string& reason : ThrottleReasons(mask))
            Once("throttle." + reason, "Active", line, ReasonQuote(who, reason, value));
        }
        continue;
      }
      Once(key, WithoutUnit(value), line, quote);
    }
  }
  // A column that was asked for twice is no second sample.
  void Once(const std::string& key, std::string_view value, const TextLine& line, const std::string& quote) {
    if (out_.Current(kCsv, line)->values.count(key) == 0) out_.Put(kCsv, key, value, line, quote);
  }

  const FileContext& context_;
  GpuSnapshots out_;
  SmiTable table_;
  bool compared_ = false;                                 // the heading announced a comparison of counters
  std::vector<std::pair<size_t, std::string>> sections_;  // of -q: indentation and heading
  std::vector<std::string> csv_;
  bool query_ = false;  // inside a whole `-q`, most of whose lines nobody needs
  int idle_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "nvidia-smi",
    {R"(\bnvidia-smi\b)", R"(^\s*(?:[\w.-]+: +)?GPU \d{1,4}: .*\(UUID: )", R"(^\s*(?:[\w.-]+: +)?Link \d{1,3}(?:, Lane \d+)?: )",
     R"(links are inActive)", R"(NVSMI LOG)", R"(^\s*GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s*$)",
     R"(^\s*Fabric\s*$)", R"(^\s*Clocks (?:Throttle|Event) Reasons\s*$)",
     R"(^\s*(?:ECC Errors|Remapped Rows|Link Width|PCIe Generation)\s*$)",
     R"(^\s*(?:HW (?:Thermal |Power Brake )?Slowdown|SW (?:Power Cap|Thermal Slowdown)|GPU Current Temp|CliqueId|ClusterUUID|GPU)"
     R"( Recovery Action)\s*:)",
     R"(^\s*(?:State|Status)\s+: (?:Completed|In Progress|Not Started|Success|Insufficient Resources))", R"(\| NVIDIA-SMI \d)",
     R"(^\|\s+\d{1,3}\s.*\|\s+[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s)",
     R"(^[a-z][a-z0-9_.]*(?: \[[A-Za-z/%.]*\])?(?:, ?[a-z][a-z0-9_.]*(?: \[[A-Za-z/%.]*\])?)+\s*$)",
     R"(^# ?gpu\s+(?:pwr|sm|pid|idx))", R"(^#+ .*\bGPU \d)", R"((?i)^[#=*-]+ *(?:before|after|pre|post|t ?[=+]? ?\d+)\b)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NvidiaSmi>(context); }});

}  // namespace
}  // namespace ringscope::ingest
