// Python's pickle, protocols 0 to 5, as far as it is plain data.
//
// A pickle is a program for a small stack machine, and some of its instructions import and call things. Those are refused, with
// the instruction and its byte: nothing that a pickle asks to be run is run, looked up or imported here.
#ifndef RINGSCOPE_ANALYZER_INGEST_PICKLE_H_
#define RINGSCOPE_ANALYZER_INGEST_PICKLE_H_

#include <absl/status/status.h>

#include <string_view>

#include "analyzer/ingest/value_tree.h"

namespace ringscope::ingest {

// True when the bytes begin like a pickle (any protocol); many other things do so as well.
bool LooksLikePickle(std::string_view head);

// Reads one pickle into `tree` (which is cleared first); `bytes` must outlive it. On an error the message names byte and
// instruction, and the tree holds what had been read by then, containers that were not finished included: a dump that was cut
// short still tells most of its story. Takes memory in proportion to the bytes; sets count as lists; integers beyond 64 bits
// become the nearest that fits.
absl::Status ReadPickle(std::string_view bytes, ValueTree* tree);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_PICKLE_H_
