// Rank by communicator: at which operation number everybody is, and who lags. One small cell a rank: a thousand ranks are a
// stamp.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/roles.h"
#include "analyzer/report/cursors.h"
#include "analyzer/report/html/context.h"
#include "analyzer/report/html/svg.h"

namespace ringscope::report::html {
namespace {

constexpr size_t kMostLayers = 24;  // maps drawn; those with something that lags or is open first
constexpr size_t kNumbered = 64;    // ranks up to which a cell says rank and number
constexpr size_t kMostMembers = 1u << 20;
constexpr size_t kMostRanks = 1u << 16;  // drawn; no job has more, a damaged record may say so
constexpr size_t kMostCells = 1u << 22;  // looked at, of all maps together

enum class Cell : uint8_t { kNone, kNoRecord, kBehind, kOpen, kDone };
constexpr std::string_view kCellClass[] = {"", "norecord", "behind", "opened", "done"};

// Communicators of one kind that share no rank: a row of the matrix.
struct Layer {
  std::string name;
  std::vector<const model::Communicator*> communicators;
  std::set<int> ranks;
  size_t behind = 0, open = 0, no_record = 0;
};

std::string KindOf(const model::Communicator& communicator) {
  if (communicator.role != model::Role::kUnknown) return model::RoleText(communicator.role);
  return communicator.name;
}

std::vector<Layer> LayersOf(const model::Job& job) {
  // Role or name, size, distance of neighbouring ranks.
  using Key = std::tuple<std::string, int, int>;
  std::map<Key, std::vector<Layer>> families;
  size_t members = 0;
  for (const model::Communicator& communicator : job.communicators) {
    if ((members += communicator.members.size()) > kMostMembers) break;
    std::vector<int> ranks;
    for (const model::Member& m : communicator.members) {
      if (m.job_rank >= 0) ranks.push_back(m.job_rank);
    }
    if (ranks.empty()) continue;
    const int stride = ranks.size() > 1 ? ranks[1] - ranks[0] : 0;
    const bool pairs = communicator.n_ranks == 2;  // their distance differs, their kind does not
    auto& layers = families[{KindOf(communicator), communicator.n_ranks, pairs ? 0 : stride}];
    auto fits = std::find_if(layers.begin(), layers.end(), [&](const Layer& layer) {
      return std::none_of(ranks.begin(), ranks.end(), [&](int r) { return layer.ranks.contains(r); });
    });
    if (fits == layers.end()) fits = layers.insert(layers.end(), Layer());
    fits->communicators.push_back(&communicator);
    fits->ranks.insert(ranks.begin(), ranks.end());
  }
  std::vector<Layer> all;
  for (auto& [key, layers] : families) {
    for (Layer& layer : layers) {
      const std::string& kind = std::get<0>(key);
      if (layer.communicators.size() == 1) {
        layer.name = layer.communicators[0]->Label();
      } else {
        layer.name = absl::StrCat(layer.communicators.size(), " communicators of ", std::get<1>(key), " ranks",
                                  kind.empty() ? "" : absl::StrCat(": ", kind));
      }
      all.push_back(std::move(layer));
    }
  }
  return all;
}

bool Open(const model::Op& op) { return op.full && op.raw.unfinished() && op.finished != model::Truth::kYes; }

class Map {
 public:
  Map(const Context& c, Writer* out, Writer* data) : c_(c), out_(*out), data_(*data) {}

  void Draw(std::vector<Layer> layers) {
    Geometry(layers);
    if (ranks_ > kMostRanks) {
      out_ << "<p class=\"muted\">Ranks up to " << ranks_ - 1 << " are named: too many to draw.</p>";
      return;
    }
    layers.resize(std::min(layers.size(), std::max<size_t>(1, kMostCells / ranks_)));
    for (Layer& layer : layers) Judge(&layer);
    std::stable_sort(layers.begin(), layers.end(), [&](const Layer& a, const Layer& b) { return Weight(a) > Weight(b); });
    const size_t shown = std::min(layers.size(), kMostLayers);
    for (size_t i = 0; i < shown; ++i) One(layers[i], i);
    if (layers.size() > shown)
      out_ << "<p class=\"muted small\">" << layers.size() - shown
           << " groups of communicators more are not drawn; they hold nothing that lags.</p>";
    Data(layers, shown);
  }

