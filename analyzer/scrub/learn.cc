#include "analyzer/scrub/learn.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "analyzer/scrub/masks.h"
#include "analyzer/scrub/paths.h"
#include "analyzer/scrub/secret_shapes.h"
#include "analyzer/scrub/vocabulary.h"

namespace ringscope::scrub {
namespace {

constexpr size_t kMostNames = 200000;  // of a kind; a job of 16,384 hosts has fewer
constexpr int kMostHostsOfAList = 4096;

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Alpha(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

enum class What { kHost, kLooseHost, kHosts, kUser, kLooseUser, kUserAtHost, kJob, kJobNumber, kDomainName };
struct Place {
  What what;
  const char* pattern;  // group 1 is the name
};

#define HOST "([A-Za-z0-9][A-Za-z0-9._-]*)"
#define LINK "\\\\*[\"']?\\s*[=:]\\s*\\\\*[\"']?"
constexpr Place kPlaces[] = {
    {What::kHost, HOST ":\\d+:\\d+ \\[\\d+\\]"},  // NCCL's own prefix, wherever it stands
    {What::kHost,
     "\\b(?i:hostname|host_name|nodename|node_name|SLURMD_NODENAME|SLURM_LAUNCH_NODE_IPADDR|MASTER_ADDR|master[_-]addr|POD_NAME|"
     "HEAD_NODE|"
     "NCCL_HOSTID|PMIX_HOSTNAME|SLURM_TOPOLOGY_ADDR|node_ip|rdzv[_-]endpoint|KUBERNETES_NODE_NAME)" LINK HOST},
    {What::kHost, "--(?:master_addr|master-addr|rdzv_endpoint|rdzv-endpoint|node|host)[ =]" HOST},
    {What::kHost, "[\"'](?:host|node|server|hostname)\\\\*[\"']\\s*:\\s*\\\\*[\"']" HOST},
    {What::kLooseHost, "\\b(?i:host|node|server|client|peer|pod|machine|nodes|hosts)\\s*[=:]\\s*[\"'\\[(]?" HOST},
    {What::kLooseHost,
     "\\b(?i:on|from|to|with|of|by|host|node|peer|remote|server|at|addr|address) (?i:node |host |machine |server |peer "
     ")?[\"'\\[(]?" HOST "(?:<\\d+>|\\[\\d+\\]|[\"'\\]),;: ]|\\.?$)"},
    {What::kHost,
     "\\b(?:srun|slurmstepd|pdsh|prun|mpirun|ssh): (?:error: )?(?:\\*+ )?" HOST ": (?:task|tasks|ssh|rank|Connection|command)"},
    {What::kHost, "\\b(?:ON|on host|on node|on machine|host name is|hostname is|running on|Running on|logged into) " HOST
                  "(?: CANCELLED|[ ,.;:)]|$)"},
    {What::kHost, "\\bpdsh@" HOST ":"},
    {What::kHost, "\\bslurmstepd-" HOST ":"},
    {What::kLooseHost, "[\\[(]" HOST "(?:\\]:\\d+|, \\d{3,5}\\))"},
    {What::kHost,
     "\\b(?:tcp|udp|http|https|grpc|ssh|etcd|redis|nfs|ucx|ws|wss|postgresql|mysql|mongodb|amqp|s3a?|gs|hdfs)://(?:[^/"
     "\\s@\"']+@)?" HOST},
    {What::kDomainName,
     "(?i)\\b([a-z0-9][a-z0-9-]*(?:\\.[a-z0-9-]+)*\\.(?:com|org|edu|gov|mil|local|internal|lan|corp|intra|localdomain|hpc|de|uk|"
     "fr|ch|nl|jp|"
     "cn|eu|us|kr|svc))(?:[^a-z0-9_.(-]|\\.?$|\\.[^a-z0-9])"},
    {What::kDomainName,
     "(?i)\\b([a-z0-9][a-z0-9-]*(?:\\.[a-z0-9-]+)+\\.(?:net|io|ai|cloud|cluster|test|example|dev|it|es|ca|au|se|no|fi|at|be))(?:["
     "^a-z0-9_.(-]|\\.?$|"
     "\\.[^a-z0-9])"},
    {What::kHost, "\\b(ip-\\d{1,3}-\\d{1,3}-\\d{1,3}-\\d{1,3})\\b"},
    {What::kHost, "\\b((?:gke|aks|eks|oke|k3s)-[a-z0-9-]+)\\b"},
    {What::kLooseHost, "\\b([a-z][a-z0-9]*(?:-[a-z0-9]+)*-[a-f0-9]{8,10}-[a-z0-9]{5})\\b"},
    {What::kLooseHost,
     "\\b([a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?:worker|master|launcher|ps|chief|head|server)-(?:[a-z0-9]+-)*\\d+)\\b"},
    {What::kLooseHost, "\\b(?i:pods?)[/ ]\\\\*[\"']?([a-z0-9][a-z0-9.-]*)"},
    {What::kUserAtHost, "(?:^|[\\s\\[\"'(=:;,<])([A-Za-z_][A-Za-z0-9_.+-]*@[A-Za-z0-9][A-Za-z0-9.-]*)"},
    {What::kHost, "^Linux " HOST " \\d+\\.\\d+"},
    {What::kHost, "^\\s*" HOST " +slots=\\d"},
    {What::kHosts,
     "(?:(?i:nodelist|node_list|hostlist|BatchHost|ReqNodeList|nodes?|hosts?|hostfile)[\"']?[=: ]+[\"']?|-H |--hosts? |-w )"
     "([A-Za-z0-9][A-Za-z0-9._-]*(?:\\[[0-9,-]+\\]|[:,][A-Za-z0-9._-]+)[A-Za-z0-9._:,\\[\\]-]*)"},
    {What::kHosts,
     "\\b([A-Za-z][A-Za-z0-9._-]*\\[\\d+(?:-\\d+)?(?:,\\d+(?:-\\d+)?)+\\]|[A-Za-z][A-Za-z0-9.]*[-_.]?\\[\\d+-\\d+\\])"},
    {What::kUser, "/(?:home|Users|homes)/([^/\\s:\"'`,;)\\]}<>\\\\]+)/"},
    {What::kUser, "\\\\Users\\\\+([^\\\\/\\s:\"']+)"},
    {What::kUser,
     "\\b(?:USER|LOGNAME|USERNAME|SLURM_JOB_USER|SUDO_USER|SLURM_JOB_ACCOUNT|KRB5PRINCIPAL)" LINK "([A-Za-z_][A-Za-z0-9._-]*)"},
    {What::kLooseUser,
     "\\b(?i:user|username|user_name|owner|login|account)\\\\*[\"']?\\s?[=:]\\s?\\\\*[\"']?([A-Za-z_][A-Za-z0-9._-]*)"},
    {What::kUser, "\\b(?:uid|gid|euid)=\\d+\\(([A-Za-z_][A-Za-z0-9._-]*)\\)"},
    {What::kUser, "\\b(?:for user|of user|by user|Accepted \\w+ for|session opened for user) ([A-Za-z_][A-Za-z0-9._-]*)"},
    {What::kJob,
     "\\b(?i:SLURM_JOB_NAME|JOB_NAME|jobname|job-name|RUN_NAME|run-name|TORCHELASTIC_RUN_ID|rdzv[_-]id|run_id|RINGSCOPE_JOB|"
     "WANDB_(?:NAME|"
     "PROJECT|RUN_ID|ENTITY|RUN_GROUP)|wandb[_-](?:project|entity|name|group)|experiment[_-]name|exp[_-]name|project[_-]name|POD_"
     "NAMESPACE|"
     "KUBERNETES_NAMESPACE|SLURM_JOB_PARTITION|SLURM_CLUSTER_NAME|ClusterName)\\\\*[\"']?\\s?[=: "
     "]\\s?\\\\*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)"},
    {What::kJobNumber,
     "\\b(?i:SLURM_JOB_?ID|SLURM_ARRAY_JOB_ID|JOBID|JobId|job_id|job id|LSB_JOBID|PBS_JOBID|StepId|slurm job|job)\\\\*[\"']?[=: "
     "]+[\"']?(\\d{3,12})\\b"},
    {What::kJobNumber, "\\b(?:STEP|slurm|job|Job)[-_ ](\\d{3,12})\\b"},
};
#undef HOST
#undef LINK

struct Places {
  RE2::Set set{RE2::Options(RE2::Quiet), RE2::UNANCHORED};
  std::vector<std::unique_ptr<RE2>> patterns;
};

const Places& All() {
  static const Places& all = *[] {
    auto* places = new Places;
    for (const Place& place : kPlaces) {
      places->set.Add(place.pattern, nullptr);
      places->patterns.push_back(std::make_unique<RE2>(place.pattern, RE2::Quiet));
    }
    places->set.Compile();
    return places;
  }();
  return all;
}

bool AddressLike(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](char c) { return Alpha(c); });
}

// "gpu[01-03,7]" -> gpu01, gpu02, gpu03, gpu7; "a,b:8" -> a, b.
void Expand(std::string_view list, std::vector<std::string>* out) {
  for (size_t start = 0; start < list.size();) {
    int depth = 0;
    size_t end = start;
    while (end < list.size() && (depth > 0 || list[end] != ',')) {
      depth += list[end] == '[' ? 1 : list[end] == ']' ? -1 : 0;
      ++end;
    }
    std::string_view item = list.substr(start, end - start);
    start = end + 1;
    const size_t open = item.find('['), close = item.find(']');
    if (open == item.npos || close == item.npos || close < open) {
      out->emplace_back(item.substr(0, item.find(':')));
      continue;
    }
    const std::string_view prefix = item.substr(0, open), suffix = item.substr(close + 1);
    const std::string_view inside = item.substr(open + 1, close - open - 1);
    for (const absl::string_view range : absl::StrSplit(absl::string_view(inside.data(), inside.size()), ',')) {
      const std::vector<std::string> ends = absl::StrSplit(range, '-');
      int from = 0, to = 0;
      if (!absl::SimpleAtoi(ends[0], &from) || !absl::SimpleAtoi(ends.back(), &to) || to < from || to - from > kMostHostsOfAList)
        continue;
      for (int n = from; n <= to; ++n) {
        std::string number = absl::StrCat(n);
        if (number.size() < ends[0].size()) number.insert(0, ends[0].size() - number.size(), '0');
        out->push_back(absl::StrCat(absl::string_view(prefix.data(), prefix.size()), number,
                                    absl::string_view(suffix.data(), suffix.size())));
      }
    }
  }
}

std::string_view Trimmed(std::string_view name) {
  while (!name.empty() && (name.back() == '.' || name.back() == '-' || name.back() == '_')) name.remove_suffix(1);
  return name;
}

}  // namespace

