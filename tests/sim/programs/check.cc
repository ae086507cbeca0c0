#include "tests/sim/programs/check.h"

#include <string.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/sim/nccl/reduce.h"

namespace ringscope::sim {
namespace {

// A value per rank and element whose sums and products over 8 ranks all types hold exactly.
int Small(int rank, size_t i) { return static_cast<int>((static_cast<size_t>(rank) * 3 + i * 7) % 2) + 1; }

void Store(ncclDataType_t type, void* data, size_t i, double v) {
  switch (type) {
    case ncclInt8:
      static_cast<int8_t*>(data)[i] = static_cast<int8_t>(v);
      return;
    case ncclUint8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(v);
      return;
    case ncclInt32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(v);
      return;
    case ncclUint32:
      static_cast<uint32_t*>(data)[i] = static_cast<uint32_t>(v);
      return;
    case ncclInt64:
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(v);
      return;
    case ncclUint64:
      static_cast<uint64_t*>(data)[i] = static_cast<uint64_t>(v);
      return;
    case ncclFloat16:
      static_cast<uint16_t*>(data)[i] = ToHalf(static_cast<float>(v));
      return;
    case ncclBfloat16:
      static_cast<uint16_t*>(data)[i] = ToBfloat(static_cast<float>(v));
      return;
    case ncclFloat32:
      static_cast<float*>(data)[i] = static_cast<float>(v);
      return;
    case ncclFloat64:
      static_cast<double*>(data)[i] = v;
      return;
    default:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(v);  // float8: moved as bytes
  }
}

double Load(ncclDataType_t type, const void* data, size_t i) {
  switch (type) {
    case ncclInt8:
      return static_cast<const int8_t*>(data)[i];
    case ncclUint8:
      return static_cast<const uint8_t*>(data)[i];
    case ncclInt32:
      return static_cast<const int32_t*>(data)[i];
    case ncclUint32:
      return static_cast<const uint32_t*>(data)[i];
    case ncclInt64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case ncclUint64:
      return static_cast<double>(static_cast<const uint64_t*>(data)[i]);
    case ncclFloat16:
      return FromHalf(static_cast<const uint16_t*>(data)[i]);
    case ncclBfloat16:
      return FromBfloat(static_cast<const uint16_t*>(data)[i]);
    case ncclFloat32:
      return static_cast<const float*>(data)[i];
    case ncclFloat64:
      return static_cast<const double*>(data)[i];
    default:
      return static_cast<const uint8_t*>(data)[i];
  }
}

double Reference(ncclRedOp_t op, ncclDataType_t type, int n, size_t i) {
  double result = Small(0, i);
  for (int r = 1; r < n; ++r) {
    const double v = Small(r, i);
    result = op == ncclProd ? result * v : op == ncclMax ? std::max(result, v) : op == ncclMin ? std::min(result, v) : result + v;
  }
  if (op == ncclAvg) {
    result /= n;
    if (type <= ncclUint64) result = std::trunc(result);
    if (type == ncclFloat16) result = FromHalf(ToHalf(static_cast<float>(result)));
    if (type == ncclBfloat16) result = FromBfloat(ToBfloat(static_cast<float>(result)));
    if (type == ncclFloat32) result = static_cast<float>(result);
  }
  // Eight-bit products wrap.
  if (type == ncclInt8) result = static_cast<int8_t>(static_cast<uint64_t>(result));
  if (type == ncclUint8) result = static_cast<uint8_t>(static_cast<uint64_t>(result));
  return result;
}

class Checker {
 public:
  Checker(ncclComm_t comm, int rank, int n, size_t count) : comm_(comm), rank_(rank), n_(n), count_(count) {
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  ~Checker() { cudaStreamDestroy(stream_); }

  std::string Run() {
    for (int t = 0; t < ncclNumTypes && wrong_.empty(); ++t) {
      const auto type = static_cast<ncclDataType_t>(t);
      if (Reducible(type)) {
        for (int op = 0; op < ncclNumOps && wrong_.empty(); ++op) {
          // Products and sums of more ranks leave the small types.
          if (n_ <= 8 || op == ncclMax || op == ncclMin) Reductions(type, static_cast<ncclRedOp_t>(op));
        }
      }
      Moves(type);
    }
    if (wrong_.empty()) Scaled();
    return wrong_;
  }

 private:
  using Buffer = std::vector<char>;
  Buffer Own(ncclDataType_t type, size_t elements, int rank) const {
    Buffer data(elements * SizeOf(type));
    for (size_t i = 0; i < elements; ++i) Store(type, data.data(), i, Small(rank, i));
    return data;
  }
  void Expect(const char* what, ncclDataType_t type, int op, ncclResult_t called, const Buffer& got, size_t elements,
              const std::function<double(size_t)>& value) {
    if (!wrong_.empty()) return;
    const cudaError_t waited = cudaStreamSynchronize(stream_);
    std::string where =
        std::string(what) + " type " + std::to_string(type) + " op " + std::to_string(op) + " rank " + std::to_string(rank_);
    if (called != ncclSuccess || waited != cudaSuccess) {
      wrong_ = where + ": result " + std::to_string(called) + " " + ncclGetLastError(comm_);
      return;
    }
    for (size_t i = 0; i < elements; ++i) {
      const double have = Load(type, got.data(), i), want = value(i);
      if (have == want) continue;
      wrong_ = where + " element " + std::to_string(i) + ": " + std::to_string(have) + ", not " + std::to_string(want);
      return;
    }
  }

  void Reductions(ncclDataType_t type, ncclRedOp_t op) {
    const size_t n = static_cast<size_t>(n_);
    const auto sum = [&](size_t i) { return Reference(op, type, n_, i); };
    Buffer own = Own(type, count_, rank_), out(own.size());
    Expect("AllReduce", type, op, ncclAllReduce(own.data(), out.data(), count_, type, op, comm_, stream_), out, count_, sum);
    Expect("AllReduce in place", type, op, ncclAllReduce(own.data(), own.data(), count_, type, op, comm_, stream_), own, count_,
           sum);
    const int root = n_ - 1;
    own = Own(type, count_, rank_);
    Expect("Reduce", type, op, ncclReduce(own.data(), out.data(), count_, type, op, root, comm_, stream_), out,
           rank_ == root ? count_ : 0, sum);
    const Buffer all = Own(type, count_ * n, rank_);
    Expect("ReduceScatter", type, op, ncclReduceScatter(all.data(), out.data(), count_, type, op, comm_, stream_), out, count_,
           [&](size_t i) { return Reference(op, type, n_, count_ * static_cast<size_t>(rank_) + i); });
  }

  void Moves(ncclDataType_t type) {
    const size_t n = static_cast<size_t>(n_), size = SizeOf(type);
    const Buffer own = Own(type, count_, rank_);
    Buffer one(count_ * size), all(count_ * n * size);
    const auto of_rank = [&](size_t i) { return static_cast<double>(Small(static_cast<int>(i / count_), i % count_)); };
    Expect("AllGather", type, -1, ncclAllGather(own.data(), all.data(), count_, type, comm_, stream_), all, count_ * n, of_rank);
    const int root = n_ / 2;
    Expect("Broadcast", type, -1, ncclBroadcast(own.data(), one.data(), count_, type, root, comm_, stream_), one, count_,
           [&](size_t i) { return static_cast<double>(Small(root, i)); });
    const Buffer parts = Own(type, count_ * n, rank_);
    Expect("AlltoAll", type, -1, ncclAlltoAll(parts.data(), all.data(), count_, type, comm_, stream_), all, count_ * n,
           [&](size_t i) {
             return static_cast<double>(Small(static_cast<int>(i / count_), count_ * static_cast<size_t>(rank_) + i % count_));
           });
    Expect("Gather", type, -1, ncclGather(own.data(), all.data(), count_, type, root, comm_, stream_), all,
           rank_ == root ? count_ * n : 0, of_rank);
    Expect("Scatter", type, -1, ncclScatter(parts.data(), one.data(), count_, type, root, comm_, stream_), one, count_,
           [&](size_t i) { return static_cast<double>(Small(root, count_ * static_cast<size_t>(rank_) + i)); });
    // Around the ring, sends and receives in one group.
    const int next = (rank_ + 1) % n_, before = (rank_ + n_ - 1) % n_;
    ncclGroupStart();
    const ncclResult_t sent = ncclSend(own.data(), count_, type, next, comm_, stream_);
    const ncclResult_t received = ncclRecv(one.data(), count_, type, before, comm_, stream_);
    const ncclResult_t ended = ncclGroupEnd();
    Expect("Send and Recv", type, -1,
           sent != ncclSuccess       ? sent
           : received != ncclSuccess ? received
                                     : ended,
           one, count_, [&](size_t i) { return static_cast<double>(Small(before, i)); });
  }

  void Scaled() {
    ncclRedOp_t op;
    float half = 0.5f;
    ncclResult_t made = ncclRedOpCreatePreMulSum(&op, &half, ncclFloat32, ncclScalarHostImmediate, comm_);
    Buffer own = Own(ncclFloat32, count_, rank_), out(own.size());
    if (made == ncclSuccess) made = ncclAllReduce(own.data(), out.data(), count_, ncclFloat32, op, comm_, stream_);
    Expect("scaled sum", ncclFloat32, -1, made, out, count_,
           [&](size_t i) { return Reference(ncclSum, ncclFloat32, n_, i) / 2; });
    if (wrong_.empty() && ncclRedOpDestroy(op, comm_) != ncclSuccess) wrong_ = "RedOpDestroy";
  }

  ncclComm_t comm_;
  const int rank_, n_;
  const size_t count_;
  cudaStream_t stream_ = nullptr;
  std::string wrong_;
};

}  // namespace

std::string CheckCollectives(ncclComm_t comm, int rank, int n, size_t count) { return Checker(comm, rank, n, count).Run(); }

}  // namespace ringscope::sim
