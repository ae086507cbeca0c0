#include "analyzer/ingest/value_tree.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "analyzer/model/views.h"

namespace ringscope::ingest {

void ValueTree::Clear() {
  nodes_.clear();
  lists_.clear();
  children_.clear();
  owned_.clear();
  nodes_.push_back({Kind::kNull, 0, 0});
  root_ = kNone;
}

ValueTree::Id ValueTree::Add(Node node) {
  nodes_.push_back(node);
  return static_cast<Id>(nodes_.size() - 1);
}

ValueTree::Id ValueTree::Float(double value) { return Add({Kind::kFloat, 0, std::bit_cast<uint64_t>(value)}); }

ValueTree::Id ValueTree::Text(Kind kind, std::string_view value) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  return Add({kind, static_cast<uint32_t>(std::min(value.size(), kMost)), reinterpret_cast<uintptr_t>(value.data())});
}

ValueTree::Id ValueTree::Container(Kind kind) {
  lists_.push_back({0, 0, 0});
  return Add({kind, 0, lists_.size() - 1});
}

void ValueTree::Append(Id container, std::span<const Id> values) {
  if (values.empty()) return;
  List& list = lists_[nodes_[container].payload];
  const auto more = static_cast<uint32_t>(values.size());
  if (list.size + more > list.room) {
    // Filled in one go is the rule: no room is kept then. What grows again moves to the end with room to spare.
    const uint32_t room = list.size == 0 ? more : std::max(list.size + more, 2 * list.size);
    const auto begin = static_cast<uint32_t>(children_.size());
    children_.resize(children_.size() + room);
    std::copy_n(children_.begin() + list.begin, list.size, children_.begin() + begin);
    list.begin = begin;
    list.room = room;
  }
  std::copy(values.begin(), values.end(), children_.begin() + list.begin + list.size);
  list.size += more;
}

std::string_view ValueTree::Str(Id id) const {
  if (!is_string(id)) return {};
  return {reinterpret_cast<const char*>(static_cast<uintptr_t>(nodes_[id].payload)), nodes_[id].length};
}

std::optional<int64_t> ValueTree::Number(Id id) const {
  switch (kind(id)) {
    case Kind::kBool:
    case Kind::kInt:
      return static_cast<int64_t>(nodes_[id].payload);
    case Kind::kFloat: {
      const double value = std::bit_cast<double>(nodes_[id].payload);
      if (!(std::abs(value) < 9.2e18) || value != std::floor(value)) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    case Kind::kString: {
      int64_t value = 0;
      if (!absl::SimpleAtoi(Absl(Str(id)), &value)) return std::nullopt;
      return value;
    }
    default:
      return std::nullopt;
  }
}

double ValueTree::FloatOf(Id id) const {
  if (kind(id) == Kind::kFloat) return std::bit_cast<double>(nodes_[id].payload);
  return static_cast<double>(Number(id).value_or(0));
}

std::span<const ValueTree::Id> ValueTree::Children(Id id) const {
  if (!is_container(id)) return {};
  const List& list = lists_[nodes_[id].payload];
  return {children_.data() + list.begin, list.size};
}

ValueTree::Id ValueTree::Get(Id dict, std::string_view key) const {
  if (!is_dict(dict)) return kNone;
  const auto pairs = Children(dict);
  for (size_t i = pairs.size() & ~size_t{1}; i > 0; i -= 2) {
    if (is_string(pairs[i - 2]) && Str(pairs[i - 2]) == key) return pairs[i - 1];
  }
  return kNone;
}

}  // namespace ringscope::ingest
