// What the kernel's log says since boot: GPU faults, NVSwitch faults, PCIe errors, processes that hung or were killed.
#include <absl/strings/str_cat.h>

#include "catalog/catalog.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

std::string Times(const node::KernelLine& line) {
  return absl::StrCat(line.count() > 1 ? absl::StrCat(line.count(), " times, last ") : "", line.time().substr(0, 19));
}

void Xid(const node::KernelLine& line, Verdict* verdict) {
  const catalog::XidEntry* entry = catalog::FindXid(line.number());
  // Others follow from one of these, or from a program.
  if (entry == nullptr || (entry->role() != catalog::XidEntry::initiating && entry->role() != catalog::XidEntry::precursor))
    return;
  verdict->Warning(
      absl::StrCat("Xid ", line.number(), " on ", line.device(), ": ", entry->meaning(), " (", Times(line), ")"),
      {"A GPU that failed since boot may fail again; one that was reset since is in order.", entry->action(), entry->cause()});
}

void Look(const Question& question, Verdict* verdict) {
  const node::Asked* asked = AskedOf(question.now, "kernel-log");
  if (asked == nullptr || !asked->answered())
    return verdict->CouldNotTell(asked == nullptr ? "the kernel's log was not asked for" : asked->why_not());
  for (const node::KernelLine& line : question.now.kernel()) {
    switch (line.kind()) {
      case node::KernelLine::xid:
        Xid(line, verdict);
        break;
      case node::KernelLine::sxid: {
        const catalog::SxidEntry* entry = catalog::FindSxid(line.number());
        if (entry != nullptr && entry->role() != catalog::XidEntry::initiating) break;
        verdict->Warning(
            absl::StrCat("SXid ", line.number(), " on ", line.device(),
                         entry == nullptr ? "" : absl::StrCat(": ", entry->meaning()), " (", Times(line), ")"),
            {"A fault of an NVSwitch hits every GPU of the node.", "nvidia-smi nvlink -s; /var/log/fabricmanager.log", "HW-04"});
        break;
      }
      case node::KernelLine::hung_task:
        verdict->Warning(absl::StrCat(line.device(), " hung in the kernel (", Times(line), ")"),
                         {"Something that a process waits for in the kernel does not answer: a driver, a file server.",
                          "dmesg -T | grep -A20 'blocked for more than'", "UC-06"});
        break;
      case node::KernelLine::pcie:
        verdict->Warning(absl::StrCat("uncorrectable PCIe errors at ", line.device(), " (", Times(line), ")"),
                         {"What is behind that port may have been lost for a while.",
                          absl::StrCat("lspci -vv -s ", line.device(), "; dmesg -T | grep AER"), "HW-09"});
        break;
      case node::KernelLine::oom:
        verdict->Warning(absl::StrCat(line.device(), " was killed for lack of memory (", Times(line), ")"),
                         {"The last job, or a daemon of this node, ran out of memory.",
                          "dmesg -T | grep -B2 -A2 'Out of memory'; free -g", "UC-08"});
        break;
      default:
        break;
    }
  }
  verdict->Seen("no GPU fault, PCIe error or hung process since boot, as far as the log goes back");
}

const RegisterCheck kRegister({"kernel-log", "the kernel's log names no fault since boot", Look});

}  // namespace
}  // namespace ringscope::doctor
