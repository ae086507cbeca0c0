// A flight file copied while its process runs: the copy may hold a row of which one half belongs to one operation, the other
// half to the next.
#ifndef RINGSCOPE_ANALYZER_INGEST_STABLE_ROWS_H_
#define RINGSCOPE_ANALYZER_INGEST_STABLE_ROWS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace ringscope::ingest {

// Empties the rows of `image` (a whole flight file) whose stamp is not the same in `before` and `after`, copies of the same
// file made before and after it: those were given to something new meanwhile (recorder/flight/format.h, what a reader may
// assume). Returns how many. Copies of other sizes, and tables that do not fit, leave the image as it is.
uint32_t DropChangingRows(std::string_view before, std::string_view after, std::string* image);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_STABLE_ROWS_H_
