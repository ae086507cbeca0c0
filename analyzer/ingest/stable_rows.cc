#include "analyzer/ingest/stable_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "recorder/flight/format.h"

namespace ringscope::ingest {
namespace {

uint64_t WordAt(std::string_view bytes, size_t at) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

// Row sizes of the tables whose rows are given away again; 0 for the others.
uint64_t RowBytes(uint32_t table) {
  switch (static_cast<flight::Table>(table)) {
    case flight::Table::kComms:
      return sizeof(flight::CommRow);
    case flight::Table::kOps:
      return sizeof(flight::OpRow);
    case flight::Table::kEdges:
      return sizeof(flight::EdgeRow);
    default:
      return 0;
  }
}

}  // namespace

uint32_t DropChangingRows(std::string_view before, std::string_view after, std::string* image) {
  if (before.size() != image->size() || after.size() != image->size() ||
      image->size() < sizeof(flight::FileHeader)) {
    return 0;
  }
  uint32_t dropped = 0;
  const size_t first = offsetof(flight::FileHeader, tables);
  uint32_t tables;
  std::memcpy(&tables, image->data() + offsetof(flight::FileHeader, table_count), sizeof(tables));
  for (uint32_t t = 0; t < std::min<uint32_t>(tables, 8); ++t) {
    flight::TableDesc desc;
    std::memcpy(&desc, image->data() + first + t * sizeof(desc), sizeof(desc));
    const uint64_t row_bytes = RowBytes(desc.table);
    if (row_bytes == 0 || desc.row_bytes != row_bytes || desc.offset >= image->size()) continue;
    const uint64_t rows =
        std::min<uint64_t>(desc.rows, (image->size() - desc.offset) / row_bytes);
    for (uint64_t row = 0; row < rows; ++row) {
      const size_t at = desc.offset + row * row_bytes;
      const uint64_t stamp = WordAt(*image, at);
      if (stamp == 0 || (WordAt(before, at) == stamp && WordAt(after, at) == stamp)) continue;
      std::memset(image->data() + at, 0, sizeof(uint64_t));
      ++dropped;
    }
  }
  return dropped;
}

}  // namespace ringscope::ingest
