// One question to the node. A new one is one file with a static RegisterProbe; it fills fields of proto/node.proto and has no
// opinions: those are the checks' (check.h).
#ifndef RINGSCOPE_DOCTOR_PROBE_H_
#define RINGSCOPE_DOCTOR_PROBE_H_

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "doctor/place.h"
#include "proto/node.pb.h"

namespace ringscope::doctor {

struct Probe {
  std::string name;
  // Runs in a process of its own with a budget; may block and crash, what it filled in until then is lost. NotFound: there is
  // nothing of the kind here; other errors: it could not be told, in one phrase. Both may come with fields.
  absl::Status (*ask)(const Place& place, node::Node* node);
};

struct RegisterProbe {
  explicit RegisterProbe(Probe probe);
};

// By name.
const std::vector<Probe>& Probes();

// Asks all of `probes`, at the same time, each at most `seconds`.
node::Node Ask(const Place& place, const std::vector<Probe>& probes, double seconds);

// "0000:1b:00.0" of "00000000:1B:00.0".
std::string PciAddress(const std::string& bus_id);

}  // namespace ringscope::doctor

#endif  // RINGSCOPE_DOCTOR_PROBE_H_
