// The host of the fault, drawn: GPUs with their NVLink lanes, PCIe, adapters.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <map>

#include "analyzer/report/html/fabric_view.h"
#include "analyzer/report/html/svg.h"

namespace ringscope::report::html {
namespace {

using State = model::LinkReading::State;

void Rect(double x, double y, double w, double h, std::string_view classes, Writer* out) {
  *out << "<rect class=\"" << classes << "\" x=\"" << x << "\" y=\"" << y << "\" width=\"" << w << "\" height=\"" << h
       << "\" rx=\"4\"/>";
}

class Drawing {
 public:
  Drawing(const FabricView& v, Writer* out) : v_(v), out_(*out) {}

  void Draw() {
    const double n = static_cast<double>(v_.gpus.size());
    step_ = 980 / n;
    width_ = std::min(step_ - 14, 190.0);
    const bool arcs = !v_.nvswitch && !v_.links.empty();
    const bool lanes = std::any_of(v_.gpus.begin(), v_.gpus.end(), [](const FabricGpu& g) { return !g.lanes.empty(); });
    const double top = v_.nvswitch ? 40 : arcs ? 120 : 6;
    gpu_y_ = top + (lanes ? 44 : v_.nvswitch ? 34 : 0);
    const double nic_y = gpu_y_ + 148, bottom = v_.nics.empty() ? gpu_y_ + 100 : nic_y + 50;
    out_ << "<div class=\"wide\"><svg class=\"fabric\" viewBox=\"0 0 1000 " << bottom
         << "\" role=\"img\" aria-label=\"GPUs, links and adapters of the host\">";
    if (v_.nvswitch) {
      Rect(10, 6, 980, 30, "box", &out_);
      SvgText({500, 26}, "hostname", "NVSwitch", &out_);
    }
    if (arcs) Arcs(top);
    for (size_t i = 0; i < v_.gpus.size(); ++i) Gpu(i, top);
    if (!v_.nics.empty()) Nics(nic_y);
    out_ << "</svg></div>";
  }

 private:
  double X(size_t i) const { return 10 + step_ * (static_cast<double>(i) + 0.5); }

  void Gpu(size_t i, double top) {
    const FabricGpu& g = v_.gpus[i];
    const double x = X(i), left = x - width_ / 2;
    const bool faulty = g.accused || !g.faults.empty();
    // What joins it to the switch: its lanes where a tool listed them, else one line.
    if (!g.lanes.empty()) {
      const double pitch = width_ / static_cast<double>(g.lanes.size());
      for (size_t lane = 0; lane < g.lanes.size(); ++lane) {
        const bool bad = lane < g.bad_lanes.size() && g.bad_lanes[lane];
        const State state = g.lanes[lane];
        const std::string_view kind = state == State::kActive ? "up" : state == State::kUnknown ? "untold" : "down";
        out_ << "<rect class=\"lane " << kind << (bad ? Markup(" bad") : Markup("")) << "\" x=\""
             << left + pitch * static_cast<double>(lane) << "\" y=\"" << top + 2 << "\" width=\"" << std::max(pitch - 1.5, 1.0)
             << "\" height=\"36\"><title>NVLink " << lane << ": "
             << (state == State::kActive     ? Markup("active")
                 : state == State::kUnknown  ? Markup("not told")
                 : state == State::kDisabled ? Markup("disabled")
                                             : Markup("inactive"))
             << (bad ? Markup("; a fault names it") : Markup("")) << "</title></rect>";
      }
    } else if (v_.nvswitch && g.nvlink_gbps > 0) {
      out_ << "<path class=\"edge p2p\" d=\"M" << x << " " << top - 4 << "V" << gpu_y_ << "\"/>";
    }
    Rect(left, gpu_y_, width_, 96, faulty ? "chipbox accused" : "chipbox", &out_);
    double y = gpu_y_ + 18;
    const auto line = [&](std::string_view classes, const std::string& text) {
      if (text.empty()) return;
      const size_t most = static_cast<size_t>(width_ / 6.6);
      SvgText({x, y}, classes, text.size() > most ? absl::StrCat(text.substr(0, most - 1), "…") : text, &out_);
      y += 15;
    };
    line(faulty ? "rank alarm" : "rank",
         absl::StrCat(g.index >= 0 ? absl::StrCat("GPU ", g.index) : "GPU", g.rank >= 0 ? absl::StrCat(" · rank ", g.rank) : ""));
    line("note mono", g.bus_id ? model::BusIdText(*g.bus_id) : "");
    if (!g.lanes.empty())
      line(g.LanesUp() < static_cast<int>(g.lanes.size()) ? "via alarm" : "via",
           absl::StrCat(g.LanesUp(), " of ", g.lanes.size(), " NVLinks up"));
    if (g.planned) {
      std::string plan = g.nvlink_gbps > 0                  ? absl::StrFormat("NCCL: %.0f GB/s", g.nvlink_gbps)
                         : v_.nvswitch || !v_.links.empty() ? "NCCL: no NVLink"
                                                            : "";
      if (g.before_gbps > 0) absl::StrAppend(&plan, absl::StrFormat(" (was %.0f)", g.before_gbps));
      line(g.before_gbps > 0 ? "via alarm" : "via", plan);
    }
    for (size_t k = 0; k < g.faults.size() && k < 2; ++k) line("via alarm", g.faults[k]);
  }

