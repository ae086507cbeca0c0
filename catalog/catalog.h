// The failure catalogue as the analyzer sees it. Data only: who concludes what from it stands in analyzer/reasoning.
#ifndef RINGSCOPE_CATALOG_CATALOG_H_
#define RINGSCOPE_CATALOG_CATALOG_H_

#include <string_view>

#include "proto/catalog.pb.h"

namespace ringscope::catalog {

// All signatures, in the order of their ids. Parsed at the first call; lives as long as the program.
const SignatureFile& Signatures();

// nullptr when there is no such id.
const Signature* FindSignature(std::string_view id);

// All failure modes, in the order of their ids.
const EntryFile& Entries();

// By its id, in any case; nullptr when there is no such entry.
const Entry* FindEntry(std::string_view id);

// Numbers of drivers (catalog/tables/). nullptr when the number is not in the table.
const FaultTable& Faults();
const XidEntry* FindXid(int number);
const SxidEntry* FindSxid(int number);

}  // namespace ringscope::catalog

#endif  // RINGSCOPE_CATALOG_CATALOG_H_
