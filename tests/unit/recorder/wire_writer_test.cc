// The wire writer against libprotobuf: the same content must give the same bytes.
#include "recorder/flight/wire_writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "proto/trace.pb.h"
#include "recorder/flight/crc32c.h"

namespace ringscope::flight {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string LibraryBytes(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// Writes any message with WireWriter, field by field in number order, as the encoder does by hand.
class ByReflection {
 public:
  explicit ByReflection(WireWriter* writer) : w_(*writer) {}

  void Write(const Message& message) {
    const auto* descriptor = message.GetDescriptor();
    const Reflection* r = message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    for (int i = 0; i < descriptor->field_count(); ++i) fields.push_back(descriptor->field(i));
    std::sort(fields.begin(), fields.end(),
              [](const auto* a, const auto* b) { return a->number() < b->number(); });
    for (const FieldDescriptor* field : fields) {
      if (field->is_map()) {
        WriteMap(message, r, field);
      } else if (field->is_repeated()) {
        WriteRepeated(message, r, field);
      } else {
        WriteSingular(message, r, field);
      }
    }
  }

 private:
  static uint32_t Number(const FieldDescriptor* field) {
    return static_cast<uint32_t>(field->number());
  }

  void WriteMap(const Message& message, const Reflection* r, const FieldDescriptor* field) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (int i = 0; i < r->FieldSize(message, field); ++i) {
      const Message& entry = r->GetRepeatedMessage(message, field, i);
      const Reflection* er = entry.GetReflection();
      entries.emplace_back(er->GetString(entry, entry.GetDescriptor()->map_key()),
                           er->GetString(entry, entry.GetDescriptor()->map_value()));
    }
    std::sort(entries.begin(), entries.end());
    for (const auto& [key, value] : entries) {
      const WireWriter::Mark mark = w_.Begin(Number(field));
      w_.StringAlways(1, key.data(), key.size());
      w_.StringAlways(2, value.data(), value.size());
      w_.End(mark);
    }
  }

  void WriteRepeated(const Message& message, const Reflection* r, const FieldDescriptor* field) {
    const int n = r->FieldSize(message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < n; ++i) {
        const WireWriter::Mark mark = w_.Begin(Number(field));
        Write(r->GetRepeatedMessage(message, field, i));
        w_.End(mark);
      }
      return;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      for (int i = 0; i < n; ++i) {
        const std::string s = r->GetRepeatedString(message, field, i);
        w_.StringAlways(Number(field), s.data(), s.size());
      }
      return;
    }
    const WireWriter::Mark mark = w_.Begin(Number(field));
    for (int i = 0; i < n; ++i) {
      switch (field->type()) {
        case FieldDescriptor::TYPE_UINT32:
          w_.Varint(r->GetRepeatedUInt32(message, field, i));
          break;
        case FieldDescriptor::TYPE_INT32:
          w_.Varint(static_cast<uint64_t>(int64_t{r->GetRepeatedInt32(message, field, i)}));
          break;
        case FieldDescriptor::TYPE_UINT64:
          w_.Varint(r->GetRepeatedUInt64(message, field, i));
          break;
        case FieldDescriptor::TYPE_INT64:
          w_.Varint(static_cast<uint64_t>(r->GetRepeatedInt64(message, field, i)));
          break;
        case FieldDescriptor::TYPE_SINT64:
          w_.SintVarint(r->GetRepeatedInt64(message, field, i));
          break;
        case FieldDescriptor::TYPE_ENUM:
          w_.Varint(static_cast<uint64_t>(int64_t{r->GetRepeatedEnumValue(message, field, i)}));
          break;
        default:
          FAIL() << "no such repeated field yet: " << field->full_name();
      }
    }
    w_.EndPacked(mark, Number(field));
  }

