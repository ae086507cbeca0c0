// NCCL's own files: the topology (<system>, NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE) and the search's result (<graphs>,
// NCCL_GRAPH_DUMP_FILE). src/graph/xml.h; version 1 of both since 2.6.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

constexpr int kMostDepth = 64;  // a PCI tree has about six levels
constexpr size_t kMostDevices = 65536;

std::string_view Attribute(const pugi::xml_node& node, const char* name) { return node.attribute(name).value(); }

// Decimal or 0x…; -1 when absent or damaged.
int64_t Number(std::string_view text) {
  int64_t n = 0;
  if (text.starts_with("0x")) return text.size() < 18 && absl::SimpleHexAtoi(Absl(text), &n) ? n : -1;
  return absl::SimpleAtoi(Absl(text), &n) ? n : -1;
}
int Int(std::string_view text) {
  const int64_t n = Number(text);
  return n < 0 || n > INT32_MAX ? -1 : static_cast<int>(n);
}
double Double(std::string_view text) {
  double d = 0;
  return text.size() < 64 && absl::SimpleAtod(Absl(text), &d) && d >= 0 && d < 1e9 ? d : 0;
}

class Lines {
 public:
  explicit Lines(std::string_view bytes) {
    for (size_t at = bytes.find('\n'); at != bytes.npos; at = bytes.find('\n', at + 1)) ends_.push_back(at);
  }
  uint32_t Of(const pugi::xml_node& node) const {
    const ptrdiff_t offset = node.offset_debug();
    if (offset < 0) return 0;
    return static_cast<uint32_t>(std::lower_bound(ends_.begin(), ends_.end(), static_cast<size_t>(offset)) - ends_.begin()) + 1;
  }

 private:
  std::vector<size_t> ends_;
};

class TopologyWalk {
 public:
  TopologyWalk(const FileContext& context, const Lines& lines, model::TopologySystem* system)
      : context_(context), lines_(lines), system_(*system) {}

  void Cpu(const pugi::xml_node& cpu) {
    numa_ = Int(Attribute(cpu, "numaid"));
    for (const pugi::xml_node& child : cpu.children()) Device(child, 0, 0);
  }

 private:
  model::Where WhereOf(const pugi::xml_node& node) const { return {context_.file, lines_.Of(node)}; }

  void Device(const pugi::xml_node& node, model::BusId parent, int depth) {
    if (depth > kMostDepth || system_.gpus.size() + system_.nics.size() > kMostDevices) {
      if (!too_much_)
        context_.Note(absl::StrCat("line ", lines_.Of(node), ": deeper or larger than a machine is; the rest left out"));
      too_much_ = true;
      return;
    }
    const std::string_view name = node.name();
    if (name == "pci") {
      const auto bus = model::ParseBusId(Attribute(node, "busid"));
      const pugi::xml_node gpu = node.child("gpu");
      if (gpu && bus) {
        Gpu(node, gpu, *bus, parent);
        return;
      }
      for (const pugi::xml_node& child : node.children()) {
        // A NIC's own PCI function is no switch above it.
        if (std::string_view(child.name()) == "nic")
          Nic(child, bus.value_or(0), parent, depth + 1);
        else
          Device(child, bus.value_or(parent), depth + 1);
      }
    } else if (name == "nic") {
      Nic(node, 0, parent, depth + 1);
    }
  }

  void Gpu(const pugi::xml_node& pci, const pugi::xml_node& node, model::BusId bus, model::BusId parent) {
    model::TopologyGpu gpu;
    gpu.node = bus;
    gpu.bus_id = bus;
    gpu.parent = parent;
    gpu.numa = numa_;
    gpu.device = Int(Attribute(node, "dev"));
    gpu.rank = Int(Attribute(node, "rank"));
    gpu.sm = std::max(0, Int(Attribute(node, "sm")));
    gpu.gdr = Int(Attribute(node, "gdr"));
    const int64_t vendor = Number(Attribute(pci, "vendor")), device = Number(Attribute(pci, "device"));
    if (vendor >= 0 && vendor <= 0xffff && device >= 0 && device <= 0xffff)
      gpu.product = static_cast<uint32_t>(vendor << 16 | device);
    gpu.pci_link =
        absl::StrCat(Absl(Attribute(pci, "link_speed").substr(0, 24)), " x", Absl(Attribute(pci, "link_width").substr(0, 4)));
    gpu.where = WhereOf(node);
    for (const pugi::xml_node& link : node.children("nvlink")) {
      const int count = Int(Attribute(link, "count"));
      if (count <= 0 || count > 64 || gpu.links.size() >= 64) continue;
      model::TopologyLink found;
      found.lanes = count;
      found.where = WhereOf(link);
      // PCI class 0x0680: an NVSwitch; 0x0604: NPU bridge of POWER; 0x0302, 0x0300: a GPU.
      const std::string_view type = Attribute(link, "tclass");
      found.nvswitch = type.starts_with("0x0680");
      if (type.starts_with("0x0604")) continue;
      if (!found.nvswitch) {
        const auto peer = model::ParseBusId(Attribute(link, "target"));
        if (!peer) continue;
        found.peer = *peer;
      }
      system_.nvswitch |= found.nvswitch;
      gpu.links.push_back(found);
    }
    system_.gpus.push_back(std::move(gpu));
  }

