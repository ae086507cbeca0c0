// What the recorder's sources, compiled against shim/atomic, call in the model checker. No C++ library header: the shim
// replaces <atomic>, and the two must not meet.
#ifndef RINGSCOPE_TESTS_PROTOCOL_HOOKS_H_
#define RINGSCOPE_TESTS_PROTOCOL_HOOKS_H_

#include <stddef.h>
#include <stdint.h>

namespace ringscope::protocol {

struct Order {
  bool acquire, release;
};
struct Site {
  const char* file;
  int line;
};

// Addresses outside the words given to Watch() are plain memory.
uint64_t OnLoad(const void* at, Order order, Site site);
void OnStore(void* at, uint64_t value, Order order, Site site);
// Compare and exchange; *expected becomes what was seen.
bool OnExchange(void* at, uint64_t* expected, uint64_t desired, Order order, Site site);
void OnFence(Order order, Site site);

// ---- for scenarios

inline constexpr int kMostThreads = 3;

// One situation: writers that run concurrently, and a reader that runs after them and may read, at each load, everything that
// the memory model lets it: as if it had run at any time.
struct Scenario {
  const char* name;
  void (*reset)();                     // before each execution: plain memory, Watch()
  int writers;
  void (*writer[kMostThreads])();
  bool (*reader)();                    // true: it accepted what it copied
  // What an accepted copy must satisfy, asked with the tags of the words that it was made of; nullptr when it is right.
  const char* (*judge)();
  // The reader's interest, one at a time: of words that are not in focus only the reads that constrain it least are tried.
  size_t focuses;
  void (*focus)(size_t which);         // calls Focus()
};

// The words of a row are modelled from now on, all 0 with tag 0.
void Watch(void* first, size_t words);
void Focus(const void* word);
// What the calling writer stores from now on carries `tag`.
void Tag(uint32_t tag);
// The tag of what the reader read last at `word`; kNoTag when it did not.
inline constexpr uint32_t kNoTag = 0xffffffff;
uint32_t TagRead(const void* word);
// How NCCL hands a handle from one of its threads to another (under its own locks): what happened before Signal(n) is seen
// after Await(n), which waits for it.
void Signal(int n);
void Await(int n);


}  // namespace ringscope::protocol

#endif  // RINGSCOPE_TESTS_PROTOCOL_HOOKS_H_
