#include "catalog/catalog.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

// .incbin: the data becomes part of the program, so `ringscope` is one file that can be copied anywhere.
extern "C" const char ringscope_signatures_begin[];
extern "C" const char ringscope_signatures_end[];
extern "C" const char ringscope_tables_begin[];
extern "C" const char ringscope_tables_end[];
extern "C" const char ringscope_entries_begin[];
extern "C" const char ringscope_entries_end[];
asm(".section .rodata\n"
    ".global ringscope_signatures_begin\n"
    ".global ringscope_signatures_end\n"
    "ringscope_signatures_begin: .incbin \"" RINGSCOPE_SIGNATURES
    "\"\n"
    "ringscope_signatures_end:\n"
    ".global ringscope_tables_begin\n"
    ".global ringscope_tables_end\n"
    "ringscope_tables_begin: .incbin \"" RINGSCOPE_TABLES
    "\"\n"
    "ringscope_tables_end:\n"
    ".global ringscope_entries_begin\n"
    ".global ringscope_entries_end\n"
    "ringscope_entries_begin: .incbin \"" RINGSCOPE_ENTRIES
    "\"\n"
    "ringscope_entries_end:\n"
    ".byte 0\n"
    ".previous\n");

namespace ringscope::catalog {

namespace {

template <typename Message>
Message* Parsed(const char* begin, const char* end) {
  auto* file = new Message;
  if (!file->ParseFromArray(begin, static_cast<int>(end - begin))) {
    fprintf(stderr, "ringscope: the built-in catalogue is damaged; install ringscope again\n");
    abort();
  }
  return file;
}

}  // namespace

const SignatureFile& Signatures() {
  static const SignatureFile& all = *[] {
    auto* file = Parsed<SignatureFile>(ringscope_signatures_begin, ringscope_signatures_end);
    std::sort(file->mutable_signature()->begin(), file->mutable_signature()->end(),
              [](const Signature& a, const Signature& b) { return a.id() < b.id(); });
    return file;
  }();
  return all;
}

const Signature* FindSignature(std::string_view id) {
  const auto& all = Signatures().signature();
  const auto it =
      std::lower_bound(all.begin(), all.end(), id, [](const Signature& s, std::string_view name) { return s.id() < name; });
  return it == all.end() || it->id() != id ? nullptr : &*it;
}

const EntryFile& Entries() {
  static const EntryFile& all = *[] {
    auto* file = Parsed<EntryFile>(ringscope_entries_begin, ringscope_entries_end);
    std::sort(file->mutable_entry()->begin(), file->mutable_entry()->end(),
              [](const Entry& a, const Entry& b) { return a.id() < b.id(); });
    return file;
  }();
  return all;
}

const Entry* FindEntry(std::string_view id) {
  const auto same = [](char a, char b) {
    return toupper(static_cast<unsigned char>(a)) == toupper(static_cast<unsigned char>(b));
  };
  for (const Entry& entry : Entries().entry()) {
    if (std::equal(id.begin(), id.end(), entry.id().begin(), entry.id().end(), same)) return &entry;
  }
  return nullptr;
}

const FaultTable& Faults() {
  static const FaultTable& all = *Parsed<FaultTable>(ringscope_tables_begin, ringscope_tables_end);
  return all;
}

const XidEntry* FindXid(int number) {
  for (const XidEntry& entry : Faults().xid()) {
    if (entry.number() == number) return &entry;
  }
  return nullptr;
}

const SxidEntry* FindSxid(int number) {
  for (const SxidEntry& entry : Faults().sxid()) {
    if (entry.first() <= number && number <= entry.last()) return &entry;
  }
  return nullptr;
}

}  // namespace ringscope::catalog
