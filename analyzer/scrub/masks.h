// Original to mask, the same for all files of a run, and for later runs that are given the same map.
#ifndef RINGSCOPE_ANALYZER_SCRUB_MASKS_H_
#define RINGSCOPE_ANALYZER_SCRUB_MASKS_H_

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "analyzer/scrub/address_masks.h"

namespace ringscope::scrub {

enum class Kind : uint8_t {
  kHost,
  kDomain,
  kUser,
  kDirectory,
  kFile,
  kJob,
  kSecret,
  kName,
  kSerial,     // "host-1", "domain-1.example", "user-1", …
  kJobNumber,  // 900000001: where a number must stand
  kUuid,
  kGuid,
  kMac,  // of the original's form
  kCount
};

class Masks {
 public:
  // The mask of `original`, made at the first call. What is a mask already is its own.
  std::string Of(Kind kind, std::string_view original);
  // The mask if there is one, else empty.
  std::string Known(Kind kind, std::string_view original) const;
  AddressMasks& addresses() { return addresses_; }

  // Numbers of masks that the material itself holds ("host-3") are not given to anything else.
  void Reserve(std::string_view text);

  // How many originals of a kind have a mask.
  size_t Count(Kind kind) const { return map_[static_cast<size_t>(kind)].size(); }

  // The map as text, and back. It holds the originals: for the user's own disk, mode 0600. Load() adds to what is there;
  // kInvalidArgument names file, line and remedy.
  std::string Save() const;
  absl::Status Load(std::string_view text, const std::string& name);

 private:
  using Numbers = absl::flat_hash_map<std::string, uint64_t>;
  static std::string Text(Kind kind, uint64_t number);
  std::array<Numbers, static_cast<size_t>(Kind::kCount)> map_;
  std::array<absl::flat_hash_set<uint64_t>, static_cast<size_t>(Kind::kCount)> reserved_;
  std::array<uint64_t, static_cast<size_t>(Kind::kCount)> last_{};
  AddressMasks addresses_;
};

// "host-3", "secret-12": the form of a mask, whole. Not those of numbers and addresses.
bool IsMask(std::string_view word);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_MASKS_H_
