// Plain data out of a document (pickle, JSON): null, booleans, numbers, strings, lists, dictionaries. Nothing in it can run.
//
// One array of 16-byte nodes and one of children. Values may be shared (a pickle refers back to what it wrote once), so this is
// a graph, and it may even contain itself: who walks it must not do so without a limit.
#ifndef RINGSCOPE_ANALYZER_INGEST_VALUE_TREE_H_
#define RINGSCOPE_ANALYZER_INGEST_VALUE_TREE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringscope::ingest {

class ValueTree {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = 0;  // also what is handed out for "not there"
  enum class Kind : uint8_t { kNull, kBool, kInt, kFloat, kString, kBytes, kList, kTuple, kDict };

  ValueTree() { Clear(); }
  // Forgets all values and keeps the memory.
  void Clear();
  size_t size() const { return nodes_.size(); }

  Id root() const { return root_; }
  void set_root(Id id) { root_ = id; }

  // Strings are not copied: what they point to must outlive the tree. Own() keeps one that has no other home.
  Id Bool(bool value) { return Add({Kind::kBool, 0, value ? 1u : 0u}); }
  Id Int(int64_t value) { return Add({Kind::kInt, 0, static_cast<uint64_t>(value)}); }
  Id Float(double value);
  Id String(std::string_view value) { return Text(Kind::kString, value); }
  Id Bytes(std::string_view value) { return Text(Kind::kBytes, value); }
  std::string_view Own(std::string value) { return owned_.emplace_back(std::move(value)); }
  Id Container(Kind kind);
  // Appends to a list or tuple; to a dictionary key and value in turn (an even number).
  void Append(Id container, std::span<const Id> values);

  Kind kind(Id id) const { return nodes_[id].kind; }
  bool is_null(Id id) const { return kind(id) == Kind::kNull; }
  bool is_dict(Id id) const { return kind(id) == Kind::kDict; }
  bool is_sequence(Id id) const { return kind(id) == Kind::kList || kind(id) == Kind::kTuple; }
  bool is_container(Id id) const { return kind(id) >= Kind::kList; }
  bool is_string(Id id) const { return kind(id) == Kind::kString || kind(id) == Kind::kBytes; }
  // Integers, booleans, whole floats and strings that spell one (JSON dumps write numbers as strings).
  std::optional<int64_t> Number(Id id) const;
  double FloatOf(Id id) const;        // 0 when it is no number
  std::string_view Str(Id id) const;  // empty when it is no string
  // Children of a container (of a dictionary: key, value, key, value); empty when it is none.
  std::span<const Id> Children(Id id) const;
  // Value of a key, the last one of equal keys; kNone when there is none.
  Id Get(Id dict, std::string_view key) const;

 private:
  struct Node {
    Kind kind;
    uint32_t length;   // of a string
    uint64_t payload;  // number, address of a string, index in lists_
  };
  struct List {
    uint32_t begin, size, room;
  };
  Id Add(Node node);
  Id Text(Kind kind, std::string_view value);
  std::vector<Node> nodes_;
  std::vector<List> lists_;
  std::vector<Id> children_;
  std::deque<std::string> owned_;
  Id root_ = kNone;
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_VALUE_TREE_H_
