// What the parts of World share.
#ifndef RINGSCOPE_TESTS_INTERFACE_WORLD_INL_H_
#define RINGSCOPE_TESTS_INTERFACE_WORLD_INL_H_

#include "recorder/clock.h"
#include "recorder/flight/handles.h"
#include "tests/interface/world.h"

namespace ringscope::interface_model {

inline uint64_t HandleOf(void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// NCCL's names and ours, in the order of World's choices.
struct FuncName {
  const char* text;
  flight::Func value;
};
inline constexpr FuncName kFuncs[] = {{"AllReduce", flight::Func::kAllReduce},
                                      {"AllGather", flight::Func::kAllGather},
                                      {"ReduceScatter", flight::Func::kReduceScatter},
                                      {"Broadcast", flight::Func::kBroadcast},
                                      {"Reduce", flight::Func::kReduce},
                                      {"Send", flight::Func::kSend},
                                      {"Recv", flight::Func::kRecv}};
inline constexpr uint32_t kSendFunc = 5, kRecvFunc = 6;
struct TypeName {
  const char* text;
  flight::DataType value;
  uint32_t bytes;
};
inline constexpr TypeName kTypes[] = {{"ncclInt8", flight::DataType::kInt8, 1},
                                      {"Unknown", flight::DataType::kUnknown, 1},
                                      {"ncclFloat16", flight::DataType::kFloat16, 2},
                                      {"ncclBfloat16", flight::DataType::kBfloat16, 2},
                                      {"ncclFloat32", flight::DataType::kFloat32, 4},
                                      {"ncclInt64", flight::DataType::kInt64, 8}};

template <typename F>
Moment World::Timed(F call) {
  Moment moment;
  moment.low = recorder::Ticks();
  call();
  moment.high = recorder::Ticks();
  return moment;
}

}  // namespace ringscope::interface_model

#endif  // RINGSCOPE_TESTS_INTERFACE_WORLD_INL_H_
