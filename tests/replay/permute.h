// Renames the ranks of a job: a diagnosis must name the same process under its new number.
#ifndef RINGSCOPE_TESTS_REPLAY_PERMUTE_H_
#define RINGSCOPE_TESTS_REPLAY_PERMUTE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/replay/capture.h"

namespace ringscope::replay {

struct Permutation {
  std::vector<int> job;  // job[old] = new; the identity where nothing was asked for
  // The same for the ranks inside each communicator, by its id. A communicator of part of the job
  // numbers its members in the order of their job ranks, as a split with key = rank does; one whose
  // members are not all known keeps its numbers.
  std::map<uint64_t, std::vector<int>> comm;

  int Job(int rank) const;
  int InComm(uint64_t comm_id, int rank) const;
};

// A random permutation that is the same for equal seeds on every machine. Seed 0 is a permutation
// as good as any other.
Permutation MakePermutation(const Capture& capture, uint64_t seed);
Permutation Identity(const Capture& capture);

// Applies it to everything that is delivered: ranks of init and of descriptors, peers, roots, and
// the ranks a process holds. Run it after MapForeign.
void Permute(Capture& capture, const Permutation& permutation);

// {"0": 2, "1": 0, ...}
std::string ToJson(const Permutation& permutation);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_PERMUTE_H_
