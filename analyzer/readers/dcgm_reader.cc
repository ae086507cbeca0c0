// DCGM: `dcgmi nvlink -s`, the tables of `dcgmi diag` and `dcgmi health`, metrics as its exporter serves them, `dcgmi dmon`; and
// what `systemctl status nvidia-fabricmanager` says.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/model/views.h"
#include "analyzer/readers/gpu_snapshots.h"
#include "analyzer/readers/smi_keys.h"

namespace ringscope::ingest {
namespace {

constexpr char kNvlink[] = "dcgmi nvlink";
constexpr char kMetrics[] = "DCGM metrics";
constexpr char kDmon[] = "dcgmi dmon";
constexpr size_t kMostVerdicts = 4096;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Fields of DCGM (dcgm_fields.h) by the keys of nvidia-smi; per-link ones are links' counters.
struct Field {
  const char* key;
  const char* counter;  // of links, all of a GPU's links together
};
const std::map<std::string_view, Field>& Fields() {
  static const auto& fields = *new std::map<std::string_view, Field>{
      {"SM_CLOCK", {"clocks.sm", nullptr}},
      {"MEM_CLOCK", {"clocks.memory", nullptr}},
      {"GPU_TEMP", {"temperature.gpu", nullptr}},
      {"MEMORY_TEMP", {"temperature.memory", nullptr}},
      {"POWER_USAGE", {"power.draw", nullptr}},
      {"GPU_UTIL", {"utilization.gpu", nullptr}},
      {"PCIE_REPLAY_COUNTER", {"pcie.replay", nullptr}},
      {"PCIE_LINK_GEN", {"pcie.link.gen.current", nullptr}},
      {"PCIE_LINK_WIDTH", {"pcie.link.width.current", nullptr}},
      {"PCIE_MAX_LINK_GEN", {"pcie.link.gen.max", nullptr}},
      {"PCIE_MAX_LINK_WIDTH", {"pcie.link.width.max", nullptr}},
      {"XID_ERRORS", {"xid.last", nullptr}},
      {"POWER_VIOLATION", {"violation.power", nullptr}},
      {"THERMAL_VIOLATION", {"violation.thermal", nullptr}},
      {"ECC_DBE_VOL_TOTAL", {"ecc.errors.uncorrected.volatile.total", nullptr}},
      {"ECC_DBE_AGG_TOTAL", {"ecc.errors.uncorrected.aggregate.total", nullptr}},
      {"ECC_SBE_VOL_TOTAL", {"ecc.errors.corrected.volatile.total", nullptr}},
      {"ROW_REMAP_PENDING", {"remapped_rows.pending", nullptr}},
      {"ROW_REMAP_FAILURE", {"remapped_rows.failure", nullptr}},
      {"UNCORRECTABLE_REMAPPED_ROWS", {"remapped_rows.uncorrectable", nullptr}},
      {"CLOCK_THROTTLE_REASONS", {"throttle_mask.active", nullptr}},
      {"CLOCKS_EVENT_REASONS", {"throttle_mask.active", nullptr}},
      {"FABRIC_MANAGER_STATUS", {"fabric.code", nullptr}},
      {"NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", {nullptr, "crc"}},
      {"NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", {nullptr, "crc_data"}},
      {"NVLINK_REPLAY_ERROR_COUNT_TOTAL", {nullptr, "replay"}},
      {"NVLINK_RECOVERY_ERROR_COUNT_TOTAL", {nullptr, "recovery"}},
      {"NVLINK_COUNT_LINK_RECOVERY_EVENTS", {nullptr, "recovery"}},
      {"NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", {nullptr, "recovery_successful"}},
      {"NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", {nullptr, "recovery_failed"}},
      {"NVLINK_COUNT_RX_SYMBOL_ERRORS", {nullptr, "symbol_errors"}},
      {"NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", {nullptr, "link_integrity"}},
  };
  return fields;
}

class Dcgm : public LineReader {
 public:
  explicit Dcgm(const FileContext& context) : context_(context), out_(context) {}

  bool Line(const TextLine& line) override {
    if (Nvlink(line) || Metric(line) || Diag(line) || Service(line) || Dmon(line)) {
      idle_ = 0;
      return true;
    }
    return ++idle_ < 4;
  }