  void WriteSingular(const Message& message, const Reflection* r, const FieldDescriptor* field) {
    const uint32_t n = Number(field);
    switch (field->type()) {
      case FieldDescriptor::TYPE_UINT32:
        w_.Uint(n, r->GetUInt32(message, field));
        break;
      case FieldDescriptor::TYPE_UINT64:
        w_.Uint(n, r->GetUInt64(message, field));
        break;
      case FieldDescriptor::TYPE_INT32:
        w_.Int(n, r->GetInt32(message, field));
        break;
      case FieldDescriptor::TYPE_INT64:
        w_.Int(n, r->GetInt64(message, field));
        break;
      case FieldDescriptor::TYPE_SINT32:
        w_.Sint(n, r->GetInt32(message, field));
        break;
      case FieldDescriptor::TYPE_SINT64:
        w_.Sint(n, r->GetInt64(message, field));
        break;
      case FieldDescriptor::TYPE_FIXED64:
        w_.Fixed64(n, r->GetUInt64(message, field));
        break;
      case FieldDescriptor::TYPE_FIXED32:
        w_.Fixed32(n, r->GetUInt32(message, field));
        break;
      case FieldDescriptor::TYPE_DOUBLE:
        w_.Double(n, r->GetDouble(message, field));
        break;
      case FieldDescriptor::TYPE_BOOL:
        w_.Bool(n, r->GetBool(message, field));
        break;
      case FieldDescriptor::TYPE_ENUM:
        w_.Int(n, r->GetEnumValue(message, field));
        break;
      case FieldDescriptor::TYPE_STRING: {
        const std::string s = r->GetString(message, field);
        w_.String(n, s.data(), s.size());
        break;
      }
      case FieldDescriptor::TYPE_BYTES: {
        const std::string s = r->GetString(message, field);
        w_.Bytes(n, s.data(), s.size());
        break;
      }
      case FieldDescriptor::TYPE_MESSAGE:
        if (r->HasField(message, field)) {
          const WireWriter::Mark mark = w_.Begin(n);
          Write(r->GetMessage(message, field));
          w_.End(mark);
        }
        break;
      default:
        FAIL() << "no such field yet: " << field->full_name();
    }
  }

  WireWriter& w_;
};

// A random message: every field with probability 2/3, numbers of all magnitudes, strings of all
// lengths.
class Randomly {
 public:
  explicit Randomly(uint64_t seed) : random_(seed) {}

  void Fill(Message* message, int depth) {
    const auto* descriptor = message->GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      if (random_() % 3 == 0) continue;
      const bool nested = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (nested && depth == 0) continue;
      const int n = field->is_repeated()
                        ? static_cast<int>(random_() % 5 * (random_() % 4 == 0 ? 40 : 1))
                        : 1;
      if (field->is_map()) {
        FillMap(message, field, n);
        continue;
      }
      for (int k = 0; k < n; ++k) Set(message, field, depth);
    }
  }

 private:
  uint64_t Number() {
    const uint64_t x = random_();
    switch (random_() % 6) {
      case 0:
        return 0;
      case 1:
        return x & 0x7f;
      case 2:
        return std::numeric_limits<uint64_t>::max();
      case 3:
        return uint64_t{1} << 63;
      default:
        return x >> random_() % 64;
    }
  }
  std::string String(bool utf8) {
    std::string s;
    const size_t n = random_() % 4 == 0 ? random_() % 6000 : random_() % 20;
    while (s.size() < n) {
      if (!utf8) {
        s += static_cast<char>(random_());
      } else if (random_() % 8 == 0) {
        static const char* const kSome[] = {"ä", "中", "😀", "\x7f", "߿", "\xef\xbf\xbd"};
        s += kSome[random_() % 6];
      } else {
        s += static_cast<char>(random_() % 128);
      }
    }
    return s;
  }
  void FillMap(Message* message, const FieldDescriptor* field, int n) {
    for (int k = 0; k < n; ++k) {
      Message* entry = message->GetReflection()->AddMessage(message, field);
      const Reflection* er = entry->GetReflection();
      er->SetString(entry, entry->GetDescriptor()->map_key(),
                    "k" + std::to_string(k) + String(true));
      er->SetString(entry, entry->GetDescriptor()->map_value(), String(true));
    }
  }

#define RS_SET(Type, value)                \
  do {                                     \
    if (field->is_repeated()) {            \
      r->Add##Type(message, field, value); \
    } else {                               \
      r->Set##Type(message, field, value); \
    }                                      \
  } while (0)
  void Set(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection* r = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32:
        RS_SET(UInt32, static_cast<uint32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        RS_SET(UInt64, Number());
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        RS_SET(Int32, static_cast<int32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        RS_SET(Int64, static_cast<int64_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        RS_SET(Bool, Number() & 1);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        RS_SET(EnumValue, static_cast<int>(Number() % 40));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        static const double kSome[] = {0.0, -0.0, 1.5, 1e300, -1e-300, HUGE_VAL};
        RS_SET(Double, kSome[random_() % 6]);
        break;
      }
      case FieldDescriptor::CPPTYPE_STRING:
        RS_SET(String, String(field->type() == FieldDescriptor::TYPE_STRING));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Fill(field->is_repeated() ? r->AddMessage(message, field)
                                  : r->MutableMessage(message, field),
             depth - 1);
        break;
      default:
        FAIL() << field->full_name();
    }
  }
#undef RS_SET

  std::mt19937_64 random_;
};

