#include "analyzer/ingest/signature_matcher.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/ingest/readers.h"

namespace ringscope::ingest {
namespace {

// Hundreds of unanchored patterns make large automata; with less memory RE2 falls back to matching one by one.
constexpr int64_t kSetMemory = int64_t{256} << 20;

RE2::Options PatternOptions() {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);  // logs are bytes; "." takes any
  options.set_log_errors(false);
  return options;
}

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

const SignatureMatcher& SignatureMatcher::All() {
  static const SignatureMatcher& all = *[] {
    std::vector<std::vector<std::string>> triggers;
    for (const LineReaderType& reader : LineReaders()) triggers.push_back(reader.triggers);
    return new SignatureMatcher(catalog::Signatures(), triggers);
  }();
  return all;
}

SignatureMatcher::SignatureMatcher(const catalog::SignatureFile& signatures,
                                   const std::vector<std::vector<std::string>>& triggers) {
  RE2::Options options = PatternOptions();
  options.set_max_mem(kSetMemory);
  set_ = std::make_unique<RE2::Set>(options, RE2::UNANCHORED);
  for (const catalog::Signature& signature : signatures.signature()) {
    for (const std::string& pattern : signature.patterns()) {
      Target target;
      target.signature = &signature;
      target.pattern = std::make_unique<RE2>(pattern, PatternOptions());
      if (!target.pattern->ok()) {
        errors_.push_back(absl::StrCat(signature.id(), ": ", target.pattern->error(), " in ", pattern));
        continue;
      }
      Add(pattern, std::move(target));
    }
  }
  for (size_t reader = 0; reader < triggers.size(); ++reader) {
    for (const std::string& pattern : triggers[reader]) {
      Target target;
      target.reader = static_cast<int>(reader);
      Add(pattern, std::move(target));
    }
  }
  if (!targets_.empty() && !set_->Compile()) errors_.push_back("the set of all patterns does not compile");
}

void SignatureMatcher::Add(const std::string& pattern, Target target) {
  std::string error;
  if (set_->Add(pattern, &error) < 0) {
    errors_.push_back(absl::StrCat(error, " in ", pattern));
    return;
  }
  targets_.push_back(std::move(target));
}

bool SignatureMatcher::Match(std::string_view text, Hits* hits) const {
  hits->signatures.clear();
  hits->readers.clear();
  if (targets_.empty() || !set_->Match(Piece(text), &hits->set)) return false;
  std::sort(hits->set.begin(), hits->set.end());
  for (const int index : hits->set) {
    const Target& target = targets_[index];
    if (target.signature == nullptr) {
      if (std::find(hits->readers.begin(), hits->readers.end(), target.reader) == hits->readers.end())
        hits->readers.push_back(target.reader);
    } else if (hits->signatures.empty() || hits->signatures.back().first != target.signature) {
      hits->signatures.emplace_back(target.signature, target.pattern.get());
    }
  }
  return true;
}

std::vector<std::pair<std::string, std::string>> SignatureMatcher::Fields(const RE2& pattern, std::string_view text) {
  std::vector<std::pair<std::string, std::string>> fields;
  const auto& names = pattern.CapturingGroupNames();
  if (names.empty()) return fields;
  std::vector<re2::StringPiece> groups(pattern.NumberOfCapturingGroups() + 1);
  if (!pattern.Match(Piece(text), 0, text.size(), RE2::UNANCHORED, groups.data(), static_cast<int>(groups.size())))
    return fields;
  for (const auto& [index, name] : names) {
    if (groups[index].data() != nullptr) fields.emplace_back(name, std::string(groups[index]));
  }
  return fields;
}

}  // namespace ringscope::ingest
