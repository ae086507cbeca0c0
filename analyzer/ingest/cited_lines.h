// Lines of files that were read before, taken out again by their numbers: to quote them with what stands around them.
#ifndef RINGSCOPE_ANALYZER_INGEST_CITED_LINES_H_
#define RINGSCOPE_ANALYZER_INGEST_CITED_LINES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "analyzer/ingest/byte_source.h"

namespace ringscope::ingest {

// Of each line the first so many bytes.
inline constexpr size_t kMostOfALine = 2000;

// Counted as ReadText() counts; compressed files and UTF-16 as there. What cannot be read (any more) is missing from the answer,
// so are lines of standard input ("-"), which is gone.
std::map<std::string, std::map<uint32_t, std::string>> CitedLines(const std::map<std::string, std::set<uint32_t>>& wanted);
std::map<uint32_t, std::string> CitedLines(ByteSource* source, const std::set<uint32_t>& wanted);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_CITED_LINES_H_
