#include "tests/replay/capture.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/replay/flat_json.h"
#include "tests/replay/names.h"
#include "tests/replay/shim.h"
#include "tests/replay/text_file.h"

namespace ringscope::replay {
namespace {

// Numbers of the recording to our dense indices, for one load of the plugin.
using Numbers = std::unordered_map<uint64_t, int32_t>;

class ProcessReader {
 public:
  ProcessReader(Capture& capture, Process& process) : capture_(capture), process_(process) {}

  absl::Status Read(const std::string& path, absl::string_view text) {
    size_t number = 0;
    for (absl::string_view line : Lines(text)) {
      ++number;
      if (line.empty()) continue;
      if (!json_.Parse(line)) {
        return absl::DataLossError(absl::StrCat(path, ":", number,
                                                ": not a JSON object of plain values near column ",
                                                json_.position() + 1, "; copy the capture again"));
      }
      if (absl::Status status = Take(); !status.ok()) {
        return absl::Status(status.code(), absl::StrCat(path, ":", number, ": ", status.message()));
      }
    }
    // Lines of two threads can stand in the file in another order than they were counted.
    std::stable_sort(process_.events.begin(), process_.events.end(),
                     [](const Event& a, const Event& b) {
                       return a.load != b.load ? a.load < b.load : a.n < b.n;
                     });
    process_.has_events = !process_.events.empty();
    return absl::OkStatus();
  }

 private:
  absl::Status Take() {
    const absl::string_view cb = json_.Text("cb");
    const auto tid = static_cast<uint32_t>(json_.Unsigned("tid"));
    if (cb == "thread") {
      process_.thread_names[tid] = std::string(json_.Text("name"));
      return absl::OkStatus();
    }
    Event event;
    event.tid = tid;
    event.n = json_.Unsigned("n");
    event.t = json_.Unsigned("t");
    if (event.t == 0) return absl::DataLossError("no time \"t\"");
    NoticeReload(event.n);
    event.load = load_;
    absl::Status status = absl::InvalidArgumentError(absl::StrCat("unknown callback \"", cb, "\""));
    if (cb == "init") status = Init(event);
    if (cb == "finalize") status = Finalize(event);
    if (cb == "start") status = Start(event);
    if (cb == "state" || cb == "stop") status = StateOrStop(event, cb == "state");
    if (status.ok()) process_.events.push_back(event);
    return status;
  }

  // NCCL unloads the plugin when the last communicator goes and loads it again for the next one:
  // the recording plugin then counts from 1 again, in the same file.
  void NoticeReload(uint64_t n) {
    if (open_contexts_ == 0 && had_init_ && n < highest_n_) {
      ++load_;
      highest_n_ = 0;
      had_init_ = false;
      slots_.clear();
      contexts_.clear();
    }
    highest_n_ = std::max(highest_n_, n);
  }

  absl::Status Init(Event& event) {
    event.callback = Callback::kInit;
    Context context;
    context.load = load_;
    context.number = json_.Unsigned("ctx");
    context.comm_id = json_.Unsigned("commId");
    context.name = Text("commName");
    context.n_nodes = static_cast<int>(json_.Signed("nNodes"));
    context.n_ranks = static_cast<int>(json_.Signed("nRanks"));
    context.rank = static_cast<int>(json_.Signed("rank"));
    event.context = static_cast<int32_t>(process_.contexts.size());
    contexts_[context.number] = event.context;
    process_.contexts.push_back(context);
    process_.pid = static_cast<uint32_t>(json_.Unsigned("pid", process_.pid));
    if (capture_.api == 0) capture_.api = static_cast<int>(json_.Signed("ver"));
    had_init_ = true;
    ++open_contexts_;
    return absl::OkStatus();
  }

  absl::Status Finalize(Event& event) {
    event.callback = Callback::kFinalize;
    const auto found = contexts_.find(json_.Unsigned("ctx"));
    if (found == contexts_.end())
      return absl::DataLossError("finalize of a context that was never made");
    event.context = found->second;
    --open_contexts_;
    return absl::OkStatus();
  }