bool Natural::operator()(std::string_view a, std::string_view b) const {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (Digit(a[i]) && Digit(b[j])) {
      const size_t start_a = i, start_b = j;
      while (i < a.size() && Digit(a[i])) ++i;
      while (j < b.size() && Digit(b[j])) ++j;
      std::string_view x = a.substr(start_a, i - start_a), y = b.substr(start_b, j - start_b);
      while (x.size() > 1 && x[0] == '0') x.remove_prefix(1);
      while (y.size() > 1 && y[0] == '0') y.remove_prefix(1);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

void Learner::Host(std::string_view name, bool strict) {
  name = Trimmed(name);
  if (name.size() < 2 || name.size() > 253 || AddressLike(name) || PublicHost(name) || names_->hosts.size() > kMostNames) return;
  std::string_view first = name.substr(0, name.find('.'));
  // "kubernetes.default", "4.19.2-x": what stands before a dot must be a name too.
  const std::string_view rest = first.size() < name.size() ? name.substr(first.size() + 1) : std::string_view();
  if (IsMask(first)) return;
  static const RE2& top_level = *new RE2(
      "(?i)com|org|net|edu|gov|mil|io|ai|cloud|dev|info|biz|de|uk|fr|ch|nl|jp|cn|eu|us|kr|ca|au|se|no|fi|at|be|it|es|in|br");
  // "acme.com" is no machine.
  if (RE2::FullMatch(re2::StringPiece(rest.data(), rest.size()), top_level)) {
    if (!PublicWords(first) || first.find('-') != first.npos) names_->domains.emplace(name);
    return;
  }
  const bool number = std::any_of(first.begin(), first.end(), Digit);
  if (!strict && !number && rest.empty()) return;
  if (!strict && (Digit(first[0]) || first.find('_') != first.npos)) return;
  if (!strict && !rest.empty() && UserFileEnding(name)) return;
  const bool plain = AddressLike(first) || first.size() < 2 || DeviceName(first) || (!number && PublicWords(first)) ||
                     (!strict && PublicWords(first) && first.find('-') == first.npos && rest.empty() &&
                      !absl::StartsWith(absl::string_view(first.data(), first.size()), "node"));
  if (!plain) names_->hosts.emplace(first);
  if (!rest.empty() && std::any_of(rest.begin(), rest.end(), [](char c) { return Alpha(c); }) && !PublicHost(rest) &&
      (!plain || number || rest.find('.') != rest.npos) && !rest.ends_with("example"))
    names_->domains.emplace(rest);
}

void Learner::User(std::string_view name, bool strict) {
  name = Trimmed(name);
  if (name.size() < 2 || name.size() > 64 || PublicUser(name) || IsMask(name) || names_->users.size() > kMostNames) return;
  if (PublicWords(name) || DeviceName(name)) return;
  if (!strict && name.size() < 3) return;
  names_->users.emplace(name);
}

void Learner::Job(std::string_view name) {
  name = Trimmed(name);
  if (name.size() < 2 || name.size() > 200 || IsMask(name) || names_->jobs.size() > kMostNames) return;
  if (std::all_of(name.begin(), name.end(), Digit)) {
    if (name.size() >= 3) names_->job_numbers.emplace(name);
    return;
  }
  if (PublicWords(name) || DeviceName(name)) return;
  names_->jobs.emplace(name);
}

void Learner::Pattern(int index, std::string_view line) {
  re2::StringPiece input(line.data(), line.size()), found;
  while (RE2::FindAndConsume(&input, *All().patterns[static_cast<size_t>(index)], &found)) {
    const std::string_view name(found.data(), found.size());
    switch (kPlaces[index].what) {
      case What::kHost:
        Host(name);
        break;
      case What::kLooseHost:
        Host(name, /*strict=*/false);
        break;
      case What::kDomainName:
        if (std::count(name.begin(), name.end(), '.') > 1 || !PublicWord(name.substr(0, name.find('.')))) Host(name);
        break;
      case What::kHosts: {
        std::vector<std::string> hosts;
        Expand(name, &hosts);
        const bool list = name.find('[') != name.npos;
        for (const std::string& host : hosts) {
          if (!list && !std::any_of(host.begin(), host.end(), Digit)) continue;
          Host(host);
        }
        break;
      }
      case What::kUser:
        User(name);
        break;
      case What::kLooseUser:
        User(name, /*strict=*/false);
        break;
      case What::kUserAtHost: {
        const size_t at = name.find('@');
        const std::string_view host = Trimmed(name.substr(at + 1));
        // "unit@1000.service" of systemd, "torch@2.4", "pkg@v1".
        if (host.ends_with(".service") || AddressLike(host) || (host.size() > 1 && host[0] == 'v' && Digit(host[1]))) break;
        User(name.substr(0, at));
        Host(host, host.find('.') == host.npos);
        break;
      }
      case What::kJob:
        Job(name);
        break;
      case What::kJobNumber:
        Job(name);
        break;
    }
  }
}

void Learner::Line(std::string_view line) {
  const ingest::TextLine clean = cleaner_.Clean(line.substr(0, ingest::kMaxLine), {});
  if (!clean.by.host.empty()) Host(clean.by.host);
  static thread_local std::vector<int> hits;
  hits.clear();
  if (All().set.Match(re2::StringPiece(line.data(), line.size()), &hits)) {
    for (const int index : hits) Pattern(index, line);
  }
  static thread_local std::vector<Span> spans;
  SecretValues(line, &spans);
  for (const Span& span : spans) {
    const std::string_view value = line.substr(span.begin, span.end - span.begin);
    if (value.size() >= 8 && value.size() <= 4096 && !IsMask(value) && names_->secrets.size() < 4096 && !PublicWords(value))
      names_->secrets.emplace(value);
  }
}

}  // namespace ringscope::scrub
