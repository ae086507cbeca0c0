// PCI addresses as everybody writes them: one number, so that an Xid, nvidia-smi and NCCL's log agree on a GPU.
#ifndef RINGSCOPE_ANALYZER_MODEL_BUS_ID_H_
#define RINGSCOPE_ANALYZER_MODEL_BUS_ID_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringscope::model {

// domain << 20 | bus << 12 | device << 4 | function: what NCCL prints in hexadecimal as `busId 61000`.
using BusId = uint64_t;

// "0000:61:00.0", "00000000:61:00.0", "PCI:0000:61:00", "61:00.0", "0000:61:00". nullopt: not a PCI address.
std::optional<BusId> ParseBusId(std::string_view text);
// NCCL's form: "61000", "1061000" (hexadecimal without colons).
std::optional<BusId> ParseNcclBusId(std::string_view text);
// "0000:61:00.0".
std::string BusIdText(BusId id);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_BUS_ID_H_