 private:
  // "gpuId 3:" and below it "U U D X _" (dcgmi nvlink -s, all releases).
  bool Nvlink(const TextLine& line) {
    const std::string_view text = Trim(line.text);
    static const RE2& gpu = *new RE2(R"(^gpuId (\d{1,4}):(.*)$)");
    static const RE2& other = *new RE2(R"(^(?:physicalId|NvSwitches|cpuId|Key:))");
    static const RE2& states = *new RE2(R"(^(?:[UDX_](?: +|$)){1,64}$)");
    std::string rest;
    int index = -1;
    if (RE2::FullMatch(Piece(text), gpu, &index, &rest)) {
      out_.Gpu(kNvlink, {index, {}, {}, {}}, line);
      gpu_open_ = true;
      const std::string_view states_here = Trim(rest);
      if (!states_here.empty()) States(states_here, line);
      return true;
    }
    if (RE2::PartialMatch(Piece(text), other)) {
      gpu_open_ = false;
      return true;
    }
    if (gpu_open_ && RE2::FullMatch(Piece(text), states)) {
      States(text, line);
      return true;
    }
    return Contains(text, "NvLink Link Status") || text == "GPUs:";
  }

  void States(std::string_view text, const TextLine& line) {
    int link = 0;
    for (const char c : text) {
      if (c == ' ') continue;
      using State = model::LinkReading::State;
      // "_": not supported, no link at all.
      if (c != '_') {
        model::LinkReading* reading = out_.Link(kNvlink, link, line);
        reading->state = c == 'U' ? State::kActive : c == 'D' ? State::kInactive : State::kDisabled;
        reading->where = line.where;
        model::GpuReading* gpu = out_.Current(kNvlink, line);
        reading->quote = "gpuId " + std::to_string(gpu->index) + ": " + QuoteLine(text);
      }
      ++link;
    }
  }

