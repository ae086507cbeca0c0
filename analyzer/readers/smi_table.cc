#include "analyzer/readers/smi_table.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <re2/re2.h>

#include <map>

#include "analyzer/model/views.h"
#include "analyzer/readers/smi_keys.h"

namespace ringscope::ingest {
namespace {

constexpr char kTable[] = "nvidia-smi";
constexpr char kDmon[] = "nvidia-smi dmon";
constexpr size_t kMostProcesses = 4096;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool SmiTable::Line(const TextLine& line) {
  const std::string_view text = Trim(line.text);
  if (Banner(line) || Dmon(line)) return true;
  if (text.starts_with("+-") || text.starts_with("|==") || text.starts_with("|--") || text.starts_with("+=")) return true;
  if (!text.starts_with("|") || !text.ends_with("|") || text.size() < 20) return false;
  std::vector<std::string_view> cells;
  for (const absl::string_view cell : absl::StrSplit(Absl(text.substr(1, text.size() - 2)), '|'))
    cells.push_back({cell.data(), cell.size()});
  if (cells.size() == 1) return ProcessRow(Trim(cells[0]), line);
  if (cells.size() != 3) return false;
  return GpuRow(cells, line) || ValueRow(cells, line) || out_->Snapshot(line) != nullptr;
}

bool SmiTable::Banner(const TextLine& line) {
  static const RE2& banner =
      *new RE2(R"(NVIDIA-SMI [\w.]+\s+(?:KMD Version: \S+\s+)?(?:Driver Version: ?([\w./]+))?(?:\s+CUDA Version: ?([\w./]+))?)");
  std::string driver, cuda;
  if (!Contains(line.text, "| NVIDIA-SMI ") || !RE2::PartialMatch(Piece(line.text), banner, &driver, &cuda)) return false;
  out_->Begin(kTable, line);
  model::HardwareSnapshot* snapshot = out_->Snapshot(line);
  snapshot->driver = driver;
  snapshot->cuda = cuda;
  snapshot->whole = true;
  row_open_ = processes_ = false;
  dmon_.clear();
  return true;
}

// "|   0  NVIDIA H100 80GB HBM3    On  | 00000000:1B:00.0 Off |                    0 |"
bool SmiTable::GpuRow(const std::vector<std::string_view>& cells, const TextLine& line) {
  static const RE2& left = *new RE2(R"(^\s*(\d{1,3})\s+(\S.*?)\s+(On|Off|N/A|ERR!|WDDM|TCC)?\s*$)");
  static const RE2& middle = *new RE2(R"(^\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s+(\S+)\s*$)");
  int index = -1;
  std::string product, persistence, bus, display;
  if (!RE2::FullMatch(Piece(cells[1]), middle, &bus, &display)) return false;
  if (!RE2::FullMatch(Piece(cells[0]), left, &index, &product, &persistence)) return false;
  const bool error = Contains(product, "ERR!");
  model::GpuReading* gpu = out_->Gpu(kTable, {index, bus, {}, error ? std::string_view() : std::string_view(product)}, line);
  // "ERR!" in the ECC column alone is printed while the counters cannot be read, not only for a lost GPU.
  if (error) gpu->lost = true;
  if (!persistence.empty()) out_->Put(kTable, "persistence_mode", persistence, line);
  const std::string_view ecc = Trim(cells[2]);
  if (!ecc.empty() && ecc != "N/A" && ecc != "Off") out_->Put(kTable, "ecc.errors.uncorrected.volatile.total", ecc, line);
  row_open_ = true;
  return true;
}

// "| N/A   45C    P0    62W / 300W |      0MiB / 16160MiB |      0%      Default |"
bool SmiTable::ValueRow(const std::vector<std::string_view>& cells, const TextLine& line) {
  if (!row_open_) return false;
  row_open_ = false;
  static const RE2& left = *new RE2(R"(^\s*(\S+(?: ?%)?)\s+(\S+?)C?\s+(\S+)\s+(\S+?)W?\s*/\s*(\S+?)W?\s*$)");
  static const RE2& memory = *new RE2(R"(^\s*(\d+)MiB\s*/\s*(\d+)MiB)");
  static const RE2& use = *new RE2(R"(^\s*(\d+)%)");
  std::string fan, temperature, pstate, power, limit, used, total;
  // "| ERR! ERR! ERR! ERR! / ERR! |   GPU is lost |", "| Unknown Error": all of it, not one sensor.
  int errors = 0;
  for (size_t at = cells[0].find("ERR!"); at != cells[0].npos; at = cells[0].find("ERR!", at + 4)) ++errors;
  if (errors >= 3 || Contains(cells[0], "GPU is lost") || Contains(cells[1], "GPU is lost") ||
      Contains(cells[0], "Unknown Error") || Contains(cells[1], "Unknown Error"))
    out_->Current(kTable, line)->lost = true;
  if (RE2::FullMatch(Piece(cells[0]), left, &fan, &temperature, &pstate, &power, &limit)) {
    const auto number = [&](const char* key, const std::string& value) {
      double parsed = 0;
      if (absl::SimpleAtod(value, &parsed)) out_->Put(kTable, key, value, line);
    };
    number("temperature.gpu", temperature);
    number("power.draw", power);
    number("power.limit", limit);
    if (pstate.starts_with("P")) out_->Put(kTable, "pstate", pstate, line);
    if (Contains(power, "ERR!")) out_->Put(kTable, "power.draw", "ERR!", line);
  }
  if (RE2::PartialMatch(Piece(cells[1]), memory, &used, &total)) {
    out_->Put(kTable, "memory.used", used, line);
    out_->Put(kTable, "memory.total", total, line);
  }
  if (RE2::PartialMatch(Piece(cells[2]), use, &used)) out_->Put(kTable, "utilization.gpu", used, line);
  return true;
}

// "|    0   N/A  N/A     12345      C   python3    1234MiB |"
bool SmiTable::ProcessRow(std::string_view cell, const TextLine& line) {
  if (cell.starts_with("Processes:")) processes_ = true;
  model::HardwareSnapshot* snapshot = out_->Snapshot(line);
  if (!processes_ || snapshot == nullptr) return snapshot != nullptr;
  static const RE2& row = *new RE2(R"(^(\d{1,3})\s+(?:\S+\s+\S+\s+)?(\d+)\s+(?:C|G|C\+G|M\+C|M)\s+(\S.*?)\s+\S+$)");
  model::GpuProcess process;
  if (RE2::FullMatch(Piece(cell), row, &process.gpu, &process.pid, &process.name) &&
      snapshot->processes.size() < kMostProcesses) {
    process.where = line.where;
    process.name.resize(std::min<size_t>(process.name.size(), 100));
    snapshot->processes.push_back(std::move(process));
  }
  return true;
}

// "# gpu  pwr gtemp mtemp sm mem …" / "# Idx W C C % %" / "    0  72 43 …"; a loop repeats the head.
bool SmiTable::Dmon(const TextLine& line) {
  const std::string_view text = Trim(line.text);
  static const RE2& head = *new RE2(R"(^#\s*(?:Date +)?(?:Time +)?gpu\s+[a-z])");
  if (RE2::PartialMatch(Piece(text), head)) {
    dmon_.clear();
    for (const absl::string_view word : absl::StrSplit(Absl(text.substr(1)), absl::ByAnyChar(" \t"), absl::SkipEmpty()))
      dmon_.push_back(absl::AsciiStrToLower(word));
    return true;
  }
  if (dmon_.empty()) return false;
  static const RE2& units = *new RE2(R"(^#\s*(?:YYYYMMDD|HH:MM:SS|Idx))");
  if (RE2::PartialMatch(Piece(text), units)) return true;
  std::vector<std::string_view> cells;
  for (const absl::string_view cell : absl::StrSplit(Absl(text), absl::ByAnyChar(" \t"), absl::SkipEmpty()))
    cells.push_back({cell.data(), cell.size()});
  // The line's own time stamp may have been taken off as a wrapper.
  size_t skip = 0;
  while (skip < dmon_.size() && dmon_[skip] != "gpu") ++skip;
  if (skip == dmon_.size()) return false;
  const size_t columns = dmon_.size() - skip;
  if (cells.size() < columns) return false;
  const size_t first = cells.size() - columns;
  int index = -1;
  if (first > skip || !absl::SimpleAtoi(Absl(cells[first]), &index) || index < 0) return false;
  static const auto& keys = *new std::map<std::string, std::string>{{"pwr", "power.draw"},
                                                                    {"gtemp", "temperature.gpu"},
                                                                    {"temp", "temperature.gpu"},
                                                                    {"sm", "utilization.gpu"},
                                                                    {"mclk", "clocks.memory"},
                                                                    {"pclk", "clocks.sm"},
                                                                    {"pviol", "violation.power"},
                                                                    {"tviol", "violation.thermal"},
                                                                    {"sbecc", "ecc.errors.corrected.volatile.total"},
                                                                    {"dbecc", "ecc.errors.uncorrected.volatile.total"},
                                                                    {"pci", "pcie.replay"}};
  out_->Gpu(kDmon, {index, {}, {}, {}}, line);
  for (size_t i = 1; i < columns; ++i) {
    const auto key = keys.find(dmon_[skip + i]);
    const std::string_view value = cells[first + i];
    if (key == keys.end() || value == "-") continue;
    if (out_->Current(kDmon, line)->values.count(key->second) > 0) continue;
    out_->Put(kDmon, key->second, value, line,
              "GPU " + std::to_string(index) + ": " + key->second + " " + std::string(value.substr(0, 20)));
  }
  return true;
}

}  // namespace ringscope::ingest
