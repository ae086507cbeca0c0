#include "analyzer/model/roles.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ringscope::model {
namespace {

std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words(1);
  for (char c : name) {
    if (absl::ascii_isalpha(static_cast<unsigned char>(c))) {
      words.back() += absl::ascii_tolower(static_cast<unsigned char>(c));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

Role RoleOfWord(const std::string& word) {
  static const auto& roles = *new std::map<std::string, Role>{
      {"tp", Role::kTensor},      {"tensor", Role::kTensor}, {"pp", Role::kPipeline}, {"pipeline", Role::kPipeline},
      {"pipe", Role::kPipeline},  {"dp", Role::kData},       {"data", Role::kData},   {"ddp", Role::kData},
      {"fsdp", Role::kData},      {"hsdp", Role::kData},     {"ep", Role::kExpert},   {"expert", Role::kExpert},
      {"experts", Role::kExpert}, {"moe", Role::kExpert},    {"cp", Role::kContext},  {"context", Role::kContext},
      {"world", Role::kWorld},
  };
  const auto found = roles.find(word);
  return found == roles.end() ? Role::kUnknown : found->second;
}

// How its members lie in the job.
struct Layout {
  std::vector<int> ranks;  // of the job, ascending; empty: some are unknown
  int stride = 0;          // 0: not even
  bool one_host = true;
};

Layout LayoutOf(const Job& job, const Communicator& c) {
  Layout layout;
  std::set<std::string> hosts;
  for (const Member& m : c.members) {
    if (m.job_rank < 0) return {};
    layout.ranks.push_back(m.job_rank);
    if (m.has_record()) hosts.insert(job.processes[static_cast<size_t>(m.process)].host);
  }
  std::sort(layout.ranks.begin(), layout.ranks.end());
  layout.one_host = hosts.size() <= 1;
  if (layout.ranks.size() < 2) return layout;
  const int stride = layout.ranks[1] - layout.ranks[0];
  bool even = stride > 0;
  for (size_t i = 1; i < layout.ranks.size(); ++i) even &= layout.ranks[i] - layout.ranks[i - 1] == stride;
  layout.stride = even ? stride : 0;
  return layout;
}

// Of the member that tells most.
struct Calls {
  uint64_t collectives = 0, messages = 0;
  uint64_t kept = 0, all_to_alls = 0;  // of the collectives in the record
};

Calls CallsOf(const Communicator& c) {
  Calls calls;
  for (const Member& m : c.members) {
    if (m.raw == nullptr || m.raw->collectives() + m.raw->p2ps() < calls.collectives + calls.messages) continue;
    calls = {m.raw->collectives(), m.raw->p2ps(), 0, 0};
    for (const Op& op : m.ops) {
      if (op.p2p()) continue;
      ++calls.kept;
      calls.all_to_alls += op.raw.func() == trace::ALL_TO_ALL;
    }
  }
  return calls;
}

// Groups of one size and stride that share no rank and together hold all of the job.
struct Family {
  int stride = 0;
  bool one_host = true;
  uint64_t calls = 0;  // of a group
  std::set<int> ranks;
  bool disjoint = true;
  std::vector<Communicator*> groups;
};

void AssignFamilies(Job* job, const std::vector<std::pair<Communicator*, Layout>>& candidates) {
  std::map<std::pair<size_t, int>, Family> families;
  for (const auto& [c, layout] : candidates) {
    Family& family = families[{layout.ranks.size(), layout.stride}];
    family.stride = layout.stride;
    family.one_host &= layout.one_host;
    family.calls = std::max(family.calls, CallsOf(*c).collectives);
    for (int rank : layout.ranks) family.disjoint &= family.ranks.insert(rank).second;
    family.groups.push_back(c);
  }
  std::erase_if(families, [&](const auto& entry) {
    const Family& f = entry.second;
    return !f.disjoint || f.groups.size() < 2 || static_cast<int>(f.ranks.size()) < job->world_size;
  });
  if (families.size() != 2) return;
  Family *near = &families.begin()->second, *far = &families.rbegin()->second;
  if (near->stride > far->stride) std::swap(near, far);
  if (near->stride != 1 || !near->one_host || far->stride == 1 || far->calls == 0 || near->calls < kTensorCalls * far->calls)
    return;
  for (Communicator* c : near->groups) c->role = Role::kTensor;
  for (Communicator* c : far->groups) c->role = Role::kData;
}

}  // namespace

const char* RoleText(Role role) {
  switch (role) {
    case Role::kWorld:
      return "world";
    case Role::kTensor:
      return "tensor-parallel";
    case Role::kPipeline:
      return "pipeline-parallel";
    case Role::kData:
      return "data-parallel";
    case Role::kExpert:
      return "expert-parallel";
    case Role::kContext:
      return "context-parallel";
    default:
      return "";
  }
}

Role RoleOfName(std::string_view name) {
  Role role = Role::kUnknown;
  for (const std::string& word : Words(name)) {
    const Role of_word = RoleOfWord(word);
    // "expert_data_parallel": data parallel among the holders of the same experts.
    if (role == Role::kUnknown || (role == Role::kExpert && of_word == Role::kData))
      role = of_word != Role::kUnknown ? of_word : role;
  }
  return role;
}

void AssignRoles(Job* job) {
  std::vector<std::pair<Communicator*, Layout>> candidates;
  for (Communicator& c : job->communicators) {
    c.role = RoleOfName(c.name);
    if (c.role != Role::kUnknown) continue;
    c.role_inferred = true;
    const Calls calls = CallsOf(c);
    if (c.size_known && c.n_ranks > 1 && c.n_ranks == job->world_size) {
      c.role = Role::kWorld;
    } else if (calls.collectives == 0 && calls.messages > 0) {
      c.role = Role::kPipeline;
    } else if (calls.kept > 0 && 2 * calls.all_to_alls > calls.kept) {
      c.role = Role::kExpert;
    } else if (Layout layout = LayoutOf(*job, c); layout.stride > 0) {
      candidates.emplace_back(&c, std::move(layout));
    }
  }
  AssignFamilies(job, candidates);
}

}  // namespace ringscope::model
