// NICs, ports, counters, addresses: what ibstat, perfquery, ethtool, ip, lspci and the like show at one moment, and what NCCL
// says of the network that it chose.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_NETWORK_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_NETWORK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/model/bus_id.h"
#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// One port of an RDMA adapter as ibstat, ibstatus, ibv_devinfo or `rdma link` show it. Empty and 0: not shown.
struct RdmaPort {
  std::string device;         // "mlx5_0"
  int port = 1;
  std::string state;          // as written: "Active", "PORT_DOWN", "4: ACTIVE"
  std::string physical_state; // "LinkUp", "Polling", "Disabled"
  std::string rate;           // "200", "25 Gb/sec (1X EDR)", as written
  std::string link_layer;     // "InfiniBand", "Ethernet"
  std::string interface;      // `rdma link`: netdev
  int active_mtu = 0, max_mtu = 0;
  Where where;                // of the line that named the state, else of the device
  Where mtu_where;            // of the line that named the active MTU
  Speaker by;
  bool Down() const;          // the state is written and is neither active nor armed/initialising
};

// One counter of one port or interface at one moment.
struct NetworkCounter {
  std::string device;  // "mlx5_0", "eth2"; empty: the text does not say
  int port = 0;        // 0: an interface, or not told
  std::string name;    // lower case, "_" between words: "link_downed", "rx_prio3_pause"
  uint64_t value = 0;
  Where where;
  Speaker by;
  Stamp time;          // of the snapshot, where the text tells it
};

// The same counter in two snapshots.
struct CounterChange {
  const NetworkCounter* before = nullptr;
  const NetworkCounter* after = nullptr;
  uint64_t delta = 0;
};

struct RoceGid {
  std::string device;
  int port = 1, index = -1;
  std::string gid;      // as written
  std::string ipv4;     // where shown
  int version = 0;      // 1, 2; 0 not told
  std::string interface;
  Where where;
  Speaker by;
  bool LinkLocal() const;  // fe80::/10
};

struct NetworkInterface {
  std::string name;
  std::vector<std::string> addresses;  // without prefix length
  int mtu = 0;
  bool up = true;          // administratively
  bool carrier = true;     // LOWER_UP / RUNNING
  Where where;
  Speaker by;
};

// What lspci -vvv says of one function, or of several that it does not name (`… | sort | uniq -c`).
struct PciFunction {
  std::optional<BusId> bus_id;
  std::string name;       // "PCI bridge: …"
  uint32_t count = 1;
  bool has_acs = false, acs_redirects = false;  // ReqRedir+, CmpltRedir+ or UpstreamFwd+: peer writes go up to the root
  bool link_downgraded = false;
  std::string acs_line, link_line;  // as written
  Where acs_where, link_where;
  Speaker by;
  bool Bridge() const;
};

// "PCI_WR_ORDERING force_relax(1)" of mlxconfig.
struct AdapterSetting {
  std::string name, value;
  Where where;
  Speaker by;
};

struct Filesystem {
  std::string mount, type;
  uint64_t size = 0, used = 0, available = 0;  // bytes
  std::string text;
  Where where;
  Speaker by;
};

// NCCL: "Using network IBext_v8".
struct NetworkChoice {
  std::string network;
  Where where;
  Speaker by;
};

// NCCL: an address that a process uses: "Bootstrap : Using eth0:10.0.0.1<0>", "NET/Socket : Using [0]…", "OOB eth0:…".
struct ProcessAddress {
  std::string interface, address;
  enum class Use : uint8_t { kBootstrap, kSocket, kOutOfBand } use = Use::kBootstrap;
  Where where;
  Speaker by;
};

// NCCL: "NET/IB : Using [0]mlx5_0:1/RoCE": an adapter it will use.
struct AdapterUse {
  std::string device;
  int port = 1;
  bool roce = false;
  Where where;
  Speaker by;
};

// NCCL: "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 1084 mtu 5 GID 3 (0/CE01C1AFFFF0000)": one end of a connection.
struct QueuePair {
  int device = -1;    // index among NCCL's adapters
  int mtu_code = 0;   // 1 256 … 5 4096
  int gid_index = -1; // RoCE
  int lid = -1;       // InfiniBand
  bool link_local = false;  // its GID is fe80::
  Where where;
  Speaker by;
};

// One cell of p2pBandwidthLatencyTest: from one GPU to another, with peer access or without.
struct PeerMeasurement {
  int from = -1, to = -1;
  bool peer_access = false;
  bool latency = false;  // microseconds; otherwise bandwidth, GB/s
  double value = 0;
  Where where;
  Speaker by;
};

// One entry of a port's table of partition keys: "/sys/class/infiniband/mlx5_0/ports/1/pkeys/1:0x8012".
struct PartitionKey {
  std::string device;
  int port = 1, index = 0;
  uint32_t key = 0;
  Where where;
  Speaker by;
};

struct NetworkFacts {
  std::vector<RdmaPort> ports;
  std::vector<NetworkCounter> counters;  // by file and line
  std::vector<RoceGid> gids;
  std::vector<NetworkInterface> interfaces;
  std::vector<PciFunction> pci;
  std::vector<AdapterSetting> adapter_settings;
  std::vector<Filesystem> filesystems;
  std::vector<NetworkChoice> choices;
  std::vector<ProcessAddress> addresses;
  std::vector<AdapterUse> adapters;
  std::vector<QueuePair> queue_pairs;
  std::vector<PeerMeasurement> peer_measurements;
  std::vector<PartitionKey> partition_keys;
};

struct Evidence;

// Counters that stand in two snapshots of the same thing: the earliest and the latest, by the stamps of their snapshots where all
// have comparable ones, else by the order of files and lines. Snapshots whose values fall (a reset) are left out.
std::vector<CounterChange> CounterChanges(const Evidence& evidence);

// The host that has this address ("10.77.5.3", "node7"), as NCCL's lines and the interface tables tell; empty when unknown or
// told of two hosts.
std::string HostOfAddress(const Evidence& evidence, std::string_view address);

// Bytes of an RDMA MTU code; 0 when it is none.
int MtuOfCode(int code);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_NETWORK_H_
