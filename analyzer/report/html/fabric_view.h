// What one host is made of, as logs and tools tell: GPUs, NVLinks, PCIe, adapters, and what is wrong with them.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_FABRIC_VIEW_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_FABRIC_VIEW_H_

#include <optional>
#include <string>
#include <vector>

#include "analyzer/report/html/context.h"

namespace ringscope::report::html {

struct FabricGpu {
  int index = -1, rank = -1;  // nvidia-smi's; of the job. -1 unknown
  std::optional<model::BusId> bus_id;
  std::string product;
  std::vector<model::LinkReading::State> lanes;  // by number, of the newest reading; empty: none was taken
  std::vector<bool> bad_lanes;                   // that a fault names
  bool planned = false;                          // NCCL's log lists it
  double nvlink_gbps = 0;                        // as NCCL reckoned; 0 with `planned`: it saw no NVLink
  double before_gbps = 0;                        // the same when an earlier communicator was made; 0 no other value
  model::BusId parent = 0;                       // PCIe switch; 0: the CPU, or not known
  int numa = -1;
  std::vector<std::string> faults;  // "Xid 74, link 3"
  bool accused = false;
  int LanesUp() const;
};
struct FabricNic {
  std::string name;
  model::BusId parent = 0;
  int numa = -1;
  double gbps = 0;    // GB/s
  std::string fault;  // "port 1 Down"
};
struct FabricLink {
  int a = -1, b = -1;  // GPUs that NVLink joins directly
  double gbps = 0;
  int lanes = 0;
};
struct FabricView {
  std::string host;
  std::vector<FabricGpu> gpus;
  std::vector<FabricNic> nics;
  std::vector<FabricLink> links;
  bool nvswitch = false;
  std::string source;        // where NCCL's picture of it stands
  std::string lanes_source;  // where the states of lanes stand
};

// Of the host of the fault, else of the first host that anything tells of. No GPUs: nothing tells.
FabricView FabricOf(const Context& c);

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_FABRIC_VIEW_H_
