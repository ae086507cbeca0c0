// Every RINGSCOPE_* environment variable: one table, from which the values are read, `ringscope
// env` is printed and the documentation is made. A new setting is one field and one line of the
// table.
#ifndef RINGSCOPE_RECORDER_SETTINGS_H_
#define RINGSCOPE_RECORDER_SETTINGS_H_

#include <stddef.h>
#include <stdint.h>

namespace ringscope::recorder {

// The values in use. Plain data, filled by ReadSettings.
struct Settings {
  uint64_t enabled;  // 0: off
  uint64_t stall_ns;
  uint64_t
      first_stall_ns;  // before a communicator's first completion: kFirstStallFactor * stall_ns
  uint64_t events;     // profiler event bits; kEventsByRelease: as the NCCL release allows
  uint64_t traces;     // traces a process at most; 0: none
  uint64_t verbose;
  uint64_t stream;        // enum StreamLevel
  uint64_t stream_rate;   // bytes a second that go to stream files at most
  uint64_t stream_bytes;  // that a process's stream files hold at most
  char dir[768];  // where traces go; made absolute by ReadSettings
  char flight_dir[512];
  char job[128];
  char host[64];
  char boot_id[40];
};

inline constexpr uint64_t kFirstStallFactor = 5;
inline constexpr uint64_t kEventsByRelease = ~uint64_t{0};
// Group Coll P2p ProxyOp ProxyStep KernelCh GroupApi CollApi P2pApi KernelLaunch (nccl
// profiler_v6.h). Not ProxyCtrl (up to a million callbacks a second), not NetPlugin, not the
// copy-engine events.
inline constexpr uint32_t kDefaultEvents = 0xF5F;

enum class SettingType { kFlag, kCount, kMask, kSeconds, kPath, kText, kWord };

struct SettingInfo {
  const char* name;
  SettingType type;
  const char* default_text;  // as the user would write it; "" = none
  const char* meaning;       // one or two sentences, unit included
  bool for_tests;            // pretends something; not for production
  size_t offset;             // in Settings
  size_t size;
  uint64_t low, high;  // accepted range (ns for kSeconds); texts: unused
  const char* words = nullptr;  // kWord: what is accepted, "off|on"; the value is the number of the word
};

// The table and its length.
extern const SettingInfo kSettings[];
extern const size_t kSettingCount;

// Fills *settings from the environment. A value that cannot be used keeps the default and is
// reported through `complain` with one line each (never NULL). Allocates nothing.
void ReadSettings(Settings* settings, void (*complain)(const char* line));

// The value in use as text, in the form in which it would be set. At most capacity - 1 characters.
void FormatSetting(const Settings& settings, const SettingInfo& info, char* text, size_t capacity);

// The settings that Start() read; defaults before.
const Settings& TheSettings();
// For Start() and tests.
void SetTheSettings(const Settings& settings);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_SETTINGS_H_
