#include "analyzer/readers/flight_recorder_groups.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "analyzer/ingest/scan.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

using Id = ValueTree::Id;

constexpr size_t kMostRanks = 1 << 18;

// "[0, 1, 2]", as FlightRecorder.hpp's ranks_str() writes it, or a list.
std::vector<int32_t> Ranks(const ValueTree& tree, Id value) {
  std::vector<int32_t> ranks;
  const auto add = [&ranks](int64_t rank) {
    if (rank >= 0 && rank < (1 << 20) && ranks.size() < kMostRanks) ranks.push_back(static_cast<int32_t>(rank));
  };
  if (tree.is_sequence(value)) {
    for (const Id child : tree.Children(value)) add(tree.Number(child).value_or(-1));
  } else if (tree.is_dict(value)) {  // format 1.2: rank -> rank in the group
    const auto pairs = tree.Children(value);
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) add(tree.Number(pairs[i]).value_or(-1));
  } else {
    Scan scan(tree.Str(value));
    while (!scan.rest.empty()) {
      int64_t rank = 0;
      if (scan.Number(&rank, 1, 9)) {
        add(rank);
      } else {
        scan.rest.remove_prefix(1);
      }
    }
  }
  return ranks;
}

// Numbers of a file's name, those right behind "rank" first, then from the last to the first.
std::vector<int> NumbersOf(std::string_view path) {
  const std::string name = absl::AsciiStrToLower(Absl(path.substr(path.rfind('/') + 1)));
  std::vector<int> behind_rank, others;
  for (size_t i = 0; i < name.size();) {
    Scan scan(std::string_view(name).substr(i));
    int64_t number = 0;
    if (!scan.Number(&number, 1, 7)) {
      ++i;
      continue;
    }
    const size_t end = name.size() - scan.rest.size();
    size_t before = i;
    while (before > 0 &&
           (name[before - 1] == '_' || name[before - 1] == '-' || name[before - 1] == '.' || name[before - 1] == '='))
      --before;
    const bool rank = before >= 4 && name.compare(before - 4, 4, "rank") == 0;
    if (scan.rest.empty() || !Scan::Digit(scan.rest[0])) (rank ? behind_rank : others).push_back(static_cast<int>(number));
    i = end;
    while (i < name.size() && Scan::Digit(name[i])) ++i;  // too long to be a rank
  }
  std::reverse(others.begin(), others.end());
  behind_rank.insert(behind_rank.end(), others.begin(), others.end());
  return behind_rank;
}

bool MemberOfAll(const std::vector<DumpGroup>& groups, int rank) {
  return std::all_of(groups.begin(), groups.end(), [rank](const DumpGroup& group) {
    return group.ranks.empty() || std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
  });
}

}  // namespace

uint64_t DumpGroup::Hash() const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const char c : name) add(static_cast<uint8_t>(c));
  add(0);
  for (const int32_t rank : ranks) {
    for (int i = 0; i < 4; ++i) add(static_cast<uint8_t>(rank >> (8 * i)));
  }
  return hash == 0 ? 1 : hash;
}

std::string DumpGroup::Label() const {
  const auto printable = [](std::string_view text) {
    std::string shown(text.substr(0, 48));
    for (char& c : shown) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    }
    return shown;
  };
  // Groups that were split off are named by a hash.
  const std::string short_name = printable(name.size() > 16 ? name.substr(0, 8) : name);
  if (description.empty() || description == "undefined") return absl::StrCat("process group ", short_name);
  return absl::StrCat(short_name, ":", printable(description));
}

std::vector<DumpGroup> ReadGroups(const ValueTree& tree, Id config) {
  std::vector<DumpGroup> groups;
  const auto pairs = tree.is_dict(config) ? tree.Children(config) : std::span<const Id>();
  constexpr size_t kMostGroups = 1 << 14;
  for (size_t i = 0; i + 1 < pairs.size() && groups.size() < kMostGroups; i += 2) {
    const Id info = pairs[i + 1];
    DumpGroup group;
    group.name = tree.Str(pairs[i]);
    group.configured = true;
    if (group.name.empty()) group.id = tree.Number(pairs[i]).value_or(-1);  // format 1.2: by number
    const Id ranks = tree.Get(info, "ranks");
    if (const Id description = tree.Get(info, "desc"); tree.is_string(description)) group.description = tree.Str(description);
    group.ranks = Ranks(tree, ranks != ValueTree::kNone ? ranks : info);
    groups.push_back(std::move(group));
  }
  return groups;
}

int OwnRank(const std::vector<DumpGroup>& groups, std::string_view path, int told) {
  if (told >= 0 && MemberOfAll(groups, told)) return told;
  const bool known = std::any_of(groups.begin(), groups.end(), [](const DumpGroup& g) { return !g.ranks.empty(); });
  const std::vector<int> numbers = NumbersOf(path);
  for (const int number : numbers) {
    if (MemberOfAll(groups, number)) return number;
  }
  if (!known) return numbers.empty() ? -1 : numbers.front();
  // Nobody else is in all of its groups.
  const DumpGroup* smallest = nullptr;
  for (const DumpGroup& group : groups) {
    if (!group.ranks.empty() && (smallest == nullptr || group.ranks.size() < smallest->ranks.size())) smallest = &group;
  }
  int found = -1;
  for (const int32_t rank : smallest->ranks) {
    if (!MemberOfAll(groups, rank)) continue;
    if (found >= 0 && found != rank) return -1;
    found = rank;
  }
  return found;
}

}  // namespace ringscope::ingest