  // DCGM_FI_DEV_SM_CLOCK{gpu="3",UUID="…",pci_bus_id="…",modelName="…",Hostname="…"} 1980
  bool Metric(const TextLine& line) {
    static const RE2& sample = *new RE2(R"(^\s*DCGM_FI_(?:DEV|PROF)_(\w+)\{([^}]*)\} (\S+))");
    static const RE2& label = *new RE2(R"re((\w+)="([^"]*)")re");
    std::string name, labels, value;
    if (!RE2::PartialMatch(Piece(line.text), sample, &name, &labels, &value)) return Contains(line.text, "DCGM_FI_");
    const auto field = Fields().find(name);
    if (field == Fields().end()) return true;
    std::map<std::string, std::string> of;
    re2::StringPiece rest(labels);
    for (std::string key, text; RE2::FindAndConsume(&rest, label, &key, &text);) of[key] = text;
    TextLine here = line;
    if (const std::string& host = of["Hostname"]; !host.empty()) here.by.host = host;
    int index = -1;
    if (!absl::SimpleAtoi(of["gpu"], &index)) return true;
    // Samples are sorted by metric: GPUs come again and again and belong to one snapshot until a metric repeats.
    model::GpuReading* gpu = Find(index, here);
    double number = 0;
    if (!absl::SimpleAtod(value, &number)) return true;
    const std::string who = "GPU " + std::to_string(index) + ": DCGM_FI_DEV_" + name + " " + value;
    if (field->second.counter != nullptr) {
      LinkCounter(gpu, of["link"], field->second.counter, number, here, who);
      return true;
    }
    if (std::string_view(field->second.key) == "throttle_mask.active") {
      for (const std::string& reason :
           ThrottleReasons(number >= 0 && number < 1e15 ? static_cast<unsigned long long>(number) : 0))
        gpu->values["throttle." + reason] = {"Active", line.where, ReasonQuote("GPU " + std::to_string(index), reason, value)};
      return true;
    }
    if (gpu->values.count(field->second.key) > 0) {
      metrics_.clear();
      gpu = Find(index, here);
    }
    std::string kept = value;
    // Volts and watts with decimals, pending as 0 or 1.
    if (std::string_view(field->second.key).starts_with("remapped_rows.pending") ||
        std::string_view(field->second.key).starts_with("remapped_rows.failure"))
      kept = number > 0 ? "Yes" : "No";
    gpu->values[field->second.key] = {kept, line.where, who};
    if (gpu->product.empty()) gpu->product = of["modelName"];
    if (gpu->uuid.empty()) gpu->uuid = of["UUID"];
    if (!gpu->bus_id) gpu->bus_id = model::ParseBusId(of["pci_bus_id"]);
    return true;
  }

  model::GpuReading* Find(int index, const TextLine& line) {
    auto& all = context_.evidence->hardware.snapshots;
    const auto key = std::make_pair(line.by.host, index);
    if (const auto known = metrics_.find(key); known != metrics_.end())
      return &all[known->second.first].gpus[known->second.second];
    out_.Gpu(kMetrics, {index, {}, {}, {}}, line);
    model::HardwareSnapshot* snapshot = out_.Snapshot(line);
    metrics_[key] = {snapshot - all.data(), snapshot->gpus.size() - 1};
    return &snapshot->gpus.back();
  }

  static void LinkCounter(model::GpuReading* gpu, const std::string& link_label, const char* counter, double value,
                          const TextLine& line, const std::string& quote) {
    // Without a label the count is of all links of the GPU together: link -1.
    int link = -1;
    if (!link_label.empty() && !absl::SimpleAtoi(link_label, &link)) link = -1;
    model::LinkReading* reading = nullptr;
    for (model::LinkReading& l : gpu->links) {
      if (l.link == link) reading = &l;
    }
    if (reading == nullptr) {
      gpu->links.emplace_back();
      reading = &gpu->links.back();
      reading->link = link;
      reading->where = line.where;
      reading->quote = quote;
    }
    reading->counters[counter] = value;
    reading->counter_lines[counter] = {std::string(), line.where, quote};
  }

  // "| PCIe                      | Fail - GPU 3                                   |"
  bool Diag(const TextLine& line) {
    static const RE2& row =
        *new RE2(R"(^\|(?:\s*->)?\s*([A-Za-z][\w /()-]*?)\s*\|\s*(Fail|Pass|Warn(?:ing)?|Skip|Failure|Healthy)\b(.*?)\s*\|\s*$)");
    static const RE2& more = *new RE2(R"(^\|\s*\|\s*(\S.*?)\s*\|\s*$)");
    static const RE2& gpus = *new RE2(R"((?i)GPUs?:? ?([\d, ]+))");
    auto& verdicts = context_.evidence->hardware.verdicts;
    const std::string_view text = Trim(line.text);
    model::ToolVerdict verdict;
    std::string rest;
    if (RE2::FullMatch(Piece(text), row, &verdict.test, &verdict.result, &rest)) {
      if (verdicts.size() >= kMostVerdicts) return true;
      verdict.tool = verdict.result == "Failure" || verdict.result == "Healthy" ? "dcgmi health" : "dcgmi diag";
      verdict.detail = QuoteLine(rest);
      verdict.where = line.where;
      verdict.by = line.by;
      verdict.quote = QuoteLine(text);
      std::string list;
      if (RE2::PartialMatch(rest, gpus, &list)) {
        for (const absl::string_view number : absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty())) {
          int gpu = 0;
          if (absl::SimpleAtoi(number, &gpu) && verdict.gpus.size() < 64) verdict.gpus.push_back(gpu);
        }
      }
      verdicts.push_back(std::move(verdict));
      diag_open_ = true;
      return true;
    }
    if (diag_open_ && !verdicts.empty() && RE2::FullMatch(Piece(text), more, &rest)) {
      if (verdicts.back().detail.size() < 400)
        verdicts.back().detail += (verdicts.back().detail.empty() ? "" : " ") + QuoteLine(rest);
      return true;
    }
    if (text.starts_with("+-") || text.starts_with("|--") || text.starts_with("|==")) return true;
    diag_open_ = false;
    return Contains(text, "Overall Health");
  }

  // "× nvidia-fabricmanager.service - NVIDIA fabric manager service" … "     Active: failed (Result: exit-code) since …"
  bool Service(const TextLine& line) {
    static const RE2& unit = *new RE2(R"(\bnvidia-(fabricmanager|imex)(?:\.service)? - )");
    static const RE2& active = *new RE2(R"(^\s*Active: (\S+ ?(?:\([^)]*\))?)(.*)$)");
    std::string name, rest;
    if (!RE2::PartialMatch(Piece(line.text), active, &name, &rest)) {
      if (!RE2::PartialMatch(Piece(line.text), unit, &name)) return false;
      service_ = "nvidia-" + name;
      return true;
    }
    if (service_.empty() || context_.evidence->hardware.verdicts.size() >= kMostVerdicts) return false;
    model::ToolVerdict verdict;
    verdict.tool = "systemctl";
    verdict.test = service_;
    verdict.result = name;
    verdict.detail = QuoteLine(rest);
    verdict.where = line.where;
    verdict.by = line.by;
    verdict.quote = service_ + ": " + QuoteLine(line.text);
    context_.evidence->hardware.verdicts.push_back(std::move(verdict));
    service_.clear();
    return true;
  }

  // "#Entity   SMCLK   TMPTR …", "GPU 0    1980   45 …"
  bool Dmon(const TextLine& line) {
    const std::string_view text = Trim(line.text);
    static const RE2& head = *new RE2(R"(^#\s*Entity\s+\S)");
    static const RE2& row = *new RE2(R"(^GPU (\d{1,4})\s+(.*)$)");
    if (RE2::PartialMatch(Piece(text), head)) {
      columns_.clear();
      for (const absl::string_view word : absl::StrSplit(Absl(text.substr(1)), absl::ByAnyChar(" \t"), absl::SkipEmpty()))
        columns_.push_back(std::string(word));
      return true;
    }
    if (columns_.empty()) return false;
    int index = -1;
    std::string rest;
    if (!RE2::FullMatch(Piece(text), row, &index, &rest)) return text == "ID";
    static const auto& keys = *new std::map<std::string, std::string>{{"SMCLK", "clocks.sm"},
                                                                      {"MMCLK", "clocks.memory"},
                                                                      {"TMPTR", "temperature.gpu"},
                                                                      {"POWER", "power.draw"},
                                                                      {"GPUTL", "utilization.gpu"},
                                                                      {"PCILG", "pcie.link.gen.current"},
                                                                      {"PCILW", "pcie.link.width.current"},
                                                                      {"PCIMG", "pcie.link.gen.max"},
                                                                      {"PCIMW", "pcie.link.width.max"},
                                                                      {"DVCCTR", "throttle_mask.active"},
                                                                      {"PVIOL", "violation.power"},
                                                                      {"TVIOL", "violation.thermal"},
                                                                      {"XIDER", "xid.last"}};
    out_.Gpu(kDmon, {index, {}, {}, {}}, line);
    size_t column = 1;
    for (const absl::string_view cell : absl::StrSplit(rest, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
      if (column >= columns_.size()) break;
      const auto key = keys.find(columns_[column++]);
      double number = 0;
      if (key == keys.end() || !absl::SimpleAtod(cell, &number)) continue;
      model::GpuReading* gpu = out_.Current(kDmon, line);
      const std::string quote = "GPU " + std::to_string(index) + ": " + key->second + " " + std::string(cell);
      if (key->second == "throttle_mask.active") {
        for (const std::string& reason :
             ThrottleReasons(number >= 0 && number < 1e15 ? static_cast<unsigned long long>(number) : 0))
          gpu->values["throttle." + reason] = {"Active", line.where,
                                               ReasonQuote("GPU " + std::to_string(index), reason, {cell.data(), cell.size()})};
      } else {
        gpu->values[key->second] = {std::string(cell.substr(0, 20)), line.where, quote};
      }
    }
    return true;
  }

  const FileContext& context_;
  GpuSnapshots out_;
  bool gpu_open_ = false, diag_open_ = false;
  std::string service_;
  std::map<std::pair<std::string, int>, std::pair<ptrdiff_t, size_t>> metrics_;
  std::vector<std::string> columns_;
  int idle_ = 0;
};

const RegisterReader kRegister(LineReaderType{
    "DCGM",
    {R"(\bdcgmi (?:nvlink|diag|health|dmon)\b)", R"(NvLink Link Status)", R"(^\s*gpuId \d+:)",
     R"(^\s*DCGM_FI_(?:DEV|PROF)_\w+\{)",
     R"(^\|(?:\s*->)?\s*[A-Za-z][\w /()-]*?\s*\|\s*(?:Fail|Pass|Warn|Skip|Failure|Healthy)\b)", R"(^\|\s*Overall Health)",
     R"(\bnvidia-(?:fabricmanager|imex)(?:\.service)? - )", R"(^#\s*Entity\s+\S)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<Dcgm>(context); }});

}  // namespace
}  // namespace ringscope::ingest
