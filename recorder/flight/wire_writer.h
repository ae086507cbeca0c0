// Writes protobuf's wire format into a buffer that the caller owns: no allocation, no exceptions,
// no generated code.
//
// Written in field order with the methods below, a message is byte for byte what libprotobuf writes
// for the same content (tests/unit/recorder/wire_writer_test.cc): scalar fields of value zero are
// left out, as proto3 does; repeated scalars are packed; lengths have the shortest form.
//
// What does not fit sets overflow() for good and is not written; nothing is ever written outside
// the buffer. After an overflow the content is void: Rewind() to a place before it, or throw it
// away.
#ifndef RINGSCOPE_RECORDER_FLIGHT_WIRE_WRITER_H_
#define RINGSCOPE_RECORDER_FLIGHT_WIRE_WRITER_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace ringscope::flight {

class WireWriter {
 public:
  WireWriter(void* buffer, size_t capacity)
      : begin_(static_cast<uint8_t*>(buffer)), at_(begin_), end_(begin_ + capacity) {}

  size_t size() const { return static_cast<size_t>(at_ - begin_); }
  size_t room() const { return static_cast<size_t>(end_ - at_); }
  const uint8_t* data() const { return begin_; }
  bool overflow() const { return overflow_; }

  // Forgets everything behind the first `size` bytes, an overflow included. REQUIRES: size <=
  // size() and not inside a message that is still open.
  void Rewind(size_t size) {
    at_ = begin_ + size;
    overflow_ = false;
  }

  // ---- singular fields: left out when zero / empty
  void Uint(uint32_t field, uint64_t v) {
    if (v) UintAlways(field, v);
  }
  // int32 and int64 alike: a negative one takes ten bytes.
  void Int(uint32_t field, int64_t v) {
    if (v) UintAlways(field, static_cast<uint64_t>(v));
  }
  void Sint(uint32_t field, int64_t v) {
    if (v) UintAlways(field, ZigZag(v));
  }
  void Bool(uint32_t field, bool v) {
    if (v) UintAlways(field, 1);
  }
  void Fixed64(uint32_t field, uint64_t v) {
    if (!v) return;
    Tag(field, 1);
    Raw(&v, sizeof(v));
  }
  void Fixed32(uint32_t field, uint32_t v) {
    if (!v) return;
    Tag(field, 5);
    Raw(&v, sizeof(v));
  }
  void Double(uint32_t field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    Fixed64(field, bits);  // -0.0 is not zero on the wire
  }
  void Bytes(uint32_t field, const void* data, size_t n) {
    if (n) BytesAlways(field, data, n);
  }
  // A proto3 string must be UTF-8: what is not becomes '?', byte for byte, so that the length
  // stays.
  void String(uint32_t field, const char* s, size_t n) {
    if (n) StringAlways(field, s, n);
  }
  void String(uint32_t field, const char* s) { String(field, s, strlen(s)); }

  // ---- the same also when zero: elements of repeated fields, keys and values of map entries
  void UintAlways(uint32_t field, uint64_t v) {
    Tag(field, 0);
    Varint(v);
  }
  void BytesAlways(uint32_t field, const void* data, size_t n) {
    Tag(field, 2);
    Varint(n);
    Raw(data, n);
  }
  void StringAlways(uint32_t field, const char* s, size_t n) {
    Tag(field, 2);
    Varint(n);
    if (!Fits(n)) return;
    Utf8(s, n);
  }

  // ---- nested messages and packed fields: Begin, fields or values, End. The mark is the place of
  // the length.
  using Mark = size_t;
  Mark Begin(uint32_t field) {
    Tag(field, 2);
    if (Fits(1)) *at_++ = 0;
    return size();
  }
  // The length was given one byte; a longer one moves the content up.
  void End(Mark content) {
    if (overflow_) return;
    const size_t n = size() - content;
    uint8_t length[10];
    size_t digits = 0;
    for (uint64_t v = n;; v >>= 7) {
      length[digits++] = static_cast<uint8_t>((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
      if (v <= 0x7f) break;
    }
    if (digits > 1) {
      if (!Fits(digits - 1)) return;
      memmove(begin_ + content + digits - 1, begin_ + content, n);
      at_ += digits - 1;
    }
    memcpy(begin_ + content - 1, length, digits);
  }
  // An empty packed field is left out: End would write a length of zero.
  void EndPacked(Mark content, uint32_t field) {
    if (!overflow_ && size() == content) {
      at_ -= 1 + TagBytes(field);
      return;
    }
    End(content);
  }
  // Values of a packed field.
  void Varint(uint64_t v) {
    uint8_t bytes[10];
    size_t n = 0;
    while (v > 0x7f) {
      bytes[n++] = static_cast<uint8_t>(v | 0x80);
      v >>= 7;
    }
    bytes[n++] = static_cast<uint8_t>(v);
    Raw(bytes, n);
  }
  void SintVarint(int64_t v) { Varint(ZigZag(v)); }
  void Raw(const void* data, size_t n) {
    if (!Fits(n)) return;
    memcpy(at_, data, n);
    at_ += n;
  }

  static constexpr uint64_t ZigZag(int64_t v) {
    return (static_cast<uint64_t>(v) << 1) ^ (v < 0 ? ~uint64_t{0} : 0);
  }

 private:
  bool Fits(size_t n) {
    if (!overflow_ && n <= room()) return true;
    overflow_ = true;
    return false;
  }
  void Tag(uint32_t field, uint32_t type) { Varint(uint64_t{field} << 3 | type); }
  static size_t TagBytes(uint32_t field) {
    size_t n = 1;
    for (uint64_t v = uint64_t{field} << 3; v > 0x7f; v >>= 7) ++n;
    return n;
  }
  // REQUIRES: n bytes of room.
  void Utf8(const char* text, size_t n) {
    const uint8_t* s = reinterpret_cast<const uint8_t*>(text);
    for (size_t i = 0; i < n;) {
      size_t length = SequenceLength(s + i, n - i);
      if (length == 0) {
        *at_++ = '?';
        ++i;
        continue;
      }
      for (; length; --length) *at_++ = s[i++];
    }
  }
  // Bytes of the well-formed UTF-8 sequence at s (Unicode 15, table 3-7); 0 if there is none.
  static size_t SequenceLength(const uint8_t* s, size_t n) {
    const uint8_t a = s[0];
    if (a < 0x80) return 1;
    const auto tail = [&](size_t i) { return i < n && (s[i] & 0xc0) == 0x80; };
    if (a >= 0xc2 && a <= 0xdf) return tail(1) ? 2 : 0;
    if (a >= 0xe0 && a <= 0xef) {
      if (!tail(1) || !tail(2)) return 0;
      if ((a == 0xe0 && s[1] < 0xa0) || (a == 0xed && s[1] > 0x9f)) return 0;
      return 3;
    }
    if (a >= 0xf0 && a <= 0xf4) {
      if (!tail(1) || !tail(2) || !tail(3)) return 0;
      if ((a == 0xf0 && s[1] < 0x90) || (a == 0xf4 && s[1] > 0x8f)) return 0;
      return 4;
    }
    return 0;
  }

  uint8_t* begin_;
  uint8_t* at_;
  uint8_t* end_;
  bool overflow_ = false;
};

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_WIRE_WRITER_H_
