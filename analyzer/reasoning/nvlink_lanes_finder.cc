// NVLinks that are down, or slower than their siblings: NCCL plans around them without a word, and every rank of the communicator
// takes the worst GPU's plan. And what only looks like it: cards without a bridge, products that use fewer links than their chip
// has.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/node_trials.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using LinkState = model::LinkReading::State;

struct Links {
  const GpuView* gpu = nullptr;
  const model::GpuReading* reading = nullptr;  // the latest that shows states
  std::vector<const model::LinkReading*> active, inactive;
  bool none_listed = false;  // "all links are inActive"
  size_t total() const { return active.size() + inactive.size(); }
  bool all_down() const { return none_listed || (active.empty() && !inactive.empty()); }
};

Links LinksOf(const GpuView& view) {
  Links links;
  links.gpu = &view;
  for (auto at = view.readings.rbegin(); at != view.readings.rend(); ++at) {
    for (const model::LinkReading& link : at->gpu->links) {
      if (link.state == LinkState::kActive) links.active.push_back(&link);
      if (link.state == LinkState::kInactive || link.state == LinkState::kDisabled) links.inactive.push_back(&link);
    }
    links.none_listed = at->gpu->all_links_inactive;
    links.reading = at->gpu;
    if (links.total() > 0 || links.none_listed) return links;
  }
  links.reading = nullptr;
  return links;
}

double UsualSpeed(const std::vector<Links>& siblings) {
  std::map<double, int> counts;
  for (const Links& links : siblings) {
    for (const model::LinkReading* link : links.active) {
      if (link->gbps > 0) ++counts[link->gbps];
    }
  }
  double usual = 0;
  int most = 0;
  for (const auto& [speed, count] : counts) {
    if (count >= most) {
      usual = speed;
      most = count;
    }
  }
  return usual;
}

// Errors that the same link counted: lifetime totals, so only beside another sign.
void CiteCounters(const model::Job& job, const GpuView& view, int link, Finding* finding) {
  for (auto at = view.readings.rbegin(); at != view.readings.rend(); ++at) {
    for (const model::LinkReading& l : at->gpu->links) {
      if (l.link != link) continue;
      for (const auto& [name, value] : l.counters) {
        const auto line = l.counter_lines.find(name);
        if (value > 0 && line != l.counter_lines.end()) CiteReading(job, line->second, finding);
      }
    }
  }
}

void CiteAlarms(const model::Job& job, const GpuView& view, Finding* finding) {
  int cited = 0;
  for (const model::Event* alarm : EventsOf(job, {"dcgm-nvlink-down"})) {
    if (alarm->Number("gpu").value_or(-1) == view.index && cited++ < 3) Cite(job, *alarm, finding);
  }
}

// Bandwidth that was measured; the same reason seen from the other side.
bool CiteBandwidth(const model::Job& job, const std::string& host, Finding* finding) {
  bool independent = false;
  if (const auto slow = NodesThatSlow(job)) {
    const bool same = host.empty() || std::find(slow->nodes.begin(), slow->nodes.end(), host) != slow->nodes.end();
    if (same) {
      for (size_t i = 0; i < slow->with.size() && i < 2; ++i) Cite(job, slow->with[i]->where, slow->with[i]->quote, finding);
      Cite(job, slow->without[0]->where, slow->without[0]->quote, finding);
      finding->set_title(absl::StrCat(finding->title(), "; every trial with ", absl::StrJoin(slow->nodes, ", "),
                                      " is slower than every trial without"));
      if (finding->who().hosts().empty()) {
        for (const std::string& node : slow->nodes) finding->mutable_who()->add_hosts(node);
      }
      independent = true;
    }
  }
  for (const model::Event* note : EventsOf(job, {"bench-bandwidth-note"})) {
    Cite(job, *note, finding);
    independent = true;
    break;
  }
  return independent;
}

std::string LinkName(const GpuView& gpu, const model::LinkReading& link) { return absl::StrCat(gpu.Name(), " link ", link.link); }

std::string Numbers(const std::vector<const model::LinkReading*>& links) {
  std::vector<int> numbers;
  for (const model::LinkReading* link : links) numbers.push_back(link->link);
  std::sort(numbers.begin(), numbers.end());
  return numbers.size() > 4 ? model::RangeText(numbers) : absl::StrJoin(numbers, ", ");
}

void NextDrain(const std::string& host, Finding* finding) {
  SetNext(
      "Drain the node. Read its kernel log for NVLink errors (Xid 74, 144-150) of that GPU, take the link counters twice under "
      "load, then "
      "reset the GPU; where the link stays so after a reboot, have it reseated or replaced.",
      absl::StrCat(host.empty() ? "" : absl::StrCat("ssh ", ShellWord(host), " '"),
                   "dmesg -T | grep -E \"Xid|NVLink\"; nvidia-smi nvlink -s; nvidia-smi nvlink -e", host.empty() ? "" : "'"),
      finding);
}

Candidate Degraded(Confidence::Value confidence, std::string title) {
  Candidate c = Say(Kind::degraded_plan, confidence, Layer::kHardware, std::move(title), "HW-02");
  c.order = Class::kPlan;
  c.state = ringscope::State::slow;
  return c;
}

