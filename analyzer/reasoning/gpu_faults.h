// The GPU faults that the kernel log tells, in causal order: which Xid began it, which only followed. Shared by the finders of
// the single mechanisms (NVLink, lost GPU, memory, firmware, illegal access).
#ifndef RINGSCOPE_ANALYZER_REASONING_GPU_FAULTS_H_
#define RINGSCOPE_ANALYZER_REASONING_GPU_FAULTS_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {

struct GpuFault {
  const model::XidFact* fact = nullptr;
  int number = -1;       // the Xid; that of the previous one where the line says "caused by previous Xid N"
  bool implied = false;  // `number` was only named so: its own line is not in the log
  catalog::XidEntry::Role role = catalog::XidEntry::unspecified;  // by the table, corrected by the line's own text
  catalog::XidEntry::Part part = catalog::XidEntry::other;
  const catalog::XidEntry* entry = nullptr;  // nullptr: not in the table, or an NVSwitch
  int rank = -1;                             // whose GPU it is
};

struct Incident {
  std::vector<GpuFault> faults;  // all of the kernel logs, by host and time where that can be told
  int root = -1;                 // index of the one that began it; -1: only followers, warnings, instructions
  // Faults of the root's part on other devices within a moment of it, the root first.
  std::vector<int> together;
  // "GPU Reset Required" and its like: the newest instruction for the root's device.
  std::string action;
  bool order_unknown = false;  // faults on several hosts whose clocks cannot be compared
  // The root came after the job had ended already: seconds; else 0.
  double after_end_s = 0;
  model::Where end;           // the line that ended it
  bool before_stall = false;   // the root's time fits what the job complains of
  bool long_before = false;    // the job went on long after it
};

// Made anew at each call; the pointers live as long as the job.
Incident FindIncident(const model::Job& job);

// Rank that drives this GPU: by bus id (init lines, channel lines of old releases, notes), by the process that used it. -1
// unknown.
int RankOfFault(const model::Job& job, const model::XidFact& fact);
// Rank of a process of a host; -1 unknown.
int RankOfProcess(const model::Job& job, std::string_view host, int64_t pid);

// "GPU 0000:3b:00.0 (rank 2, on gpu07)", "NVSwitch 0000:c4:00.0 on gpu07".
std::string DeviceText(const GpuFault& fault);
// "Xid 79", "SXid 20034".
std::string NumberText(const GpuFault& fault);
// Cites the line, with how often it came.
void CiteFault(const model::Job& job, const GpuFault& fault, Finding* finding);
// Cites what else the kernel log says of the incident (followers, instructions), at most `most` lines.
void CiteOthers(const model::Job& job, const Incident& incident, size_t most, Finding* finding);
// Who: GPU, host, link, and rank where known.
void NameDevice(const GpuFault& fault, bool with_rank, Finding* finding);

// All ranks that any text names, but those of `who`: they only waited.
void OthersWaited(const model::Job& job, Finding* finding);

// Lines in which programs of the job complain: timeouts of collectives, CUDA errors. What makes a kernel message and a failed job
// agree, and what tells when the job failed.
struct Complaint {
  model::Where where;
  std::string text;
  model::Stamp time;
  model::Speaker by;
  bool timeout = false;
  int64_t stalled_since_ns = 0;  // of a timeout: how long before `time` the operation began
};
std::vector<Complaint> Complaints(const model::Job& job);
// Cites at most `most` of them, timeouts of different ranks first.
void CiteComplaints(const model::Job& job, const std::vector<Complaint>& complaints, size_t most, Finding* finding);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_GPU_FAULTS_H_
