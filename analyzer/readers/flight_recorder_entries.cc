#include "analyzer/readers/flight_recorder_entries.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>

#include "analyzer/model/views.h"

namespace ringscope::ingest {

using Id = ValueTree::Id;

namespace {

constexpr size_t kMostText = 200;
constexpr size_t kMostTexts = 1 << 16;
// Frames are looked at from the innermost on until one is the program's.
constexpr size_t kMostFrames = 256;

// Frames of what lies between the program and the collective. Lightning, DeepSpeed, Megatron and the like count as the program:
// which of their calls it was is what one wants to know.
bool IsLibrary(std::string_view file) {
  return Contains(file, "/torch/") || Contains(file, "torch/csrc") || file.starts_with("torch/") ||
         Contains(file, "/torchcomms/") || file.ends_with("contextlib.py") || file.starts_with("<frozen") || file == "??" ||
         file.empty() || file.ends_with(".so") || file.ends_with(".cpp") || file.ends_with(".c") || file.ends_with(".h") ||
         Contains(file, "/c10/") || Contains(file, ".so.");
}

}  // namespace

uint32_t TextTable::Of(std::string_view text) {
  std::string shown(text.substr(0, kMostText));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  const auto [it, fresh] = numbers_.try_emplace(shown, static_cast<uint32_t>(texts_.size() + 1));
  if (fresh) {
    if (texts_.size() >= kMostTexts) {
      numbers_.erase(it);
      return 0;
    }
    texts_.push_back(std::move(shown));
  }
  return it->second;
}

enum EntryReader::Field : uint8_t {
  kUnknown = 1,
  kRecord,
  kGroupId,
  kGroup,
  kCollective,
  kMessage,
  kIsP2p,
  kName,
  kCreated,
  kCreatedUs,
  kInputSizes,
  kInputTypes,
  kOutputSizes,
  kOutputTypes,
  kState,
  kStarted,
  kCompleted,
  kRetired,
  kTimeout,
  kFrames,
};

EntryReader::Field EntryReader::FieldOf(Id key) {
  uint8_t& known = field_of_[key];
  if (known != 0) return static_cast<Field>(known);
  static const auto& fields = *new absl::flat_hash_map<std::string_view, Field>{
      {"record_id", kRecord},
      {"pg_id", kGroupId},
      {"process_group", kGroup},
      {"pg_name", kGroup},  // format 1
      {"collective_seq_id", kCollective},
      {"seq_id", kCollective},  // format 1
      {"p2p_seq_id", kMessage},
      {"is_p2p", kIsP2p},
      {"profiling_name", kName},
      {"time_created_ns", kCreated},
      {"time_created_us", kCreatedUs},  // format 1, before times were nanoseconds everywhere
      {"input_sizes", kInputSizes},
      {"input_dtypes", kInputTypes},
      {"output_sizes", kOutputSizes},
      {"output_dtypes", kOutputTypes},
      {"state", kState},
      {"time_discovered_started_ns", kStarted},
      {"time_discovered_completed_ns", kCompleted},
      {"retired", kRetired},
      {"timeout_ms", kTimeout},
      {"frames", kFrames},
  };
  const auto it = fields.find(tree_.Str(key));
  known = it == fields.end() ? kUnknown : it->second;
  return static_cast<Field>(known);
}

bool EntryReader::Spend(uint64_t n) {
  if (n > budget_) {
    budget_ = 0;
    return false;
  }
  budget_ -= n;
  return true;
}

// Product of each tensor's sizes, added up; what does not fit is the largest number.
uint64_t EntryReader::Elements(Id sizes, bool* told) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  uint64_t sum = 0;
  const auto tensors = tree_.Children(sizes);
  if (!Spend(tensors.size())) return 0;
  for (const Id tensor : tensors) {
    if (!tree_.is_sequence(tensor)) continue;
    const auto dims = tree_.Children(tensor);
    if (!Spend(dims.size())) return sum;
    uint64_t product = 1;
    for (const Id dim : dims) {
      const int64_t n = std::max<int64_t>(0, tree_.Number(dim).value_or(0));
      if (__builtin_mul_overflow(product, static_cast<uint64_t>(n), &product)) product = kMost;
    }
    *told = true;
    if (__builtin_add_overflow(sum, product, &sum)) sum = kMost;
  }
  return sum;
}

void EntryReader::SetName(Id id, DumpEntry* entry) {
  const std::string_view text = tree_.Str(id);
  auto it = known_names_.find(text);
  if (it == known_names_.end()) it = known_names_.emplace(text, std::make_pair(ParseDumpOp(text), names.Of(text))).first;
  entry->op = it->second.first;
  entry->name = it->second.second;
}