// Some links of one GPU are down while siblings have them.
Candidate LinksDown(const model::Job& job, const Links& bad, const Links* sibling, size_t expected) {
  const GpuView& gpu = *bad.gpu;
  const std::string what =
      bad.none_listed ? "has no active NVLink"
                      : absl::StrCat("has NVLink ", bad.inactive.size() > 1 ? "links " : "link ", Numbers(bad.inactive),
                                     " inactive (", bad.active.size(), " of ", std::max(expected, bad.total()), " active)");
  std::string title = absl::StrCat(gpu.NameOnHost(), " ", what);
  if (sibling != nullptr) absl::StrAppend(&title, ", its siblings have ", sibling->active.size());
  Candidate c = Degraded(Confidence::probable, std::move(title));
  Finding& f = c.finding;
  NameGpu(job, gpu, &f);
  Cite(job, bad.reading->where, bad.reading->quote, &f);
  for (const model::LinkReading* link : bad.inactive) {
    f.mutable_who()->add_links(LinkName(gpu, *link));
    if (f.evidence_size() < 10) Cite(job, link->where, absl::StrCat(gpu.Name(), ": ", link->quote), &f);
    CiteCounters(job, gpu, link->link, &f);
  }
  if (sibling != nullptr) {
    Cite(job, sibling->reading->where, absl::StrCat(sibling->reading->quote, ": ", sibling->active.size(), " links active"), &f);
  }
  CiteAlarms(job, gpu, &f);
  if (CiteBandwidth(job, gpu.host, &f)) {
    f.set_confidence(Confidence::established);
    f.mutable_cause()->set_confidence(Confidence::established);
  }
  f.set_refuted_by("the same links inactive on every GPU of this product in healthy nodes: then the board does not use them");
  NextDrain(gpu.host, &f);
  return c;
}

Candidate Downtrained(const model::Job& job, const Links& bad, const std::vector<const model::LinkReading*>& slow, double usual) {
  const GpuView& gpu = *bad.gpu;
  Candidate c =
      Degraded(Confidence::probable,
               absl::StrFormat("%s: NVLink %s %s runs at %g GB/s instead of %g: trained down to less width or speed",
                               gpu.NameOnHost(), slow.size() > 1 ? "links" : "link", Numbers(slow), slow[0]->gbps, usual));
  Finding& f = c.finding;
  NameGpu(job, gpu, &f);
  Cite(job, bad.reading->where, bad.reading->quote, &f);
  for (const model::LinkReading* link : slow) {
    f.mutable_who()->add_links(LinkName(gpu, *link));
    if (f.evidence_size() < 10) Cite(job, link->where, absl::StrCat(gpu.Name(), ": ", link->quote), &f);
    CiteCounters(job, gpu, link->link, &f);
  }
  if (CiteBandwidth(job, gpu.host, &f)) {
    f.set_confidence(Confidence::established);
    f.mutable_cause()->set_confidence(Confidence::established);
  }
  f.set_refuted_by("the link at the speed of its siblings under load: a link at rest may save power");
  NextDrain(gpu.host, &f);
  return c;
}

Candidate Harmless(const model::Job& job, const std::vector<Links>& group, std::string title, std::string refuted_by) {
  Candidate c = Say(Kind::none, Confidence::probable, Layer::kHardware, std::move(title), "");
  Finding& f = c.finding;
  for (const Links& links : group) {
    if (f.evidence_size() >= 6) break;
    Cite(job, links.reading->where, links.reading->quote, &f);
    if (!links.inactive.empty())
      Cite(job, links.inactive[0]->where, absl::StrCat(links.gpu->Name(), ": ", links.inactive[0]->quote), &f);
    CiteAlarms(job, *links.gpu, &f);
  }
  f.set_refuted_by(std::move(refuted_by));
  SetNext(
      "Nothing to repair. To be sure, compare with another node of the same product, and look at which pairs the topology shows "
      "NV#.",
      "nvidia-smi nvlink -s; nvidia-smi topo -m", &f);
  return c;
}

bool SameProduct(const Links& a, const Links& b) { return a.gpu->product == b.gpu->product; }

