#include "analyzer/reasoning/rivals.h"

#include <algorithm>

namespace ringscope::reasoning {
namespace {

struct Alike {
  Kind::Value kind;
  const char* text;
  const char* told_apart_by;
};

// docs/localisation.md, What cannot be told apart.
constexpr Alike kAlike[] = {
    {Kind::missing_rank, "the rank is not stuck but busy (slow data, a long save, a debugger), or left out a call",
     "its stack now and again a minute later, and the next operation that it enters"},
    {Kind::gpu_stalled,
     "a compute kernel that does not end, a stream that waits, no free multiprocessors, a hung GPU, or, between hosts, NCCL's "
     "proxy thread of that process, which has died or does not run",
     "cuda-gdb on the process, utilisation and power of the GPU, Xid lines in the kernel log, the state of the process's "
     "threads (ps -L)"},
    {Kind::edge_stalled, "cable, switch, remote adapter, congestion, or the remote host itself",
     "counters at both ends, who is alive, other edges of the same adapters"},
    {Kind::edge_failed, "either adapter, or the switch between them", "other pairs that use each adapter"},
    {Kind::edge_slow, "congestion by other traffic on the same path",
     "the same pair measured alone (sendrecv_perf, ib_write_bw)"},
    {Kind::rank_slow, "more work by design (pipeline stage, uneven batch)",
     "the same rank in another window, the same micro-batch on others"},
    {Kind::gpu_slow, "more work by design (pipeline stage, uneven experts)",
     "clocks, power and temperature of the GPU, the same rank in another window"},
};

bool Names(const Finding& f) {
  return f.who().ranks_size() > 0 || f.who().edges_size() > 0 || f.who().hosts_size() > 0 || f.who().gpus_size() > 0;
}

bool SameWho(const Finding& a, const Finding& b) { return a.who().SerializeAsString() == b.who().SerializeAsString(); }

void Add(Finding* first, const std::string& text, const std::string& told_apart_by, int finding) {
  Rival& rival = *first->add_rivals();
  rival.set_text(text);
  rival.set_told_apart_by(told_apart_by);
  rival.set_finding(finding);
}

}  // namespace

void AddRivals(Diagnosis* diagnosis) {
  if (diagnosis->findings().empty()) return;
  Finding& first = *diagnosis->mutable_findings(0);
  if (first.kind() == Kind::none || first.kind() == Kind::undetermined || first.past()) return;
  for (int i = 1; i < diagnosis->findings_size() && first.rivals_size() < 2; ++i) {
    const Finding& other = diagnosis->findings(i);
    const bool explained = std::count(first.explains().begin(), first.explains().end(), static_cast<uint32_t>(i)) > 0;
    if (explained || other.past() || other.kind() == Kind::none || other.kind() == Kind::undetermined) continue;
    if (other.confidence() < first.confidence() || !Names(other) || SameWho(first, other)) continue;
    Add(&first, other.title(), other.refuted_by(), i);
  }
  if (first.confidence() == Confidence::established) return;
  for (const Alike& alike : kAlike) {
    if (alike.kind == first.kind()) Add(&first, alike.text, alike.told_apart_by, -1);
  }
}

}  // namespace ringscope::reasoning
