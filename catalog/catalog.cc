#include "catalog/catalog.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

// .incbin: the data becomes part of the program, so `ringscope` is one file that can be copied anywhere.
extern "C" const char ringscope_signatures_begin[];
extern "C" const char ringscope_signatures_end[];
asm(".section .rodata\n"
    ".global ringscope_signatures_begin\n"
    ".global ringscope_signatures_end\n"
    "ringscope_signatures_begin: .incbin \"" RINGSCOPE_SIGNATURES "\"\n"
    "ringscope_signatures_end:\n"
    ".byte 0\n"
    ".previous\n");

namespace ringscope::catalog {

const SignatureFile& Signatures() {
  static const SignatureFile& all = *[] {
    auto* file = new SignatureFile;
    const auto size = static_cast<int>(ringscope_signatures_end - ringscope_signatures_begin);
    if (!file->ParseFromArray(ringscope_signatures_begin, size)) {
      fprintf(stderr, "ringscope: the built-in catalogue is damaged; install ringscope again\n");
      abort();
    }
    std::sort(file->mutable_signature()->begin(), file->mutable_signature()->end(),
              [](const Signature& a, const Signature& b) { return a.id() < b.id(); });
    return file;
  }();
  return all;
}

const Signature* FindSignature(std::string_view id) {
  const auto& all = Signatures().signature();
  const auto it = std::lower_bound(all.begin(), all.end(), id,
                                   [](const Signature& s, std::string_view name) { return s.id() < name; });
  return it == all.end() || it->id() != id ? nullptr : &*it;
}

}  // namespace ringscope::catalog
