// Where a fact stands, who said it, when.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLACE_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLACE_H_

#include <cstdint>
#include <string>

namespace ringscope::model {

struct Where {
  int32_t file = -1;  // index in Evidence::files; -1 nowhere
  uint32_t line = 0;  // from 1; 0 = the file as a whole
  bool known() const { return file >= 0; }
  friend bool operator==(const Where&, const Where&) = default;
  friend auto operator<=>(const Where&, const Where&) = default;
};

// Times of different clocks are never compared: a log without zone or date says less than it seems.
struct Stamp {
  enum class Clock : uint8_t {
    kNone,
    kRealtime,  // ns since 1970, zone known
    kLocal,     // ns since 1970 as if UTC; zone (and for some sources the year) unknown
    kOfDay,     // ns since midnight, no date
    kBoot,      // ns since the host's boot (dmesg)
  };
  Clock clock = Clock::kNone;
  int64_t ns = 0;
  bool known() const { return clock != Clock::kNone; }
};

// Who wrote a line, as far as the line, its wrapper or its file tell. -1 and empty: unknown.
struct Speaker {
  int rank = -1;        // of the job (the largest communicator)
  int local_rank = -1;  // on its host
  int device = -1;      // CUDA device index in NCCL's brackets: not a rank
  int64_t pid = -1, tid = -1;
  std::string host;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLACE_H_