// All GPUs of one product, of all hosts.
void Judge(const model::Job& job, const std::vector<Links>& group, std::vector<Candidate>* out) {
  const std::string& product = group[0].gpu->product;
  const NvlinkProduct known = NvlinkOf(product);
  const Links* best = nullptr;
  for (const Links& links : group) {
    if (best == nullptr || links.active.size() > best->active.size()) best = &links;
  }
  std::vector<Links> down, partial;
  for (const Links& links : group) {
    if (links.all_down()) down.push_back(links);
    if (!links.active.empty() && !links.inactive.empty()) partial.push_back(links);
  }
  // ---- whole GPUs without a link
  if (!down.empty() && (known.bridge || known.no_nvlink)) {
    out->push_back(Harmless(
        job, down,
        absl::StrCat(down.size() == 1 ? absl::StrCat("The NVLinks of ", down[0].gpu->NameOnHost(), " are") : "NVLinks are",
                     " inactive because ", product,
                     known.bridge ? " is a PCIe card and no NVLink bridge is installed"
                                  : " is a PCIe card without NVLink (no NVLink bridge can be fitted)",
                     ": its normal state, not a fault"),
        "a bridge that is installed on these cards: then its links should be active"));
    SetNext(
        "Take the alarm off for GPUs without a bridge. To be sure, look whether the topology shows NV# between any two of them.",
        "nvidia-smi topo -m", &out->back().finding);
  } else if (!down.empty() && best->active.empty()) {
    const bool alone = group.size() == 1;
    Candidate c =
        Say(alone ? Kind::undetermined : Kind::degraded_plan, Confidence::possible, Layer::kHardware,
            alone ? absl::StrCat(down[0].gpu->NameOnHost(), " shows no active NVLink; nothing says whether it should have any")
                  : absl::StrCat("No GPU", down[0].gpu->host.empty() ? "" : absl::StrCat(" of ", down[0].gpu->host),
                                 " has an active NVLink: they are switched off or never trained"),
            alone ? "" : "HW-02");
    c.order = alone ? Class::kUndetermined : Class::kPlan;
    for (size_t i = 0; i < down.size() && i < 8; ++i) {
      NameGpu(job, *down[i].gpu, &c.finding);
      Cite(job, down[i].reading->where, down[i].reading->quote, &c.finding);
      if (!down[i].inactive.empty())
        Cite(job, down[i].inactive[0]->where, absl::StrCat(down[i].gpu->Name(), ": ", down[i].inactive[0]->quote), &c.finding);
      CiteAlarms(job, *down[i].gpu, &c.finding);
    }
    CiteBandwidth(job, down[0].gpu->host, &c.finding);
    c.finding.set_refuted_by("a board that has no NVLink, or a virtual machine with one GPU of a board");
    SetNext(
        "Whether the driver was told to leave NVLink off, whether the fabric manager runs, and what the driver said of the links "
        "at boot.",
        "grep -r NvLink /etc/modprobe.d; systemctl status nvidia-fabricmanager; dmesg -T | grep -iE 'nvlink|Xid'; nvidia-smi "
        "topo -m",
        &c.finding);
    out->push_back(std::move(c));
  } else {
    for (const Links& links : down) out->push_back(LinksDown(job, links, best, best->active.size()));
  }
  // ---- single links
  const bool design = known.links > 0 && best->active.size() == static_cast<size_t>(known.links);
  std::vector<Links> as_designed;
  for (const Links& links : partial) {
    if (links.active.size() < best->active.size() ||
        (known.links > 0 && links.active.size() < static_cast<size_t>(known.links) && !known.bridge)) {
      const bool has_sibling = best != &links && best->active.size() > links.active.size();
      Candidate c = LinksDown(job, links, has_sibling ? best : nullptr, best->active.size());
      if (!has_sibling && group.size() > 1) c.finding.set_confidence(Confidence::possible);
      out->push_back(std::move(c));
    } else if (design) {
      as_designed.push_back(links);
    } else if (group.size() > 1 || known.links < 0) {
      // All alike: a board's layout as far as anyone can see.
      as_designed.push_back(links);
    } else {
      out->push_back(LinksDown(job, links, nullptr, links.total()));
    }
  }
  if (!as_designed.empty() && as_designed.size() == partial.size() && down.empty()) {
    out->push_back(Harmless(job, as_designed,
                            absl::StrCat(best->active.size(), " of ", best->total(), " NVLinks active on ",
                                         design ? absl::StrCat("each ", product, " is this product's design")
                                                : "each GPU alike looks like the board's layout",
                                         ", not a fault"),
                            "another node of the same product with more active links"));
  }
  // ---- speed
  const double usual = UsualSpeed(group);
  for (const Links& links : group) {
    std::vector<const model::LinkReading*> slow;
    for (const model::LinkReading* link : links.active) {
      if (link->gbps > 0 && link->gbps < thresholds::kLinkSpeedRatio * usual) slow.push_back(link);
    }
    if (!slow.empty()) out->push_back(Downtrained(job, links, slow, usual));
  }
}

std::vector<Candidate> FindLanes(const model::Job& job) {
  const std::vector<GpuView> views = GpuViews(job);
  std::vector<std::vector<Links>> groups;
  for (const GpuView& view : views) {
    const Links links = LinksOf(view);
    if (links.reading == nullptr) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return SameProduct(g[0], links); });
    if (group == groups.end()) group = groups.insert(groups.end(), std::vector<Links>{});
    group->push_back(links);
  }
  std::vector<Candidate> found;
  for (const auto& group : groups) Judge(job, group, &found);
  // Where one GPU is at fault, what is normal about others is no news.
  const bool fault = std::any_of(found.begin(), found.end(), [](const Candidate& c) { return c.finding.kind() != Kind::none; });
  if (fault) std::erase_if(found, [](const Candidate& c) { return c.finding.kind() == Kind::none; });
  return found;
}

const Register kRegister("nvlink lanes", FindLanes);

}  // namespace
}  // namespace ringscope::reasoning