  void Nic(const pugi::xml_node& node, model::BusId bus, model::BusId parent, int depth) {
    if (depth > kMostDepth) return;
    for (const pugi::xml_node& net : node.children("net")) {
      if (system_.nics.size() > kMostDevices) return;
      model::TopologyNic nic;
      nic.name = std::string(Attribute(net, "name").substr(0, 64));
      nic.id = static_cast<uint64_t>(std::max<int64_t>(0, Number(Attribute(net, "dev"))));
      nic.bus_id = bus;
      nic.parent = parent;
      nic.numa = numa_;
      nic.gdr = Int(Attribute(net, "gdr"));
      nic.bw = Double(Attribute(net, "speed")) / 8000;  // Mb/s
      nic.where = WhereOf(net);
      system_.nics.push_back(std::move(nic));
    }
  }

  const FileContext& context_;
  const Lines& lines_;
  model::TopologySystem& system_;
  int numa_ = -1;
  bool too_much_ = false;
};

void ReadGraphs(const pugi::xml_node& root, const Lines& lines, const FileContext& context) {
  for (const pugi::xml_node& node : root.children("graph")) {
    if (context.evidence->plan.graphs.size() > kMostDevices) return;
    model::GraphFile graph;
    graph.id = Int(Attribute(node, "id"));
    graph.where = {context.file, lines.Of(node)};
    model::PlanPattern& p = graph.pattern;
    p.pattern = Int(Attribute(node, "pattern"));
    p.cross_nic = std::max(0, Int(Attribute(node, "crossnic")));
    p.channels = std::max(0, Int(Attribute(node, "nchannels")));
    p.bw_intra = Double(Attribute(node, "speedintra"));
    p.bw_inter = Double(Attribute(node, "speedinter"));
    p.intra = model::ParsePathType(Attribute(node, "typeintra"));
    p.inter = model::ParsePathType(Attribute(node, "typeinter"));
    p.where = graph.where;
    for (const pugi::xml_node& channel : node.children("channel")) {
      std::vector<int>& ranks = graph.channels.emplace_back();
      for (const pugi::xml_node& gpu : channel.children("gpu")) {
        graph.by_device |= !gpu.attribute("rank");
        ranks.push_back(Int(Attribute(gpu, gpu.attribute("rank") ? "rank" : "dev")));
      }
    }
    context.evidence->plan.graphs.push_back(std::move(graph));
  }
}

absl::Status Read(std::string_view bytes, const FileContext& context) {
  pugi::xml_document document;
  // Neither document types nor entities of their own are expanded: parse_default leaves them out.
  const pugi::xml_parse_result result = document.load_buffer(bytes.data(), bytes.size(), pugi::parse_default, pugi::encoding_utf8);
  const Lines lines(bytes);
  if (!result) {
    context.Note(absl::StrCat("byte ", result.offset, ": ", result.description(),
                              "; what stands before it was read. Write the file again",
                              " (NCCL_TOPO_DUMP_FILE, NCCL_GRAPH_DUMP_FILE)"));
  }
  if (const pugi::xml_node root = document.child("system")) {
    model::TopologySystem system;
    system.from_file = true;
    system.where = {context.file, lines.Of(root)};
    system.by.host = context.info().host;
    TopologyWalk walk(context, lines, &system);
    for (const pugi::xml_node& cpu : root.children("cpu")) walk.Cpu(cpu);
    context.evidence->plan.systems.push_back(std::move(system));
  } else if (const pugi::xml_node graphs = document.child("graphs")) {
    ReadGraphs(graphs, lines, context);
  }
  return absl::OkStatus();
}

// The root element after a declaration and comments.
bool LooksLike(std::string_view head) {
  for (int steps = 0; steps < 8; ++steps) {
    const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (at == head.npos) return false;
    head.remove_prefix(at);
    const bool comment = head.starts_with("<!--");
    if (!comment && !head.starts_with("<?xml")) break;
    const size_t end = comment ? head.find("-->") : head.find("?>");
    if (end == head.npos) return false;
    head.remove_prefix(end + (comment ? 3 : 2));
  }
  for (const std::string_view root : {"<system", "<graphs"}) {
    if (head.starts_with(root) && head.size() > root.size() &&
        (head[root.size()] == '>' || head[root.size()] == ' ' || head[root.size()] == '/'))
      return true;
  }
  return false;
}

const RegisterReader kRegister(DocumentReaderType{"NCCL topology XML", LooksLike, uint64_t{16} << 20, Read});

}  // namespace
}  // namespace ringscope::ingest
