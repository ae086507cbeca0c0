#include "analyzer/reasoning/op_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::reasoning {

std::string FuncText(trace::Func func) {
  switch (func) {
    case trace::BROADCAST:
      return "Broadcast";
    case trace::REDUCE:
      return "Reduce";
    case trace::ALL_GATHER:
      return "AllGather";
    case trace::REDUCE_SCATTER:
      return "ReduceScatter";
    case trace::ALL_REDUCE:
      return "AllReduce";
    case trace::SEND_RECV:
      return "SendRecv";
    case trace::SEND:
      return "Send";
    case trace::RECV:
      return "Recv";
    case trace::ALL_TO_ALL:
      return "AlltoAll";
    case trace::SCATTER:
      return "Scatter";
    case trace::GATHER:
      return "Gather";
    case trace::ALL_GATHER_V:
      return "AllGatherV";
    case trace::PUT_SIGNAL:
      return "PutSignal";
    case trace::SIGNAL:
      return "Signal";
    case trace::WAIT_SIGNAL:
      return "WaitSignal";
    default:
      return "operation";
  }
}

std::string TypeText(trace::DataType type) {
  switch (type) {
    case trace::INT8:
      return "int8";
    case trace::UINT8:
      return "uint8";
    case trace::INT32:
      return "int32";
    case trace::UINT32:
      return "uint32";
    case trace::INT64:
      return "int64";
    case trace::UINT64:
      return "uint64";
    case trace::FLOAT16:
      return "float16";
    case trace::FLOAT32:
      return "float32";
    case trace::FLOAT64:
      return "float64";
    case trace::BFLOAT16:
      return "bfloat16";
    case trace::FLOAT8_E4M3:
      return "float8_e4m3";
    case trace::FLOAT8_E5M2:
      return "float8_e5m2";
    default:
      return "elements";
  }
}

std::string OpText(const model::OpRecord& op) {
  std::string text =
      absl::StrCat(FuncText(op.func()), " of ", op.count(), " ", TypeText(op.datatype()));
  switch (op.func()) {
    case trace::BROADCAST:
    case trace::SCATTER:
      absl::StrAppend(&text, " from root ", op.root());
      break;
    case trace::REDUCE:
    case trace::GATHER:
      absl::StrAppend(&text, " to root ", op.root());
      break;
    case trace::SEND:
      if (op.peer() >= 0) absl::StrAppend(&text, " to peer ", op.peer());
      break;
    case trace::RECV:
      if (op.peer() >= 0) absl::StrAppend(&text, " from peer ", op.peer());
      break;
    default:
      break;
  }
  return text;
}

std::string CallText(const model::Job& job, const model::Member& member, const model::OpRecord& op) {
  if (!member.has_record()) return "";
  const trace::Dump& dump = job.processes[member.process].trace.dump();
  const auto text = [](const auto& list, uint32_t number) {
    return number > 0 && number <= static_cast<uint32_t>(list.size()) ? list.Get(static_cast<int>(number) - 1) : std::string();
  };
  const std::string name = text(dump.names(), op.name()), site = text(dump.sites(), op.site());
  if (name.empty() && site.empty()) return "";
  return absl::StrCat(" (", name, name.empty() || site.empty() ? "" : ", ", site.empty() ? "" : "called by ", site, ")");
}

std::string DurationText(int64_t ns) {
  const double value = static_cast<double>(ns);
  if (ns >= 10'000'000'000) return absl::StrFormat("%.0f s", value / 1e9);
  if (ns >= 1'000'000'000) return absl::StrFormat("%.1f s", value / 1e9);
  if (ns >= 10'000'000) return absl::StrFormat("%.0f ms", value / 1e6);
  if (ns >= 100'000) return absl::StrFormat("%.1f ms", value / 1e6);
  return absl::StrFormat("%.1f us", value / 1e3);
}

std::string ShellHost(const std::string& host) {
  const bool plain =
      !host.empty() && host[0] != '-' &&
      host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
          std::string::npos;
  return plain ? host : "<host>";
}

std::string RankText(const model::Communicator& communicator, const model::Member& member) {
  if (member.job_rank >= 0) return absl::StrCat("rank ", member.job_rank);
  return absl::StrCat("rank ", member.rank, " of ", communicator.SizeText(), " in communicator ",
                      communicator.Label());
}

std::string RanksText(const std::set<int>& ranks) {
  constexpr size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t n = 0;
  for (int rank : ranks) {
    if (n == kShown && ranks.size() > kShown + 1) {
      return absl::StrCat(text, " and ", ranks.size() - kShown, " more");
    }
    if (n > 0) absl::StrAppend(&text, n + 1 == ranks.size() ? " and " : ", ");
    absl::StrAppend(&text, rank);
    ++n;
  }
  return text;
}

std::string PlaceText(const model::Communicator& communicator, uint64_t position) {
  return absl::StrCat("operation ", position, " of communicator ", communicator.Label());
}

std::string SourceText(const model::Job& job, const model::Member& member) {
  if (member.process < 0 || static_cast<size_t>(member.process) >= job.processes.size()) {
    return "no record";
  }
  const model::Process& process = job.processes[member.process];
  const std::string who = member.job_rank >= 0
                              ? absl::StrCat("rank ", member.job_rank)
                              : absl::StrCat("rank ", member.rank, " in the communicator");
  return absl::StrCat(who, process.host.empty() ? "" : " on ", process.host, " (", process.source, ")");
}

Evidence MemberEvidence(const model::Job& job, const model::Member& member, uint32_t row,
                        std::string text) {
  Evidence evidence;
  evidence.set_text(std::move(text));
  evidence.set_source(SourceText(job, member));
  evidence.set_rank(member.job_rank);
  evidence.set_row(row);
  return evidence;
}

void AddRanks(const std::set<int>& ranks, google::protobuf::RepeatedField<int32_t>* list) {
  std::set<int> all(list->begin(), list->end());
  for (int rank : ranks) {
    if (rank >= 0) all.insert(rank);
  }
  list->Clear();
  for (int rank : all) list->Add(rank);
}

bool SameRank(const model::Member& a, const model::Member& b) {
  if (a.job_rank >= 0 && b.job_rank >= 0) return a.job_rank == b.job_rank;
  return a.process >= 0 && a.process == b.process && a.job_rank == b.job_rank;
}

int64_t GpuDuration(const model::Op& op) {
  if (op.raw.gpu_finished_ns() == 0) return 0;
  if (op.full && op.raw.gpu_started_ns() == 0) return 0;  // columns keep the difference only
  return std::max<int64_t>(0, model::SatSub(op.raw.gpu_finished_ns(), op.raw.gpu_started_ns()));
}

int64_t HostDuration(const model::Op& op) {
  if (op.raw.started_ns() == 0 || op.raw.finished_ns() == 0) return 0;
  return std::max<int64_t>(0, model::SatSub(op.raw.finished_ns(), op.raw.started_ns()));
}

uint64_t CounterValue(const model::Process& process, const std::string& name) {
  for (const trace::Counter& counter : process.trace.counters()) {
    if (counter.name() == name) return counter.value();
  }
  return 0;
}

}  // namespace ringscope::reasoning
