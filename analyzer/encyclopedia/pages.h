// The failure catalogue as static pages: an index with search, a page an entry, tables of errors, variables, Xids and
// completions. Every page is one file that needs no other to be read, no server and no network. The same catalogue gives the same
// bytes.
#ifndef RINGSCOPE_ANALYZER_ENCYCLOPEDIA_PAGES_H_
#define RINGSCOPE_ANALYZER_ENCYCLOPEDIA_PAGES_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "proto/catalog.pb.h"

namespace ringscope::encyclopedia {

// Borrowed; must outlive the call.
struct Catalogue {
  const catalog::EntryFile& entries;  // in the order of their ids
  const catalog::SignatureFile& signatures;
  const catalog::FaultTable& tables;
};

struct File {
  std::string name;  // without a folder: "HW-01.html"
  std::string content;
};

// What every page begins with: how a later run knows its own files.
extern const char kMarker[];

// InvalidArgument when an id cannot be the name of a file. In the order of their names.
absl::StatusOr<std::vector<File>> Pages(const Catalogue& catalogue);

}  // namespace ringscope::encyclopedia

#endif  // RINGSCOPE_ANALYZER_ENCYCLOPEDIA_PAGES_H_
