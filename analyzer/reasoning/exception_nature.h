// Whether an exception is a rank's own, or says that another rank or a launcher ended: most tracebacks of a failed job are echoes.
#ifndef RINGSCOPE_ANALYZER_REASONING_EXCEPTION_NATURE_H_
#define RINGSCOPE_ANALYZER_REASONING_EXCEPTION_NATURE_H_

#include <string>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

enum class Nature {
  kOwn,            // the program's: a type, a key, a file, a version
  kGpuMemory,      // CUDA out of memory, of a size that a GPU could have
  kHostMemory,     // MemoryError, a data loader's worker killed
  kUserGpu,        // device-side assert, illegal address: this rank's kernels
  kGpuFault,       // a CUDA error that hardware or driver may have made
  kCapture,        // a call that is not allowed while a CUDA graph is captured
  kCommunication,  // NCCL, Gloo, the store, a timeout: an echo until proven otherwise
  kArtefact,       // sizes that no GPU has: memory that a failed collective left unwritten was read as a size
  kLauncher,       // torchrun, mp.spawn, Ray, an engine that reports its workers
  kInterrupt,      // KeyboardInterrupt, SystemExit, SIGTERM
};

Nature NatureOf(const model::Exception& exception);
// By itself enough to end a job.
bool IsOwn(Nature nature);

// Exceptions that one speaker raised while handling each other, and what they amount to: the first one decides whether the chain is
// an echo, the last one of its own kind is what a person should read.
struct Raised {
  const model::Exception* shown = nullptr;
  Nature nature = Nature::kOwn;
  std::vector<const model::Exception*> chain;
};
// In the order of the input, without repetitions of the same exception by the same speaker.
std::vector<Raised> RaisedIn(const model::Job& job);

// "KeyError: 'x'", at most 300 bytes.
std::string ExceptionText(const model::Exception& exception);
// "step (train.py:12)" of the innermost frame; empty without a traceback.
std::string FrameText(const model::Exception& exception);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_EXCEPTION_NATURE_H_