 private:
  struct State {
    Cell cell = Cell::kNone;
    uint64_t position = 0;
    int text = -1;  // index in texts_
  };

  int Weight(const Layer& layer) const {
    const bool stalled =
        std::find(layer.communicators.begin(), layer.communicators.end(), c_.stalled) != layer.communicators.end();
    return stalled * 4 + (layer.behind > 0) * 2 + (layer.open > 0);
  }

  void Geometry(const std::vector<Layer>& layers) {
    int last = 0;
    for (const Layer& layer : layers) last = std::max(last, *layer.ranks.rbegin());
    ranks_ = static_cast<size_t>(last) + 1;
    // Ranks of the first host: as many stand together.
    std::map<std::string, int> per_host;
    int most = 0;
    for (const auto& [rank, process] : c_.process_of) most = std::max(most, ++per_host[process->host]);
    group_ = most >= 1 && most <= 16 ? static_cast<size_t>(most) : 8;
    numbered_ = ranks_ <= kNumbered;
    cell_ = numbered_ ? 44 : ranks_ <= 2048 ? 12 : 7;
    const double room = 940;
    const double group_width = static_cast<double>(group_) * cell_ + kGap;
    groups_ = std::max<size_t>(1, static_cast<size_t>(room / group_width));
    // Sixteen hosts a row or eight, not eleven: rows are then counted easily.
    groups_ = std::bit_floor(groups_);
    columns_ = group_ * groups_;
  }
  Point At(int rank) const {
    const size_t r = static_cast<size_t>(rank), column = r % columns_;
    return {kLeft + static_cast<double>(column) * cell_ + static_cast<double>(column / group_) * kGap,
            static_cast<double>(r / columns_) * (Height() + 2)};
  }
  double Height() const { return numbered_ ? 34 : cell_; }

  void Judge(Layer* layer) {
    auto& states = states_[layer->communicators[0]];
    states.resize(ranks_);
    for (const model::Communicator* communicator : layer->communicators) {
      uint64_t front = 0;
      for (const model::Member& m : communicator->members) front = std::max(front, m.collectives);
      std::map<int, int> texts;  // by job rank
      for (const CursorLine& line : CursorLines(*communicator)) {
        if (!line.job_ranks) continue;
        const int text = Text(line.state);
        for (const int rank : line.ranks) texts[rank] = text;
      }
      for (const model::Member& m : communicator->members) {
        if (m.job_rank < 0 || m.job_rank >= static_cast<int>(ranks_)) continue;
        State& s = states[static_cast<size_t>(m.job_rank)];
        s.position = m.collectives;
        const auto text = texts.find(m.job_rank);
        s.text = text == texts.end() ? -1 : text->second;
        if (!m.has_record()) {
          s.cell = Cell::kNoRecord;
          ++layer->no_record;
        } else if (m.collectives < front) {
          s.cell = Cell::kBehind;
          ++layer->behind;
        } else if (std::any_of(m.ops.begin(), m.ops.end(), Open)) {
          s.cell = Cell::kOpen;
          ++layer->open;
        } else {
          s.cell = Cell::kDone;
        }
      }
    }
  }
  int Text(const std::string& text) {
    const auto [it, fresh] = text_index_.try_emplace(text, static_cast<int>(texts_.size()));
    if (fresh) texts_.push_back(text);
    return it->second;
  }

