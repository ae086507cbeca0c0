// What the communicators of a job are for: tensor, pipeline, data, expert, context parallel groups.
#ifndef RINGSCOPE_ANALYZER_MODEL_ROLES_H_
#define RINGSCOPE_ANALYZER_MODEL_ROLES_H_

#include <string>
#include <string_view>

#include "analyzer/model/model.h"

namespace ringscope::model {

// "tensor-parallel", …; empty for kUnknown; "world".
const char* RoleText(Role role);

// By the name that the framework gave it (ncclConfig_t.commName, a process group's description): "tp",
// "TENSOR_MODEL_PARALLEL_GROUP", "dp_shard", "expert_data"; kUnknown when no word of it is one of these.
Role RoleOfName(std::string_view name);

// Fills Communicator::role: by name; else by members and calls, where these leave no choice:
//   world      all ranks of the job;
//   pipeline   sends and receives only;
//   expert     all-to-alls make up most of its calls;
//   tensor and data   there are two families of groups, each of which splits the job into groups of one size and stride: the one
//   with
//              neighbouring ranks on one host and at least kTensorCalls times the calls is tensor, the other data parallel.
// Everything else stays unknown: a single family of neighbours may be tensor parallel or sharded data parallel.
void AssignRoles(Job* job);
inline constexpr uint64_t kTensorCalls = 4;  // a layer has several tensor collectives, a whole step few of data

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_ROLES_H_
