// Words that the renderings of a diagnosis share.
#ifndef RINGSCOPE_ANALYZER_REPORT_WORDS_H_
#define RINGSCOPE_ANALYZER_REPORT_WORDS_H_

#include <string>
#include <utility>
#include <vector>

#include "proto/diagnosis.pb.h"

namespace ringscope::report {

template <typename Repeated>
std::vector<int> Ints(const Repeated& values) {
  return std::vector<int>(values.begin(), values.end());
}

// "missing_rank" -> "missing rank".
std::string Words(const std::string& enum_name);
// "HANG".
std::string StateWord(State::Value state);
// What is said of a healthy or unclear job, where no finding speaks.
std::string StateMeaning(State::Value state);
// "rank 5, on host3, in world (0x1f2e3d4c)"; "nobody".
std::string WhoText(const Who& who);
// "rank 5 on host3 (file)" in two parts: paths are long and the same ones come again and again.
std::pair<std::string, std::string> SplitSource(const std::string& source);
// "dmesg.txt:12", "rank 5 on host3, table entry 9"; empty when the evidence has no place.
std::string SourceText(const Evidence& e);
// Whether the first finding says more than the state does (one of kind `none` does not).
bool Leads(const Diagnosis& d);
// A catalogue id stands there, and not "not established".
bool CauseKnown(const Finding& f);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_WORDS_H_