  void One(const Layer& layer, size_t index) {
    const auto& states = states_.at(layer.communicators[0]);
    out_ << "<h3>" << layer.name << "</h3><p class=\"small muted\">" << Summary(layer) << "</p>";
    const size_t rows = (ranks_ + columns_ - 1) / columns_;
    const size_t used = std::min(ranks_, columns_);
    const double width = kLeft + static_cast<double>(used) * cell_ + static_cast<double>((used - 1) / group_) * kGap + 4;
    const double height = static_cast<double>(rows) * (Height() + 2) + 4;
    out_ << "<div class=\"wide\"><svg class=\"map\" data-map=\"" << index
         << "\" tabindex=\"0\" role=\"img\" aria-label=\"Progress of each rank in " << layer.name
         << "; arrow keys move from rank to rank\" viewBox=\"0 -2 " << width << " " << height << "\" width=\"" << width
         << "\" height=\"" << height << "\">";
    for (size_t kind = 1; kind < std::size(kCellClass); ++kind) {
      Writer path;
      for (size_t r = 0; r < ranks_; ++r) {
        if (states[r].cell != static_cast<Cell>(kind)) continue;
        const Point p = At(static_cast<int>(r));
        path << "M" << p.x << " " << p.y << "h" << cell_ - 2 << "v" << Height() << "h-" << cell_ - 2 << "z";
      }
      if (!path.empty()) out_ << "<path class=\"cell " << kCellClass[kind] << "\" d=\"" << path << "\"/>";
    }
    for (const int rank : c_.accused) {
      if (rank < 0 || rank >= static_cast<int>(ranks_) || states[static_cast<size_t>(rank)].cell == Cell::kNone) continue;
      const Point p = At(rank);
      out_ << "<rect class=\"mark\" x=\"" << p.x - 1 << "\" y=\"" << p.y - 1 << "\" width=\"" << cell_ << "\" height=\""
           << Height() + 2 << "\"/>";
    }
    for (size_t row = 0; row < rows; ++row)
      SvgText({kLeft - 6, At(static_cast<int>(row * columns_)).y + Height() / 2 + 4}, "note end", absl::StrCat(row * columns_),
              &out_);
    if (numbered_) {
      for (size_t r = 0; r < ranks_; ++r) {
        if (states[r].cell == Cell::kNone) continue;
        const Point p = At(static_cast<int>(r)) + Point{cell_ / 2 - 1, 0};
        const bool dark = states[r].cell == Cell::kBehind;
        SvgText(p + Point{0, 14}, dark ? "cellrank on" : "cellrank", absl::StrCat(r), &out_);
        SvgText(p + Point{0, 28}, dark ? "cellnumber on" : "cellnumber",
                states[r].cell == Cell::kNoRecord ? std::string("–") : absl::StrCat("#", states[r].position), &out_);
      }
    }
    out_ << "</svg></div>";
  }

  std::string Summary(const Layer& layer) const {
    std::vector<std::string> parts;
    uint64_t least = UINT64_MAX, most = 0;
    for (const model::Communicator* communicator : layer.communicators) {
      for (const model::Member& m : communicator->members) {
        if (!m.has_record()) continue;
        least = std::min(least, m.collectives);
        most = std::max(most, m.collectives);
      }
    }
    if (most == 0) {
      parts.push_back("no collective entered");
    } else {
      parts.push_back(least == most ? absl::StrCat("all entered #", most) : absl::StrCat("entered #", least, " to #", most));
    }
    if (layer.behind > 0) {
      std::vector<int> ranks;
      const auto& states = states_.at(layer.communicators[0]);
      for (size_t r = 0; r < states.size(); ++r) {
        if (states[r].cell == Cell::kBehind) ranks.push_back(static_cast<int>(r));
      }
      parts.push_back(absl::StrCat("behind the others of its communicator: ", model::RanksText(ranks)));
    }
    if (layer.open > 0) parts.push_back(absl::StrCat(layer.open, " with something open"));
    if (layer.no_record > 0) parts.push_back(absl::StrCat(layer.no_record, " without a record"));
    return absl::StrJoin(parts, "; ");
  }

