// Records as they would be had the hosts' clocks shown something else: what is concluded from them must not change.
#ifndef RINGSCOPE_TESTS_UNIT_TESTING_CLOCK_SHIFT_H_
#define RINGSCOPE_TESTS_UNIT_TESTING_CLOCK_SHIFT_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::testing {

// Wall clocks that are off by so much more, by boot.
inline void ShiftWallClocks(const std::map<std::string, int64_t>& off, std::vector<model::Record>* records) {
  const auto add = [](int64_t value, int64_t by) { return value == 0 ? 0 : value + by; };
  for (model::Record& r : *records) {
    const auto at = off.find(r.trace.process().boot_id());
    if (at == off.end()) continue;
    auto& clock = *r.trace.mutable_clock();
    clock.set_realtime_ns(clock.realtime_ns() + at->second);
    clock.set_first_realtime_ns(add(clock.first_realtime_ns(), at->second));
    auto& live = *r.trace.mutable_liveness();
    live.set_heartbeat_realtime_ns(add(live.heartbeat_realtime_ns(), at->second));
    for (auto& s : *r.trace.mutable_siblings()) s.set_heartbeat_realtime_ns(add(s.heartbeat_realtime_ns(), at->second));
    r.read_realtime_ns = add(r.read_realtime_ns, at->second);
  }
}

// A moment of the monotonic clock, by the name of its field; lengths, wall clocks, GPU timers and columns of differences are not.
inline bool IsMonotonic(const std::string& name) {
  for (const char* other : {"realtime", "gpu_", "after", "delta", "duration", "wait_ns", "freeze_ns", "starved", "error_ns"}) {
    if (name.find(other) != std::string::npos) return false;
  }
  return name.size() > 3 && name.compare(name.size() - 3, 3, "_ns") == 0;
}

inline void ShiftMonotonic(int64_t by, google::protobuf::Message* m) {
  const google::protobuf::Reflection& of = *m->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  of.ListFields(*m, &fields);
  for (const auto* f : fields) {
    if (f->is_map()) continue;
    if (f->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (f->is_repeated()) {
        for (int i = 0; i < of.FieldSize(*m, f); ++i) ShiftMonotonic(by, of.MutableRepeatedMessage(m, f, i));
      } else {
        ShiftMonotonic(by, of.MutableMessage(m, f));
      }
    } else if (f->name() == "entered_delta_ns") {
      of.SetRepeatedInt64(m, f, 0, of.GetRepeatedInt64(*m, f, 0) + by);  // the first differs from 0
    } else if (!f->is_repeated() && f->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT64 && IsMonotonic(f->name())) {
      of.SetInt64(m, f, of.GetInt64(*m, f) + by);
    }
  }
}
// Hosts that booted so much earlier, by boot.
inline void ShiftBoots(const std::map<std::string, int64_t>& by, std::vector<model::Record>* records) {
  for (model::Record& r : *records) {
    const auto at = by.find(r.trace.process().boot_id());
    if (at != by.end()) ShiftMonotonic(at->second, &r.trace);
  }
}

// Each boot another offset: wall clocks up to 2.5 s off, so that no two are more than the 5 s apart that are granted; boots any time.
inline std::map<std::string, int64_t> Offsets(const std::vector<model::Record>& records, int64_t most, std::mt19937* random) {
  std::uniform_int_distribution<int64_t> offset(-most, most);
  std::map<std::string, int64_t> off;
  for (const model::Record& r : records) off.emplace(r.trace.process().boot_id(), 0);
  for (auto& [boot, by] : off) by = offset(*random);
  return off;
}

// What a diagnosis accuses whom of, how surely.
inline std::vector<std::string> Said(const Diagnosis& d) {
  std::vector<std::string> said;
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::none) continue;
    said.push_back(Kind::Value_Name(f.kind()) + " " + Confidence::Value_Name(f.confidence()) + " " + f.who().ShortDebugString());
  }
  return said;
}

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_TESTING_CLOCK_SHIFT_H_
