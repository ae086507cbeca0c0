// NCCL's init lines, the only map from rank to host, process, device and bus id that most logs have:
//   comm 0x55 rank 1 nranks 4 cudaDev 1 nvmlDev 1 - Init COMPLETE                                    2.4 (src/init.cc)
//   comm 0x55 rank 1 nranks 4 cudaDev 1 busId 61000 - Init COMPLETE                                  2.5-2.15
//   comm 0x55 rank 1 nranks 4 cudaDev 1 [nvmlDev 1] busId 61000 commId 0x9a - Init START|COMPLETE    2.16-2.21
//   [Rank 1] ncclCommInitRankConfig comm 0x55 rank 1 … - Init START                                  2.22-2.30
//   ncclCommSplit comm 0x55 rank 0 … parent 0x44 splitCount 2 color 1 key 0- Init START              2.22-2.30 (childCount: 2.29)
//   comm 0x55 rank 1 nranks 4 cudaDev 1 busId 61000 - Destroy|Abort|Revoke START|COMPLETE            2.14-2.30
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

// A communicator of more ranks than this, or a device above it, is a damaged line.
constexpr int kMostRanks = 1 << 22;
constexpr int kMostDevices = 4096;
// Jobs create communicators again and again; what a file may keep.
constexpr size_t kMostRanksOfAFile = 200000;

bool Find(std::string_view text, const RE2& pattern, std::initializer_list<std::string*> parts) {
  std::vector<re2::StringPiece> pieces(parts.size());
  std::vector<RE2::Arg> args(parts.size());
  std::vector<const RE2::Arg*> pointers(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    args[i] = RE2::Arg(&pieces[i]);
    pointers[i] = &args[i];
  }
  if (!RE2::PartialMatchN(re2::StringPiece(text.data(), text.size()), pattern, pointers.data(), static_cast<int>(parts.size())))
    return false;
  size_t i = 0;
  for (std::string* part : parts) part->assign(pieces[i].data() == nullptr ? "" : pieces[i].data(), pieces[i].size()), ++i;
  return true;
}

int Small(const std::string& digits, int most) {
  if (digits.empty() || digits.size() > 9) return -1;
  const int value = std::stoi(digits);
  return value <= most ? value : -1;
}

class NcclInit : public LineReader {
 public:
  explicit NcclInit(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    static const RE2& init = *new RE2(
        R"(comm (0x[0-9a-fA-F]+|\(nil\)) rank (\d+) n[rR]anks (\d+) cudaDev (\d+)(?: nvmlDev (\d+))?(?: busId ([0-9a-fA-F]+))?)"
        R"((.*?) ?- (Init START|Init COMPLETE|Destroy COMPLETE|Abort START|Abort COMPLETE|Revoke START|Revoke COMPLETE))");
    static const RE2& function = *new RE2(R"((ncclComm\w+) comm )");
    static const RE2& id = *new RE2(R"(commId (0x[0-9a-fA-F]+))");
    std::string comm, rank, n_ranks, cuda, nvml, bus, rest, what;
    if (!Find(line.text, init, {&comm, &rank, &n_ranks, &cuda, &nvml, &bus, &rest, &what})) {
      OwnRank(line);
      return false;
    }
    model::LogRank seen;
    seen.rank = Small(rank, kMostRanks);
    seen.n_ranks = Small(n_ranks, kMostRanks);
    seen.cuda_device = Small(cuda, kMostDevices);
    seen.nvml_device = Small(nvml, kMostDevices);
    if (seen.rank < 0 || seen.n_ranks <= seen.rank) return false;
    if (!bus.empty()) seen.bus_id = model::ParseNcclBusId(bus);
    seen.split = rest.find(" parent 0x") != rest.npos || line.text.find("ncclCommSplit") != line.text.npos ||
                 line.text.find("ncclCommShrink") != line.text.npos;
    std::string hash;
    if (Find(rest, id, {&hash}) && hash != "0x0") {
      seen.communicator = hash;
      seen.has_comm_id = true;
    }
    Find(line.text, function, {&seen.name});
    seen.pointer = comm;
    seen.time = line.time;
    seen.by = line.by;
    Put(std::move(seen), comm, what, line.where);
    return false;
  }

 private:
  using Key = std::tuple<std::string, int64_t, std::string>;  // host, process, pointer

  void Put(model::LogRank seen, const std::string& comm, const std::string& what, model::Where where) {
    auto& ranks = context_.evidence->log_ranks;
    const Key key{seen.by.host, seen.by.pid, comm};
    const auto known = open_.find(key);
    // The pointer comes back for another communicator once the first is gone, or in another run's log.
    const bool same =
        known != open_.end() && ranks[known->second].rank == seen.rank && ranks[known->second].n_ranks == seen.n_ranks;
    const bool starts = what == "Init START";
    if (!same || starts || (what == "Init COMPLETE" && ranks[known->second].completed.known())) {
      if (ranks.size() >= kMostRanksOfAFile) return;
      if (seen.communicator.empty()) seen.communicator = comm;
      open_[key] = ranks.size();
      ranks.push_back(std::move(seen));
    } else if (seen.bus_id && !ranks[known->second].bus_id) {
      ranks[known->second].bus_id = seen.bus_id;
    }
    model::LogRank& rank = ranks[open_[key]];
    if (starts) rank.started = where;
    if (what == "Init COMPLETE") rank.completed = where;
    if (what.starts_with("Destroy") || what.starts_with("Abort") || what.starts_with("Revoke")) {
      if (!rank.ended.known()) rank.ended = where;
      rank.aborted |= !what.starts_with("Destroy");
    }
  }

  // "[Proxy Service 3] Failed to execute operation Setup from rank 3, retcode 1": the number is the speaker's rank in its first
  // communicator (src/proxy.cc, tpRank since 2.16).
  void OwnRank(const TextLine& line) {
    static const RE2& proxy = *new RE2(R"(\[Proxy Service (\d+)\] Failed to execute operation)");
    std::string rank;
    if (line.by.pid < 0 || line.by.host.empty() || !Find(line.text, proxy, {&rank})) return;
    model::LogRank seen;
    seen.rank = Small(rank, kMostRanks);
    if (seen.rank < 0) return;
    seen.noted = true;
    seen.started = line.where;
    seen.by = line.by;
    seen.cuda_device = line.by.device;
    auto& ranks = context_.evidence->log_ranks;
    if (ranks.size() < kMostRanksOfAFile) ranks.push_back(std::move(seen));
  }

  const FileContext& context_;
  std::map<Key, size_t> open_;  // index in log_ranks
};

const RegisterReader kRegister(LineReaderType{
    "NCCL init lines",
    {R"(comm (?:0x[0-9a-fA-F]+|\(nil\)) rank \d+ n[rR]anks \d+ cudaDev \d+.*- (?:Init|Destroy|Abort|Revoke) (?:START|COMPLETE))",
     R"(\[Proxy Service \d+\] Failed to execute operation)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NcclInit>(context); }});

}  // namespace
}  // namespace ringscope::ingest
