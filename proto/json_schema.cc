// Prints the JSON Schema of a message as protobuf's JSON mapping writes it (names as in the .proto, all plain fields present):
//
//   json_schema DESCRIPTOR_SET MESSAGE TITLE     # DESCRIPTOR_SET: protoc --include_source_info --descriptor_set_out
//
// Comments behind fields and before messages become descriptions.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

template <typename Described>
std::string Comment(const Described& described) {
  google::protobuf::SourceLocation location;
  if (!described.GetSourceLocation(&location)) return "";
  std::string text;
  bool blank = true;
  for (const char c : location.leading_comments + location.trailing_comments) {
    const bool space = c == ' ' || c == '\n';
    if (!space) text += c;
    if (space && !blank) text += ' ';
    blank = space;
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

class Schema {
 public:
  Json Of(const Descriptor& root, const std::string& title) {
    Json schema;
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    schema["title"] = title;
    schema["$ref"] = "#/$defs/" + root.name();
    Message(root);
    schema["$defs"] = defs_;
    return schema;
  }

 private:
  void Message(const Descriptor& message) {
    if (!seen_.insert(message.full_name()).second) return;
    Json object;
    if (const std::string text = Comment(message); !text.empty()) object["description"] = text;
    object["type"] = "object";
    object["properties"] = Json::object();
    object["required"] = Json::array();
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      Json value = Value(field);
      if (field.is_repeated()) value = {{"type", "array"}, {"items", value}};
      if (const std::string text = Comment(field); !text.empty()) value["description"] = text;
      object["properties"][field.name()] = value;
      // A message that is not set is left out; everything else is always there.
      if (field.is_repeated() || field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) object["required"].push_back(field.name());
    }
    defs_[message.name()] = object;
  }

  Json Value(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Message(*field.message_type());
        return {{"$ref", "#/$defs/" + field.message_type()->name()}};
      case FieldDescriptor::CPPTYPE_ENUM:
        return Enum(*field.enum_type());
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_STRING:
        return {{"type", "string"}};
      case FieldDescriptor::CPPTYPE_INT32:
        return {{"type", "integer"}, {"minimum", INT32_MIN}, {"maximum", INT32_MAX}};
      case FieldDescriptor::CPPTYPE_UINT32:
        return {{"type", "integer"}, {"minimum", 0}, {"maximum", UINT32_MAX}};
      case FieldDescriptor::CPPTYPE_INT64:
      case FieldDescriptor::CPPTYPE_UINT64:
        return {{"type", "string"}, {"pattern", "^-?[0-9]+$"}};
      default:
        return {{"anyOf", Json::array({Json{{"type", "number"}}, Json{{"enum", {"NaN", "Infinity", "-Infinity"}}}})}};
    }
  }

  Json Enum(const EnumDescriptor& type) {
    // "Kind.Value": named after the message around it.
    const std::string name =
        type.containing_type() != nullptr && type.name() == "Value" ? type.containing_type()->name() : type.name();
    if (defs_.contains(name)) return {{"$ref", "#/$defs/" + name}};
    Json values = Json::array();
    std::string meanings;
    for (int i = 0; i < type.value_count(); ++i) {
      values.push_back(type.value(i)->name());
      if (const std::string text = Comment(*type.value(i)); !text.empty())
        meanings += (meanings.empty() ? "" : "; ") + type.value(i)->name() + ": " + text;
    }
    defs_[name] = {{"enum", values}};
    if (!meanings.empty()) defs_[name]["description"] = meanings;
    return {{"$ref", "#/$defs/" + name}};
  }

  Json defs_ = Json::object();
  std::set<std::string> seen_;
};

}  // namespace

int main(int argc, char** argv) {
  google::protobuf::FileDescriptorSet set;
  std::ifstream in(argc == 4 ? argv[1] : "", std::ios::binary);
  if (argc != 4 || !set.ParseFromIstream(&in)) {
    fprintf(stderr, "usage: json_schema DESCRIPTOR_SET MESSAGE TITLE\n");
    return 64;
  }
  google::protobuf::DescriptorPool pool;
  for (const auto& file : set.file()) pool.BuildFile(file);
  const Descriptor* message = pool.FindMessageTypeByName(argv[2]);
  if (message == nullptr) {
    fprintf(stderr, "json_schema: no message %s in %s\n", argv[2], argv[1]);
    return 65;
  }
  printf("%s\n", Schema().Of(*message, argv[3]).dump(1).c_str());
  return 0;
}
