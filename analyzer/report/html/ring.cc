// The ring or tree of the stalled communicator, drawn.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <numbers>
#include <set>

#include "analyzer/model/ranks_text.h"
#include "analyzer/report/html/ring_view.h"
#include "analyzer/report/html/svg.h"

namespace ringscope::report::html {
namespace {

constexpr size_t kCircle = 36;    // ranks that a circle shows; of more, the neighbourhood of the fault
constexpr size_t kLabelled = 12;  // ranks up to which each edge says its path
constexpr size_t kBoxed = 40;     // ranks up to which hosts are drawn with edges between them
constexpr int kNeighbours = 6, kWindows = 3, kBoxes = 12, kBoxesOfMany = 4;

std::string_view PathClass(const RingEdge& e) {
  switch (e.path) {
    case RingEdge::Path::kP2p:
      return "p2p";
    case RingEdge::Path::kShm:
      return "shm";
    case RingEdge::Path::kNet:
      return "net";
    default:
      return "unknown";
  }
}

std::string EdgeClasses(const RingEdge& e) {
  const char* tone[] = {"", " open", " starved", " suspect", " broken"};
  return absl::StrCat("edge ", std::string(PathClass(e)), tone[static_cast<int>(e.tone)]);
}

std::string Via(const RingEdge& e) {
  if (e.via.empty()) return e.path == RingEdge::Path::kNet ? "network" : "path not logged";
  return e.channels > 1 ? absl::StrCat(e.via, " ×", e.channels) : e.via;
}

class Drawing {
 public:
  Drawing(const Context& c, const RingView& v, Writer* out) : c_(c), v_(v), out_(*out) {
    for (size_t i = 0; i < v.nodes.size(); ++i) index_[v.nodes[i].rank] = i;
    for (const RingEdge& e : v.edges) edges_[{e.from, e.to}] = &e;
  }

  void Draw() {
    if (v_.order == RingView::Order::kTree && v_.nodes.size() <= kCircle) return Tree();
    if (v_.order == RingView::Order::kRing && v_.nodes.size() <= kCircle) return Circle();
    if (v_.order == RingView::Order::kRing) return Windows();
    Boxes();
  }

 private:
  std::string Name(const RingNode& n) const { return absl::StrCat(n.job_rank >= 0 ? n.job_rank : n.rank); }
  std::string_view Tone(const RingNode& n) const {
    if (c_.named.contains(n.job_rank)) return "accused";
    if (c_.accused.contains(n.job_rank)) return "end";
    if (c_.waiting.contains(n.job_rank)) return "waiting";
    return "";
  }
  const RingEdge* EdgeOf(const RingNode& a, const RingNode& b) const {
    const auto it = edges_.find({a.rank, b.rank});
    return it == edges_.end() ? nullptr : it->second;
  }

  void Node(Point at, double radius, const RingNode& n) {
    out_ << "<g class=\"node " << Tone(n) << "\"><circle cx=\"" << at.x << "\" cy=\"" << at.y << "\" r=\"" << radius
         << "\"><title>rank " << Name(n);
    if (!n.host.empty()) out_ << " on " << n.host;
    if (n.job_rank >= 0 && n.job_rank != n.rank) out_ << "; rank " << n.rank << " of the communicator";
    out_ << "</title></circle>";
    SvgText({at.x, at.y + 4.5}, "rank", Name(n), &out_);
    out_ << "</g>";
  }

