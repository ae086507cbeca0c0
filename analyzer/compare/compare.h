// Two runs of a job, compared fact by fact.
//
// A topic is a file with a static RegisterFacts: it lists what one run shows of it. The comparison itself is the same for all.
#ifndef RINGSCOPE_ANALYZER_COMPARE_COMPARE_H_
#define RINGSCOPE_ANALYZER_COMPARE_COMPARE_H_

#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "proto/comparison.pb.h"

namespace ringscope::compare {

struct Fact {
  std::string name;     // "transport", "NCCL_ALGO"
  std::string subject;  // "edge 3->4", "rank 5"; empty: the job
  std::string value;    // for people; compared as it is unless `number` is set
  std::string source;   // where it stands
  double number = 0;    // a measurement: compared by ratio; 0: none
  Change::Weight weight = Change::worth_a_look;
  const char* explains = "";
  const char* confirm = "";
  double quality = 0;  // of values that have an order: more is better; 0: none. A change for the better explains no worse run
};

// `missing`: what to collect where one side tells nothing of the topic.
struct Topic {
  Change::Topic topic;
  const char* name;
  const char* missing;
  std::vector<Fact> (*facts)(const model::Job& job);
  bool absence_counts = true;  // a fact that only one side has is a change; not where histories are cut
};
struct RegisterFacts {
  explicit RegisterFacts(const Topic& topic);
};

// A measurement that grew by this factor is slower, by the other degraded (docs/localisation.md, Stragglers; published practice).
inline constexpr double kSlowRatio = 1.3;
inline constexpr double kDegradedRatio = 1.1;

// Facts of subjects that changed alike become one Change. Times count as changed from kDegradedRatio on, in either direction.
Comparison Compare(const model::Job& good, const model::Job& bad);

// "rank 5", "edge 3->4".
std::string RankSubject(int rank);
std::string EdgeSubject(int from, int to);
// Source of a fact of a record.
std::string RecordSource(const model::Process& process);
// Job rank of a member, or its place in its group.
std::string GroupText(const model::Communicator& c);

}  // namespace ringscope::compare

#endif  // RINGSCOPE_ANALYZER_COMPARE_COMPARE_H_
