// The flight file of this very process, mapped read-only: what a recorder in it has kept, looked at
// while it runs.
#ifndef RINGSCOPE_BENCH_FLIGHT_VIEW_H_
#define RINGSCOPE_BENCH_FLIGHT_VIEW_H_

#include <cstdint>
#include <string>

#include "recorder/flight/format.h"

namespace ringscope::bench {

class FlightView {
 public:
  // Maps the only *.flight file in `folder`. Ends the program with a message when there is none.
  explicit FlightView(const std::string& folder);

  uint64_t Counter(flight::Counter which) const;
  // Row of the living communicator with this id; nullptr when it got none.
  const flight::CommRow* Comm(uint64_t id) const;
  uint32_t LivingComms() const;
  // Operation rows of `comm` that hold a collective whose position is above `position`.
  uint64_t OpsAfter(const flight::CommRow& comm, uint64_t position) const;
  // Edge rows of `comm`.
  uint64_t Edges(const flight::CommRow& comm) const;

 private:
  template <typename Row>
  const Row* Rows(flight::Table table) const;
  uint32_t Count(flight::Table table) const;  // rows
  uint32_t IndexOf(const flight::CommRow& comm) const;

  const flight::FileHeader* header_ = nullptr;
};

}  // namespace ringscope::bench

#endif  // RINGSCOPE_BENCH_FLIGHT_VIEW_H_
