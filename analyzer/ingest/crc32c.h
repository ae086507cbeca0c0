// CRC-32C (Castagnoli), the checksum of a trace's chunks. Written apart from the recorder's on
// purpose: two implementations that agree on every chunk check each other.
#ifndef RINGSCOPE_ANALYZER_INGEST_CRC32C_H_
#define RINGSCOPE_ANALYZER_INGEST_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace ringscope::ingest {

// CRC-32C of `data` (reflected 0x82f63b78, initial and final value inverted); of nothing it is 0.
uint32_t Crc32c(std::string_view data);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_CRC32C_H_
