// Joins facts of the network: two snapshots of a counter, an address and its host.
#include <algorithm>
#include <cctype>
#include <tuple>
#include <utility>

#include "analyzer/model/evidence.h"
#include "analyzer/model/evidence_network.h"
#include "analyzer/model/views.h"

namespace ringscope::model {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool LinkLocalText(std::string_view address) {
  const std::string head = Lower(address.substr(0, 4));
  return head == "fe80" || head == "fe90" || head == "fea0" || head == "feb0";
}

// "10.0.0.1%eth0" without the scope; letters small.
std::string PlainAddress(std::string_view address) {
  address = address.substr(0, address.find('%'));
  if (const size_t mapped = Lower(address).find("::ffff:"); mapped == 0 && Contains(address, ".")) address.remove_prefix(7);
  return Lower(address);
}

// Numbers inside count as numbers: "after10" comes behind "after9".
bool NaturalLess(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t ie = i, je = j;
      while (ie < a.size() && digit(a[ie])) ++ie;
      while (je < b.size() && digit(b[je])) ++je;
      std::string_view x = a.substr(i, ie - i), y = b.substr(j, je - j);
      while (x.size() > 1 && x[0] == '0') x.remove_prefix(1);
      while (y.size() > 1 && y[0] == '0') y.remove_prefix(1);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = ie;
      j = je;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

// People call the two snapshots so; "after" sorts before "before".
int Moment(std::string_view path) {
  const std::string name = Lower(path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1));
  for (const char* word : {"before", "pre-", "start", "baseline"}) {
    if (Contains(name, word)) return 0;
  }
  for (const char* word : {"after", "post-", "end"}) {
    if (Contains(name, word)) return 2;
  }
  return 1;
}

}  // namespace

bool RdmaPort::Down() const {
  const std::string lower = Lower(state);
  return Contains(lower, "down") || Contains(Lower(physical_state), "disabled") || Contains(Lower(physical_state), "polling");
}

bool RoceGid::LinkLocal() const { return LinkLocalText(gid); }

bool PciFunction::Bridge() const {
  const std::string lower = Lower(name);
  return Contains(lower, "bridge") || Contains(lower, "port") || Contains(lower, "switch");
}

int MtuOfCode(int code) { return code >= 1 && code <= 5 ? 128 << code : 0; }

std::vector<CounterChange> CounterChanges(const Evidence& evidence) {
  const auto& counters = evidence.network.counters;
  using Key = std::tuple<std::string, std::string, int, std::string>;
  std::map<Key, std::vector<const NetworkCounter*>> series;
  for (const NetworkCounter& c : counters) series[{c.by.host, c.device, c.port, c.name}].push_back(&c);
  std::vector<CounterChange> changes;
  for (auto& [key, points] : series) {
    if (points.size() < 2) continue;
    const Stamp::Clock clock = points[0]->time.clock;
    const bool stamped =
        clock != Stamp::Clock::kNone &&
        std::all_of(points.begin(), points.end(), [&](const NetworkCounter* p) { return p->time.clock == clock; });
    std::stable_sort(points.begin(), points.end(), [&](const NetworkCounter* a, const NetworkCounter* b) {
      if (stamped && a->time.ns != b->time.ns) return a->time.ns < b->time.ns;
      if (a->where.file == b->where.file) return a->where.line < b->where.line;
      const std::string_view x = evidence.Path(a->where), y = evidence.Path(b->where);
      if (Moment(x) != Moment(y)) return Moment(x) < Moment(y);
      return x != y ? NaturalLess(x, y) : a->where.file < b->where.file;
    });
    if (points.front()->value <= points.back()->value)
      changes.push_back({points.front(), points.back(), points.back()->value - points.front()->value});
  }
  return changes;
}

std::string HostOfAddress(const Evidence& evidence, std::string_view address) {
  const std::string wanted = PlainAddress(address);
  if (wanted.empty()) return {};
  std::string host;
  bool several = false;
  const auto saw = [&](const std::string& of) {
    if (of.empty()) return;
    several |= !host.empty() && host != of;
    host = of;
  };
  for (const ProcessAddress& a : evidence.network.addresses) {
    if (PlainAddress(a.address) == wanted || Lower(a.by.host) == wanted) saw(a.by.host);
  }
  for (const NetworkInterface& i : evidence.network.interfaces) {
    for (const std::string& a : i.addresses) {
      if (PlainAddress(a) == wanted) saw(i.by.host);
    }
  }
  for (const RoceGid& g : evidence.network.gids) {
    if (!g.ipv4.empty() && g.ipv4 == wanted) saw(g.by.host);
  }
  return several ? std::string() : host;
}

}  // namespace ringscope::model