// Map fields have another layout in code compiled for the thread sanitizer than in the system's
// libprotobuf.
#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_TSAN() \
  GTEST_SKIP() << "the system's libprotobuf was not built for the thread sanitizer"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

TEST(WireWriter, WritesWhatLibprotobufWrites) {
  SKIP_UNDER_TSAN();
  std::vector<uint8_t> buffer(64 << 20);
  size_t largest = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    trace::Trace message;
    Randomly(seed).Fill(&message, 3);
    const std::string expected = LibraryBytes(message);
    largest = std::max(largest, expected.size());
    WireWriter writer(buffer.data(), buffer.size());
    ByReflection(&writer).Write(message);
    ASSERT_FALSE(writer.overflow());
    ASSERT_EQ(writer.size(), expected.size()) << "seed " << seed;
    ASSERT_EQ(0, memcmp(writer.data(), expected.data(), expected.size())) << "seed " << seed;
  }
  EXPECT_GT(largest, 100000u);  // the test is worth something only if lengths of three bytes occur
}

// At every buffer size that is too small the writer says so and leaves the bytes behind the buffer
// alone.
TEST(WireWriter, OverflowIsSticky) {
  SKIP_UNDER_TSAN();
  trace::Trace message;
  Randomly(7).Fill(&message, 2);
  const std::string expected = LibraryBytes(message);
  std::vector<uint8_t> buffer(expected.size() + 64);
  for (size_t capacity = 0; capacity < expected.size(); capacity += 1 + capacity / 64) {
    std::fill(buffer.begin(), buffer.end(), 0xa5);
    WireWriter writer(buffer.data(), capacity);
    ByReflection(&writer).Write(message);
    EXPECT_TRUE(writer.overflow()) << capacity;
    EXPECT_LE(writer.size(), capacity);
    EXPECT_TRUE(std::all_of(buffer.begin() + static_cast<long>(capacity), buffer.end(),
                            [](uint8_t b) { return b == 0xa5; }))
        << capacity;
    writer.Uint(1, 0);
    EXPECT_TRUE(writer.overflow());
  }
  WireWriter exact(buffer.data(), expected.size());
  ByReflection(&exact).Write(message);
  EXPECT_FALSE(exact.overflow());
}

TEST(WireWriter, RewindForgetsAnOverflow) {
  uint8_t buffer[8];
  WireWriter writer(buffer, sizeof(buffer));
  writer.Uint(1, 5);
  const size_t before = writer.size();
  writer.String(2, "far too long");
  EXPECT_TRUE(writer.overflow());
  writer.Rewind(before);
  EXPECT_FALSE(writer.overflow());
  writer.Uint(3, 6);
  EXPECT_EQ(writer.size(), 4u);
}

// A field number of two bytes and an empty packed field leave nothing behind.
TEST(WireWriter, EmptyPackedFieldIsLeftOut) {
  uint8_t buffer[64];
  WireWriter writer(buffer, sizeof(buffer));
  for (const uint32_t field : {1u, 15u, 16u, 2047u, 2048u}) {
    const WireWriter::Mark mark = writer.Begin(field);
    writer.EndPacked(mark, field);
  }
  EXPECT_EQ(writer.size(), 0u);
}

TEST(WireWriter, StringsBecomeUtf8) {
  const std::string bad[] = {std::string("\xff"),   "a\xc3",        "\xed\xa0\x80",
                             "\xf5\x80\x80\x80",    "\xe0\x80\x80", "ok\x80ok",
                             std::string("\0x", 2), "\xf0\x9f\x98"};
  for (const std::string& s : bad) {
    uint8_t buffer[64];
    WireWriter writer(buffer, sizeof(buffer));
    writer.String(1, s.data(), s.size());
    trace::Process process;
    ASSERT_TRUE(process.ParseFromArray(buffer, static_cast<int>(writer.size()))) << s;
    EXPECT_EQ(process.host().size(), s.size());
  }
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c("", 0), 0u);
  const std::vector<uint8_t> zeros(32, 0);
  EXPECT_EQ(Crc32c(zeros.data(), zeros.size()), 0x8a9136aau);  // RFC 3720, B.4
}

}  // namespace
}  // namespace ringscope::flight
