#include "doctor/utf8.h"

#include <vector>

namespace ringscope::doctor {
namespace {

// Bytes of the character that begins at `at`; 0: none does. No overlong forms, no surrogates, nothing beyond U+10FFFF.
size_t Length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                        : first >= 0xe0 && first <= 0xef ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(at + 1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
      (first == 0xf4 && second > 0x8f))
    return 0;
  return length;
}

}  // namespace

std::string ValidUtf8(std::string text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Length(text, at);
    if (length == 0) text[at] = '?';
    at += length == 0 ? 1 : length;
  }
  return text;
}

void MakeValidUtf8(google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        MakeValidUtf8(field->is_repeated() ? reflection.MutableRepeatedMessage(message, field, i)
                                           : reflection.MutableMessage(message, field));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        if (field->is_repeated())
          reflection.SetRepeatedString(message, field, i, ValidUtf8(reflection.GetRepeatedString(*message, field, i)));
        else
          reflection.SetString(message, field, ValidUtf8(reflection.GetString(*message, field)));
      }
    }
  }
}

}  // namespace ringscope::doctor
