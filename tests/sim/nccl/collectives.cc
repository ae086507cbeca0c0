// The calls that move data: checked, and handed to the group or the stream.
#include <string.h>

#include "tests/sim/nccl/communicator.h"

namespace {

using namespace ringscope::sim;

ncclResult_t Check(const char* function, ncclComm* comm, const void* send, const void* receive, size_t count, ncclDataType_t type,
                   int root) {
  const std::string name(function);
  if (comm == nullptr) return Error(ncclInvalidArgument, name + " : comm argument is NULL");
  if (comm->state.load() == ncclInProgress) return Error(ncclInvalidUsage, name + " : the communicator is not ready");
  if (SizeOf(type) == 0) return Error(ncclInvalidArgument, name + " : invalid type " + std::to_string(type));
  if (root < 0 || root >= comm->n) return Error(ncclInvalidArgument, name + " : invalid root " + std::to_string(root));
  if (count != 0 && (send == nullptr || receive == nullptr)) return Error(ncclInvalidArgument, name + " : a buffer is NULL");
  return ncclSuccess;
}

ncclResult_t Resolve(const char* function, ncclComm* comm, ncclDataType_t type, ncclRedOp_t op, Reduction* reduction) {
  if (!Reducible(type))
    return Error(ncclInvalidArgument, std::string(function) + " : no reductions of this type in the stand-in");
  reduction->n_ranks = comm->n;
  reduction->op = op;
  if (op >= ncclSum && op < ncclNumOps) return ncclSuccess;
  std::lock_guard<std::mutex> lock(comm->mutex);
  const auto made = comm->made.find(static_cast<int>(op));
  if (made == comm->made.end())
    return Error(ncclInvalidArgument, std::string(function) + " : invalid reduction operation " + std::to_string(op));
  *reduction = made->second;
  return ncclSuccess;
}

ncclResult_t Collective(const char* function, Task::Kind kind, const void* send, void* receive, size_t count, ncclDataType_t type,
                        const ncclRedOp_t* op, int root, ncclComm* comm, cudaStream_t stream) {
  const bool needs_receive = kind != Task::kReduce || (comm != nullptr && comm->rank == root);
  const bool needs_send = kind != Task::kBroadcast || (comm != nullptr && comm->rank == root);
  const void* const any = send != nullptr ? send : receive;
  if (const ncclResult_t r = Check(function, comm, needs_send ? send : any, needs_receive ? receive : any, count, type, root);
      r != ncclSuccess)
    return r;
  Task task;
  task.function = function;
  task.kind = kind;
  task.send = send;
  task.receive = receive;
  task.count = count;
  task.type = type;
  task.root = root;
  if (op != nullptr) {
    if (const ncclResult_t r = Resolve(function, comm, type, *op, &task.reduction); r != ncclSuccess) return r;
  }
  return count == 0 ? ncclSuccess : Submit(comm, std::move(task), stream);
}

ncclResult_t Messages(const char* function, std::vector<Task::Message> messages, ncclDataType_t type, int root, ncclComm* comm,
                      cudaStream_t stream) {
  // Pointers are checked one by one.
  if (const ncclResult_t r = Check(function, comm, function, function, 0, type, root); r != ncclSuccess) return r;
  for (const Task::Message& m : messages) {
    if (m.peer < 0 || m.peer >= comm->n)
      return Error(ncclInvalidArgument, std::string(function) + " : invalid peer " + std::to_string(m.peer));
    if (m.bytes != 0 && m.data == nullptr) return Error(ncclInvalidArgument, std::string(function) + " : a buffer is NULL");
  }
  Task task;
  task.kind = Task::kMessages;
  task.function = function;
  task.type = type;
  task.messages = std::move(messages);
  for (Task::Message& m : task.messages) m.type = type;
  return Submit(comm, std::move(task), stream);
}

char* At(const void* data, size_t offset) { return static_cast<char*>(const_cast<void*>(data)) + offset; }

}  // namespace

