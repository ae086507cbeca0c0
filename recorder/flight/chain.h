// The signature chain of a communicator: a rolling hash over its collectives, with checkpoints. Two ranks whose chains
// agree at a position made the same calls up to there; where they disagree, they diverged before, be it thousands of
// operations ago.
//
// Folded are function, datatype, count and root of each collective (bytes where nothing is computed), in the order of the
// calls. Inside a group the order means nothing (NCCL reorders), so a group is folded as a sum when the next one begins; its
// collectives are counted then. Below profiler API v5 a group is a kernel plan. Not folded: point-to-point calls (ranks
// rightly differ in them) and calls captured into a graph (a rank may capture again without the others).
//
// Every word is valid alone, whenever its writer dies: the newest hash has two places, and one word says which of them
// counts and repeats some of its bits; a checkpoint carries the ordinal of its multiple.
#ifndef RINGSCOPE_RECORDER_FLIGHT_CHAIN_H_
#define RINGSCOPE_RECORDER_FLIGHT_CHAIN_H_

#include <stdint.h>

#include "recorder/flight/format.h"
#include "recorder/flight/rows.h"

namespace ringscope::flight {

// Checkpoints are kept at multiples of 1 << shift collectives, the last two of each.
inline constexpr uint32_t kChainLevels = 4;
inline constexpr uint32_t kChainShift[kChainLevels] = {6, 9, 12, 15};
inline constexpr uint64_t kChainOpen = uint64_t{1} << 63;     // of CommRow::chain_group
inline constexpr uint64_t kChainSecond = uint64_t{1} << 63;   // of CommRow::chain_closed
inline constexpr uint64_t kChainPosition = 0xffffffffff;      // of CommRow::chain_closed
inline constexpr uint64_t kChainCheck = 0x7fffff;             // bits of the hash that chain_closed repeats

// A finalizer of 64 bits: every input bit reaches every output bit (the constants of SplitMix64, S. Vigna, public domain).
constexpr uint64_t ChainMix(uint64_t h) {
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
  h = (h ^ h >> 27) * 0x94d049bb133111ebu;
  return h ^ h >> 31;
}
// One collective. `root`: 24 bits as in OpRow::position.
constexpr uint64_t ChainOf(Func func, DataType type, uint64_t count, uint64_t root) {
  return ChainMix(ChainMix(count + 0x9e3779b97f4a7c15u) ^
                  (static_cast<uint64_t>(func) | static_cast<uint64_t>(type) << 8 | root << 16));
}
constexpr uint64_t ChainFold(uint64_t chain, uint64_t group_sum) {
  return ChainMix(chain * 0x9e3779b97f4a7c15u + group_sum);
}
// Functions (a bit each) that move data and compute nothing. They are folded in bytes, as NCCL runs them: ranks whose bytes
// are equal do not disagree.
inline constexpr uint32_t kChainMoves =
    1u << static_cast<uint32_t>(Func::kBroadcast) | 1u << static_cast<uint32_t>(Func::kAllGather) |
    1u << static_cast<uint32_t>(Func::kAlltoAll) | 1u << static_cast<uint32_t>(Func::kScatter) |
    1u << static_cast<uint32_t>(Func::kGather);
// The word of a checkpoint: at `position`, the exact number of collectives folded when multiple number `ordinal` was passed.
constexpr uint64_t ChainCheckpoint(uint64_t chain, uint64_t position, uint64_t ordinal) {
  return ChainMix(chain ^ position) << 16 | (ordinal & 0xffff);
}

// The word that names the newest hash: `position` collectives are in it, it stands in place `second`. Some bits of the hash
// make a pair that does not belong together recognisable: a reader's copy may be of two moments, in whatever order its
// words were copied.
constexpr uint64_t ChainClosed(uint64_t position, uint64_t hash, uint64_t second) {
  return (position & kChainPosition) | (hash & kChainCheck) << 40 | second;
}

// What a reader finds. `position`: collectives folded; 0: none. `hash`: after so many; 0: not known, the copy is torn.
struct ChainView {
  uint64_t position, hash;
};
inline ChainView ReadChain(const CommRow& comm) {
  const uint64_t closed = Load(comm.chain_closed);
  const uint64_t hash = Load(comm.chain[closed & kChainSecond ? 1 : 0]);
  const bool whole = (closed >> 40 & kChainCheck) == (hash & kChainCheck);
  return {closed & kChainPosition, whole ? hash : 0};
}
// Hash (48 bits) of the checkpoint at multiple number `ordinal` of a level; false when it is not there (any more).
inline bool ReadCheckpoint(const CommRow& comm, uint32_t level, uint64_t ordinal, uint64_t* hash) {
  const uint64_t word = Load(comm.checkpoints[level * 2 + (ordinal & 1)]);
  if (ordinal == 0 || word == 0 || (word & 0xffff) != (ordinal & 0xffff)) return false;
  *hash = word >> 16;
  return true;
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_CHAIN_H_
