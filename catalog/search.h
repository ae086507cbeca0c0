// Entries by words.
#ifndef RINGSCOPE_CATALOG_SEARCH_H_
#define RINGSCOPE_CATALOG_SEARCH_H_

#include <string_view>
#include <vector>

#include "catalog/catalog.h"

namespace ringscope::catalog {

struct Found {
  const Entry* entry = nullptr;
  double score = 0;  // sum over the words that occur, rarer ones more, those in the name most
};

// Entries that hold words of `text`, the best first; at most `most`. Case does not matter; words of fewer than three letters are
// not looked for, those that stand in most entries only in names. Empty when nothing fits well: an entry must hold half of the words.
std::vector<Found> Search(std::string_view text, size_t most);

}  // namespace ringscope::catalog

#endif  // RINGSCOPE_CATALOG_SEARCH_H_