// (name, description); format 1: the name alone.
void EntryReader::SetGroup(Id id, DumpEntry* entry) {
  if (tree_.is_string(id)) {
    entry->group = tree_.Str(id);
    return;
  }
  const auto parts = tree_.Children(id);
  if (!tree_.is_sequence(id) || parts.empty()) return;
  entry->group = tree_.Str(parts[0]);
  if (parts.size() > 1) entry->description = tree_.Str(parts[1]);
}

// The innermost frame that is not PyTorch's.
uint32_t EntryReader::SiteOf(Id frames) {
  const auto list = tree_.Children(frames);
  for (size_t i = 0; i < list.size() && i < kMostFrames && Spend(1); ++i) {
    uint32_t& known = frame_of_[list[i]];
    if (known == 0) {
      std::string_view file = tree_.Str(tree_.Get(list[i], "filename"));
      if (!tree_.is_dict(list[i]) || !Spend(tree_.Children(list[i]).size()) || IsLibrary(file)) {
        known = 1;
      } else {
        constexpr size_t kMostPath = 120;
        if (file.size() > kMostPath) file = file.substr(file.size() - kMostPath);
        known = 1 + sites.Of(absl::StrCat(Absl(tree_.Str(tree_.Get(list[i], "name")).substr(0, 60)), " at ", Absl(file), ":",
                                          tree_.Number(tree_.Get(list[i], "line")).value_or(0)));
      }
    }
    if (known > 1) return known - 1;
  }
  return 0;
}

bool EntryReader::Read(Id id, DumpEntry* entry) {
  if (!tree_.is_dict(id)) return false;
  *entry = DumpEntry();
  const auto pairs = tree_.Children(id);
  if (!Spend(pairs.size())) return false;
  bool any = false;
  bool in_told = false, out_told = false;
  const auto type_of = [&](Id list) {
    const auto types = tree_.Children(list);
    if (!types.empty() && entry->type == trace::TYPE_UNKNOWN) entry->type = ParseTorchType(tree_.Str(types[0]));
  };
  const auto time = [&](Id value) { return std::max<int64_t>(0, tree_.Number(value).value_or(0)); };
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Id value = pairs[i + 1];
    if (!tree_.is_string(pairs[i])) continue;
    const Field field = FieldOf(pairs[i]);
    any |= field != kUnknown;
    switch (field) {
      case kRecord:
        entry->record = tree_.Number(value).value_or(-1);
        break;
      case kGroupId:
        entry->group_id = tree_.Number(value).value_or(-1);
        break;
      case kGroup:
        SetGroup(value, entry);
        break;
      case kCollective:
        entry->collective = tree_.Number(value).value_or(-1);
        break;
      case kMessage:
        entry->message = tree_.Number(value).value_or(-1);
        break;
      case kIsP2p:
        entry->p2p = tree_.Number(value).value_or(0) != 0;
        entry->p2p_told = true;
        break;
      case kName:
        SetName(value, entry);
        break;
      case kCreated:
        entry->created = time(value);
        break;
      case kCreatedUs:
        entry->created = std::min<int64_t>(time(value), std::numeric_limits<int64_t>::max() / 1000) * 1000;
        break;
      case kInputSizes:
        entry->in = Elements(value, &in_told);
        break;
      case kOutputSizes:
        entry->out = Elements(value, &out_told);
        break;
      case kInputTypes:
      case kOutputTypes:
        type_of(value);
        break;
      case kState: {
        const std::string_view state = tree_.Str(value);
        entry->state = state == "completed" ? DumpEntry::State::kCompleted
                       : state == "started" ? DumpEntry::State::kStarted
                                            : DumpEntry::State::kScheduled;
        break;
      }
      case kStarted:
        entry->started = time(value);
        break;
      case kCompleted:
        entry->completed = time(value);
        break;
      case kRetired:
        entry->retired = tree_.Number(value).value_or(0) != 0;
        break;
      case kTimeout:
        entry->timeout_ms = time(value);
        break;
      case kFrames:
        entry->site = SiteOf(value);
        break;
      case kUnknown:
        break;
    }
  }
  // An input that was not told is the output's size and the other way round (in-place calls are recorded once by some releases).
  if (!in_told) entry->in = entry->out;
  if (!out_told) entry->out = entry->in;
  entry->sized = in_told || out_told;
  if (!entry->p2p_told) entry->p2p = entry->op.func == trace::SEND || entry->op.func == trace::RECV;
  return any;
}

}  // namespace ringscope::ingest