  enum class Label { kNone, kOutside, kBelow };  // where its path is written: along the line on its left, or under it
  void Edge(const RingEdge& e, Point a, Point b, double radius, double bend, Label label) {
    out_ << "<g><title>" << EdgeName(e) << ": " << Via(e);
    if (!e.said.empty()) out_ << "; " << e.said;
    if (e.finding >= 0) out_ << "; finding " << e.finding + 1;
    out_ << "</title>";
    SvgArrow(a, b, radius + 2, radius + 3, bend, EdgeClasses(e), &out_);
    const Point d = b - a, left = Point{d.y, -d.x} * (1 / std::max(Length(d), 1.0)), middle = (a + b) * 0.5 + left * bend;
    if (e.tone == RingEdge::Tone::kBroken) SvgCross(middle, &out_);
    const bool loud = e.tone == RingEdge::Tone::kBroken || e.tone == RingEdge::Tone::kStarved;
    if (label == Label::kBelow) SvgText(middle + Point{0, 30}, loud ? "via alarm" : "via", Via(e), &out_);
    if (label == Label::kOutside) {
      double angle = std::atan2(d.y, d.x) * 180 / std::numbers::pi;
      const bool turned = angle > 90.05 || angle <= -90;
      if (turned) angle += angle > 0 ? -180 : 180;
      const Point at = middle + left * (e.tone == RingEdge::Tone::kBroken ? 15 : turned ? 15 : 6);
      out_ << "<g transform=\"translate(" << at.x << " " << at.y << ") rotate(" << angle << ")\">";
      SvgText({0, turned && e.tone == RingEdge::Tone::kBroken ? 9.0 : 0.0}, loud ? "via alarm" : "via", Via(e), &out_);
      out_ << "</g>";
    }
    out_ << "</g>";
  }
  std::string EdgeName(const RingEdge& e) const {
    const auto name = [&](int rank) {
      const auto it = index_.find(rank);
      return it == index_.end() ? absl::StrCat(rank) : Name(v_.nodes[it->second]);
    };
    return absl::StrCat(name(e.from), " → ", name(e.to));
  }

  void Open(double width, double height) {
    out_ << "<div class=\"wide\"><svg class=\"ring\" viewBox=\"0 0 " << width << " " << height
         << "\" role=\"img\" aria-label=\"Ranks of the communicator and how "
         << "they are joined\">";
  }
  void Close() { out_ << "</svg></div>"; }

  void Circle() {
    const size_t n = v_.nodes.size();
    const double radius = n <= 12 ? 19 : n <= 20 ? 15 : 11;
    const double ring = n <= 4 ? 130 : n <= 6 ? 170 : 205;
    const Point middle = {500, ring + 70};
    Open(1000, 2 * ring + 140);
    const auto angle = [&](double i) { return 2 * std::numbers::pi * i / static_cast<double>(n) - std::numbers::pi / 2; };
    const auto on = [&](double i, double r) { return middle + Point{std::cos(angle(i)), std::sin(angle(i))} * r; };
    HostArcs(n, ring, on);
    for (size_t i = 0; i < n; ++i) {
      const RingNode &a = v_.nodes[i], &b = v_.nodes[(i + 1) % n];
      const RingEdge* e = EdgeOf(a, b);
      if (e == nullptr) continue;
      const bool told = n <= kLabelled || e->tone >= RingEdge::Tone::kSuspect;
      Edge(*e, on(static_cast<double>(i), ring), on(static_cast<double>(i) + 1, ring), radius, n == 2 ? 26 : 0,
           told ? Label::kOutside : Label::kNone);
    }
    for (size_t i = 0; i < n; ++i) Node(on(static_cast<double>(i), ring), radius, v_.nodes[i]);
    // Accused edges that are not of this ring (another channel, a message): across.
    for (const RingEdge& e : v_.edges) {
      const size_t from = index_.at(e.from), to = index_.at(e.to);
      if (e.tone < RingEdge::Tone::kSuspect || (from + 1) % n == to) continue;
      Edge(e, on(static_cast<double>(from), ring), on(static_cast<double>(to), ring), radius, 24, Label::kNone);
    }
    // Of two ranks the edges take the middle: beside them.
    const double x = n == 2 ? middle.x - 290 : middle.x;
    if (!v_.operation.empty()) SvgText({x, middle.y - 4}, "center", v_.operation, &out_);
    SvgText({x, middle.y + 16}, "note", absl::StrCat("channel ", v_.channel), &out_);
    Close();
  }

