// Does the process that owns a flight file still exist? Only where the file lies on the machine
// that made it.
#ifndef RINGSCOPE_ANALYZER_INGEST_OWNER_PROBE_H_
#define RINGSCOPE_ANALYZER_INGEST_OWNER_PROBE_H_

#include <cstdint>
#include <string>

namespace ringscope::ingest {

// As the file's header names it.
struct Owner {
  std::string boot_id;
  int32_t pid = 0;
  uint64_t start_ticks = 0;         // /proc/PID/stat field 22: tells a reused pid
  uint64_t stack = 0;               // field 28: tells a process that has called exec since; 0 not known
  int64_t created_realtime_ns = 0;  // when the process made the file
};

struct OwnerState {
  bool same_machine = false;  // this boot of this machine
  bool known = false;         // `exists` is a fact
  bool exists = false;        // the lock is held, or /proc shows the very process
  char letter = 0;            // state letter of /proc/PID/stat; 0 not visible
};

// A free lock is a fact only for the file itself: a copy has no lock although its owner may live. A
// copy is told by its time of birth, where the file system keeps one. The owner may also have lost
// its lock by closing every descriptor, so /proc is asked too.
OwnerState ProbeOwner(const std::string& path, const Owner& owner);

int64_t RealtimeNs();

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_OWNER_PROBE_H_
