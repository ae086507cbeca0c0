// Counters before and after, where the evidence has two readings; what the proxies of the network edges counted.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzer/report/html/context.h"

namespace ringscope::report::html {
namespace {

constexpr size_t kMostRows = 60, kMostEdges = 40;

struct Change {
  std::string host, what, counter;
  double first = 0, last = 0;
  model::Where before, after;
};

class Counters {
 public:
  explicit Counters(const Context& c) : c_(c) {
    Nvlink();
    Network();
    const auto key = [](const Change& a) { return std::tie(a.host, a.what, a.counter); };
    std::stable_sort(changes_.begin(), changes_.end(), [&](const Change& a, const Change& b) { return key(a) < key(b); });
  }

  void Write(Writer* out) const {
    if (changes_.empty() && flat_ == 0) return;
    *out << "<h3>Two readings</h3>";
    if (changes_.empty()) {
      *out << "<p>" << flat_ << " counters were read twice; none of them moved.</p>";
      return;
    }
    *out << "<div class=\"wide\"><table><tr><th>host</th><th>of</th><th>counter</th><th class=\"n\">before</th><th "
            "class=\"n\">after</th><th "
            "class=\"n\">change</th><th>read</th></tr>";
    for (size_t i = 0; i < changes_.size() && i < kMostRows; ++i) {
      const Change& ch = changes_[i];
      const bool error = IsError(ch.counter);
      *out << "<tr" << (error ? Markup(" class=\"bad\"") : Markup("")) << "><td>" << ch.host << "</td><td>" << ch.what
           << "</td><td>" << ch.counter << "</td><td class=\"n\">" << Number(ch.first) << "</td><td class=\"n\">"
           << Number(ch.last) << "</td><td class=\"n\"><b>+" << Number(ch.last - ch.first)
           << "</b></td><td class=\"source mono\">" << c_.job.evidence.PlaceText(ch.before) << "<br>"
           << c_.job.evidence.PlaceText(ch.after) << "</td></tr>";
    }
    *out << "</table></div><p class=\"muted small\">";
    if (changes_.size() > kMostRows) *out << changes_.size() - kMostRows << " more moved. ";
    *out << flat_ << " other counters were read twice and did not move.</p>";
  }

 private:
  // Traffic moves in every healthy job.
  static bool IsError(const std::string& counter) {
    for (const char* word :
         {"error", "recover", "replay", "crc", "discard", "down", "drop", "retr", "timeout", "fail", "out of", "naks", "pause"}) {
      if (counter.find(word) != counter.npos) return true;
    }
    return false;
  }
  static std::string Number(double value) { return absl::StrFormat(value == std::floor(value) ? "%.0f" : "%.2f", value); }

  void Nvlink() {
    std::map<std::tuple<std::string, std::string, int, std::string>, std::pair<Change, int>> series;
    for (const model::HardwareSnapshot* s : SnapshotsInOrder(c_.job)) {
      for (const model::GpuReading& gpu : s->gpus) {
        const std::string id = gpu.index >= 0 ? absl::StrCat("GPU ", gpu.index)
                               : gpu.bus_id   ? absl::StrCat("GPU ", model::BusIdText(*gpu.bus_id))
                                              : gpu.uuid;
        for (const model::LinkReading& link : gpu.links) {
          for (const auto& [name, value] : link.counters) {
            const auto line = link.counter_lines.find(name);
            const model::Where where = line == link.counter_lines.end() ? link.where : line->second.where;
            auto& [change, readings] = series[{s->by.host, id, link.link, name}];
            // One that fell was reset.
            if (readings == 0 || value < change.last) change.first = value, change.before = where;
            change.last = value;
            change.after = where;
            ++readings;
          }
        }
      }
    }
    for (auto& [key, entry] : series) {
      auto& [change, readings] = entry;
      if (readings < 2) continue;
      if (change.last <= change.first) {
        ++flat_;
        continue;
      }
      const auto& [host, gpu, link, name] = key;
      change.host = host;
      change.what = link < 0 ? absl::StrCat(gpu, " NVLink") : absl::StrCat(gpu, " NVLink ", link);
      change.counter = absl::StrReplaceAll(name, {{"_", " "}});
      changes_.push_back(change);
    }
  }

  void Network() {
    for (const model::CounterChange& ch : model::CounterChanges(c_.job.evidence)) {
      if (ch.delta == 0) {
        ++flat_;
        continue;
      }
      const model::NetworkCounter& n = *ch.after;
      std::string what = n.device.empty() ? "network" : n.device;
      if (n.port > 0) absl::StrAppend(&what, " port ", n.port);
      changes_.push_back({n.by.host, what, absl::StrReplaceAll(n.name, {{"_", " "}}), static_cast<double>(ch.before->value),
                          static_cast<double>(n.value), ch.before->where, n.where});
    }
  }

