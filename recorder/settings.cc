#include "recorder/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/flight/text.h"

namespace ringscope::recorder {
namespace {

constexpr uint64_t kSecond = 1000000000;

Settings g_settings;  // zero until SetTheSettings

// "1.5" -> 1,500,000,000. Digits, at most one point; nothing else.
bool ParseSeconds(const char* s, uint64_t* ns) {
  uint64_t whole = 0, fraction = 0, scale = kSecond;
  const char* p = s;
  if (*p != '.') {
    p = ParseUint(p, &whole);
    if (!p) return false;
  }
  if (*p == '.') {
    ++p;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; ++p) {
      if (scale > 1) {
        scale /= 10;
        fraction += static_cast<uint64_t>(*p - '0') * scale;
      }
    }
  }
  if (*p != 0 || whole > UINT64_MAX / kSecond - 1) return false;
  *ns = whole * kSecond + fraction;
  return true;
}

bool ParseMask(const char* s, uint64_t* value) {
  if (s[0] != '0' || (s[1] != 'x' && s[1] != 'X')) {
    const char* end = ParseUint(s, value);
    return end && *end == 0;
  }
  uint64_t v = 0;
  const char* p = s + 2;
  for (; *p; ++p) {
    const char c = static_cast<char>(*p | 0x20);
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || v >> 60) return false;
    v = v << 4 | static_cast<uint64_t>(digit);
  }
  *value = v;
  return p != s + 2;
}

bool IsWord(const char* s, const char* const* words) {
  for (; *words; ++words) {
    if (strcasecmp(s, *words) == 0) return true;
  }
  return false;
}

// Number of `s` among the words of "off|on"; false when it is none of them.
bool ParseWord(const char* words, const char* s, uint64_t* value) {
  const size_t n = strlen(s);
  *value = 0;
  for (const char* w = words;; ++*value) {
    const char* end = strchr(w, '|');
    const size_t length = end ? static_cast<size_t>(end - w) : strlen(w);
    if (length == n && strncasecmp(w, s, n) == 0) return true;
    if (!end) return false;
    w = end + 1;
  }
}

bool ParseNumber(const SettingInfo& info, const char* s, uint64_t* value) {
  static const char* const kOn[] = {"1", "on", "true", "yes", nullptr};
  static const char* const kOff[] = {"0", "off", "false", "no", nullptr};
  switch (info.type) {
    case SettingType::kFlag:
      *value = IsWord(s, kOn) ? 1 : 0;
      return *value || IsWord(s, kOff);
    case SettingType::kSeconds:
      if (!ParseSeconds(s, value)) return false;
      break;
    case SettingType::kMask:
      if (!ParseMask(s, value)) return false;
      break;
    case SettingType::kWord:
      return ParseWord(info.words, s, value);
    default: {
      const char* end = ParseUint(s, value);
      if (!end || *end != 0) return false;
    }
  }
  return *value >= info.low && *value <= info.high;
}

bool IsText(const SettingInfo& info) {
  return info.type == SettingType::kText || info.type == SettingType::kPath;
}

void Refuse(const SettingInfo& info, const char* value, const char* why,
            void (*complain)(const char*)) {
  TextBuffer<512> line;
  line.Add(info.name).Add("=").Add(value, strnlen(value, 128)).Add(" ").Add(why);
  line.Add("; using ").Add(info.default_text[0] ? info.default_text : "the default");
  complain(line.c_str());
}

// Refuses what would break a line, a file name or a reader: control characters.
bool IsPrintable(const char* s) {
  for (; *s; ++s) {
    if (static_cast<unsigned char>(*s) < 0x20 || *s == 0x7f) return false;
  }
  return true;
}

// The process may change its working directory between now and the first trace.
void MakeAbsolute(char* path, size_t capacity) {
  if (path[0] == '/' || path[0] == 0) return;
  char cwd[512];
  if (!getcwd(cwd, sizeof(cwd)) || cwd[0] != '/') return;
  char relative[768];
  CopyText(relative, sizeof(relative), path);
  Text text(path, capacity);
  text.Add(cwd);
  if (cwd[1] != 0) text.AddChar('/');
  text.Add(relative);
}

}  // namespace

