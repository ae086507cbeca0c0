// NET/IB reports that sizes do not match. The program's own calls tell whether they do: when they agree, what was announced was
// read before it had arrived whole (an adapter that is forced to relaxed ordering), or the ranks derive sizes from other
// settings.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

// Calls at one position of communicators of one size say the same on several processes. nullopt: not logged; false: they
// differ.
std::optional<bool> CallsAgree(const model::Job& job, model::Where* example) {
  struct Position {
    std::set<std::tuple<uint64_t, int, int>> arguments;  // count, datatype, root
    int processes = 0;
  };
  std::map<std::tuple<int, uint8_t, uint64_t>, Position> positions;  // ranks, function, opCount
  for (const model::CallHistory& h : job.evidence.calls.histories) {
    for (const model::LoggedCall& call : h.calls) {
      if (call.function >= model::kFirstMessage) continue;
      Position& p = positions[{h.n_ranks, call.function, call.op_count}];
      p.arguments.insert({call.count, call.datatype, call.root});
      ++p.processes;
      *example = call.where;
    }
  }
  bool any = false;
  for (const auto& [position, p] : positions) {
    if (p.arguments.size() > 1) return false;
    any |= p.processes > 1;
  }
  if (!any) return std::nullopt;
  return true;
}

const model::AdapterSetting* ForcedRelaxed(const model::Job& job) {
  for (const model::AdapterSetting& s : job.evidence.network.adapter_settings) {
    if (s.name == "PCI_WR_ORDERING" && s.value.starts_with("force_relax")) return &s;
  }
  return nullptr;
}

std::vector<Candidate> FindSizeErrors(const model::Job& job) {
  const auto errors = EventsOf(job, {"nccl-ib-collective-mismatch", "nccl-ib-incorrect-receive", "nccl-socket-truncated"});
  if (errors.empty()) return {};
  const bool ib = FirstEvent(job, {"nccl-ib-collective-mismatch", "nccl-ib-incorrect-receive"}) != nullptr;
  const bool senseless = FirstEvent(job, {"nccl-ib-incorrect-receive"}) != nullptr;
  model::Where call;
  const std::optional<bool> agree = CallsAgree(job, &call);
  const model::AdapterSetting* forced = ForcedRelaxed(job);
  Candidate c;
  if (ib && forced != nullptr && agree != std::optional<bool>(false)) {
    c = Say(Kind::misconfigured, agree.has_value() || senseless ? Confidence::probable : Confidence::possible,
            Layer::kConfiguration,
            absl::StrCat("The adapter is forced to PCIe relaxed ordering (PCI_WR_ORDERING=", forced->value,
                         "): what NCCL polls can arrive before the data it announces",
                         agree.has_value() ? "; the program's own sizes agree" : ""),
            "NET-06", "nccl-ib-incorrect-receive");
    Cite(job, forced->where, absl::StrCat(forced->name, " ", forced->value), &c.finding);
    c.finding.set_refuted_by("the same error with PCI_WR_ORDERING=per_mkey(0)");
    SetNext(
        "Set the adapters of all hosts back to PCI_WR_ORDERING=per_mkey(0) and reset them; NCCL_IB_PCI_RELAXED_ORDERING=0 and "
        "NCCL_PROTO=Simple are tests.",
        "mlxconfig -d <device> set PCI_WR_ORDERING=0; mlxfwreset -d <device> reset", &c.finding);
  } else if (agree == std::optional<bool>(true) || senseless) {
    c = Say(Kind::undetermined, Confidence::possible, Layer::kNetwork,
            absl::StrCat("The network layer reports that sizes do not match",
                         agree.has_value() ? ", but the ranks called the same operation with the same count" : "",
                         ": relaxed ordering of the adapter, settings that differ between ranks, or damaged memory"),
            "", "nccl-ib-incorrect-receive");
    c.finding.set_refuted_by("calls of the two ranks that differ");
    SetNext(
        "Whether the adapters are forced to relaxed ordering (PCI_WR_ORDERING), and the NCCL_* variables and releases of both "
        "ranks.",
        "mlxconfig -d <device> q PCI_WR_ORDERING; env | grep NCCL_", &c.finding);
  } else {
    c = Say(Kind::size_mismatch, Confidence::possible, Layer::kProgram,
            "Two ranks disagree on the size of a message: their calls differ, or the settings from which NCCL derives sizes",
            "", errors.front()->signature);
    c.finding.set_refuted_by("the calls of both ranks (NCCL_DEBUG_SUBSYS=COLL) agree in operation, count and datatype");
  }
  c.stops_job = true;
  c.state = State::crashed;
  c.when = errors.front()->time;
  CiteAll(job, errors, 3, &c.finding);
  if (call.known())
    Cite(job, call,
         agree == std::optional<bool>(true) ? "the calls of the ranks agree (the last of them)"
                                            : "the last call that the log lists",
         &c.finding);
  OnlyReported(errors, &c.finding);
  return {c};
}

const Register kRegister("size_errors", FindSizeErrors);

}  // namespace
}  // namespace ringscope::reasoning