  // The host of each run of ranks, outside.
  template <typename On>
  void HostArcs(size_t n, double ring, const On& on) {
    size_t start = 0;
    while (start < n && n > 1 && v_.nodes[start].host == v_.nodes[(start + n - 1) % n].host) ++start;
    if (start == n) start = 0;
    for (size_t done = 0; done < n;) {
      const size_t begin = start + done;
      size_t length = 1;
      while (done + length < n && v_.nodes[(begin + length) % n].host == v_.nodes[begin % n].host) ++length;
      const std::string& host = v_.nodes[begin % n].host;
      const double first = static_cast<double>(begin) - 0.36, last = static_cast<double>(begin + length) - 1 + 0.36;
      if (!host.empty()) {
        const Point a = on(first, ring + 44), b = on(last, ring + 44);
        out_ << "<path class=\"host" << (host == c_.host ? Markup(" accused") : Markup("")) << "\" d=\"M" << a.x << " " << a.y
             << "A" << ring + 44 << " " << ring + 44 << " 0 " << (last - first > static_cast<double>(n) / 2 ? 1 : 0) << " 1 "
             << b.x << " " << b.y << "\"/>";
        const Point at = on((first + last) / 2, ring + 56);
        const double side = (at - on((first + last) / 2, ring)).x;
        SvgText({at.x, at.y + 4}, side > 8 ? "hostname start" : side < -8 ? "hostname end" : "hostname", host, &out_);
      }
      done += length;
    }
  }

  // Rows of the order around each accused rank.
  void Windows() {
    const int n = static_cast<int>(v_.nodes.size());
    std::vector<int> centres;
    for (int i = 0; i < n; ++i) {
      if (c_.accused.contains(v_.nodes[static_cast<size_t>(i)].job_rank)) centres.push_back(i);
    }
    std::vector<std::pair<int, int>> windows;  // first and last index in the order
    int left_out = 0;
    for (const int centre : centres) {
      const int from = std::max(0, centre - kNeighbours), to = std::min(n - 1, centre + kNeighbours);
      if (!windows.empty() && from <= windows.back().second + 1 && to - windows.back().first < 3 * kNeighbours) {
        windows.back().second = to;
      } else if (windows.size() < kWindows) {
        windows.emplace_back(from, to);
      } else {
        ++left_out;
      }
    }
    if (windows.empty()) windows.emplace_back(0, std::min(n - 1, 2 * kNeighbours));
    constexpr double kStep = 74, kRow = 120;
    int widest = 0;
    for (const auto& [from, to] : windows) widest = std::max(widest, to - from + 1);
    const double width = std::max(1000.0, widest * kStep + 120);
    Open(width, kRow * static_cast<double>(windows.size()));
    for (size_t w = 0; w < windows.size(); ++w) {
      const auto [from, to] = windows[w];
      const double y = kRow * static_cast<double>(w) + 62;
      const auto at = [&, from = from](int i) { return Point{80 + kStep * (i - from), y}; };
      for (int i = from; i <= to;) {
        int last = i;
        const std::string& host = v_.nodes[static_cast<size_t>(i)].host;
        while (last < to && v_.nodes[static_cast<size_t>(last) + 1].host == host) ++last;
        out_ << "<rect class=\"box" << (!host.empty() && host == c_.host ? Markup(" accused") : Markup("")) << "\" x=\""
             << at(i).x - 32 << "\" y=\"" << y - 40 << "\" width=\"" << kStep * (last - i) + 64 << "\" height=\"76\" rx=\"6\"/>";
        SvgText({at(i).x - 26, y - 26}, "hostname start", host, &out_);
        i = last + 1;
      }
      for (int i = from; i < to; ++i) {
        const RingEdge* e = EdgeOf(v_.nodes[static_cast<size_t>(i)], v_.nodes[static_cast<size_t>(i) + 1]);
        if (e == nullptr) continue;
        Edge(*e, at(i), at(i + 1), 16, 0, e->tone >= RingEdge::Tone::kStarved ? Label::kBelow : Label::kNone);
      }
      for (int i = from; i <= to; ++i) Node(at(i), 16, v_.nodes[static_cast<size_t>(i)]);
      SvgText({30, y + 4}, "note", "…", &out_);
      SvgText({at(to).x + 52, y + 4}, "note", "…", &out_);
    }
    Close();
    out_ << "<p class=\"muted small\">The neighbourhood of what is accused, in the ring's order; " << n << " ranks in all.";
    if (left_out > 0) out_ << " " << left_out << " accused ranks more are not drawn.";
    out_ << "</p>";
  }

