// Who this process is: gathered once, when the flight file is made, and written into its text
// block, where it survives the process. The encoder turns it into trace.Process.
#ifndef RINGSCOPE_RECORDER_IDENTITY_H_
#define RINGSCOPE_RECORDER_IDENTITY_H_

#include <stddef.h>
#include <stdint.h>

#include "recorder/flight/text.h"
#include "recorder/settings.h"

namespace ringscope::recorder {

inline constexpr uint32_t kNoNumber = 0xffffffff;

struct Identity {
  char host[64];
  char boot_id[40];
  char job[128];        // empty: no launcher told
  uint32_t restart;     // 0 unless told
  uint32_t rank;        // job rank; kNoNumber when no launcher variable gave one
  uint32_t local_rank;  // likewise
  uint32_t world_size;  // likewise
  int32_t pid;
  uint32_t uid;
  uint64_t process_start;  // /proc/self/stat field 22
  uint64_t process_stack;  // field 28; changes with exec
};

// Reads the environment and procfs. Settings that pretend another host or job win.
void ReadIdentity(const Settings& settings, Identity* identity);

// Writes the text block: "key=value\0"..., zero-filled behind. Keys: local_rank, job, restart,
// rank, world_size, version, traces (RINGSCOPE_DIR as it is used), cmdline, nccl (path), gpu.N (bus id|uuid|name), cut (1: something
// found no room), env.NAME. Numbers that are not known have no key. Secrets are masked. Order: what
// others must find comes first, the environment last.
void WriteTextBlock(const Identity& identity, const char* trace_dir, char* block, size_t capacity);

// Field 22 of /proc/PID/stat ("start time", clock ticks after boot), the state letter, and field 28
// (start of the stack; 0 when it is not for us to know) if `stack` is given; false when there is no
// such process here. `stat` is the file's text.
bool ParseProcStat(const char* stat, uint64_t* start, char* state, uint64_t* stack = nullptr);

// Appends `value` to `out` as it may be shown: "***" in place of what looks secret. Masked are:
// values of variables whose name contains TOKEN, SECRET, PASSW, CREDENTIAL, AUTH or KEY; the part
// before @ in scheme://user:password@host; runs of 32 or more letters and digits in upper case,
// lower case and digits, of 40 or more hexadecimal digits, and those behind the prefixes that
// well-known services give their tokens.
void AddMasked(Text& out, const char* name, const char* value);

// The same for a command line as in /proc/self/cmdline (arguments separated by NUL, `size` bytes in
// all): joined with blanks; the argument behind --password and the like is masked too.
void AddMaskedCommandLine(Text& out, const char* arguments, size_t size);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_IDENTITY_H_