  // A handle of this process, or a pointer that nobody here handed out.
  void Reference(absl::string_view key, int32_t& slot, uint64_t* foreign) {
    const FlatJson::Value* value = json_.Find(key);
    if (value == nullptr || value->kind == FlatJson::Value::kNull) return;
    if (value->kind == FlatJson::Value::kNumber) {
      const auto found = slots_.find(json_.Unsigned(key));
      if (found != slots_.end()) slot = found->second;
      return;
    }
    const size_t hex = value->text.find("0x");
    if (foreign == nullptr || hex == absl::string_view::npos) return;
    const absl::string_view digits = value->text.substr(hex + 2);
    std::from_chars(digits.data(), digits.data() + digits.size(), *foreign, 16);
  }

  absl::Status Start(Event& event) {
    event.callback = Callback::kStart;
    event.type = TypeByName(json_.Text("type"));
    if (event.type == 0)
      return absl::InvalidArgumentError(absl::StrCat("unknown type \"", json_.Text("type"), "\""));
    event.slot = static_cast<int32_t>(process_.slots.size());
    slots_[json_.Unsigned("h")] = event.slot;
    const auto context = contexts_.find(json_.Unsigned("ctx"));
    if (context != contexts_.end()) event.context = context->second;
    event.foreign_context = json_.Unsigned("ctx_foreign");
    event.refused = json_.Has("returned");
    Reference("parent", event.parent, &event.foreign_parent);
    Reference("parentGroup", event.parent_group, nullptr);
    process_.slots.push_back({event.type, event.parent, event.context, kNone, kNone});
    event.hin = json_.Unsigned("hin");
    event.rank = static_cast<int32_t>(json_.Signed("rank"));
    event.func = Text("func");
    event.datatype = Text("datatype");
    event.algo = Text("algo");
    event.proto = Text("proto");
    if (capture_.api == 1) {
      event.func = NameOf(FuncName, "func");
      event.datatype = NameOf(DatatypeName, "datatype");
      event.algo = NameOf(AlgoName, "algo");
      event.proto = NameOf(ProtoName, "proto");
      event.reduction = static_cast<int32_t>(json_.Signed("op"));
    }
    event.comm_hash = json_.Unsigned("commHash");
    event.traffic = json_.Unsigned("trafficBytes");
    event.seq = json_.Unsigned("seqNumber");
    event.count = json_.Unsigned("count");
    event.send_buff = json_.Unsigned("sendBuff");
    event.recv_buff = event.type == kP2p ? json_.Unsigned("buff") : json_.Unsigned("recvBuff");
    event.stream = json_.Unsigned("stream");
    event.root = static_cast<int32_t>(json_.Signed("root"));
    event.peer = static_cast<int32_t>(json_.Signed("peer"));
    event.n_channels =
        static_cast<int32_t>(json_.Signed("nChannels", json_.Signed("nMaxChannels")));
    event.n_warps = static_cast<int32_t>(json_.Signed("nWarps"));
    event.group_depth = static_cast<int32_t>(json_.Signed("groupDepth"));
    event.graph_captured = json_.Signed("graphCaptured") != 0;
    event.pid = static_cast<int32_t>(json_.Signed("pid"));
    event.own_pid = event.type != kProxyOp || json_.True("own_pid");
    event.channel = static_cast<int32_t>(json_.Signed("channelId"));
    event.n_steps = static_cast<int32_t>(json_.Signed("nSteps"));
    event.chunk_size = static_cast<int32_t>(json_.Signed("chunkSize"));
    event.is_send = json_.Signed("isSend") != 0;
    event.step = static_cast<int32_t>(json_.Signed("step"));
    event.p_timer = json_.Unsigned("pTimer");
    event.net_id = json_.Unsigned("net_id");
    event.sock_type = static_cast<int32_t>(json_.Signed("sock_type", -1));
    event.sock_fd = static_cast<int32_t>(json_.Signed("sock_fd"));
    event.sock_op = static_cast<int32_t>(json_.Signed("sock_op"));
    event.sock_len = json_.Unsigned("sock_len");
    return absl::OkStatus();
  }