  void Arcs(double top) {
    for (const FabricLink& link : v_.links) {
      if (link.b >= static_cast<int>(v_.gpus.size())) continue;
      const double a = X(static_cast<size_t>(link.a)), b = X(static_cast<size_t>(link.b));
      const double rise = std::min(top - 8, 26 + (b - a) * 0.17);
      out_ << "<path class=\"edge p2p\" d=\"M" << a << " " << top << "C" << a << " " << top - rise * 1.3 << " " << b << " "
           << top - rise * 1.3 << " " << b << " " << top << "\"><title>NVLink, "
           << (link.lanes > 0 ? absl::StrCat(link.lanes, " lanes") : absl::StrFormat("%.0f GB/s", link.gbps))
           << "</title></path>";
    }
  }

  // Each PCIe switch below its GPUs, and its adapters below it; adapters elsewhere in a row.
  void Nics(double y) {
    std::map<model::BusId, std::vector<size_t>> switches;
    for (size_t i = 0; i < v_.gpus.size(); ++i) {
      if (v_.gpus[i].parent != 0) switches[v_.gpus[i].parent].push_back(i);
    }
    const double bar = gpu_y_ + 112;
    for (const auto& [parent, gpus] : switches) {
      const double left = X(gpus.front()) - width_ / 2, right = X(gpus.back()) + width_ / 2;
      for (const size_t i : gpus) out_ << "<path class=\"edge pcie\" d=\"M" << X(i) << " " << gpu_y_ + 96 << "V" << bar << "\"/>";
      Rect(left, bar, right - left, 18, "box", &out_);
      SvgText({(left + right) / 2, bar + 13}, "note", "PCIe switch", &out_);
      std::vector<const FabricNic*> below;
      for (const FabricNic& nic : v_.nics) {
        if (nic.parent == parent) below.push_back(&nic);
      }
      const double w = (right - left + 6) / static_cast<double>(std::max<size_t>(below.size(), 1));
      for (size_t k = 0; k < below.size(); ++k) {
        const double x = left + w * static_cast<double>(k);
        out_ << "<path class=\"edge pcie\" d=\"M" << x + (w - 6) / 2 << " " << bar + 18 << "V" << y << "\"/>";
        Nic(*below[k], x, y, w - 6);
      }
    }
    std::vector<const FabricNic*> alone;
    for (const FabricNic& nic : v_.nics) {
      if (nic.parent == 0 || !switches.contains(nic.parent)) alone.push_back(&nic);
    }
    for (size_t i = 0; i < alone.size(); ++i) {
      const double w = 980 / static_cast<double>(alone.size());
      Nic(*alone[i], 10 + w * static_cast<double>(i), y, std::min(w - 8, 180.0));
    }
  }
  void Nic(const FabricNic& nic, double x, double y, double w) {
    Rect(x, y, w, 42, nic.fault.empty() ? "chipbox nic" : "chipbox nic accused", &out_);
    SvgText({x + w / 2, y + 17}, "rank", nic.name, &out_);
    SvgText({x + w / 2, y + 34}, nic.fault.empty() ? "via" : "via alarm",
            !nic.fault.empty() ? nic.fault
            : nic.gbps > 0     ? absl::StrFormat("%.0f GB/s", nic.gbps)
                               : "",
            &out_);
  }

