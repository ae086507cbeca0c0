// The instructions are those of CPython's Lib/pickletools.py.
#include "analyzer/ingest/pickle.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

using Id = ValueTree::Id;
using Kind = ValueTree::Kind;

constexpr uint8_t kNewestProtocol = 5;

// Instructions that import, call, construct or leave the pickle; nullptr for all others.
const char* Refused(uint8_t op) {
  switch (op) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    default:
      return nullptr;
  }
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xc0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xe0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | (code >> 18 & 7));
    *out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

int Hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// \xHH, \uHHHH, \UHHHHHHHH and, where `all`, \n \t \\ \' and the like. What is no escape stays as it is.
std::string Unescape(std::string_view text, bool all) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t digits = next == 'u' ? 4 : next == 'U' ? 8 : next == 'x' && all ? 2 : 0;
    if (text[i] != '\\' || (digits == 0 && !all) || next == '\0') {
      out += text[i];
      continue;
    }
    if (digits == 0) {
      const size_t at = std::string_view("nrtabfv0").find(next);
      out += at == std::string_view::npos ? next : "\n\r\t\a\b\f\v\0"[at];
      ++i;
      continue;
    }
    uint32_t code = 0;
    size_t n = 0;
    for (; n < digits && i + 2 + n < text.size() && Hex(text[i + 2 + n]) >= 0; ++n)
      code = code << 4 | static_cast<uint32_t>(Hex(text[i + 2 + n]));
    if (n < digits) {
      out += text[i];
      continue;
    }
    if (digits == 2) {
      out += static_cast<char>(code);
    } else {
      AppendUtf8(std::min<uint32_t>(code, 0x10ffff), &out);
    }
    i += 1 + digits;
  }
  return out;
}

class Machine {
 public:
  Machine(std::string_view bytes, ValueTree* tree) : bytes_(bytes), tree_(*tree) {
    true_ = tree_.Bool(true);
    false_ = tree_.Bool(false);
    empty_tuple_ = tree_.Container(Kind::kTuple);
    most_containers_ = 1000 + bytes.size() / 3;
  }

  absl::Status Run() {
    while (at_ < bytes_.size()) {
      op_at_ = at_;
      op_ = static_cast<uint8_t>(bytes_[at_++]);
      if (op_ == '.') {
        if (Above() < 1) return Bad("the stack is empty");
        tree_.set_root(stack_.back());
        return absl::OkStatus();
      }
      if (!Step()) {
        const absl::Status why = error_;
        Salvage();
        return why;
      }
    }
    op_at_ = at_;
    Salvage();
    return absl::DataLossError(absl::StrCat("byte ", at_,
                                            ": the pickle ends before its STOP; it was cut short while it was "
                                            "written or copied, what came before was read"));
  }

