#include "analyzer/readers/gpu_snapshots.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <re2/re2.h>

#include <algorithm>

#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

// A sampling loop that ran for hours; the first and the last samples tell as much as all of them.
constexpr size_t kMostSnapshots = 4096;
constexpr size_t kMostGpus = 1024;  // of one snapshot

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

// "# n1147 GPU 5", "[root@node7 ~]$ nvidia-smi", "node7$ …", "=== node7 ===", "host: node7". Names without a digit are too
// easily words.
bool HostOf(std::string_view text, std::string* host) {
  static const RE2& at = *new RE2(R"(^[\[(]?\w[\w.-]*@([A-Za-z0-9][\w.-]*))");
  static const RE2& before_gpu = *new RE2(R"((?:^|[\s#=*\[(-])([A-Za-z][\w.-]*\d[\w.-]*)[\s:,/]+(?i:gpu) ?\d)");
  static const RE2& named = *new RE2(R"((?i:\b(?:host|node|hostname|server|machine|on)\b)[ =:]+([A-Za-z][\w.-]*\d[\w.-]*))");
  static const RE2& alone = *new RE2(R"(^[#=*\-\s>]+([A-Za-z][\w.-]*\d[\w.-]*)[\s:=*#-]*$)");
  static const RE2& prompt = *new RE2(R"(^([A-Za-z][\w.-]*\d[\w.-]*)[$#>:] )");
  static const RE2& watch = *new RE2(R"(^Every [\d.]+s: .*\s([A-Za-z0-9][\w.-]*): [A-Z][a-z]{2} )");
  for (const RE2* shape : {&watch, &at, &before_gpu, &named, &alone, &prompt}) {
    if (RE2::PartialMatch(Piece(text), *shape, host)) {
      return !RE2::FullMatch(*host, R"((?i)(?:gpu|t|step|rank|link|mlx5_?|cuda|[abhlpkv]|gb|rtx|gtx)[-_]?\d+\w*)");
    }
  }
  return false;
}

}  // namespace