  absl::Status StateOrStop(Event& event, bool state) {
    event.callback = state ? Callback::kState : Callback::kStop;
    event.type = TypeByName(json_.Text("type"));
    if (state) {
      const int value = StateByName(json_.Text("state"));
      if (value < 0)
        return absl::InvalidArgumentError(
            absl::StrCat("unknown state \"", json_.Text("state"), "\""));
      event.state = static_cast<uint32_t>(value);
      if (event.type == 0) event.type = TypeOfState(event.state);
      event.args_null = json_.Has("args");
      event.trans_size = json_.Unsigned("transSize");
      event.steps = static_cast<int32_t>(json_.Signed("steps"));
      event.appended = static_cast<int32_t>(json_.Signed("appendedProxyOps"));
      event.p_timer = json_.Unsigned("pTimer");
    }
    uint64_t foreign = 0;
    Reference("h", event.slot, &foreign);
    if (event.slot != kNone) event.type = process_.slots[static_cast<size_t>(event.slot)].type;
    const FlatJson::Value* handle = json_.Find("h");
    event.garbage_handle =
        event.slot == kNone && handle != nullptr && handle->kind != FlatJson::Value::kNull;
    event.hin = foreign;
    return absl::OkStatus();
  }

  // v1 has NCCL's numbers where later tables have its names.
  const char* NameOf(const char* (*name)(int), absl::string_view key) {
    return json_.Find(key) == nullptr ? nullptr : name(static_cast<int>(json_.Signed(key, -1)));
  }

  const char* Text(absl::string_view key) {
    const FlatJson::Value* value = json_.Find(key);
    // The recording prints a NULL text as "(null)".
    if (value == nullptr || value->kind != FlatJson::Value::kString || value->text == "(null)")
      return nullptr;
    return capture_.Intern(value->text);
  }

  Capture& capture_;
  Process& process_;
  FlatJson json_;
  Numbers slots_, contexts_;
  uint32_t load_ = 0;
  uint64_t highest_n_ = 0;
  int open_contexts_ = 0;
  bool had_init_ = false;
};

struct Layout {
  std::vector<std::string> hosts;
  int processes = 0;
  int ranks_per_process = 1;
};

// Only the keys named here are looked at: the rest of the file is the answer.
absl::Status ReadLayout(Capture& capture, Layout& layout) {
  const std::string path = capture.folder + "/expected.json";
  absl::StatusOr<std::string> text = ReadText(path);
  if (absl::IsNotFound(text.status()))
    return absl::OkStatus();  // then the files themselves have to do
  if (!text.ok()) return text.status();
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::DataLossError(absl::StrCat(path, ": not a JSON object; copy the capture again"));
  const auto number = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_integer() ? found->get<int>() : 0;
  };
  if (const auto found = json.find("nccl"); found != json.end() && found->is_string()) {
    capture.nccl = found->get<std::string>();
  }
  capture.api = number("plugin_api");
  layout.processes = number("processes");
  layout.ranks_per_process = std::max(1, number("ranks_per_process"));
  if (const auto found = json.find("hosts"); found != json.end() && found->is_array()) {
    for (const auto& host : *found) {
      if (host.is_string()) layout.hosts.push_back(host.get<std::string>());
    }
  }
  return absl::OkStatus();
}

void ParseRelease(Capture& capture) {
  const std::vector<absl::string_view> parts = absl::StrSplit(capture.nccl, '.');
  int major = 0, minor = 0, patch = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor)) {
    static constexpr Release kOfApi[] = {230, 223, 224, 226, 227, 228};
    capture.release = kOfApi[capture.api >= 1 && capture.api <= 5 ? capture.api : 0];
    return;
  }
  capture.release = major * 100 + minor;
  if (parts.size() > 2 && absl::SimpleAtoi(parts[2], &patch))
    capture.number = major * 10000 + minor * 100 + patch;
}

// Up to v3 init says nothing about its communicator: its operations do. The size is that of the
// largest rank seen, by any member.
void CompleteContexts(Capture& capture) {
  std::map<std::pair<uint64_t, size_t>, int> sizes;  // by hash, and by order where there is none
  const auto key = [](const Process& process, const Context& context) {
    const auto order = static_cast<size_t>(&context - process.contexts.data());
    return std::make_pair(context.comm_id, context.comm_id != 0 ? size_t{0} : order);
  };
  for (Process& process : capture.processes) {
    for (const Event& event : process.events) {
      if (event.callback != Callback::kStart || event.context == kNone) continue;
      Context& context = process.contexts[static_cast<size_t>(event.context)];
      if (event.type != kColl && event.type != kP2p && event.type != kProxyOp) continue;
      if (event.type != kProxyOp) {
        context.rank = event.rank;
        context.comm_id = event.comm_hash;
      }
      int& size = sizes[key(process, context)];
      size = std::max({size, event.rank + 1, event.type == kColl ? 0 : event.peer + 1});
    }
  }
  for (Process& process : capture.processes) {
    for (Context& context : process.contexts) {
      context.n_nodes = -1;
      context.n_ranks = sizes[key(process, context)];
    }
  }
}