  const FabricView& v_;
  Writer& out_;
  double step_ = 0, width_ = 0, gpu_y_ = 0;
};

// `nvidia-smi topo -m`, newest of the host.
void Matrix(const Context& c, const FabricView& v, Writer* out) {
  const model::TopologyMatrix* matrix = nullptr;
  for (const model::TopologyMatrix& m : c.job.evidence.plan.matrices) {
    if (m.kind != model::TopologyMatrix::Kind::kTopology || (!v.host.empty() && !model::SameHost(m.by.host, v.host))) continue;
    const bool before = c.job.evidence.Path(m.where).find("before") != std::string_view::npos;
    if (matrix == nullptr || !before) matrix = &m;
  }
  if (matrix == nullptr) return;
  *out << "<details><summary class=\"small\">How devices are joined, as nvidia-smi topo -m shows <span class=\"source mono\">"
       << c.job.evidence.PlaceText(matrix->where)
       << "</span></summary><div class=\"wide\"><table class=\"matrix mono\"><tr><th></th>";
  for (const std::string& column : matrix->columns) *out << "<th>" << column << "</th>";
  *out << "</tr>";
  for (const auto& row : matrix->rows) {
    *out << "<tr><th>" << row.name << "</th>";
    for (const std::string& cell : row.cells)
      *out << "<td" << (cell.starts_with("NV") ? Markup(" class=\"nv\"") : Markup("")) << ">" << cell << "</td>";
    *out << "</tr>";
  }
  *out << "</table></div>";
  for (const auto& [name, device] : matrix->legend) *out << "<span class=\"small muted\">" << name << " " << device << " </span>";
  *out << "</details>";
}

}  // namespace

Section FabricSection(const Context& c) {
  Section section{"fabric", "Fabric", "The host's fabric", {}};
  const FabricView v = FabricOf(c);
  // A GPU that a fault names is no fabric by itself.
  const bool told = !v.nics.empty() ||
                    std::any_of(v.gpus.begin(), v.gpus.end(), [](const FabricGpu& g) { return g.planned || !g.lanes.empty(); });
  if (!told) {
    Matrix(c, v, &section.body);
    return section;
  }
  Writer& out = section.body;
  out << "<p><b>" << (v.host.empty() ? std::string("host not named") : v.host) << "</b>";
  if (v.host != c.host) out << ", as an example: the evidence names no host of the fault";
  out << ".";
  if (!v.source.empty()) out << " NCCL's picture: <span class=\"source mono\">" << v.source << "</span>.";
  if (!v.lanes_source.empty()) out << " Lanes: <span class=\"source mono\">" << v.lanes_source << "</span>.";
  out << "</p>";
  Drawing(v, &out).Draw();
  if (std::any_of(v.gpus.begin(), v.gpus.end(), [](const FabricGpu& g) { return !g.lanes.empty(); })) {
    out << "<p class=\"legend small\"><span class=\"key\"><i class=\"swatch lane-up\"></i>NVLink up</span><span class=\"key\"><i "
           "class=\"swatch lane-down\"></i>NVLink "
           "down</span><span class=\"key\"><i class=\"swatch lane-bad\"></i>named by a fault</span></p>";
  }
  Matrix(c, v, &out);
  return section;
}

}  // namespace ringscope::report::html
