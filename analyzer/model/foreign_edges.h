// PXN: from the handles that a relay kept of another process's proxy operation to that process, its
// communicator and its operation.
//
// Context and parent of such an operation are values of the owner's address space. Where the owner
// runs a recorder they are handles (recorder/flight/handles.h): the nonce names the process among
// those of the machine, row and generation the table entry there. A row is given to another
// communicator or operation in time, so an entry counts only if its generation is the handle's.
#ifndef RINGSCOPE_ANALYZER_MODEL_FOREIGN_EDGES_H_
#define RINGSCOPE_ANALYZER_MODEL_FOREIGN_EDGES_H_

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analyzer/model/build.h"

namespace ringscope::model {

bool SameMachine(const Process& a, const Process& b);

// Whom an edge's handles name.
struct EdgeOwners {
  // Members with the edge's rank that the handles can mean: one as a rule, several when processes
  // of the machine drew the same nonce, none when the handles say nothing.
  std::vector<RowRef> members;
  // The communicator's row has another owner by now: the edge belongs to none that is in the
  // records.
  bool gone = false;
};

class ForeignHandles {
 public:
  // Both must outlive this. `rows` as IndexRows() makes them; operations of all members must be
  // there.
  ForeignHandles(const Job& job, const std::vector<std::map<uint32_t, RowRef>>& rows);

  EdgeOwners OwnersOf(const Process& relay, const trace::Edge& e);

  // The operation of `owner` whose steps run on the edge (ran last, when none is open); nullptr
  // when the handles do not tell.
  const Op* RunningOp(const RowRef& owner, const trace::Edge& e);

 private:
  struct OpRef {
    RowRef member;
    size_t op = 0;  // index in its ops
  };
  const Member& MemberAt(const RowRef& at) const;
  // The process's operation that an operation handle names; nullptr when its row holds another one,
  // or none.
  const OpRef* Find(int process, uint64_t handle);

  const Job& job_;
  const std::vector<std::map<uint32_t, RowRef>>& rows_;
  std::map<uint32_t, std::vector<int>> by_nonce_;
  std::map<int, absl::flat_hash_map<uint32_t, OpRef>>
      ops_;  // by process, then by row; made when asked for
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_FOREIGN_EDGES_H_