std::string QuoteLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += byte < 0x80 ? c : '?';
    }
    if (out.size() >= 200) break;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string NormalKey(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      out += absl::ascii_tolower(static_cast<unsigned char>(c));
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

std::string MomentLabel(std::string_view text) {
  static const RE2& moment = *new RE2(
      R"((?i)(?:^|[^a-z0-9])(before|after|pre|post|baseline|during|start|end|first|second|earlier|later|t ?[=+]? ?\d+(?:\.\d+)?))"
      R"((?:[^a-z0-9]|$))");
  std::string label;
  if (!RE2::PartialMatch(Piece(text), moment, &label)) return "";
  absl::AsciiStrToLower(&label);
  label.erase(std::remove_if(label.begin(), label.end(), [](char c) { return c == ' ' || c == '=' || c == '+'; }), label.end());
  return label;
}

GpuSnapshots::GpuSnapshots(const FileContext& context) : context_(context) {
  std::string_view name = context.info().path;
  name = name.substr(name.rfind('/') + 1);
  static const RE2& gpu = *new RE2(R"((?i)gpu[-_.]?(\d{1,3})(?:[^0-9]|$))");
  int index = -1;
  if (RE2::PartialMatch(Piece(name), gpu, &index)) file_gpu_ = index;
  file_label_ = MomentLabel(name);
}

bool GpuSnapshots::Heading(const TextLine& line) {
  const std::string_view text = line.text;
  if (text.size() > 240) return false;
  static const RE2& command = *new RE2(R"(\b(?:nvidia-smi|dcgmi)\b)");
  static const RE2& marked = *new RE2(R"(^\s*(?:#|==|--|\*\*|>>|\+ ))");
  const bool is_command = RE2::PartialMatch(Piece(text), command);
  if (!is_command && !RE2::PartialMatch(Piece(text), marked)) return false;
  if (Contains(text, "NVSMI LOG")) return false;
  // A table's rule "+----+" or "-----" is no heading.
  if (std::none_of(text.begin(), text.end(), [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }))
    return false;
  std::string host;
  const bool has_host = HostOf(text, &host);
  const std::string label = MomentLabel(text);
  int gpu = -1;
  static const RE2& in_words = *new RE2(R"((?i)\bGPU ?#?(\d{1,3})\b)");
  static const RE2& option = *new RE2(R"(\s(?:-i|--id|--gpu|-g)[ =](\d{1,3})\b)");
  // "-g" is an option of many meanings; it names a GPU in DCGM's tools only.
  if (!RE2::PartialMatch(Piece(text), option, &gpu)) RE2::PartialMatch(Piece(text), in_words, &gpu);
  if (!is_command && !has_host && label.empty() && gpu < 0) return false;
  if (has_host) host_ = host;
  if (!label.empty()) label_ = label;
  gpu_ = gpu;
  if (line.time.known()) time_ = line.time;
  open_.clear();
  return true;
}

void GpuSnapshots::Begin(std::string_view tool, const TextLine& line) {
  Open& open = open_[SourceOf(line)];
  open.gpu = -1;
  auto& all = context_.evidence->hardware.snapshots;
  if (begun_ >= kMostSnapshots && open.snapshot >= 0) {
    // Reuse: the last sample stays the latest.
    if (begun_++ == kMostSnapshots)
      context_.Note("more than 4096 outputs of GPU tools in one file; of the rest only the last was kept");
    model::HardwareSnapshot& last = At(open.snapshot);
    last.gpus.clear();
    last.processes.clear();
    last.where = line.where;
    last.time = line.time;
    return;
  }
  ++begun_;
  model::HardwareSnapshot snapshot;
  snapshot.tool = std::string(tool);
  snapshot.by = line.by;
  if (!host_.empty()) snapshot.by.host = host_;
  snapshot.time = line.time.known() ? line.time : time_;
  snapshot.label = label_.empty() ? file_label_ : label_;
  snapshot.where = line.where;
  all.push_back(std::move(snapshot));
  open.snapshot = static_cast<int>(all.size()) - 1;
}

model::HardwareSnapshot* GpuSnapshots::Snapshot(const TextLine& line) {
  const auto open = open_.find(SourceOf(line));
  return open == open_.end() || open->second.snapshot < 0 ? nullptr : &At(open->second.snapshot);
}

model::GpuReading* GpuSnapshots::Gpu(std::string_view tool, const GpuId& id, const TextLine& line) {
  Open* open = &open_[SourceOf(line)];
  const std::optional<model::BusId> bus = id.bus_id.empty() ? std::nullopt : model::ParseBusId(id.bus_id);
  const auto same = [&](const model::GpuReading& g) {
    if (bus && g.bus_id) return *bus == *g.bus_id;
    if (!id.uuid.empty() && !g.uuid.empty() && id.index < 0) return id.uuid == g.uuid;
    return id.index >= 0 && g.index == id.index;
  };
  const bool fresh = open->snapshot < 0 || At(open->snapshot).tool != tool ||
                     std::any_of(At(open->snapshot).gpus.begin(), At(open->snapshot).gpus.end(), same) ||
                     At(open->snapshot).gpus.size() >= kMostGpus;
  if (fresh) {
    Begin(tool, line);
    open = &open_[SourceOf(line)];
  }
  model::GpuReading gpu;
  gpu.index = id.index;
  gpu.bus_id = bus;
  gpu.uuid = std::string(id.uuid);
  gpu.product = std::string(id.product);
  gpu.where = line.where;
  gpu.quote = QuoteLine(line.text);
  auto& gpus = At(open->snapshot).gpus;
  gpus.push_back(std::move(gpu));
  open->gpu = static_cast<int>(gpus.size()) - 1;
  return &gpus.back();
}

model::GpuReading* GpuSnapshots::Current(std::string_view tool, const TextLine& line) {
  const Open& open = open_[SourceOf(line)];
  if (open.snapshot >= 0 && open.gpu >= 0 && At(open.snapshot).tool == tool) return &At(open.snapshot).gpus[open.gpu];
  const int index = gpu_ >= 0 ? gpu_ : file_gpu_;
  return Gpu(tool, {index, {}, {}, {}}, line);
}

void GpuSnapshots::Put(std::string_view tool, const std::string& key, std::string_view value, const TextLine& line,
                       std::string quote) {
  model::GpuReading* gpu = Current(tool, line);
  if (gpu->values.count(key) > 0) {
    // The next GPU of `nvidia-smi -q | grep …`, or the next sample of a loop.
    const model::GpuReading last = *gpu;
    const std::string bus = last.bus_id ? model::BusIdText(*last.bus_id) : "";
    if (last.index < 0 && !last.bus_id) {
      gpu = Gpu(tool, {}, line);
    } else {
      gpu = Gpu(tool, {last.index, bus, last.uuid, last.product}, line);
    }
  }
  if (quote.empty()) quote = QuoteLine(line.text);
  gpu->values[key] = {std::string(value.substr(0, 200)), line.where, std::move(quote)};
}

model::LinkReading* GpuSnapshots::Link(std::string_view tool, int link, const TextLine& line) {
  model::GpuReading* gpu = Current(tool, line);
  for (model::LinkReading& known : gpu->links) {
    if (known.link == link) return &known;
  }
  model::LinkReading fresh;
  fresh.link = link;
  gpu->links.push_back(std::move(fresh));
  return &gpu->links.back();
}

}  // namespace ringscope::ingest
