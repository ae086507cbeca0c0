// Faults on demand, by rank and operation: RINGSCOPE_SIM_FAULTS="rank=2 op=10 do=absent; rank=0 op=3 do=late ms=200".
#ifndef RINGSCOPE_TESTS_SIM_NCCL_FAULTS_H_
#define RINGSCOPE_TESTS_SIM_NCCL_FAULTS_H_

#include <cstdint>
#include <string>

#include "tests/sim/nccl/communicator.h"

namespace ringscope::sim {

// What befalls the op-th operation (from 1, all calls of the process that move data) of the rank of the job.
//   absent   the host never calls: it sleeps        skip    the call is left out
//   kill, stop, exit, segv                            the process, at the call
//   late     the host calls `ms` later               wide    twice the count
//   type     int32 for float32                        gather  an all-gather instead
//   queued   the kernel never starts                  stuck   it starts and never moves
//   twice    the call is made twice                  swap     it is made behind the next one
//   root     the next rank as root                   sticky   CUDA error 700 on the device
// "init=K" in place of op: the K-th communicator that the process creates, itself or by a split; absent, late, kill, stop, exit,
// segv.
enum class Fault { kNone, kSkip, kTwice, kSwap, kQueued, kStuck };
// Acts at the call; what is left to do is for the caller or the kernel. May change the task.
Fault AtCall(Task* task, const ncclComm* comm);
void AtInit();

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_FAULTS_H_