// Job ranks: the rank in the communicator that spans the job. A process without events has only its
// file's number.
void AssignRanks(Capture& capture, const Layout& layout) {
  int spanning = 0;
  for (const Process& process : capture.processes) {
    for (const Context& context : process.contexts) spanning = std::max(spanning, context.n_ranks);
  }
  const int by_layout = static_cast<int>(capture.processes.size()) * layout.ranks_per_process;
  capture.job_size = std::max(spanning, by_layout);
  for (Process& process : capture.processes) {
    std::map<uint64_t, std::vector<int>> by_comm;
    for (const Context& context : process.contexts) {
      if (context.n_ranks == capture.job_size) by_comm[context.comm_id].push_back(context.rank);
    }
    size_t most = 0;
    for (auto& [id, ranks] : by_comm) most = std::max(most, ranks.size());
    if (most > 1) {
      for (auto& [id, ranks] : by_comm) {
        if (ranks.size() == most) process.ranks = ranks;
      }
      std::sort(process.ranks.begin(), process.ranks.end());
      capture.several_ranks_per_process = true;
    }
    if (process.ranks.empty()) process.ranks = {process.index};
  }
}

}  // namespace

const char* Capture::Intern(absl::string_view text) { return texts.emplace(text).first->c_str(); }

absl::StatusOr<std::unique_ptr<Capture>> ReadCapture(const std::string& folder) {
  auto capture = std::make_unique<Capture>();
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  if (error || !std::filesystem::is_directory(path)) {
    return absl::NotFoundError(
        absl::StrCat(folder,
                     ": no such folder; give the folder of one capture, the one that holds "
                     "rank<N>.jsonl and app.rank<N>.log"));
  }
  capture->folder = path.string();
  capture->name = path.filename().string();
  Layout layout;
  if (absl::Status status = ReadLayout(*capture, layout); !status.ok()) return status;

  for (int index = 0, missing = 0; missing < 64; ++index) {
    const std::string rank = absl::StrCat("rank", index);
    Process process;
    process.index = index;
    bool found = index < layout.processes;
    if (absl::StatusOr<std::string> text =
            ReadText(absl::StrCat(capture->folder, "/app.", rank, ".log"));
        text.ok()) {
      process.end = ReadAppLog(*text);
      found = true;
    } else if (!absl::IsNotFound(text.status())) {
      return text.status();
    }
    const std::string events = absl::StrCat(capture->folder, "/", rank, ".jsonl");
    if (absl::StatusOr<std::string> text = ReadText(events); text.ok()) {
      if (absl::Status status = ProcessReader(*capture, process).Read(events, *text); !status.ok())
        return status;
      found = true;
    } else if (!absl::IsNotFound(text.status())) {
      return text.status();
    }
    missing = found ? 0 : missing + 1;
    if (!found) continue;
    process.host = static_cast<size_t>(index) < layout.hosts.size()
                       ? layout.hosts[static_cast<size_t>(index)]
                       : absl::StrCat("host", index);
    for (const Process& other : capture->processes)
      process.local_index += other.host == process.host;
    capture->processes.push_back(std::move(process));
  }
  if (capture->processes.empty()) {
    return absl::NotFoundError(
        absl::StrCat(capture->folder,
                     ": holds neither rank<N>.jsonl nor app.rank<N>.log; give the "
                     "folder of one capture"));
  }
  ParseRelease(*capture);
  capture->as_api = capture->api;
  if (capture->api >= 1 && capture->api <= 3) CompleteContexts(*capture);
  AssignRanks(*capture, layout);
  for (const Process& process : capture->processes) {
    for (const Event& event : process.events) {
      if (capture->first_t == 0 || event.t < capture->first_t) capture->first_t = event.t;
      capture->last_t = std::max(capture->last_t, event.t);
    }
  }
  return capture;
}

}  // namespace ringscope::replay
