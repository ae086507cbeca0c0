// The command line of replay.
#ifndef RINGSCOPE_TESTS_REPLAY_OPTIONS_H_
#define RINGSCOPE_TESTS_REPLAY_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ringscope::replay {

struct Options {
  enum Kill {
    kNo,
    kAtEnd,   // all at once, after the stall had time to become old
    kAtCall,  // each process after its kill_at-th returned callback
    kRandom,  // each process at a random moment
  };

  bool help = false;
  std::string capture;
  std::string out;
  std::string plugin;  // empty: RINGSCOPE_PLUGIN, else libringscope.so beside the program
  double speed = 1;    // 0: as fast as it goes
  Kill kill = kNo;
  uint64_t kill_at = 0;
  uint64_t kill_seed = 0;
  int drop_rank = -1;
  bool permute = false;
  uint64_t permute_seed = 0;
  std::string cut;  // empty: no cut
  enum End { kIdle, kKilled, kStopped };
  int end_process = -1;  // ends as `end_how` before it enters the hung operation; -1: none
  End end_how = kIdle;
  int as_api = 0;   // 0: the table that the capture went through
};

// Values may be given as --option VALUE or --option=VALUE; --kill takes one only with '='.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);

std::string Help();

// RINGSCOPE_STALL_SECONDS of the environment, as the recorder reads it; 60 where it is not set.
double StallSeconds();

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_OPTIONS_H_