  void Tree() {
    const size_t n = v_.nodes.size();
    std::vector<std::vector<int>> children(n);
    int root = 0;
    for (size_t i = 0; i < n; ++i) {
      if (v_.parent[i] < 0) root = static_cast<int>(i);
      if (v_.parent[i] >= 0) children[static_cast<size_t>(v_.parent[i])].push_back(static_cast<int>(i));
    }
    std::vector<Point> at(n);
    double next = 0;
    int deepest = 0;
    Place(root, 0, children, &next, &deepest, &at);
    const double step = std::min(110.0, 940 / std::max(1.0, next)), row = deepest > 5 ? 66 : 86;
    Open(1000, row * deepest + 90);
    for (Point& p : at) p = {500 + (p.x - (next - 1) / 2) * step, 40 + p.y * row};
    for (const RingEdge& e : v_.edges) {
      const bool planned = v_.parent[static_cast<size_t>(e.from)] == e.to;
      if (!planned && e.tone < RingEdge::Tone::kSuspect) continue;
      const Point a = at[static_cast<size_t>(e.from)], b = at[static_cast<size_t>(e.to)];
      Edge(e, a, b, 16, planned ? 0 : 20, n <= kLabelled || e.tone >= RingEdge::Tone::kSuspect ? Label::kOutside : Label::kNone);
    }
    for (size_t i = 0; i < n; ++i) {
      Node(at[i], 16, v_.nodes[i]);
      if (n <= 2 * kLabelled) SvgText({at[i].x, at[i].y + 29}, "note", v_.nodes[i].host, &out_);
    }
    Close();
  }
  static void Place(int node, int depth, const std::vector<std::vector<int>>& children, double* next, int* deepest,
                    std::vector<Point>* at) {
    *deepest = std::max(*deepest, depth);
    const auto& below = children[static_cast<size_t>(node)];
    for (const int child : below) Place(child, depth + 1, children, next, deepest, at);
    double x = *next;
    if (below.empty()) {
      *next += 1;
    } else {
      x = ((*at)[static_cast<size_t>(below.front())].x + (*at)[static_cast<size_t>(below.back())].x) / 2;
    }
    (*at)[static_cast<size_t>(node)] = {x, static_cast<double>(depth)};
  }

