// What the recorder is told of a wrapped call, by its kind; and the wrapper's frame around the real function.
//
// Until the process has its first communicator, a call goes through with two comparisons. A call that the real library makes of
// itself (NCCL calls some of its own public functions) is not told.
#ifndef RINGSCOPE_PRELOAD_DETAILS_H_
#define RINGSCOPE_PRELOAD_DETAILS_H_

#include <stddef.h>
#include <stdint.h>

#include "preload/target.h"
#include "recorder/flight/format.h"
#include "recorder/hot_host.h"

namespace ringscope::preload {

using recorder::Image;

// ncclUniqueId, by value.
struct NcclId {
  char bytes[128];
};

struct Plain {};
struct On {
  const void* stream;
};
struct Sync {
  const void* about;
};
struct Copy {
  int kind;
  size_t bytes;
  const void* stream;
};
// Communicators.
struct Of {
  void* comm;
};
struct End {
  void* comm;
};
struct Create {
  void** made;
  const NcclId* id;
  int n_ranks, rank;
};
struct CreateAll {
  void** made;
  int n_ranks;
};
struct Split {
  void* parent;
  int color;
  void** made;
};
struct AsyncError {
  void* comm;
  int* error;
};
struct Op {
  flight::Func func;
  size_t count;
  int type, root_or_peer, reduction;  // -1 none
  void* comm;
  void* stream;
};
struct GroupBegins {};
struct GroupEnds {};

// One wrapped call on one thread.
struct Frame {
  Image* image;
  flight::ThreadRow* thread;  // nullptr: no row was free
  uint32_t number;
  Library library;
  const void* caller;
  uint64_t handle;  // of the recorder, for an operation
};

// Counts wrapped calls that this thread is in. 4 bytes of static TLS.
extern __thread uint32_t t_depth __attribute__((tls_model("initial-exec")));

// What every call tells at once.
struct Told {
  const void* about = nullptr;
  uint64_t bytes = 0;
  int copy = -1;  // kind
  uint32_t reduction = 0;
  bool wakes = false;  // begins a communicator: the recorder starts with it; all other calls wait for that
};
inline Told TellOf(const Plain&) { return {}; }
inline Told TellOf(const On& d) { return {d.stream}; }
inline Told TellOf(const Sync& d) { return {d.about}; }
inline Told TellOf(const Copy& d) { return {d.stream, d.bytes, d.kind}; }
inline Told TellOf(const Of& d) { return {d.comm}; }
inline Told TellOf(const AsyncError& d) { return {d.comm}; }
inline Told TellOf(const End& d) { return {d.comm}; }
inline Told TellOf(const Create&) { return {nullptr, 0, -1, 0, true}; }
inline Told TellOf(const CreateAll&) { return {nullptr, 0, -1, 0, true}; }
inline Told TellOf(const Split& d) { return {d.parent}; }
Told TellOf(const Op& d);
inline Told TellOf(const GroupBegins&) { return {}; }
inline Told TellOf(const GroupEnds&) { return {}; }

// False: nothing is told of this call. Out of line: there are more than a hundred wrappers.
bool Enter(Frame* f, const Told& told);
// Success, and results that are no errors: NCCL's "in progress", CUDA's "not ready".
constexpr bool IsError(Library library, int result) { return result != 0 && result != (library == Library::kNccl ? 7 : 600); }
void Leave(Frame* f, int result);

// What some calls tell beyond that: before the real function, and after it (Leave is called behind).
template <typename Detail>
inline void Before(Frame*, const Detail&) {}
void Before(Frame* f, const Op& d);
template <typename Detail>
inline void After(Frame*, const Detail&, int) {}
void After(Frame* f, const AsyncError& d, int result);
void After(Frame* f, const End& d, int result);
void After(Frame* f, const Create& d, int result);
void After(Frame* f, const CreateAll& d, int result);
void After(Frame* f, const Split& d, int result);
void After(Frame* f, const Op& d, int result);
void After(Frame* f, const GroupBegins& d, int result);
void After(Frame* f, const GroupEnds& d, int result);

// The wrapper: `call` runs the real function.
template <typename Detail, typename CallReal>
inline int Around(Library library, uint32_t number, const void* caller, const Detail& detail, CallReal call) {
  Frame frame;
  frame.number = number;
  frame.library = library;
  frame.caller = caller;
  if (!Enter(&frame, TellOf(detail))) return call();
  Before(&frame, detail);
  const int result = call();
  After(&frame, detail, result);
  Leave(&frame, result);
  return result;
}

}  // namespace ringscope::preload

#endif  // RINGSCOPE_PRELOAD_DETAILS_H_
