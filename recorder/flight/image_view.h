// A flight image as a reader sees it: the process's own mapping, or bytes read from a disk, which
// may be cut, damaged or made by an enemy. Every table is cut to what is really there; nothing
// beyond `size` is ever touched.
#ifndef RINGSCOPE_RECORDER_FLIGHT_IMAGE_VIEW_H_
#define RINGSCOPE_RECORDER_FLIGHT_IMAGE_VIEW_H_

#include <stddef.h>
#include <stdint.h>

#include "recorder/flight/format.h"

namespace ringscope::flight {

template <typename Row>
struct TableView {
  const Row* rows = nullptr;
  uint32_t count = 0;                                          // rows that are wholly there
  uint32_t meant = 0;                                          // rows that the header promises
  const Row& operator[](uint32_t i) const { return rows[i]; }  // REQUIRES: i < count
};

struct ImageView {
  const FileHeader* header = nullptr;
  const char* text = nullptr;
  uint32_t text_bytes = 0;
  TableView<Word> counters;
  TableView<SiblingRow> siblings;
  TableView<ThreadRow> threads;
  TableView<CommRow> comms;
  TableView<OpRow> ops;
  TableView<EdgeRow> edges;
  TableView<HostRow> host;
  uint64_t size = 0;
  uint64_t missing_bytes = 0;  // of what the header says the file has

  // Looks at the header and cuts the tables. `data` must be aligned to 8 bytes and outlive this.
  // Returns nullptr, or what is wrong in one plain phrase ("..., so it cannot be read").
  const char* Open(const void* data, size_t data_size);
};

// The value of `key` in the text block, or nullptr. *size excludes the NUL. Never reads past the
// block.
const char* TextValue(const ImageView& image, const char* key, size_t* value_size);

// Steps through the text block: sets *entry and *entry_size to the entry at *at and moves *at
// behind it. False at the end.
bool NextText(const ImageView& image, uint32_t* at, const char** entry, size_t* entry_size);

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_IMAGE_VIEW_H_