  // No order is known: ranks by host. Only edges that something tells of.
  void Boxes() {
    std::map<std::string, std::vector<size_t>> by_host;
    for (size_t i = 0; i < v_.nodes.size(); ++i) by_host[v_.nodes[i].host].push_back(i);
    // In the order of their first rank; those with accused ranks first where not all fit.
    std::vector<std::pair<std::string, std::vector<size_t>>> boxes(by_host.begin(), by_host.end());
    const auto accused = [&](const auto& box) {
      return std::any_of(box.second.begin(), box.second.end(),
                         [&](size_t i) { return c_.accused.contains(v_.nodes[i].job_rank); });
    };
    const auto first = [](const auto& a, const auto& b) { return a.second[0] < b.second[0]; };
    std::sort(boxes.begin(), boxes.end(), first);
    const size_t all = boxes.size();
    if (all > kBoxes) {
      std::stable_sort(boxes.begin(), boxes.end(), [&](const auto& a, const auto& b) { return accused(a) > accused(b); });
      boxes.resize(kBoxesOfMany);
      std::sort(boxes.begin(), boxes.end(), first);
    }
    constexpr size_t kPerRow = 8, kMostInBox = 32;
    constexpr double kCell = 44;
    const size_t per_row = boxes.size() <= 1 ? 1 : 2;
    std::map<size_t, Point> at;
    double y = 10, height = 0;
    Writer frames;
    for (size_t b = 0; b < boxes.size(); ++b) {
      const auto& [host, members] = boxes[b];
      const size_t shown = std::min(members.size(), kMostInBox);
      const double x = 10 + static_cast<double>(b % per_row) * 500;
      const double h = 34 + kCell * static_cast<double>((shown + kPerRow - 1) / kPerRow);
      frames << "<rect class=\"box" << (!host.empty() && host == c_.host ? Markup(" accused") : Markup("")) << "\" x=\"" << x
             << "\" y=\"" << y << "\" width=\"" << kCell * kPerRow + 110 << "\" height=\"" << h << "\" rx=\"6\"/>";
      SvgText({x + 10, y + 18}, "hostname start",
              host.empty() ? "host not known"
                           : absl::StrCat(host, members.size() > shown ? absl::StrCat(", ", members.size(), " ranks") : ""),
              &frames);
      for (size_t k = 0; k < shown; ++k)
        at[members[k]] = {x + 30 + kCell * static_cast<double>(k % kPerRow), y + 46 + kCell * static_cast<double>(k / kPerRow)};
      height = std::max(height, h);
      if (b % per_row == per_row - 1 || b + 1 == boxes.size()) {
        y += height + 14;
        height = 0;
      }
    }
    Open(1000, y);
    out_ << frames;
    if (at.size() <= kBoxed) {
      for (const RingEdge& e : v_.edges) {
        const auto from = at.find(index_.at(e.from)), to = at.find(index_.at(e.to));
        if (from != at.end() && to != at.end()) Edge(e, from->second, to->second, 15, 12, Label::kNone);
      }
    }
    for (const auto& [i, point] : at) Node(point, 15, v_.nodes[i]);
    Close();
    if (all > boxes.size()) out_ << "<p class=\"muted small\">" << all - boxes.size() << " hosts more are not drawn.</p>";
  }

