// Text in fixed buffers: what this process world uses in place of std::string and printf. No
// allocation; what does not fit is cut, the result is always NUL-terminated, and `cut()` tells.
#ifndef RINGSCOPE_RECORDER_FLIGHT_TEXT_H_
#define RINGSCOPE_RECORDER_FLIGHT_TEXT_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace ringscope {

// Appends to a buffer that the caller owns and that must outlive this object. capacity >= 1.
class Text {
 public:
  Text(char* buffer, size_t capacity) : begin_(buffer), capacity_(capacity) { begin_[0] = 0; }

  Text& Add(const char* s) { return Add(s, strlen(s)); }
  Text& Add(const char* s, size_t n) {
    const size_t room = capacity_ - 1 - size_;
    if (n > room) {
      n = room;
      cut_ = true;
    }
    if (n) memcpy(begin_ + size_, s, n);
    size_ += n;
    begin_[size_] = 0;
    return *this;
  }
  Text& AddChar(char c) { return Add(&c, 1); }
  Text& AddUint(uint64_t v) {
    char digits[20];
    size_t n = 0;
    do {
      digits[n++] = static_cast<char>('0' + v % 10);
      v /= 10;
    } while (v);
    while (n) AddChar(digits[--n]);
    return *this;
  }
  Text& AddInt(int64_t v) {
    if (v >= 0) return AddUint(static_cast<uint64_t>(v));
    AddChar('-');
    return AddUint(~static_cast<uint64_t>(v) + 1);
  }
  Text& AddHex(uint64_t v) {
    Add("0x");
    int shift = 60;
    while (shift > 0 && (v >> shift) == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) AddChar("0123456789abcdef"[v >> shift & 15]);
    return *this;
  }
  // As part of a file name: letters, digits, '.', '_' are kept, the rest becomes '_'; '-' separates
  // the parts of our names, so it becomes '_' too. A leading '.' becomes '_'. Empty becomes
  // `if_empty`. At most `limit` characters.
  Text& AddName(const char* s, const char* if_empty, size_t limit = 64) {
    if (s[0] == 0) s = if_empty;
    for (size_t i = 0; s[i] && i < limit; ++i) {
      const char c = s[i];
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || (c == '.' && i > 0);
      AddChar(plain ? c : '_');
    }
    return *this;
  }
  // Seconds with up to three decimals, without trailing zeros.
  Text& AddSeconds(uint64_t ns) {
    AddUint(ns / 1000000000);
    uint64_t ms = ns / 1000000 % 1000;
    if (ms == 0) return *this;
    char digits[4] = {'.', static_cast<char>('0' + ms / 100), static_cast<char>('0' + ms / 10 % 10),
                      static_cast<char>('0' + ms % 10)};
    size_t n = 4;
    while (digits[n - 1] == '0') --n;
    return Add(digits, n);
  }

  const char* c_str() const { return begin_; }
  size_t size() const { return size_; }
  bool cut() const { return cut_; }
  void Clear() {
    size_ = 0;
    cut_ = false;
    begin_[0] = 0;
  }

 private:
  char* begin_;
  size_t capacity_;
  size_t size_ = 0;
  bool cut_ = false;
};

// A Text with its own storage.
template <size_t N>
class TextBuffer : public Text {
 public:
  TextBuffer() : Text(storage_, N) {}
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;

 private:
  char storage_[N];
};

// Copies and cuts; always NUL-terminated. Returns false when it cut.
inline bool CopyText(char* to, size_t capacity, const char* from) {
  const size_t n = strnlen(from, capacity);
  const size_t kept = n < capacity ? n : capacity - 1;
  memcpy(to, from, kept);
  to[kept] = 0;
  return n < capacity;
}

// Decimal digits at `s`; returns the first character behind them, or nullptr if there is none or it
// overflows.
inline const char* ParseUint(const char* s, uint64_t* value) {
  uint64_t v = 0;
  const char* p = s;
  for (; *p >= '0' && *p <= '9'; ++p) {
    const uint64_t digit = static_cast<uint64_t>(*p - '0');
    if (v > (UINT64_MAX - digit) / 10) return nullptr;
    v = v * 10 + digit;
  }
  if (p == s) return nullptr;
  *value = v;
  return p;
}

inline bool StartsWith(const char* s, const char* prefix) {
  return strncmp(s, prefix, strlen(prefix)) == 0;
}

}  // namespace ringscope

#endif  // RINGSCOPE_RECORDER_FLIGHT_TEXT_H_