#define RS_FIELD(field) offsetof(Settings, field), sizeof(Settings::field)
const SettingInfo kSettings[] = {
    {"RINGSCOPE", SettingType::kFlag, "1",
     "0 turns Ringscope off: no file, no thread, no events asked of NCCL.", false,
     RS_FIELD(enabled), 0, 1},
    {"RINGSCOPE_DIR", SettingType::kPath, "ringscope-traces",
     "Directory for traces, made when the first one is written; relative to the working directory at "
     "the first communicator. May be on a shared file system.",
     false, RS_FIELD(dir), 0, 0},
    {"RINGSCOPE_FLIGHT_DIR", SettingType::kPath, "/dev/shm/ringscope-<uid>",
     "Directory for flight files, the records that survive a killed process. Should be memory "
     "(tmpfs); never a network file system. Made with mode 0700.",
     false, RS_FIELD(flight_dir), 0, 0},
    {"RINGSCOPE_STALL_SECONDS", SettingType::kSeconds, "60",
     "Seconds without any progress after which an operation counts as stalled and a trace is "
     "written; five times as long before a communicator's first completion.",
     false, RS_FIELD(stall_ns), kSecond / 10, 1000000 * kSecond},
    {"RINGSCOPE_EVENTS", SettingType::kMask, "",
     "Event bits to ask NCCL for (NCCL's numbering, e.g. 0xF5F). Default: everything that is cheap on "
     "the NCCL release at hand.",
     false, RS_FIELD(events), 0, 0xffffffff},
    {"RINGSCOPE_TRACES", SettingType::kCount, "8",
     "Traces of a process that lie there at most; the one of its end is not counted. Beyond that the "
     "newest replaces the last. 0: none, the flight file is the only record.",
     false, RS_FIELD(traces), 0, 1000000},
    {"RINGSCOPE_JOB", SettingType::kText, "",
     "Job id in file names and traces, the same for all processes of a job. Default: the launcher's "
     "(SLURM_JOB_ID, TORCHELASTIC_RUN_ID, ...).",
     false, RS_FIELD(job), 0, 0},
    {"RINGSCOPE_VERBOSE", SettingType::kFlag, "0",
     "1 also says on stderr where the flight file is and each trace that was written.", false,
     RS_FIELD(verbose), 0, 1},
    {"RINGSCOPE_STREAM", SettingType::kWord, "off",
     "ops: every operation that is over also goes to a file beside the traces; steps: every transition of a network "
     "step, too (docs/recorder.md, Streaming). off, ops or steps.",
     false, RS_FIELD(stream), 0, 2, "off|ops|steps"},
    {"RINGSCOPE_STREAM_RATE", SettingType::kCount, "1048576",
     "Bytes a second that a process's stream takes at most. What is over is left out and counted.", false,
     RS_FIELD(stream_rate), 4096, uint64_t{1} << 40},
    {"RINGSCOPE_STREAM_BYTES", SettingType::kCount, "268435456",
     "Bytes that a process's stream files hold at most; the oldest of them goes when there is no room for the newest.",
     false, RS_FIELD(stream_bytes), 65536, uint64_t{1} << 50},
    {"RINGSCOPE_HOST", SettingType::kText, "",
     "Pretend to run on the host of this name.", true, RS_FIELD(host), 0, 0},
    {"RINGSCOPE_BOOT_ID", SettingType::kText, "",
     "Pretend this boot id: with RINGSCOPE_HOST, several hosts on one machine.", true,
     RS_FIELD(boot_id), 0, 0},
};
#undef RS_FIELD
const size_t kSettingCount = sizeof(kSettings) / sizeof(kSettings[0]);

void ReadSettings(Settings* settings, void (*complain)(const char* line)) {
  memset(settings, 0, sizeof(*settings));
  for (const SettingInfo& info : kSettings) {
    char* field = reinterpret_cast<char*>(settings) + info.offset;
    const char* value = getenv(info.name);
    if (value && value[0] == 0) value = nullptr;
    if (IsText(info)) {
      if (value && (strlen(value) >= info.size || !IsPrintable(value))) {
        Refuse(info, value, strlen(value) >= info.size ? "is too long" : "has control characters",
               complain);
        value = nullptr;
      }
      CopyText(field, info.size, value ? value : info.default_text);
      continue;
    }
    uint64_t number = kEventsByRelease;
    if (info.default_text[0]) (void)ParseNumber(info, info.default_text, &number);
    uint64_t given;
    if (value) {
      if (ParseNumber(info, value, &given)) {
        number = given;
      } else {
        Refuse(info, value, "is not a usable value", complain);
      }
    }
    memcpy(field, &number, sizeof(number));
  }
  settings->first_stall_ns = settings->stall_ns * kFirstStallFactor;
  if (strstr(settings->flight_dir, "<uid>")) {
    Text text(settings->flight_dir, sizeof(settings->flight_dir));
    text.Add("/dev/shm/ringscope-").AddUint(geteuid());
  }
  MakeAbsolute(settings->dir, sizeof(settings->dir));
  MakeAbsolute(settings->flight_dir, sizeof(settings->flight_dir));
}

void FormatSetting(const Settings& settings, const SettingInfo& info, char* text, size_t capacity) {
  Text out(text, capacity);
  const char* field = reinterpret_cast<const char*>(&settings) + info.offset;
  if (IsText(info)) {
    out.Add(field, strnlen(field, info.size));
    return;
  }
  uint64_t number;
  memcpy(&number, field, sizeof(number));
  switch (info.type) {
    case SettingType::kSeconds:
      out.AddSeconds(number);
      break;
    case SettingType::kMask:
      if (number != kEventsByRelease) out.AddHex(number);
      break;
    case SettingType::kWord: {
      const char* word = info.words;
      for (; number > 0 && strchr(word, '|'); --number) word = strchr(word, '|') + 1;
      const char* end = strchr(word, '|');
      out.Add(word, end ? static_cast<size_t>(end - word) : strlen(word));
      break;
    }
    default:
      out.AddUint(number);
  }
}

const Settings& TheSettings() { return g_settings; }
void SetTheSettings(const Settings& settings) { g_settings = settings; }

}  // namespace ringscope::recorder