extern "C" {

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return Collective("AllReduce", Task::kAllReduce, send, receive, count, type, &op, 0, comm, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return Collective("Reduce", Task::kReduce, send, receive, count, type, &op, root, comm, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return Collective("Broadcast", Task::kBroadcast, send, receive, count, type, nullptr, root, comm, stream);
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return Collective("AllGather", Task::kAllGather, send, receive, count, type, nullptr, 0, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return Collective("ReduceScatter", Task::kReduceScatter, send, receive, count, type, &op, 0, comm, stream);
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return Messages("Send", {{true, peer, At(send, 0), count * SizeOf(type)}}, type, 0, comm, stream);
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return Messages("Recv", {{false, peer, At(receive, 0), count * SizeOf(type)}}, type, 0, comm, stream);
}
ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  std::vector<Task::Message> messages;
  const size_t bytes = count * SizeOf(type);
  for (int peer = 0; comm != nullptr && peer < comm->n; ++peer) {
    messages.push_back({true, peer, At(send, bytes * static_cast<size_t>(peer)), bytes});
    messages.push_back({false, peer, At(receive, bytes * static_cast<size_t>(peer)), bytes});
  }
  return Messages("AlltoAll", std::move(messages), type, 0, comm, stream);
}
ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  std::vector<Task::Message> messages = {{true, root, At(send, 0), count * SizeOf(type)}};
  for (int peer = 0; comm != nullptr && comm->rank == root && peer < comm->n; ++peer)
    messages.push_back({false, peer, At(receive, count * SizeOf(type) * static_cast<size_t>(peer)), count * SizeOf(type)});
  return Messages("Gather", std::move(messages), type, root, comm, stream);
}
ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  std::vector<Task::Message> messages = {{false, root, At(receive, 0), count * SizeOf(type)}};
  for (int peer = 0; comm != nullptr && comm->rank == root && peer < comm->n; ++peer)
    messages.push_back({true, peer, At(send, count * SizeOf(type) * static_cast<size_t>(peer)), count * SizeOf(type)});
  return Messages("Scatter", std::move(messages), type, root, comm, stream);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t,
                                      ncclComm_t comm) {
  if (op == nullptr || scalar == nullptr || comm == nullptr)
    return Error(ncclInvalidArgument, "RedOpCreatePreMulSum : an argument is NULL");
  Reduction made;
  made.scaled = true;
  made.n_ranks = comm->n;
  uint16_t half;
  float single;
  double wide;
  switch (type) {
    case ncclFloat16:
      memcpy(&half, scalar, sizeof(half));
      made.scale = FromHalf(half);
      break;
    case ncclBfloat16:
      memcpy(&half, scalar, sizeof(half));
      made.scale = FromBfloat(half);
      break;
    case ncclFloat32:
      memcpy(&single, scalar, sizeof(single));
      made.scale = single;
      break;
    case ncclFloat64:
      memcpy(&wide, scalar, sizeof(wide));
      made.scale = wide;
      break;
    default:
      return Error(ncclInvalidArgument, "RedOpCreatePreMulSum : only of floating-point types in the stand-in");
  }
  std::lock_guard<std::mutex> lock(comm->mutex);
  *op = static_cast<ncclRedOp_t>(comm->next_op++);
  comm->made[static_cast<int>(*op)] = made;
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  if (comm == nullptr) return Error(ncclInvalidArgument, "RedOpDestroy : comm argument is NULL");
  std::lock_guard<std::mutex> lock(comm->mutex);
  return comm->made.erase(static_cast<int>(op)) == 1 ? ncclSuccess
                                                     : Error(ncclInvalidArgument, "RedOpDestroy : no such operation");
}

ncclResult_t ncclMemAlloc(void** pointer, size_t size) {
  return cudaMalloc(pointer, size) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* pointer) { return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; }
// Accepted; data goes through the slots all the same.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t, void** handle) {
  if (comm == nullptr || handle == nullptr) return Error(ncclInvalidArgument, "CommRegister : an argument is NULL");
  *handle = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void*) { return ncclSuccess; }
}
