// Faults on demand, as text: "rank=2 op=10 do=absent; rank=0 op=3 do=late ms=200". tests/sim/nccl/faults.h says what each does.
#ifndef RINGSCOPE_TESTS_SIM_SETUP_FAULTS_TEXT_H_
#define RINGSCOPE_TESTS_SIM_SETUP_FAULTS_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ringscope::sim {

struct PlannedFault {
  int rank = -1;
  uint64_t op = 0, init = 0;  // one of them,
  double at = 0;              // or this
  bool onwards = false;       // "op=10+"
  std::string what;
  int ms = -1, gpu = -1, link = 0, left = 0, nic = 0, to = -1, error = 700, code = 0;
  int number = 0;    // its place in the text, from 1
  std::string text;  // its own words
};

// All faults of a text, in its order. On the first mistake `*error` says in which fault and word it is, and what there is
// instead; empty: none.
std::vector<PlannedFault> ParseFaults(const std::string& text, std::string* error);

// `fault 2 "rank=1 op=5 do=kill"`, for messages.
std::string Name(const PlannedFault& fault);

// What faults of a kind act on.
bool OnMachine(const PlannedFault& fault);
bool OnNetworkEdge(const PlannedFault& fault);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_SETUP_FAULTS_TEXT_H_
