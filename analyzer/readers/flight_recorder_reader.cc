// Dumps of PyTorch's flight recorder: pickle (what the watchdog writes) and JSON (what is asked for through the control plane).
#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

#include "analyzer/ingest/pickle.h"
#include "analyzer/ingest/readers.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/flight_recorder_trace.h"
#include "analyzer/readers/json_tree.h"

namespace ringscope::ingest {
namespace {

using Id = ValueTree::Id;

// A ring of 100,000 entries with stacks takes about 40 MB.
constexpr uint64_t kMostBytes = uint64_t{128} << 20;

bool HasDumpKeys(std::string_view head, std::string_view quote) {
  const auto has = [&](std::string_view key) { return Contains(head, absl::StrCat(Absl(quote), Absl(key), Absl(quote))); };
  return has("pg_config") || has("profiling_name") || has("collective_seq_id") ||
         (has("entries") && (has("record_id") || has("version") || has("nccl_version") || has("pg_status")));
}

bool LooksLikeDumpPickle(std::string_view head) { return LooksLikePickle(head) && HasDumpKeys(head, ""); }

bool LooksLikeDumpJson(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  return start != head.npos && (head[start] == '{' || head[start] == '[') && HasDumpKeys(head, "\"");
}

void Add(const ValueTree& tree, Id dump, int rank, bool torn, const FileContext& context) {
  const model::TextFile& file = context.info();
  auto record = TraceOfDump(tree, dump, {file.path, file.host, rank});
  if (!record.ok()) return context.Note(std::string(record.status().message()));
  for (std::string& note : record->notes) context.Note(std::move(note));
  context.records->push_back({std::move(record->trace), file.path, /*from_flight_file=*/false, torn, 0});
}

// One dump; or those of several ranks, as a list or by rank, as people bundle them.
absl::Status AddAll(const ValueTree& tree, bool torn, const FileContext& context) {
  const Id root = tree.root();
  if (IsDump(tree, root)) {
    Add(tree, root, -1, torn, context);
    return absl::OkStatus();
  }
  size_t found = 0;
  const auto children = tree.Children(root);
  constexpr size_t kMostDumps = 1 << 16;
  const size_t step = tree.is_dict(root) ? 2 : 1;
  for (size_t i = step - 1; i < children.size() && found < kMostDumps; i += step) {
    if (!IsDump(tree, children[i])) continue;
    ++found;
    const int64_t rank = step == 2 ? tree.Number(children[i - 1]).value_or(-1) : -1;
    Add(tree, children[i], rank >= 0 && rank < (1 << 20) ? static_cast<int>(rank) : -1, torn, context);
  }
  if (found > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("holds no dump of PyTorch's flight recorder (no entries and no pg_config)");
}

absl::Status Read(std::string_view bytes, const FileContext& context, absl::Status (*parse)(std::string_view, ValueTree*)) {
  static thread_local auto& tree = *new ValueTree;  // its memory serves the next file
  const absl::Status parsed = parse(bytes, &tree);
  if (!parsed.ok()) context.Note(std::string(parsed.message()));
  // What would run code was not written by the recorder: nothing of it is taken for a record.
  if (absl::IsPermissionDenied(parsed)) return absl::OkStatus();
  const absl::Status added = AddAll(tree, !parsed.ok(), context);
  return parsed.ok() ? added : absl::OkStatus();
}

absl::Status ReadPickleDump(std::string_view bytes, const FileContext& context) { return Read(bytes, context, ReadPickle); }
absl::Status ReadJsonDump(std::string_view bytes, const FileContext& context) { return Read(bytes, context, ReadJson); }

const RegisterReader kPickle(DocumentReaderType{"PyTorch flight recorder dump (pickle)", LooksLikeDumpPickle, kMostBytes,
                                                ReadPickleDump});
const RegisterReader kJson(DocumentReaderType{"PyTorch flight recorder dump (JSON)", LooksLikeDumpJson, kMostBytes,
                                              ReadJsonDump});

}  // namespace
}  // namespace ringscope::ingest
