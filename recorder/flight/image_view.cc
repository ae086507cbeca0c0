#include "recorder/flight/image_view.h"

#include <string.h>

namespace ringscope::flight {
namespace {

// Rows of `desc` that lie wholly inside the image; a description that does not fit this build's
// rows gives none.
template <typename Row>
TableView<Row> Cut(const TableDesc& desc, const uint8_t* base, uint64_t size, uint32_t most) {
  TableView<Row> view;
  view.meant = desc.rows < most ? desc.rows : most;
  if (desc.row_bytes != sizeof(Row) || desc.offset % 8 != 0 || desc.offset >= size) return view;
  const uint64_t fit = (size - desc.offset) / sizeof(Row);
  uint64_t rows = view.meant;
  if (fit < rows) rows = fit;
  view.rows = reinterpret_cast<const Row*>(base + desc.offset);
  view.count = static_cast<uint32_t>(rows);
  return view;
}

}  // namespace

const char* ImageView::Open(const void* data, size_t data_size) {
  *this = ImageView();
  if (data_size == 0) return "the file is empty";
  if (data_size < sizeof(kMagic) || memcmp(data, kMagic, sizeof(kMagic)) != 0) {
    return "it does not begin with RNGSCOPE, so it is no flight file (or its process died while "
           "making it)";
  }
  if (data_size < sizeof(FileHeader)) return "it is cut inside its header";
  if (reinterpret_cast<uintptr_t>(data) % 8 != 0) return "it is not aligned in memory";
  const auto* h = static_cast<const FileHeader*>(data);
  if (h->byte_order != kByteOrder) return "it was written on a machine of the other byte order";
  if (h->version != kVersion) {
    return "it has another format version: use the ringscope of the release that wrote it";
  }
  header = h;
  size = data_size;
  if (h->file_bytes > data_size) missing_bytes = h->file_bytes - data_size;
  const auto* base = static_cast<const uint8_t*>(data);
  const uint32_t tables = h->table_count < 8 ? h->table_count : 8;
  for (uint32_t i = 0; i < tables; ++i) {
    const TableDesc desc = h->tables[i];
    switch (static_cast<Table>(desc.table)) {
      case Table::kText: {
        const auto view = Cut<char>(desc, base, size, kTextBytes);
        text = view.rows;
        text_bytes = view.count;
        break;
      }
      case Table::kCounters:
        counters = Cut<Word>(desc, base, size, kCounterWords);
        break;
      case Table::kSiblings:
        siblings = Cut<SiblingRow>(desc, base, size, kSiblingRows);
        break;
      case Table::kThreads:
        threads = Cut<ThreadRow>(desc, base, size, kThreadRows);
        break;
      case Table::kComms:
        comms = Cut<CommRow>(desc, base, size, kCommRows);
        break;
      case Table::kOps:
        ops = Cut<OpRow>(desc, base, size, kOpRows);
        break;
      case Table::kEdges:
        edges = Cut<EdgeRow>(desc, base, size, kEdgeRows);
        break;
      case Table::kHost:
        host = Cut<HostRow>(desc, base, size, 1);
        break;
    }
  }
  return nullptr;
}

bool NextText(const ImageView& image, uint32_t* at, const char** entry, size_t* entry_size) {
  if (*at >= image.text_bytes || image.text[*at] == 0) return false;
  *entry = image.text + *at;
  *entry_size = strnlen(*entry, image.text_bytes - *at);
  *at += static_cast<uint32_t>(*entry_size) + 1;
  return true;
}

const char* TextValue(const ImageView& image, const char* key, size_t* value_size) {
  const size_t n = strlen(key);
  uint32_t at = 0;
  const char* entry;
  size_t size;
  while (NextText(image, &at, &entry, &size)) {
    if (size > n && entry[n] == '=' && memcmp(entry, key, n) == 0) {
      *value_size = size - n - 1;
      return entry + n + 1;
    }
  }
  *value_size = 0;
  return nullptr;
}

}  // namespace ringscope::flight
