// Operations, ranks and communicators in words, the same words in every finding; and evidence that
// cites its record.
#ifndef RINGSCOPE_ANALYZER_REASONING_OP_TEXT_H_
#define RINGSCOPE_ANALYZER_REASONING_OP_TEXT_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::reasoning {

// "AllReduce", "Send", …; "operation" when unknown.
std::string FuncText(trace::Func func);
// "float32", …
std::string TypeText(trace::DataType type);
// "AllReduce of 30000 float32", "Broadcast of 3000000 float32 from root 0", "Send of 16 float32 to
// peer 2".
std::string OpText(const model::OpRecord& op);
// " (nccl:all_reduce, called by step at train.py:88)": how the program made the call, where its record tells (dumps of PyTorch's
// flight recorder); else empty.
std::string CallText(const model::Job& job, const model::Member& member, const model::OpRecord& op);
// "200 ms", "6.0 s", …
std::string DurationText(int64_t ns);

// A host name for a command that people paste into a shell. Names come from records, and records can be damaged or hostile:
// what is no plain host name (letters, digits, dot, dash, underscore) becomes "<host>".
std::string ShellHost(const std::string& host);
// "rank 5", and "rank 1 of 2" inside a communicator when the job rank is not known.
std::string RankText(const model::Communicator& communicator, const model::Member& member);
// "rank 1", "ranks 1 and 3", "ranks 0, 1, 2 and 5 more".
std::string RanksText(const std::set<int>& ranks);
// "operation 11 of communicator world".
std::string PlaceText(const model::Communicator& communicator, uint64_t position);

// "rank 1 on host1 (file)"; "no record" for a member without one.
std::string SourceText(const model::Job& job, const model::Member& member);
// A row that says `text` about `member`; `row` is the table entry in that record.
Evidence MemberEvidence(const model::Job& job, const model::Member& member, uint32_t row,
                        std::string text);

// Adds to the list without repetition and in ascending order; negative (unknown) ranks are left
// out.
void AddRanks(const std::set<int>& ranks, google::protobuf::RepeatedField<int32_t>* list);

// True when the members are the same rank of the job: same process, and the same job rank where it
// is known.
bool SameRank(const model::Member& a, const model::Member& b);

// Value of a counter of the process's record, e.g. "edge_no_row"; 0 when absent.
uint64_t CounterValue(const model::Process& process, const std::string& name);

// The GPU's own duration of an operation; 0 when its timer was not given.
int64_t GpuDuration(const model::Op& op);
// From start to end on the GPU as the host saw it; 0 when either was not seen.
int64_t HostDuration(const model::Op& op);

// Finished is a fact, not a hope.
inline bool Finished(const model::Op& op) { return op.finished == model::Truth::kYes; }
// Known to be unfinished: completion is visible and did not come. An enqueued operation of a
// communicator whose completion is not visible is neither finished nor open.
inline bool Open(const model::Op& op) {
  return op.entered == model::Truth::kYes && op.finished == model::Truth::kNo;
}

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_OP_TEXT_H_
