// JSON into a value tree.
#ifndef RINGSCOPE_ANALYZER_READERS_JSON_TREE_H_
#define RINGSCOPE_ANALYZER_READERS_JSON_TREE_H_

#include <absl/status/status.h>

#include <string_view>

#include "analyzer/ingest/value_tree.h"

namespace ringscope::ingest {

// Like ReadPickle(): on an error the tree holds what had been read by then.
absl::Status ReadJson(std::string_view bytes, ValueTree* tree);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_JSON_TREE_H_