  const Context& c_;
  const RingView& v_;
  Writer& out_;
  std::map<int, size_t> index_;
  std::map<std::pair<int, int>, const RingEdge*> edges_;
};

void Caption(const Context& c, const RingView& v, Writer* out) {
  *out << "<p>Communicator <b>" << v.label << "</b>, " << v.nodes.size() << " ranks. ";
  switch (v.order) {
    case RingView::Order::kRing:
      *out << "The ring of channel " << v.channel;
      if (v.channels > 1) {
        *out << " of " << v.channels;
        if (v.orders > 1) *out << " (" << v.orders << " different orders)";
        if (v.orders == 1) *out << " (all in the same order)";
      }
      *out << ", as NCCL planned it <span class=\"source mono\">" << v.source << "</span>";
      break;
    case RingView::Order::kTree:
      *out << "The tree of channel " << v.channel << ", as NCCL planned it <span class=\"source mono\">" << v.source
           << "</span>. Arrows lead to the rank above; results come back the same way.";
      break;
    default:
      *out << "<b>The order of the ring is not known</b>: no log holds NCCL's plan (NCCL_DEBUG=INFO, "
              "NCCL_DEBUG_SUBSYS=INIT,GRAPH). Ranks are drawn by host; "
              "edges only where a log or record tells of them.";
  }
  *out << "</p>";
  if (c.first != nullptr && c.first->who().communicators_size() > 1)
    *out << "<p class=\"muted\">The finding names " << c.first->who().communicators_size()
         << " communicators; this is the first of them.</p>";
  if (v.algorithms.size() == 1 && v.order == RingView::Order::kRing && v.algorithms[0].first != "ring")
    *out << "<p class=\"warntext\">" << v.operation << " runs by the algorithm " << v.algorithms[0].first
         << ", not along this ring.</p>";
  if (v.algorithms.size() > 1) {
    *out << "<p class=\"warntext\">Ranks run " << v.operation << " by different algorithms: ";
    for (size_t i = 0; i < v.algorithms.size(); ++i) {
      if (i > 0) *out << "; ";
      *out << model::RanksText(v.algorithms[i].second) << " by " << v.algorithms[i].first;
    }
    *out << ".</p>";
  }
}

void Legend(const Context& c, const RingView& v, Writer* out) {
  std::set<RingEdge::Path> paths;
  std::set<RingEdge::Tone> tones;
  for (const RingEdge& e : v.edges) paths.insert(e.path), tones.insert(e.tone);
  const auto key = [&](std::string_view classes, std::string_view text) {
    *out << "<span class=\"key\"><svg width=\"34\" height=\"10\" aria-hidden=\"true\"><path class=\"edge " << classes
         << "\" d=\"M1 5H33\"/></svg>" << text << "</span>";
  };
  *out << "<p class=\"legend small\">";
  if (paths.contains(RingEdge::Path::kP2p)) key("p2p", "GPU to GPU (P2P)");
  if (paths.contains(RingEdge::Path::kShm)) key("shm", "through host memory (SHM)");
  if (paths.contains(RingEdge::Path::kNet)) key("net", "network");
  if (paths.contains(RingEdge::Path::kUnknown)) key("unknown", "path not logged");
  if (tones.contains(RingEdge::Tone::kOpen)) key("net open", "steps not done");
  if (tones.contains(RingEdge::Tone::kStarved)) key("starved", "the accused rank owes steps");
  if (tones.contains(RingEdge::Tone::kSuspect)) key("suspect", "accused by another finding");
  if (tones.contains(RingEdge::Tone::kBroken)) key("broken", "accused");
  if (!c.named.empty()) *out << "<span class=\"key\"><i class=\"dot accused\"></i>accused rank</span>";
  if (!c.waiting.empty()) *out << "<span class=\"key\"><i class=\"dot waiting\"></i>only waits</span>";
  *out << "</p>";
}

void EdgeTable(const RingView& v, Writer* out) {
  constexpr size_t kMost = 64;
  std::vector<const RingEdge*> rows;
  for (const RingEdge& e : v.edges) rows.push_back(&e);
  std::stable_sort(rows.begin(), rows.end(), [](const RingEdge* a, const RingEdge* b) { return a->tone > b->tone; });
  if (rows.empty()) return;
  std::map<int, int> job;
  for (const RingNode& n : v.nodes) job[n.rank] = n.job_rank >= 0 ? n.job_rank : n.rank;
  *out << "<details><summary class=\"small\">Edges as a table (" << rows.size()
       << ")</summary><div class=\"wide\"><table><tr><th>edge</th><th>path</th><th class=\"n\">channels</th><th>steps</th></tr>";
  for (size_t i = 0; i < rows.size() && i < kMost; ++i) {
    const RingEdge& e = *rows[i];
    *out << "<tr><td>" << job[e.from] << " → " << job[e.to];
    if (e.finding >= 0) *out << " <a href=\"#f" << e.finding + 1 << "\">finding " << e.finding + 1 << "</a>";
    *out << "</td><td>" << (e.via.empty() ? Via(e) : e.via) << "</td><td class=\"n\">"
         << (e.channels > 0 ? absl::StrCat(e.channels) : std::string()) << "</td><td>" << e.said << "</td></tr>";
  }
  *out << "</table></div>";
  if (rows.size() > kMost) *out << "<p class=\"muted\">and " << rows.size() - kMost << " more</p>";
  *out << "</details>";
}

}  // namespace

Section RingSection(const Context& c) {
  Section section{"ring", "Ring", "How the ranks are joined", {}};
  const RingView v = RingOf(c);
  if (v.nodes.size() < 2) return section;
  Caption(c, v, &section.body);
  Drawing(c, v, &section.body).Draw();
  Legend(c, v, &section.body);
  EdgeTable(v, &section.body);
  return section;
}

}  // namespace ringscope::report::html
