// `nvidia-smi -q -x`.
#include <re2/re2.h>

#include <algorithm>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "analyzer/readers/gpu_snapshots.h"
#include "analyzer/readers/smi_keys.h"

namespace ringscope::ingest {
namespace {

constexpr char kTool[] = "nvidia-smi -q";
constexpr int kDeepest = 16;  // the real ones have five levels

bool LooksLikeSmiXml(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return start != head.npos && head[start] == '<' && head.substr(0, 2048).find("<nvidia_smi_log") != head.npos;
}

// Lines of a document by offset.
class Lines {
 public:
  explicit Lines(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == '\n') ends_.push_back(i);
    }
  }
  uint32_t At(ptrdiff_t offset) const {
    if (offset < 0) return 0;
    return static_cast<uint32_t>(std::lower_bound(ends_.begin(), ends_.end(), static_cast<size_t>(offset)) - ends_.begin()) + 1;
  }

 private:
  std::vector<size_t> ends_;
};

class SmiXml {
 public:
  SmiXml(std::string_view bytes, const FileContext& context) : context_(context), lines_(bytes), out_(context) {}

  void Read(const pugi::xml_node& log) {
    TextLine line = LineOf(log, "");
    out_.Begin(kTool, line);
    model::HardwareSnapshot* snapshot = out_.Snapshot(line);
    snapshot->whole = true;
    snapshot->driver = std::string(log.child("driver_version").text().get()).substr(0, 40);
    snapshot->cuda = std::string(log.child("cuda_version").text().get()).substr(0, 40);
    for (const pugi::xml_node& gpu : log.children("gpu")) {
      const std::string name = gpu.child("product_name").text().get(), uuid = gpu.child("uuid").text().get();
      const std::string quote = "GPU " + std::string(gpu.attribute("id").value());
      // nvidia-smi -x gives no index; the minor number stands for it.
      const char* minor = gpu.child("minor_number").text().get();
      const bool number = *minor >= '0' && *minor <= '9';
      const std::string id = gpu.attribute("id").value();
      out_.Gpu(kTool, {number ? gpu.child("minor_number").text().as_int(-1) : -1, id, uuid, name}, LineOf(gpu, quote));
      std::vector<std::string> path;
      Leaves(gpu, &path, 0);
      for (const pugi::xml_node& info : gpu.child("processes").children("process_info")) {
        model::HardwareSnapshot* open = out_.Snapshot(line);
        open->processes.push_back({open->gpus.back().index, info.child("pid").text().as_llong(-1),
                                   std::string(info.child("process_name").text().get()).substr(0, 100), LineOf(info, "").where});
      }
    }
  }

 private:
  TextLine LineOf(const pugi::xml_node& node, std::string_view text) {
    TextLine line;
    line.text = line.quote = line.raw = text;
    line.where = {context_.file, lines_.At(node.offset_debug())};
    line.by.host = context_.info().host;
    line.by.rank = context_.info().rank;
    return line;
  }

  void Leaves(const pugi::xml_node& node, std::vector<std::string>* path, int depth) {
    if (depth > kDeepest) return;
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string name = NormalKey(child.name());
      if (name == "processes" || name == "accounted_processes") continue;
      if (std::any_of(child.begin(), child.end(), [](const pugi::xml_node& n) { return n.type() == pugi::node_element; })) {
        path->push_back(name);
        Leaves(child, path, depth + 1);
        path->pop_back();
        continue;
      }
      const std::string key = SmiKey(*path, name), value = child.text().get();
      if (key.empty() || value.empty() || value == "N/A") continue;
      const std::string quote = QuoteLine(std::string(child.name()) + ": " + value);
      const TextLine line = LineOf(child, quote);
      model::GpuReading* gpu = out_.Current(kTool, line);
      if (value == "GPU is lost" || value == "Unknown Error") gpu->lost |= !key.starts_with("fabric.");
      // The XML writes some values twice, under headings that mean the same.
      if (gpu->values.count(key) == 0) out_.Put(kTool, key, WithoutUnit(value), line, quote);
    }
  }

  const FileContext& context_;
  Lines lines_;
  GpuSnapshots out_;
};

absl::Status ReadSmiXml(std::string_view bytes, const FileContext& context) {
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(bytes.data(), bytes.size());
  SmiXml reader(bytes, context);
  // What stands before the damage is read all the same.
  for (const pugi::xml_node& log : document.children("nvidia_smi_log")) reader.Read(log);
  if (!result) {
    return absl::InvalidArgumentError("nvidia-smi's XML is damaged at byte " + std::to_string(result.offset) + " (" +
                                      result.description() + "); collect it again with nvidia-smi -q -x");
  }
  return absl::OkStatus();
}

const RegisterReader kRegister(DocumentReaderType{"nvidia-smi -q -x", LooksLikeSmiXml, uint64_t{64} << 20, ReadSmiXml});

}  // namespace
}  // namespace ringscope::ingest
