#include "analyzer/readers/json_tree.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ringscope::ingest {
namespace {

using Id = ValueTree::Id;
using Kind = ValueTree::Kind;

class Sax : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Sax(ValueTree* tree) : tree_(*tree) {}

  bool null() override { return Value(ValueTree::kNone); }
  bool boolean(bool value) override { return Value(tree_.Bool(value)); }
  bool number_integer(number_integer_t value) override { return Value(tree_.Int(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max());
    return Value(tree_.Int(static_cast<int64_t>(std::min(value, kMost))));
  }
  bool number_float(number_float_t value, const string_t&) override { return Value(tree_.Float(value)); }
  bool string(string_t& value) override { return Value(tree_.String(tree_.Own(std::move(value)))); }
  bool binary(binary_t&) override { return Value(ValueTree::kNone); }
  bool start_object(std::size_t) override { return Open(Kind::kDict); }
  bool key(string_t& value) override { return Value(Key(value)); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(Kind::kList); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    status_ = absl::DataLossError(absl::StrCat("byte ", position,
                                               ": no JSON from here on; the file was cut short or damaged, what "
                                               "came before was read"));
    while (!open_.empty()) Close();
    return false;
  }
  absl::Status Take() { return std::move(status_); }

 private:
  struct Level {
    Id id;
    size_t from;  // in pending_
  };
  // Keys repeat with every entry; one node each is enough.
  Id Key(const std::string& text) {
    for (const auto& [known, id] : keys_) {
      if (known == text) return id;
    }
    const std::string_view owned = tree_.Own(text);
    const Id id = tree_.String(owned);
    constexpr size_t kMostKeys = 64;
    if (keys_.size() < kMostKeys) keys_.emplace_back(owned, id);
    return id;
  }
  bool Value(Id id) {
    if (open_.empty()) {
      tree_.set_root(id);
    } else {
      pending_.push_back(id);
    }
    return true;
  }
  bool Open(Kind kind) {
    const Id id = tree_.Container(kind);
    Value(id);
    open_.push_back({id, pending_.size()});
    return true;
  }
  bool Close() {
    const Level level = open_.back();
    open_.pop_back();
    auto values = std::span<const Id>(pending_).subspan(level.from);
    if (tree_.is_dict(level.id)) values = values.first(values.size() & ~size_t{1});  // cut off behind a key
    tree_.Append(level.id, values);
    pending_.resize(level.from);
    return true;
  }

  ValueTree& tree_;
  std::vector<Level> open_;
  std::vector<Id> pending_;
  std::vector<std::pair<std::string_view, Id>> keys_;
  absl::Status status_;
};

}  // namespace

absl::Status ReadJson(std::string_view bytes, ValueTree* tree) {
  tree->Clear();
  Sax sax(tree);
  nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &sax);
  return sax.Take();
}

}  // namespace ringscope::ingest