  // What the script needs to say what lies under the pointer.
  void Data(const std::vector<Layer>& layers, size_t shown) {
    std::vector<std::string> hosts;
    std::map<std::string, size_t> host_index;
    std::vector<int> host_of(ranks_, -1);
    for (const auto& [rank, process] : c_.process_of) {
      if (rank < 0 || rank >= static_cast<int>(ranks_)) continue;
      const auto [it, fresh] = host_index.try_emplace(process->host, hosts.size());
      if (fresh) hosts.push_back(process->host);
      host_of[static_cast<size_t>(rank)] = static_cast<int>(it->second);
    }
    std::string json = absl::StrCat("{\"ranks\":", ranks_, ",\"columns\":", columns_, ",\"group\":", group_, ",\"gap\":", kGap,
                                    ",\"left\":", kLeft, ",\"cell\":", cell_, ",\"height\":", Height(), ",\"hosts\":[");
    for (size_t i = 0; i < hosts.size(); ++i) absl::StrAppend(&json, i > 0 ? "," : "", JsonText(hosts[i]));
    absl::StrAppend(&json, "],\"host\":[", absl::StrJoin(host_of, ","), "],\"texts\":[");
    for (size_t i = 0; i < texts_.size(); ++i) absl::StrAppend(&json, i > 0 ? "," : "", JsonText(texts_[i]));
    absl::StrAppend(&json, "],\"maps\":[");
    for (size_t i = 0; i < shown; ++i) {
      const auto& states = states_.at(layers[i].communicators[0]);
      std::vector<int> column;
      for (const State& s : states) column.push_back(s.cell == Cell::kNone ? -2 : s.text);
      absl::StrAppend(&json, i > 0 ? ",[" : "[", absl::StrJoin(column, ","), "]");
    }
    absl::StrAppend(&json, "]}");
    data_ << "<script type=\"application/json\" id=\"map-data\">";
    data_.Json(json) << "</script>";
  }

  static constexpr double kGap = 4, kLeft = 46;
  const Context& c_;
  Writer& out_;
  Writer& data_;
  size_t ranks_ = 0, group_ = 8, groups_ = 1, columns_ = 8;
  double cell_ = 12;
  bool numbered_ = false;
  std::map<const model::Communicator*, std::vector<State>> states_;  // by the layer's first communicator
  std::vector<std::string> texts_;
  std::map<std::string, int> text_index_;
};

void Legend(Writer* out) {
  *out << "<p class=\"legend small\"><span class=\"key\"><i class=\"swatch behind\"></i>has not entered what others of its "
          "communicator are in</span><span "
          "class=\"key\"><i class=\"swatch opened\"></i>at the front, something open</span><span class=\"key\"><i class=\"swatch "
          "done\"></i>at the front, nothing open</span><span "
          "class=\"key\"><i class=\"swatch norecord\"></i>no record</span><span class=\"key\"><i class=\"swatch "
          "mark\"></i>accused</span></p>";
}

}  // namespace

Section ProgressSection(const Context& c) {
  Section section{"progress", "Progress", "Who is how far", {}};
  std::vector<Layer> layers = LayersOf(c.job);
  if (layers.empty()) return section;
  Writer data;
  section.body << "<p>The number of the newest collective that each rank has entered, one cell a rank, hosts side by side.<span "
                  "class=\"screen-only\"> Point at a "
                  "cell, or go there with Tab and the arrow keys.</span></p>";
  Legend(&section.body);
  section.body << "<p class=\"told mono small screen-only\" id=\"map-told\" aria-live=\"polite\">&nbsp;</p>";
  Map(c, &section.body, &data).Draw(std::move(layers));
  section.body << data;
  return section;
}

}  // namespace ringscope::report::html
