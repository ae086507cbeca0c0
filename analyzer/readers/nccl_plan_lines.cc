#include "analyzer/readers/nccl_plan_lines.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include "analyzer/ingest/scan.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

constexpr int kMostChannels = 4096;  // NCCL's own limit is 64
constexpr int64_t kMostRanks = 1 << 24;

bool TakeInt(Scan* s, int* value, int64_t most = kMostRanks) {
  Scan a = *s;
  const bool negative = a.Char('-');
  int64_t n = 0;
  if (!a.Number(&n, 1, 9) || n > most) return false;
  *value = static_cast<int>(negative ? -n : n);
  *s = a;
  return true;
}

bool TakeHex(Scan* s, uint64_t* value) {
  const std::string_view digits = s->While([](char c) { return Scan::Digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'); });
  if (digits.empty() || digits.size() > 16) return false;
  uint64_t v = 0;
  for (const char c : digits) v = v << 4 | static_cast<uint64_t>(Scan::Digit(c) ? c - '0' : (c | 32) - 'a' + 10);
  *value = v;
  return true;
}

bool TakeDouble(Scan* s, double* value) {
  const std::string_view digits = s->While([](char c) { return Scan::Digit(c) || c == '.'; });
  return digits.size() < 32 && absl::SimpleAtod(Absl(digits), value);
}

// "Channel 00/24 :" or "Ring 00 :" or "Channel 00 :".
bool TakeChannel(Scan* s, int* channel, int* after) {
  if (!s->Literal("Channel ") && !s->Literal("Ring ")) return false;
  s->Spaces();
  *after = -1;
  if (!TakeInt(s, channel, kMostChannels) || *channel < 0) return false;
  if (s->Char('/') && !TakeInt(s, after, kMostChannels)) return false;
  s->Spaces();
  return s->Char(':');
}

// "0[1a000]" or "0".
bool TakeEnd(Scan* s, int* rank, std::string* bracket) {
  if (!TakeInt(s, rank) || *rank < 0) return false;
  if (!s->Char('[')) return true;
  const std::string_view inside = s->While([](char c) { return Scan::HostChar(c) || c == ':'; });
  if (!s->Char(']') || inside.size() > 32) return false;
  *bracket = inside;
  return true;
}

std::string_view Word(Scan* s) {
  s->Spaces();
  return s->While([](char c) { return c != ' ' && c != '\t'; });
}

bool TakeTree(Scan* s, int* me, model::PlanTree* tree) {
  // Up to 2.6: up->me->down/down/down; since 2.7: down/down/down->me->up. The side with slashes is down.
  int first[3] = {-1, -1, -1}, second[3] = {-1, -1, -1};
  int n_first = 0, n_second = 0;
  const auto side = [&](int* values, int* n) {
    do {
      if (*n == 3 || !TakeInt(s, &values[(*n)++])) return false;
    } while (s->Char('/'));
    return true;
  };
  if (!side(first, &n_first) || !s->Literal("->") || !TakeInt(s, me) || !s->Literal("->") || !side(second, &n_second)) return false;
  const bool down_first = n_first > n_second;
  tree->up = down_first ? second[0] : first[0];
  const int* down = down_first ? first : second;
  for (int i = 0; i < 3; ++i) tree->down[i] = down[i];
  return true;
}

}  // namespace

bool TransportShape(std::string_view text, model::TransportLine* line) {
  Scan s(text);
  model::TransportLine found;
  int conn = -1;
  if (!TakeChannel(&s, &found.channel, &conn)) return false;
  s.Spaces();
  if (!TakeEnd(&s, &found.from, &found.from_bracket)) return false;
  s.Spaces();
  if (!s.Literal("->")) return false;
  s.Spaces();
  if (!TakeEnd(&s, &found.to, &found.to_bracket)) return false;
  s.Spaces();
  if (s.Literal("[send]"))
    found.send = true;
  else if (s.Literal("[receive]"))
    found.receive = true;
  s.Spaces();
  if (!s.Literal("via ")) return false;
  s.Spaces();
  std::string_view via = s.rest.substr(0, s.rest.find("  "));
  while (!via.empty() && (via.back() == ' ' || via.back() == '.')) via.remove_suffix(1);
  // "P2P/direct pointer" and "direct shared memory" are the names with spaces; comments of other programs may follow the rest.
  if (!via.starts_with("P2P/direct pointer") && !via.starts_with("P2P/common device") && !via.starts_with("direct shared memory"))
    via = via.substr(0, via.find(' '));
  if (via.empty() || via.size() > 80) return false;
  found.via = via;
  found.where = line->where;
  found.by = line->by;
  *line = std::move(found);
  return true;
}

bool RingOrderShape(std::string_view text, int* channel, int* channels, std::vector<int>* order) {
  Scan s(text);
  if (!text.starts_with("Channel ") || !TakeChannel(&s, channel, channels)) return false;
  std::vector<int> ranks;
  for (s.Spaces(); !s.rest.empty(); s.Spaces()) {
    int rank = 0;
    if (!TakeInt(&s, &rank) || rank < 0) return false;
    ranks.push_back(rank);
  }
  if (ranks.empty()) return false;
  *order = std::move(ranks);
  return true;
}

bool RingShape(std::string_view text, int* me, model::PlanRing* ring) {
  Scan s(text);
  int none = 0;
  model::PlanRing found;
  if (!text.starts_with("Ring ") || !TakeChannel(&s, &found.channel, &none)) return false;
  s.Spaces();
  if (!TakeInt(&s, &found.prev)) return false;
  s.Spaces();
  if (!s.Literal("->")) return false;
  s.Spaces();
  if (!TakeInt(&s, me)) return false;
  s.Spaces();
  if (!s.Literal("->")) return false;
  s.Spaces();
  if (!TakeInt(&s, &found.next)) return false;
  s.Spaces();
  if (!s.rest.empty()) return false;
  *ring = std::move(found);
  return true;
}

bool TreesShape(std::string_view text, int* me, std::vector<model::PlanTree>* trees) {
  Scan s(text);
  if (!s.Literal("Trees ")) return false;
  std::vector<model::PlanTree> found;
  for (s.Spaces(); s.Char('['); s.Spaces()) {
    model::PlanTree tree;
    if (!TakeInt(&s, &tree.channel, kMostChannels) || !s.Char(']')) return false;
    s.Spaces();
    if (!TakeTree(&s, me, &tree)) break;  // a line cut short
    found.push_back(tree);
  }
  if (found.empty()) return false;
  *trees = std::move(found);
  return true;
}

bool PatternShape(std::string_view text, model::PlanPattern* pattern) {
  Scan s(text);
  model::PlanPattern p;
  if (!s.Literal("Pattern ") || !TakeInt(&s, &p.pattern) || !s.Literal(", crossNic ") || !TakeInt(&s, &p.cross_nic) ||
      !s.Literal(", nChannels ") || !TakeInt(&s, &p.channels, kMostChannels) || p.channels < 0)
    return false;
  if (!s.Literal(", bw ") && !s.Literal(", speed ")) return false;
  if (!TakeDouble(&s, &p.bw_intra) || !s.Char('/') || !TakeDouble(&s, &p.bw_inter)) return false;
  if (!s.Literal(", type ")) {
    *pattern = p;  // 2.5: ", nvlink 1, type 0"
    return true;
  }
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z' ? true : Scan::Digit(c); };
  p.intra = model::ParsePathType(s.While(upper));
  if (s.Char('/')) p.inter = model::ParsePathType(s.While(upper));
  *pattern = p;
  return true;
}

bool ChannelCountsShape(std::string_view text, model::RankPlan* plan) {
  Scan s(text);
  int n = -1;
  if (!TakeInt(&s, &n, kMostChannels) || !s.Literal(" coll channels")) return false;
  plan->coll_channels = n;
  while (s.Literal(", ") || s.Literal(",")) {
    int count = -1;
    if (!TakeInt(&s, &count, kMostChannels)) break;
    if (s.Literal(" nvls channels"))
      plan->nvls_channels = count;
    else if (s.Literal(" p2p channels per peer"))
      break;
    else if (s.Literal(" p2p channels"))
      plan->p2p_channels = count;
    else if (!s.Literal(" collnet channels"))
      break;
  }
  return true;
}

bool InitShape(std::string_view text, model::RankPlan* plan, bool* done) {
  const bool complete = Contains(text, "Init COMPLETE");
  if (!complete && !Contains(text, "Init START")) return false;
  const size_t at = text.find("comm 0x");
  if (at == text.npos) return false;
  Scan s(text.substr(at));
  model::RankPlan found;
  found.split = Contains(text, "ncclCommSplit") || Contains(text, "ncclCommShrink") || Contains(text, " parent ");
  std::string pointer;
  for (std::string_view word = Word(&s); !word.empty(); word = Word(&s)) {
    if (word == "comm") {
      pointer = std::string(Word(&s));
    } else if (word == "commId") {
      found.communicator = std::string(Word(&s));
    } else if (word == "busId") {
      if (const auto bus = model::ParseNcclBusId(Word(&s))) {
        found.bus_id = *bus;
        found.has_bus_id = true;
      }
    } else if (word == "rank" || word == "nranks" || word == "cudaDev" || word == "nvmlDev") {
      Scan number(Word(&s));
      int n = -1;
      if (!TakeInt(&number, &n) || n < 0) continue;
      (word == "rank"      ? found.rank
       : word == "nranks"  ? found.n_ranks
       : word == "cudaDev" ? found.cuda_device
                           : found.nvml_device) = n;
    }
  }
  if (found.rank < 0 || found.rank >= found.n_ranks) return false;
  if (found.communicator.empty()) found.communicator = pointer;
  if (found.communicator.size() > 40) return false;
  *done = complete;
  *plan = std::move(found);
  return true;
}

bool NodesShape(std::string_view text, model::RankPlan* plan) {
  Scan s(text);
  if (!s.Literal("comm 0x")) return false;
  Word(&s);
  model::RankPlan found;
  if (Word(&s) != "rank" || !(s.Spaces(), TakeInt(&s, &found.rank)) || Word(&s) != "nRanks" ||
      !(s.Spaces(), TakeInt(&s, &found.n_ranks)) || Word(&s) != "nNodes" || !(s.Spaces(), TakeInt(&s, &found.n_nodes)) ||
      Word(&s) != "localRanks" || !(s.Spaces(), TakeInt(&s, &found.local_ranks)) || Word(&s) != "localRank" ||
      !(s.Spaces(), TakeInt(&s, &found.local_rank)))
    return false;
  if (Word(&s) == "MNNVL") s.Spaces(), TakeInt(&s, &found.mnnvl);
  *plan = std::move(found);
  return true;
}

bool TakeDevice(std::string_view* text, DeviceName* device) {
  Scan s(*text);
  const std::string_view type = s.While([](char c) { return c >= 'A' && c <= 'Z'; });
  if (type.size() != 3 || !s.Char('/')) return false;
  uint64_t id = 0;
  if (!TakeHex(&s, &id)) return false;
  if (s.Char('-')) {
    uint64_t local = 0;
    if (!TakeHex(&s, &local)) return false;
    id = id << 56 | (local & ((uint64_t{1} << 56) - 1));
  }
  device->type = type;
  device->id = id;
  *text = s.rest;
  return true;
}

bool TopologyLinkShape(std::string_view text, TopologyShape* shape) {
  Scan s(text);
  s.Spaces();
  const size_t indent = text.size() - s.rest.size();
  if (!s.Literal("+ ")) return false;
  TopologyShape found;
  found.indent = indent;
  found.link = s.While([](char c) { return c >= 'A' && c <= 'Z' ? true : Scan::Digit(c); });
  if (found.link.size() != 3 || !s.Char('[')) return false;
  s.Spaces();
  if (!TakeDouble(&s, &found.bw) || !s.Literal("] - ")) return false;
  if (!TakeDevice(&s.rest, &found.device)) return false;
  s.Spaces();
  found.rest = s.rest;
  *shape = found;
  return true;
}

bool PathRowShape(std::string_view text, std::vector<model::TopologyPath>* paths) {
  DeviceName from;
  if (!TakeDevice(&text, &from) || from.type != "GPU") return false;
  Scan s(text);
  s.Spaces();
  if (!s.Char(':')) return false;
  std::vector<model::TopologyPath> found;
  for (s.Spaces(); !s.rest.empty(); s.Spaces()) {
    model::TopologyPath path;
    DeviceName to;
    if (!TakeDevice(&s.rest, &to)) break;  // a line cut short
    s.Spaces();
    int hops = 0;
    if (!s.Char('(') || !TakeInt(&s, &hops) || !s.Char('/') || !TakeDouble(&s, &path.bw) || !s.Char('/')) break;
    path.type = model::ParsePathType(s.While([](char c) { return c != ')' && c != ' '; }));
    if (!s.Char(')')) break;
    if (to.type != "GPU" && to.type != "NET") continue;
    path.from = from.id;
    path.to = to.id;
    path.to_net = to.type == "NET";
    found.push_back(path);
  }
  if (found.empty()) return false;
  *paths = std::move(found);
  return true;
}

}  // namespace ringscope::ingest
