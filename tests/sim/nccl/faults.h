// Faults on demand, by rank and operation: RINGSCOPE_SIM_FAULTS="rank=2 op=10 do=absent; rank=0 op=3 do=late ms=200".
#ifndef RINGSCOPE_TESTS_SIM_NCCL_FAULTS_H_
#define RINGSCOPE_TESTS_SIM_NCCL_FAULTS_H_

#include "tests/sim/nccl/communicator.h"
#include "tests/sim/setup/faults_text.h"

namespace ringscope::sim {

// What befalls the op-th operation (from 1, all calls of the process that move data) of the rank of the job; "op=10+": it and all
// that follow.
//   absent   the host never calls: it sleeps        skip    the call is left out
//   kill, stop, segv, exit                            the process, at the call; exit with `code` (0)
//   late     the host calls `ms` later               wide    twice the count (of a collective)
//   half     half the count, of messages too
//   type     int32 for float32                        gather  an all-gather instead
//   queued   the kernel never starts                  stuck   it starts and never moves
//   twice    the call is made twice                  swap     it is made behind the next one
//   root     the next rank as root                   sticky   a CUDA error on the device: `error` (700)
// The machine (machine_faults.cc), which all processes of the host see:
//   lanes    `left` (0) NVLinks of GPU `gpu` stay active, or, with `to`, of that pair; the kernel's log tells of `link` (0).
//            Communicators that exist keep their connections
//   nvlink   the same under traffic: also the CUDA error that goes with it (220)
//   lost     the GPU falls off the bus: Xid 79, CUDA error 999
//   port     network adapter `nic` (0) loses its port: what runs over it stands still, and after `ms` (2000) NCCL reports
//            completions with error 12, then 5
// The edge to rank `to` (all: none given) of whatever communicator, over sockets:
//   edge_stalled  nothing is sent any more            edge_drop   what is sent gets lost
//   edge_slow     every slice takes `ms` (5) longer
//   proxy    the progress thread stops for ever
// "init=K" in place of op: the K-th communicator that the process creates, itself or by a split; also
//   shm      no room in /dev/shm: the creation fails
// "at=SECONDS" in place of op: that long after the process's first communicator was asked for; kill, stop, exit, segv, and what
// befalls machine and edges.
// setup/faults_text.cc reads the text: a mistake in it ends the process.
enum class Fault { kNone, kSkip, kTwice, kSwap, kQueued, kStuck };
// Acts at the call; what is left to do is for the caller or the kernel. May change the task.
Fault AtCall(Task* task, const ncclComm* comm);
// Not ncclSuccess: the creation fails.
ncclResult_t AtInit();

// Notes in the file RINGSCOPE_SIM_FIRED, once, that the fault has acted: "RANK NUMBER", its number in the text.
void Fired(const PlannedFault& fault);

// machine_faults.cc: true if it was one of its own.
bool BefallMachine(const PlannedFault& fault, int device);

// What goes wrong on connections to other processes; read by the progress thread at every slice.
struct EdgeFault {
  enum Kind { kNone, kStalled, kDrop, kSlow, kFailed } kind = kNone;
  int ms = 0;
};
EdgeFault OnEdge(int to);
bool ProxyStopped();

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_FAULTS_H_