 private:
  // ---- errors
  bool Fail(absl::string_view what) {
    if (error_.ok()) error_ = Bad(what);
    return false;
  }
  absl::Status Bad(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat("byte ", op_at_, ": ", what, " (instruction ", absl::StrFormat("0x%02x", op_),
                                            "); the file is damaged or no pickle"));
  }

  // ---- operands
  bool Take(uint64_t n, std::string_view* out) {
    if (n > bytes_.size() - at_) return Fail("the pickle ends inside an operand");
    *out = bytes_.substr(at_, n);
    at_ += n;
    return true;
  }
  bool Unsigned(size_t n, uint64_t* out) {
    std::string_view raw;
    if (!Take(n, &raw)) return false;
    uint64_t value = 0;
    memcpy(&value, raw.data(), n);  // little endian, as every machine this runs on
    *out = value;
    return true;
  }
  bool TextLine(std::string_view* out) {
    const size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) return Fail("a line without end");
    *out = bytes_.substr(at_, end - at_);
    if (!out->empty() && out->back() == '\r') out->remove_suffix(1);
    at_ = end + 1;
    return true;
  }
  bool LongText(size_t length_bytes, Kind kind) {
    uint64_t n = 0;
    std::string_view raw;
    if (!Unsigned(length_bytes, &n) || !Take(n, &raw)) return false;
    return Push(kind == Kind::kString ? tree_.String(raw) : tree_.Bytes(raw));
  }

  // ---- stack
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  size_t Above() const { return stack_.size() - Floor(); }
  bool Push(Id id) {
    stack_.push_back(id);
    return true;
  }
  bool Need(size_t n) { return Above() >= n || Fail("the stack holds too little"); }
  // The values above the newest mark; the caller drops them with Drop().
  bool Marked(std::span<const Id>* values) {
    if (marks_.empty()) return Fail("no mark is set");
    *values = std::span<const Id>(stack_).subspan(marks_.back());
    return true;
  }
  void Drop() {
    stack_.resize(marks_.back());
    marks_.pop_back();
  }
  bool NewContainer(Kind kind) {
    if (++containers_ > most_containers_) return Fail("more containers than its size explains");
    return Push(tree_.Container(kind));
  }
  bool FromMark(Kind kind) {
    std::span<const Id> values;
    if (!Marked(&values)) return false;
    if (kind == Kind::kDict && values.size() % 2 != 0) return Fail("a key without value");
    if (++containers_ > most_containers_) return Fail("more containers than its size explains");
    const Id made = tree_.Container(kind);
    tree_.Append(made, values);
    Drop();
    return Push(made);
  }
  bool FromTop(size_t n) {
    if (!Need(n)) return false;
    if (++containers_ > most_containers_) return Fail("more containers than its size explains");
    const Id made = tree_.Container(Kind::kTuple);
    tree_.Append(made, std::span<const Id>(stack_).last(n));
    stack_.resize(stack_.size() - n);
    return Push(made);
  }
  bool Into(size_t n, bool dict) {  // appends the top n values to the container below them
    if (!Need(n + 1)) return false;
    const Id to = stack_[stack_.size() - n - 1];
    if (dict ? !tree_.is_dict(to) : tree_.kind(to) != Kind::kList)
      return Fail(dict ? "no dictionary to set in" : "no list to append to");
    tree_.Append(to, std::span<const Id>(stack_).last(n));
    stack_.resize(stack_.size() - n);
    return true;
  }
  bool MarkedInto(bool dict) {
    std::span<const Id> values;
    if (!Marked(&values)) return false;
    const size_t mark = marks_.back(), floor = marks_.size() > 1 ? marks_[marks_.size() - 2] : 0;
    if (mark <= floor) return Fail("nothing below the mark");
    const Id to = stack_[mark - 1];
    if (dict ? !tree_.is_dict(to) : tree_.kind(to) != Kind::kList)
      return Fail(dict ? "no dictionary to set in" : "no list to append to");
    if (dict && values.size() % 2 != 0) return Fail("a key without value");
    tree_.Append(to, values);
    Drop();
    return true;
  }

  // ---- memo
  bool Put(uint64_t index) {
    if (!Need(1)) return false;
    // Numbered one after the other by every pickler; others are kept by their number.
    if (index == memo_.size()) {
      memo_.push_back(stack_.back());
    } else if (index < memo_.size()) {
      memo_[index] = stack_.back();
    } else {
      odd_memo_[index] = stack_.back();
    }
    return true;
  }
  bool Recall(uint64_t index) {
    if (index < memo_.size()) return Push(memo_[index]);
    const auto it = odd_memo_.find(index);
    return it != odd_memo_.end() ? Push(it->second) : Fail("refers to something that was not written");
  }

  // ---- numbers
  bool Decimal(bool is_long) {
    std::string_view line;
    if (!TextLine(&line)) return false;
    if (!is_long && (line == "00" || line == "01")) return Push(line == "01" ? true_ : false_);
    if (is_long && !line.empty() && line.back() == 'L') line.remove_suffix(1);
    int64_t value = 0;
    if (absl::SimpleAtoi(Absl(line), &value)) return Push(tree_.Int(value));
    const bool digits = line.size() > 1 && std::all_of(line.begin() + 1, line.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || (line[0] != '-' && (line[0] < '0' || line[0] > '9'))) return Fail("a number that is none");
    return Push(tree_.Int(line[0] == '-' ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max()));
  }
  bool Long(size_t length_bytes) {
    uint64_t n = 0;
    std::string_view raw;
    if (!Unsigned(length_bytes, &n)) return false;
    if (length_bytes == 4 && n > std::numeric_limits<int32_t>::max()) return Fail("a number of negative length");
    if (!Take(n, &raw)) return false;
    const bool negative = !raw.empty() && static_cast<uint8_t>(raw.back()) >= 0x80;
    uint64_t value = negative ? ~uint64_t{0} : 0;
    const char sign = negative ? '\xff' : '\0';
    bool fits = true;
    for (size_t i = 8; i < raw.size(); ++i) fits &= raw[i] == sign;
    memcpy(&value, raw.data(), std::min<size_t>(raw.size(), 8));
    if (raw.size() >= 8) fits &= (static_cast<int64_t>(value) < 0) == negative;
    if (!fits)
      value = static_cast<uint64_t>(negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max());
    return Push(tree_.Int(static_cast<int64_t>(value)));
  }
  bool TextFloat() {
    std::string_view line;
    double value = 0;
    if (!TextLine(&line)) return false;
    if (!absl::SimpleAtod(Absl(line), &value)) return Fail("a number that is none");
    return Push(tree_.Float(value));
  }
  bool BinaryFloat() {
    uint64_t raw = 0;
    if (!Unsigned(8, &raw)) return false;
    return Push(tree_.Float(std::bit_cast<double>(__builtin_bswap64(raw))));
  }
  bool QuotedString() {
    std::string_view line;
    if (!TextLine(&line)) return false;
    if (line.size() < 2 || (line[0] != '\'' && line[0] != '"') || line.back() != line[0]) return Fail("a string without quotes");
    return Push(Spelled(line.substr(1, line.size() - 2), true));
  }
  Id Spelled(std::string_view text, bool all) {
    if (text.find('\\') == text.npos) return tree_.String(text);
    return tree_.String(tree_.Own(Unescape(text, all)));
  }

  bool Step() {
    uint64_t n = 0;
    std::string_view raw;
    switch (op_) {
      // What dumps consist of, first.
      case 'h':
        return Unsigned(1, &n) && Recall(n);
      case 'j':
        return Unsigned(4, &n) && Recall(n);
      case 'K':
        return Unsigned(1, &n) && Push(tree_.Int(static_cast<int64_t>(n)));
      case 'M':
        return Unsigned(2, &n) && Push(tree_.Int(static_cast<int64_t>(n)));
      case 'J':
        return Unsigned(4, &n) && Push(tree_.Int(static_cast<int32_t>(n)));
      case 0x8a:
        return Long(1);
      case 0x8b:
        return Long(4);
      case 0x94:
        return Put(memo_.size() + odd_memo_.size());
      case 'q':
        return Unsigned(1, &n) && Put(n);
      case 'r':
        return Unsigned(4, &n) && Put(n);
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case ']':
        return NewContainer(Kind::kList);
      case '}':
        return NewContainer(Kind::kDict);
      case 'e':
      case 0x90:  // ADDITEMS
        return MarkedInto(false);
      case 'u':
        return MarkedInto(true);
      case 'a':
        return Into(1, false);
      case 's':
        return Into(2, true);
      case 0x85:
        return FromTop(1);
      case 0x86:
        return FromTop(2);
      case 0x87:
        return FromTop(3);
      case ')':
        return Push(empty_tuple_);
      case 'N':
        return Push(null_);
      case 0x88:
        return Push(true_);
      case 0x89:
        return Push(false_);
      case 0x8c:
        return LongText(1, Kind::kString);
      case 'X':
        return LongText(4, Kind::kString);
      case 0x8d:
        return LongText(8, Kind::kString);
      case 'U':  // Python 2's str
        return LongText(1, Kind::kString);
      case 'T':
        return LongText(4, Kind::kString);
      case 'C':
        return LongText(1, Kind::kBytes);
      case 'B':
        return LongText(4, Kind::kBytes);
      case 0x8e:
      case 0x96:  // BYTEARRAY8
        return LongText(8, Kind::kBytes);
      case 'G':
        return BinaryFloat();
      case 0x95:
        if (!Unsigned(8, &n)) return false;
        return n <= bytes_.size() - at_ || Fail("a frame that is longer than the file");
      case 0x80:
        if (!Unsigned(1, &n)) return false;
        return n <= kNewestProtocol || Fail(absl::StrCat("protocol ", n, " is not known"));
      // Protocol 0.
      case 'I':
        return Decimal(false);
      case 'L':
        return Decimal(true);
      case 'F':
        return TextFloat();
      case 'S':
        return QuotedString();
      case 'V':
        return TextLine(&raw) && Push(Spelled(raw, false));
      case 'g':
      case 'p': {
        if (!TextLine(&raw)) return false;
        if (!absl::SimpleAtoi(Absl(raw), &n)) return Fail("a memo number that is none");
        return op_ == 'g' ? Recall(n) : Put(n);
      }
      case 'l':
        return FromMark(Kind::kList);
      case 'd':
        return FromMark(Kind::kDict);
      case 't':
        return FromMark(Kind::kTuple);
      case 0x8f:  // EMPTY_SET
        return NewContainer(Kind::kList);
      case 0x91:  // FROZENSET
        return FromMark(Kind::kList);
      case '0':
        if (Above() > 0) {
          stack_.pop_back();
        } else if (!marks_.empty()) {
          marks_.pop_back();
        } else {
          return Fail("the stack is empty");
        }
        return true;
      case '1':
        if (marks_.empty()) return Fail("no mark is set");
        Drop();
        return true;
      case '2':
        return Need(1) && Push(stack_.back());
      default:
        break;
    }
    if (const char* name = Refused(op_); name != nullptr) {
      error_ = absl::PermissionDeniedError(absl::StrCat(
          "byte ", op_at_, ": the instruction ", name,
          " would run code of the pickle's choice; it was not followed. A dump of PyTorch's flight recorder is plain "
          "data and has none: do not load this file with Python"));
      return false;
    }
    return Fail("unknown instruction");
  }

  // Puts what lies above each open mark into the container below it, as the instruction that did not come would have done.
  void Salvage() {
    while (!marks_.empty()) {
      std::span<const Id> values;
      (void)Marked(&values);
      const size_t mark = marks_.back();
      if (mark > (marks_.size() > 1 ? marks_[marks_.size() - 2] : 0)) {
        const Id to = stack_[mark - 1];
        if (tree_.kind(to) == Kind::kList) tree_.Append(to, values);
        if (tree_.is_dict(to)) tree_.Append(to, values.first(values.size() & ~size_t{1}));
      }
      Drop();
    }
    if (!stack_.empty()) tree_.set_root(stack_.front());
  }

  const std::string_view bytes_;
  ValueTree& tree_;
  size_t at_ = 0, op_at_ = 0;
  uint8_t op_ = 0;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::vector<Id> memo_;
  absl::flat_hash_map<uint64_t, Id> odd_memo_;
  Id null_ = ValueTree::kNone, true_ = 0, false_ = 0, empty_tuple_ = 0;  // immutable, so one of each is enough
  uint64_t containers_ = 0, most_containers_ = 0;
  absl::Status error_;
};

}  // namespace

bool LooksLikePickle(std::string_view head) {
  if (head.size() < 2) return false;
  const auto first = static_cast<uint8_t>(head[0]), second = static_cast<uint8_t>(head[1]);
  if (first == 0x80) return second <= kNewestProtocol;
  return (first == '(' && (second == 'd' || second == 'l' || second == 't')) ||
         ((first == '}' || first == ']') && (second == 'q' || second == 'p' || second == '.' || second == '('));
}

absl::Status ReadPickle(std::string_view bytes, ValueTree* tree) {
  tree->Clear();
  return Machine(bytes, tree).Run();
}

}  // namespace ringscope::ingest
