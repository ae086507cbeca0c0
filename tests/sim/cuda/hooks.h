// What the NCCL stand-in asks of the CUDA stand-in beyond the public interface.
#ifndef RINGSCOPE_TESTS_SIM_CUDA_HOOKS_H_
#define RINGSCOPE_TESTS_SIM_CUDA_HOOKS_H_

#include "tests/sim/include/cuda_runtime.h"

extern "C" {

// Runs `kernel(argument)` on the stream, in order, on a thread of the stream; or makes it a node of the graph that the stream
// captures. `release(argument)` is called once, when no run of it can come any more (after the run, or when the graph and its
// executables are gone). Returns at once.
cudaError_t ringscopeSimEnqueue(cudaStream_t stream, void (*kernel)(void*), void (*release)(void*), void* argument);

// From now on every call that touches the device returns `error`, as after a fault of the real one; work in its queues is
// dropped.
void ringscopeSimBreakDevice(int device, cudaError_t error);
// cudaSuccess while the device is well.
cudaError_t ringscopeSimDeviceError(int device);

// Of the device: ns of a timer of its own (another zero than any host clock).
uint64_t ringscopeSimGlobalTimer(int device);
}

#endif  // RINGSCOPE_TESTS_SIM_CUDA_HOOKS_H_