  const Context& c_;
  std::vector<Change> changes_;
  size_t flat_ = 0;
};

// Where the proxies' time went, edge by edge.
struct Row {
  int from = 0, to = 0, channels = 0;
  uint64_t bytes = 0, steps = 0;
  int64_t send[3] = {}, receive[3] = {};  // as trace.proto's wait_ns
  bool accused = false;
  int64_t Longest() const { return std::max(send[2], std::max(send[1], receive[1])); }
};

std::string PerStep(int64_t ns, uint64_t steps) {
  const double us = static_cast<double>(ns) / 1e3 / static_cast<double>(steps);
  if (us < 0.05) return "0";
  if (us < 1e3) return absl::StrFormat("%.1f µs", us);
  return us < 1e6 ? absl::StrFormat("%.2f ms", us / 1e3) : absl::StrFormat("%.1f s", us / 1e6);
}

void Proxies(const Context& c, Writer* out) {
  if (c.stalled == nullptr) return;
  std::map<std::pair<int, int>, Row> rows;
  const auto job = [&](int rank) {
    const int j = rank >= 0 && rank < static_cast<int>(c.stalled->members.size())
                      ? c.stalled->members[static_cast<size_t>(rank)].job_rank
                      : -1;
    return j >= 0 ? j : rank;
  };
  for (const model::Edge& e : c.job.edges) {
    if (e.communicator != c.stalled->index) continue;
    Row& row = rows[{job(e.from), job(e.to)}];
    row.from = job(e.from);
    row.to = job(e.to);
    ++row.channels;
    row.accused |= c.edges.contains({row.from, row.to}) || c.other_edges.contains({row.from, row.to});
    const auto add = [](const trace::Edge& raw, int64_t* to) {
      for (int i = 0; i < raw.wait_ns_size() && i < 3; ++i)
        to[i] = to[i] + std::min<int64_t>(raw.wait_ns(i), INT64_MAX / 4 - to[i]);
    };
    if (e.sender && e.sender->raw != nullptr) {
      add(*e.sender->raw, row.send);
      row.bytes += e.sender->raw->bytes();
      row.steps += e.sender->raw->steps_total();
    }
    if (e.receiver && e.receiver->raw != nullptr) {
      add(*e.receiver->raw, row.receive);
      if (!e.sender || e.sender->raw == nullptr)
        row.bytes += e.receiver->raw->bytes(), row.steps += e.receiver->raw->steps_total();
    }
  }
  std::vector<Row> list;
  for (const auto& [key, row] : rows) {
    if (row.steps > 0) list.push_back(row);
  }
  if (list.empty()) return;
  std::stable_sort(list.begin(), list.end(),
                   [](const Row& a, const Row& b) { return a.accused != b.accused ? a.accused : a.Longest() > b.Longest(); });
  *out << "<h3>Network edges of " << c.stalled->Label()
       << ", as the proxies counted</h3><p class=\"muted small\">Time a step, by what it waited for. Much on the wire of one "
          "edge and little on its like is that "
          "edge; much for the GPU is the rank before it.</p><div class=\"wide\"><table><tr><th>edge</th><th "
          "class=\"n\">steps</th><th class=\"n\">bytes</th><th "
          "class=\"n\">send: GPU</th><th class=\"n\">send: peer</th><th class=\"n\">send: wire</th><th class=\"n\">receive: "
          "wire</th><th class=\"n\">receive: "
          "flush</th><th class=\"n\">receive: GPU</th></tr>";
  for (size_t i = 0; i < list.size() && i < kMostEdges; ++i) {
    const Row& r = list[i];
    *out << "<tr" << (r.accused ? Markup(" class=\"bad\"") : Markup("")) << "><td>" << r.from << " → " << r.to
         << "</td><td class=\"n\">" << r.steps << "</td><td class=\"n\">" << r.bytes << "</td>";
    for (const int64_t ns : r.send) *out << "<td class=\"n\">" << PerStep(ns, r.steps) << "</td>";
    for (const int64_t ns : r.receive) *out << "<td class=\"n\">" << PerStep(ns, r.steps) << "</td>";
    *out << "</tr>";
  }
  *out << "</table></div>";
  if (list.size() > kMostEdges) *out << "<p class=\"muted small\">" << list.size() - kMostEdges << " edges more.</p>";
}

}  // namespace

Section CountersSection(const Context& c) {
  Section section{"counters", "Counters", "Counters", {}};
  Counters(c).Write(&section.body);
  Proxies(c, &section.body);
  return section;
}

}  // namespace ringscope::report::html
