#include "analyzer/scrub/scrub_record.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <google/protobuf/descriptor.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "analyzer/ingest/crc32c.h"
#include "analyzer/ingest/pickle.h"
#include "analyzer/ingest/stream_reader.h"
#include "analyzer/ingest/trace_reader.h"

namespace ringscope::scrub {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Every string of a message; maps are the caller's.
using Change = std::function<std::string(const FieldDescriptor& field, const std::string& value)>;

void Strings(Message* message, const Change& change) {
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  std::string scratch;
  for (const FieldDescriptor* field : fields) {
    if (field->is_map()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) {
        Strings(reflection->MutableMessage(message, field), change);
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
        Strings(reflection->MutableRepeatedMessage(message, field, i), change);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      if (!field->is_repeated()) {
        reflection->SetString(message, field, change(*field, reflection->GetStringReference(*message, field, &scratch)));
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
        reflection->SetRepeatedString(message, field, i,
                                      change(*field, reflection->GetRepeatedStringReference(*message, field, i, &scratch)));
    }
  }
}

void LearnProcess(const trace::Process& p, Scrubber* scrubber) {
  if (!p.host().empty()) scrubber->learner().Host(p.host());
  if (!p.job_id().empty()) scrubber->learner().Job(p.job_id());
  scrubber->Learn(p.command_line());
  for (const auto& [name, value] : p.environment()) scrubber->Learn(absl::StrCat(name, "=", value));
}

void ScrubProcess(trace::Process* p, Scrubber* scrubber) {
  for (auto& [name, value] : *p->mutable_environment()) value = scrubber->Value(name, value);
  const std::string number = scrubber->masks().Known(Kind::kJobNumber, p->job_id());
  if (!number.empty()) p->set_job_id(number);
}

// Chunks of a container of this magic, in order; those with a wrong checksum are stepped over.
uint64_t Chunks(std::string_view bytes, const std::function<void(std::string_view payload)>& take) {
  uint64_t dropped = 0;
  for (size_t at = 8; at + 8 <= bytes.size();) {
    const auto word = [&](size_t i) {
      uint32_t v = 0;
      for (int k = 3; k >= 0; --k) v = v << 8 | static_cast<unsigned char>(bytes[i + static_cast<size_t>(k)]);
      return v;
    };
    const uint32_t length = word(at), crc = word(at + 4);
    if (length <= ingest::kMaxStreamChunkBytes && at + 8 + length <= bytes.size() &&
        ingest::Crc32c(bytes.substr(at + 8, length)) == crc) {
      take(bytes.substr(at + 8, length));
      at += 8 + length;
    } else {
      ++at;
      ++dropped;
    }
  }
  return dropped;
}

nlohmann::json Value(const ingest::ValueTree& tree, ingest::ValueTree::Id id, int depth, size_t* budget) {
  using Tree = ingest::ValueTree;
  if (depth > 200 || *budget == 0) return nullptr;
  --*budget;
  switch (tree.kind(id)) {
    case Tree::Kind::kNull:
      return nullptr;
    case Tree::Kind::kBool:
      return tree.Number(id).value_or(0) != 0;
    case Tree::Kind::kInt:
      return tree.Number(id).value_or(0);
    case Tree::Kind::kFloat:
      return std::isfinite(tree.FloatOf(id)) ? nlohmann::json(tree.FloatOf(id)) : nlohmann::json();
    case Tree::Kind::kString:
    case Tree::Kind::kBytes:
      return std::string(tree.Str(id));
    case Tree::Kind::kList:
    case Tree::Kind::kTuple: {
      nlohmann::json list = nlohmann::json::array();
      for (const Tree::Id child : tree.Children(id)) list.push_back(Value(tree, child, depth + 1, budget));
      return list;
    }
    case Tree::Kind::kDict: {
      nlohmann::json object = nlohmann::json::object();
      const auto children = tree.Children(id);
      for (size_t i = 0; i + 1 < children.size(); i += 2) {
        const std::string key =
            tree.is_string(children[i]) ? std::string(tree.Str(children[i])) : absl::StrCat(tree.Number(children[i]).value_or(0));
        object[key] = Value(tree, children[i + 1], depth + 1, budget);
      }
      return object;
    }
  }
  return nullptr;
}

}  // namespace

void LearnTrace(const trace::Trace& trace, Scrubber* scrubber) {
  LearnProcess(trace.process(), scrubber);
  trace::Trace copy = trace;
  Strings(&copy, [&](const FieldDescriptor&, const std::string& value) {
    for (size_t start = 0; start <= value.size();) {
      const size_t end = std::min(value.find('\n', start), value.size());
      scrubber->Learn(std::string_view(value).substr(start, end - start));
      start = end + 1;
    }
    return value;
  });
}

void ScrubMessage(Message* message, Scrubber* scrubber, const std::vector<std::pair<std::string, std::string>>& names) {
  message->DiscardUnknownFields();
  Strings(message, [&](const FieldDescriptor&, const std::string& value) {
    if (names.empty()) return scrubber->Text(value);
    std::string renamed = value;
    for (const auto& [path, name] : names) absl::StrReplaceAll({{path, name}}, &renamed);
    return scrubber->Text(renamed);
  });
}

void ScrubTrace(trace::Trace* trace, Scrubber* scrubber) {
  ScrubProcess(trace->mutable_process(), scrubber);
  ScrubMessage(trace, scrubber);
}

absl::StatusOr<std::string> TraceBytes(trace::Trace trace, bool torn, Scrubber* scrubber) {
  ScrubTrace(&trace, scrubber);
  std::string bytes = ingest::WriteTrace({trace});
  if (bytes.size() > ingest::kMaxChunkBytes) return absl::ResourceExhaustedError("larger than a trace may be; left out");
  if (!torn) return bytes;
  // Without the mark of the end, as it was read: the reader must go on seeing that something is missing.
  trace::Trace end;
  end.mutable_end()->set_chunks(1);
  bytes.resize(bytes.size() - 8 - end.ByteSizeLong());
  return bytes;
}

absl::Status LearnStream(std::string_view bytes, Scrubber* scrubber) {
  Chunks(bytes, [&](std::string_view payload) {
    trace::StreamChunk chunk;
    if (!chunk.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
    LearnTrace(chunk.head(), scrubber);
    for (const auto& c : chunk.communicators()) scrubber->Learn(c.name());
  });
  return absl::OkStatus();
}

absl::StatusOr<std::string> StreamBytes(std::string_view bytes, Scrubber* scrubber, uint64_t* dropped) {
  std::string out(ingest::kStreamMagic);
  const auto word = [&out](uint32_t v) {
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(v >> (8 * i)));
  };
  *dropped = Chunks(bytes, [&](std::string_view payload) {
    trace::StreamChunk chunk;
    if (!chunk.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
    if (chunk.has_head()) ScrubTrace(chunk.mutable_head(), scrubber);
    ScrubMessage(&chunk, scrubber);
    const std::string masked = chunk.SerializeAsString();
    word(static_cast<uint32_t>(masked.size()));
    word(ingest::Crc32c(masked));
    out += masked;
  });
  if (out.size() == ingest::kStreamMagic.size()) return absl::DataLossError("no chunk of the stream could be read");
  return out;
}

absl::StatusOr<std::string> JsonOfPickle(std::string_view bytes) {
  ingest::ValueTree tree;
  if (const absl::Status read = ingest::ReadPickle(bytes, &tree); !read.ok()) return read;
  size_t budget = 50000000;
  const nlohmann::json value = Value(tree, tree.root(), 0, &budget);
  if (budget == 0) return absl::ResourceExhaustedError("holds more values than any dump");
  return value.dump(1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ringscope::scrub
