// What a flight file says, as named numbers that a model can predict: no times, no handles, no row
// numbers.
//
//   comm<n>.<counter>                               n: order of creation
//   comm<n>.c<position>.<field>, comm<n>.p<position>.<field>      a collective, a point-to-point
//   call comm<n>.edge.<rank>.<peer>.<channel>.<s|r><p|c>.<field>       a connection: sends or
//   receives, of p2p or collectives comm<n>.messages.<peer>.<s|r>.<field> thread<n>.<field> n:
//   order of the first call
// A fact that is 0 may be missing.
#ifndef RINGSCOPE_TESTS_INTEGRATION_KILL_FACTS_H_
#define RINGSCOPE_TESTS_INTEGRATION_KILL_FACTS_H_

#include <cstdint>
#include <map>
#include <string>

namespace ringscope::integration {

using Facts = std::map<std::string, uint64_t>;

std::string CommName(uint64_t ordinal);
std::string OpName(uint64_t comm, bool p2p, uint64_t position);
std::string EdgeName(uint64_t comm, uint64_t rank, uint64_t peer, uint64_t channel, bool send,
                     bool p2p);
std::string MessagesName(uint64_t comm, uint64_t peer, bool send);

// Reads a flight file by the words of recorder/flight/format.h. Nothing but the layout is shared
// with the recorder. `event_mask`: what the process had asked of NCCL. False when the file is
// missing or not yet a flight file.
bool ReadFacts(const std::string& path, Facts* facts, uint32_t* event_mask);

// Empty when every fact of `got` equals that of `before` or that of `after`; else what differs, a
// line each.
std::string Compare(const Facts& got, const Facts& before, const Facts& after);

}  // namespace ringscope::integration

#endif  // RINGSCOPE_TESTS_INTEGRATION_KILL_FACTS_H_
