#include "analyzer/model/transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

constexpr uint64_t kConnects = 1;

bool AllToAll(trace::Func func) {
  return func == trace::ALL_REDUCE || func == trace::ALL_GATHER || func == trace::REDUCE_SCATTER || func == trace::ALL_TO_ALL;
}

int64_t OnHost(const Op& op) {
  if (op.finished != Truth::kYes || op.raw.started_ns() == 0 || op.raw.finished_ns() == 0) return 0;
  return std::max<int64_t>(0, SatSub(op.raw.finished_ns(), op.raw.started_ns()));
}

int64_t OnGpu(const Op& op) {
  if (op.raw.gpu_finished_ns() == 0 || (op.full && op.raw.gpu_started_ns() == 0)) return 0;
  return std::max<int64_t>(0, SatSub(op.raw.gpu_finished_ns(), op.raw.gpu_started_ns()));  // columns keep the difference
}

uint64_t SizeOfType(trace::DataType type) {
  switch (type) {
    case trace::INT8:
    case trace::UINT8:
    case trace::FLOAT8_E4M3:
    case trace::FLOAT8_E5M2:
      return 1;
    case trace::FLOAT16:
    case trace::BFLOAT16:
      return 2;
    case trace::INT32:
    case trace::UINT32:
    case trace::FLOAT32:
      return 4;
    case trace::INT64:
    case trace::UINT64:
    case trace::FLOAT64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

std::vector<TransferSeries> TransfersOf(const Communicator& c) {
  std::vector<const Member*> members;
  uint64_t first = kConnects + 1, last = UINT64_MAX;
  for (const Member& m : c.members) {
    if (!m.has_record() || m.first_kept == 0) continue;
    members.push_back(&m);
    first = std::max(first, m.first_kept);
    last = std::min(last, m.collectives);
  }
  if (members.size() < 2 || first > last) return {};
  const size_t every = (members.size() + kTransferMembers - 1) / kTransferMembers;
  std::vector<const Member*> looked;
  for (size_t i = 0; i < members.size(); i += every) looked.push_back(members[i]);

  using Key = std::tuple<int, int, uint64_t, int, int>;
  std::map<Key, TransferSeries> series;
  const Member& any = *looked.front();
  // Positions far apart in a damaged record are bounded by what the member really holds.
  for (uint32_t index : any.by_position) {
    const Op& one = any.ops[index];
    if (one.position() < first || one.position() > last || !AllToAll(one.raw.func())) continue;
    int64_t host = 0, gpu = 0;
    bool timers = true, all = true;
    for (const Member* m : looked) {
      const Op* op = m->Collective(one.position());
      const int64_t h = op == nullptr ? 0 : OnHost(*op);
      if (h == 0) {
        all = false;
        break;
      }
      const int64_t g = OnGpu(*op);
      timers &= g > 0;
      host = host == 0 ? h : std::min(host, h);
      gpu = gpu == 0 ? g : std::min(gpu, g);
    }
    if (!all) continue;
    TransferSeries& s = series[{one.raw.func(), one.raw.datatype(), one.raw.count(), one.raw.algo(), one.raw.proto()}];
    if (s.call == nullptr) {
      s.call = &one.raw;
      s.member = &any;
    }
    s.instances.push_back({one.position(), timers ? gpu : host});
  }
  std::vector<TransferSeries> out;
  for (auto& [key, s] : series) out.push_back(std::move(s));
  return out;
}

uint64_t BytesOf(const OpRecord& op, int n_ranks) {
  const bool part = op.func() == trace::ALL_GATHER || op.func() == trace::REDUCE_SCATTER;
  const double bytes = static_cast<double>(op.count()) * static_cast<double>(SizeOfType(op.datatype())) * (part ? n_ranks : 1);
  return bytes < 9e18 ? static_cast<uint64_t>(bytes) : 0;
}

double BusFactor(trace::Func func, int n_ranks) {
  const double n = n_ranks;
  switch (func) {
    case trace::ALL_REDUCE:
      return 2 * (n - 1) / n;
    case trace::ALL_GATHER:
    case trace::REDUCE_SCATTER:
    case trace::ALL_TO_ALL:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace ringscope::model
