// A training job as the generator thinks of it: hosts, ranks, communicators, what each rank's
// program does, and what goes wrong. Times are seconds of one true clock; only record.cc knows that
// hosts have clocks of their own.
#ifndef RINGSCOPE_TESTS_PROPERTY_WORLD_H_
#define RINGSCOPE_TESTS_PROPERTY_WORLD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/trace.pb.h"
#include "tests/property/random.h"

namespace ringscope::property {

inline constexpr double kNever = 1e18;

struct Comm {
  std::string name;
  uint64_t id = 0;
  std::vector<int> ranks;               // job ranks, by rank in the communicator
  std::vector<std::vector<int>> rings;  // of each channel: ranks of the communicator in ring order
  bool tree = false;
  int slices = 2;             // slices a chunk (2 with Simple, 1 with LL)
  bool over_network = false;  // some members sit on different hosts
  int n() const { return static_cast<int>(ranks.size()); }
  int channels() const { return static_cast<int>(rings.size()); }
  int RankOf(int job_rank) const {
    for (int i = 0; i < n(); ++i) {
      if (ranks[static_cast<size_t>(i)] == job_rank) return i;
    }
    return -1;
  }
};

struct Call {
  int comm = 0;
  trace::Func func = trace::ALL_REDUCE;
  trace::DataType type = trace::FLOAT32;
  uint64_t count = 0;
  int peer = -1;  // rank in the communicator, of a send or receive
  bool p2p() const { return func == trace::SEND || func == trace::RECV; }
};

enum class Do {
  kCall,     // calls NCCL
  kCompute,  // gives the GPU `seconds` of work
  kWait,     // `stream` does not go on before what `other` holds now is done
  kHost,     // the host is busy for `seconds`
  kSync,     // the host waits for everything that it gave the GPU
  kStuck,    // the host never goes on, in user code
  kKilled,   // the process is gone, here
  kFrozen,   // the process does not run any more
  kExit,     // the program ends in order
};

struct Step {
  Do what = Do::kHost;
  Call call = {};
  int group = 0;  // calls in a row with the same number, not 0, are one ncclGroup
  int stream = 0;
  int other = 0;
  double seconds = 0;
  int iteration = 0;
};
using Program = std::vector<Step>;

enum class Layout { kDp, kFsdp, kTpDp, kPpTpDp, kEp };

enum class FaultKind {
  kNone,
  kSlowStart,
  kLateStart,
  kCheckpoint,
  kIdle,  // nothing is wrong
  kStuckHost,
  kKilled,
  kFrozen,
  kExited,  // a rank does not come
  kCollective,
  kSize,
  kOrder,
  kUnmatched,
  kCycle2,
  kCycle3,  // the program is wrong
  kGpuBefore,
  kGpuMid,
  kWire,
  kControl,
  kFlush,  // something stands still
  kEdgeSlow,
  kHostSlow,
  kGpuSlow,  // something is slow
  kCount
};
const char* NameOf(FaultKind kind);

// What was done to the job. Ranks are job ranks.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  int rank = -1;            // who
  int comm = -1;            // in which communicator
  uint64_t position = 0;    // at which operation of it
  int from = -1, to = -1;   // edge
  std::vector<int> others;  // further ranks that are as guilty (a cycle)
  std::vector<int> comms;   // of a cycle
  int channel = -1;         // of an edge; -1: all
  double seconds = 0;       // how long, how late
  int step = 0;             // where in the operation: steps (ring) that still worked
};

// What of the job was recorded, and how.
struct Recording {
  int api = 6;          // profiler table
  bool socket = false;  // network transport: TCP sockets (sends end in a buffer), else driven by
                        // the receiver's credits
  int kept = 256;       // operations kept a communicator
  double stall_seconds = 60;
  bool flight_files = false;     // every record is a flight file (the job was killed in the hang)
  bool earlier_attempt = false;  // records of a restart lie beside
  std::vector<bool> lost;        // by job rank: its record is not there
  bool dead_record = true;       // of a process that is gone its flight file was found
  double snapshot = kNever;      // asked for at this moment, in the midst of the work
  bool completion_visible() const { return api >= 3; }
  bool api_events() const { return api >= 5; }
};

struct World {
  uint64_t seed = 0;
  Layout layout = Layout::kDp;
  int ranks = 0, hosts = 0;
  std::vector<int> host_of;  // by job rank
  std::vector<Comm> comms;
  std::vector<Program> programs;
  int iterations = 0;
  double op_seconds = 0.003;  // typical time of a collective
  std::vector<Fault> faults;  // none, one or two
  Recording recording;
  bool SameHost(int a, int b) const {
    return host_of[static_cast<size_t>(a)] == host_of[static_cast<size_t>(b)];
  }
};

// A job with its faults, from a seed alone. `only`: this kind of fault; kCount: any.
World MakeWorld(uint64_t seed, FaultKind only = FaultKind::kCount);

// Steps of MakeWorld().
void MakeLayout(Random* random, World* world);    // hosts, ranks, communicators
void MakePrograms(Random* random, World* world);  // what each rank does
bool Inject(Random* random, FaultKind kind,
            World* world);  // false: this job cannot have that fault
void MakeRecording(Random* random, World* world);

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_WORLD_H_
