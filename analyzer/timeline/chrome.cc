#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "analyzer/timeline/writers.h"

namespace ringscope::timeline {
namespace {

// With what is no UTF-8 replaced: a viewer refuses the whole file otherwise.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    bool whole = n > 0 && i + n <= text.size();
    for (size_t k = 1; whole && k < n; ++k) whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i];
    } else if (c < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else if (whole) {
      out.append(text, i, n);
    } else {
      out += '?';
    }
    i += whole ? n : 1;
  }
  return out + "\"";
}

}  // namespace

std::string Chrome(const Timeline& t) {
  int64_t first = t.slices.empty() ? 0 : t.slices[0].begin_ns;
  for (const Slice& s : t.slices) first = std::min(first, s.begin_ns);
  const auto us = [first](int64_t ns) { return absl::StrFormat("%d.%03d", (ns - first) / 1000, (ns - first) % 1000); };
  std::string out = absl::StrCat("{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"first_ns\": \"", first, "\", \"notes\": [");
  for (size_t i = 0; i < t.notes.size(); ++i) absl::StrAppend(&out, i == 0 ? "" : ", ", Quoted(t.notes[i]));
  out += "]},\n\"traceEvents\": [";
  const char* separator = "\n";
  const auto event = [&](const std::string& text) {
    absl::StrAppend(&out, separator, "{", text, "}");
    separator = ",\n";
  };
  for (size_t i = 0; i < t.processes.size(); ++i) {
    event(absl::StrCat("\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", i + 1,
                       ", \"args\": {\"name\": ", Quoted(t.processes[i].name), "}"));
    event(absl::StrCat("\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": ", i + 1, ", \"args\": {\"sort_index\": ", i,
                       "}"));
  }
  const auto place = [&](size_t lane) {
    return absl::StrCat("\"pid\": ", t.lanes[lane].process + 1, ", \"tid\": ", 100000 + lane);
  };
  for (size_t i = 0; i < t.lanes.size(); ++i) {
    event(absl::StrCat("\"ph\": \"M\", \"name\": \"thread_name\", ", place(i), ", \"args\": {\"name\": ", Quoted(t.lanes[i].name),
                       "}"));
    event(absl::StrCat("\"ph\": \"M\", \"name\": \"thread_sort_index\", ", place(i), ", \"args\": {\"sort_index\": ", i, "}"));
  }
  for (const std::string& note : t.notes)
    event(absl::StrCat("\"ph\": \"i\", \"s\": \"g\", \"ts\": 0, \"pid\": 1, \"tid\": 0, \"name\": ", Quoted(note)));
  for (const Slice& s : t.slices) {
    const std::string where = place(static_cast<size_t>(s.lane));
    std::string args;
    for (const auto& [name, value] : s.details)
      absl::StrAppend(&args, args.empty() ? "" : ", ", Quoted(name), ": ", Quoted(value));
    event(absl::StrCat("\"ph\": \"B\", \"ts\": ", us(s.begin_ns), ", ", where, ", \"cat\": \"", CategoryName(s.category),
                       "\", \"name\": ", Quoted(s.name), ", \"args\": {", args, "}"));
    const auto flow = [&](const char* phase, uint64_t id, int64_t at, const char* more) {
      event(absl::StrCat("\"ph\": \"", phase, "\", \"cat\": \"flow\", \"name\": \"message\", \"id\": \"",
                         absl::StrFormat("%#x", id), "\", \"ts\": ", us(at), ", ", where, more));
    };
    if (s.flow_out != 0) flow("s", s.flow_out, s.begin_ns, "");
    if (s.flow_in != 0) flow("f", s.flow_in, s.end_ns, ", \"bp\": \"e\"");
    event(absl::StrCat("\"ph\": \"E\", \"ts\": ", us(s.end_ns), ", ", where));
  }
  return out + "\n]}\n";
}

}  // namespace ringscope::timeline
