// What text and tool output say: logs, kernel messages, nvidia-smi, RAS, stacks. Facts with their place, no opinions.
//
// Readers (analyzer/readers/) fill it, ResolveSpeakers() joins it, finders read it as Job::evidence. Whatever several readers
// share is here; the tables of one kind of source have a header of their own (evidence_*.h).
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/model/bus_id.h"
#include "analyzer/model/evidence_calls.h"
#include "analyzer/model/evidence_flight_recorder.h"
#include "analyzer/model/evidence_hardware.h"
#include "analyzer/model/evidence_kernel.h"
#include "analyzer/model/evidence_network.h"
#include "analyzer/model/evidence_place.h"
#include "analyzer/model/evidence_plan.h"
#include "analyzer/model/evidence_ras.h"
#include "analyzer/model/evidence_stack.h"
#include "analyzer/model/evidence_trials.h"
#include "analyzer/model/evidence_work.h"

namespace ringscope::model {

// An input file that was read as text (or as a document of a known form).
struct TextFile {
  std::string path;
  // What the file's name says of its contents ("rank-3.log", "nvidia-smi-node2.txt", "dmesg.hostA"): a hint, weaker than
  // anything written inside. -1 and empty when it says nothing.
  int rank = -1;
  std::string host;
  uint64_t lines = 0;
  std::vector<std::string> readers;  // names of readers that found something in it
  std::vector<std::string> notes;    // "line 7: ...": what could not be read, for people
};

// One line that matched a signature of the catalogue (catalog/signatures/).
struct Event {
  std::string signature;  // its id
  Where where;
  Speaker by;
  Stamp time;
  std::vector<std::pair<std::string, std::string>> fields;  // the pattern's named groups that took part
  std::string text;       // the line without wrappers, at most kMaxQuote bytes, valid UTF-8
  uint32_t repeats = 0;   // further lines of this file with the same signature, speaker and fields; not kept one by one
  // Value of a field; empty when the line did not have it.
  std::string_view Field(std::string_view name) const;
  std::optional<int64_t> Number(std::string_view name) const;  // decimal, or hexadecimal with 0x
};
inline constexpr size_t kMaxQuote = 600;

// A setting in force or asked for: NCCL's "X set by environment to Y", `export X=Y`, `X=Y command`, module options.
struct Setting {
  std::string name, value;
  Where where;
  Speaker by;
};

// "NCCL version 2.28.9+cuda12.9", a driver's, torch's, a package's.
struct Version {
  std::string component;  // "nccl", "cuda", "driver", "torch", "python", or a package's name
  std::string version;
  Where where;
  Speaker by;
};

// One rank of one communicator as NCCL's init lines tell it: the only map from rank to host, process, device and bus id that
// most logs have.
struct LogRank {
  int rank = -1, n_ranks = 0;
  std::string communicator;  // "0x…" commId where printed (2.17+), else the pointer: unique within one process only
  bool has_comm_id = false;
  std::string pointer;       // "0x…" behind "comm": names it in other lines of the same process
  std::string name;          // the function that made it, where printed ("ncclCommInitRank", 2.22+)
  int cuda_device = -1, nvml_device = -1;
  std::optional<BusId> bus_id;
  bool split = false;        // from ncclCommSplit and the like: `rank` is not a job rank
  // Not from an init line (n_ranks is 0): a person's note ("rank 2 = PCI 3b:00"), a test program's device table, a warning that
  // names its own rank. `rank` is a job rank.
  bool noted = false;
  Where started, completed, ended;  // file -1: no such line
  bool aborted = false;      // `ended` is an abort
  Stamp time;
  Speaker by;
};

struct Evidence {
  std::vector<TextFile> files;  // Where::file is an index into it
  std::vector<Event> events;    // by file and line
  std::vector<Setting> settings;
  std::vector<Version> versions;
  std::vector<LogRank> log_ranks;
  CallFacts calls;              // what was asked of NCCL, from its own log
  PlanFacts plan;               // rings, trees, transports, topology
  HardwareFacts hardware;       // GPUs, links, counters, fabric
  KernelFacts kernel;           // Xid, PCIe errors, hung tasks
  NetworkFacts network;         // NICs, ports, GIDs, interfaces
  RasFacts ras;
  StackFacts stacks;
  WorkFacts work;               // PyTorch's work objects, mismatches, exits, steps
  std::vector<Trial> trials;    // what people tried, and how it went
  FlightRecorderFacts flight_recorder;  // what PyTorch's analyzer of its dumps said
  std::map<std::string, uint64_t> uncounted;  // signature -> lines beyond the limit, not kept

  bool empty() const { return files.empty(); }
  // "path:line", "path" for the whole file.
  std::string PlaceText(Where where) const;
  std::string_view Path(Where where) const;
};

// Gives ranks and hosts to speakers that told only part of it, from the init lines: (host, pid, device) and (host, bus id) name
// a rank of the largest communicator; a file in which all who said their rank say the same speaks for that rank. Called once,
// after all files are read. A launcher's task number that covers several ranks is taken back. Unknown stays -1: never guessed.
void ResolveSpeakers(Evidence* evidence);

// "node7" and "node7.cluster": the same machine.
bool SameHost(std::string_view a, std::string_view b);

// Rank of the largest communicator that drives this GPU: by bus id on a host (or on any host when only one is in the logs), by
// device index. -1 when unknown or ambiguous.
int RankOfGpu(const Evidence& evidence, std::string_view host, BusId bus_id);
int RankOfDevice(const Evidence& evidence, std::string_view host, int device);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_H_
