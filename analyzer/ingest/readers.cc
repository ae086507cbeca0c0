#include "analyzer/ingest/readers.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace ringscope::ingest {
namespace {

constexpr size_t kMaxNotes = 20;  // of a file

std::vector<LineReaderType>& Lines() {
  static auto& all = *new std::vector<LineReaderType>;
  return all;
}
std::vector<DocumentReaderType>& Documents() {
  static auto& all = *new std::vector<DocumentReaderType>;
  return all;
}

// By name, so that the order of linking changes nothing.
template <typename Type>
const std::vector<Type>& Sorted(std::vector<Type>& all) {
  const auto by_name = [](const Type& a, const Type& b) { return a.name < b.name; };
  if (!std::is_sorted(all.begin(), all.end(), by_name)) std::sort(all.begin(), all.end(), by_name);
  return all;
}

}  // namespace

RegisterReader::RegisterReader(LineReaderType type) { Lines().push_back(std::move(type)); }
RegisterReader::RegisterReader(DocumentReaderType type) { Documents().push_back(std::move(type)); }

const std::vector<LineReaderType>& LineReaders() { return Sorted(Lines()); }
const std::vector<DocumentReaderType>& DocumentReaders() { return Sorted(Documents()); }

void FileContext::Note(std::string note) const {
  std::vector<std::string>& notes = info().notes;
  if (notes.size() < kMaxNotes) {
    notes.push_back(std::move(note));
  } else if (notes.size() == kMaxNotes) {
    notes.push_back("further lines that could not be read are not listed");
  }
}

}  // namespace ringscope::ingest
