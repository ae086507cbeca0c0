// What the recorders leave of a played job: one record a process, as analyzer/ingest would hand it
// over.
#ifndef RINGSCOPE_TESTS_PROPERTY_RECORD_H_
#define RINGSCOPE_TESTS_PROPERTY_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "tests/property/simulate.h"

namespace ringscope::property {

// Clock of a host: CLOCK_MONOTONIC and CLOCK_REALTIME at a true second.
struct HostClock {
  double boot = 0, drift = 0, offset = 0;
  int64_t Mono(double t) const { return static_cast<int64_t>((boot + t * (1 + drift)) * 1e9); }
  int64_t Real(double t) const {
    return int64_t{1800000000} * 1000000000 +
           static_cast<int64_t>((offset + t * (1 + drift)) * 1e9);
  }
};

// How a rank's record came to be.
struct RecordPlan {
  bool exists = true;
  bool flight_file = false;
  trace::WriteReason reason = trace::REASON_STALL;
  double cut = kNever;  // what happened later is not in it
  double written = 0;
  bool clean = false;  // the process ended in order
};

struct Recorded {
  std::vector<RecordPlan> plans;  // by job rank
  std::vector<model::Record> records;
};

std::vector<RecordPlan> PlanRecords(const World& w, const Played& played);
// Plan, and the records themselves.
// `apart_seconds`: hosts' wall clocks are off by up to so much; below 0 half of the jobs by little and half by 5 s.
Recorded Record(const World& w, const Played& played, double apart_seconds = -1);

std::string HostName(int host);
// Communicators with their operations.
void WriteCommunicators(const World& w, const Played& played, int rank, const RecordPlan& plan,
                        const HostClock& clock, trace::Trace* out);
// Connections and message counts of all ranks' records. `rows`: Communicator.row of each
// communicator in each rank's record.
void WriteEdges(const World& w, const Played& played, const std::vector<RecordPlan>& plans,
                const std::vector<HostClock>& clocks, const std::vector<trace::Trace*>& out);
// Row of a communicator in the record of one of its members.
uint32_t RowOf(const World& w, int rank, int comm);

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_RECORD_H_
