// What the kernel and the GPU driver wrote to the kernel log: faults of GPUs, links, PCIe; tasks that hang.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_KERNEL_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_KERNEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/model/bus_id.h"
#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// "NVRM: Xid (PCI:0000:3b:00): 79, …" of a GPU, "nvidia-nvswitch0: SXid (PCI:…): 20034, …" of an NVSwitch. The same again (device,
// number, link, process) counts in `repeats` and is not kept.
struct XidFact {
  bool nvswitch = false;       // an SXid: `number` is one of the NVSwitch driver's
  int number = -1;
  bool unnumbered = false;     // told in words only ("… has fallen off the bus …"); `number` is the one the driver used to print
  std::string device;          // "nvidia-nvswitch0" of an SXid
  std::optional<BusId> bus_id;
  std::string pci;             // the address as written
  int64_t pid = -1;
  std::string process;
  int link = -1;               // NVLink named in the text
  int caused_by = 0;           // "caused by previous Xid N"
  enum class Severity : uint8_t { kUntold, kNonfatal, kFatal } severity = Severity::kUntold;
  std::string unit;            // of NVLink 5: "RLW_RXPIPE"
  std::string action;          // of a 154: "GPU Reset Required"
  std::string text;            // behind the number
  std::string quote;           // the whole line, for people; printable
  uint32_t repeats = 0;
  Where where, last;
  Stamp time, last_time;
  Speaker by;                  // host; rank from ResolveSpeakers() when the process is a rank's
};

// PCIe error reports of one device, one severity ("pcieport 0000:00:03.0: AER: Corrected error received: …").
struct AerFact {
  std::string device;          // who reports, as written: often the port above the device that has the fault
  std::optional<BusId> bus_id;
  enum class Severity : uint8_t { kCorrected, kNonfatal, kFatal } severity = Severity::kCorrected;
  std::string layer;           // "Data Link Layer"
  std::vector<std::string> errors;  // names of the status bits: "Timeout", "BadTLP"
  uint64_t count = 0;          // reports (not lines)
  std::string quote;
  Where where, last;
  Stamp time, last_time;
  Speaker by;
};

// "INFO: task python:4242 blocked for more than 120 seconds." and the stack below it.
struct HungTask {
  std::string process;
  int64_t pid = -1;
  int64_t seconds = 0;
  std::vector<std::string> frames;  // functions, innermost first, without offsets
  uint32_t repeats = 0;
  std::string quote;
  Where where;
  Stamp time;
  Speaker by;
};

struct KernelFacts {
  std::vector<XidFact> xids;  // by file and line
  std::vector<AerFact> aers;
  std::vector<HungTask> hung_tasks;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_KERNEL_H_
