// Driver and libraries: of one release where they must be, none with a defect whose trigger is set here.
#include <absl/strings/str_cat.h>

#include <set>

#include "catalog/catalog.h"
#include "catalog/nccl_release.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

void Driver(const Question& question, Verdict* verdict) {
  const node::Driver& driver = question.now.driver();
  if (!driver.version().empty() && !driver.kernel_version().empty() && driver.version() != driver.kernel_version())
    verdict->Failed(absl::StrCat("driver libraries ", driver.version(), ", loaded module ", driver.kernel_version()),
                    {"They must be of one release: CUDA fails, or will at the next start.",
                     "reboot the node, or reload the modules", "FB-06"});
  const std::string now = driver.version().empty() ? driver.kernel_version() : driver.version();
  if (question.before == nullptr || now.empty()) return;
  const node::Driver& old = question.before->driver();
  const std::string before = old.version().empty() ? old.kernel_version() : old.version();
  if (!before.empty() && before != now)
    verdict->Warning(absl::StrCat("driver ", now),
                     {"Nodes of one job should run one release.", "nvidia-smi; take a new baseline when that was meant", "FB-06"},
                     before);
}

void Nccl(const Question& question, Verdict* verdict) {
  std::set<int> releases;
  std::string list;
  for (const node::Library& library : question.now.libraries()) {
    const int release = catalog::NcclRelease(library.nccl());
    if (release == 0) continue;
    if (releases.insert(release).second)
      absl::StrAppend(&list, list.empty() ? "" : ", ", library.nccl(), " (", library.file(), ")");
    const int driver = question.now.driver().cuda();
    if (library.cuda() > 0 && driver > 0 && library.cuda() / 1000 > driver / 1000)
      verdict->Failed(absl::StrCat(library.file(), ": NCCL ", library.nccl(), " for CUDA ", library.cuda() / 1000,
                                   ", the driver supports CUDA ", driver / 1000, ".", driver % 1000 / 10),
                      {"CUDA programs of that release do not start on this driver.",
                       "upgrade the driver, or install NCCL for its CUDA", "FB-06"});
  }
  if (releases.size() > 1)
    verdict->Warning(absl::StrCat(Count(releases.size(), "release"), " of NCCL: ", list),
                     {"Which one a program gets depends on its library path; ranks with different ones hang or fail.",
                      "grep libnccl /proc/PID/maps of a rank; remove what does not belong to the program", "FB-06"});
  if (question.before == nullptr) return;
  std::set<int> before;
  for (const node::Library& library : question.before->libraries()) before.insert(catalog::NcclRelease(library.nccl()));
  before.erase(0);
  std::string was;
  for (const int release : before) absl::StrAppend(&was, was.empty() ? "" : ", ", catalog::NcclReleaseText(release));
  if (!before.empty() && !releases.empty() && before != releases)
    verdict->Warning(absl::StrCat("NCCL ", list),
                     {"Nodes of one job must run one release.", "take a new baseline when that was meant", "FB-06"}, was);
}

// What of a defect's trigger a node shows before a job: its machine and its settings.
bool Triggered(catalog::NcclDefect::Trigger trigger, const node::Node& node) {
  const bool arm = node.architecture() == "aarch64";
  switch (trigger) {
    case catalog::NcclDefect::launch_blocking:
      return Setting(node, "CUDA_LAUNCH_BLOCKING") == "1";
    case catalog::NcclDefect::split_share:
      return Setting(node, "NCCL_COMM_SPLIT_SHARE_RESOURCES") == "1";
    case catalog::NcclDefect::arm_gdr_off:
      return arm && (Setting(node, "NCCL_NET_GDR_LEVEL") == "LOC" || Setting(node, "NCCL_NET_GDR_LEVEL") == "0");
    case catalog::NcclDefect::arm_proxy_slots:
      return arm;
    default:
      return false;  // between ranks, or inside a job
  }
}

void Defects(const node::Node& node, Verdict* verdict) {
  std::set<std::string> told;
  for (const node::Library& library : node.libraries()) {
    const int release = catalog::NcclRelease(library.nccl());
    for (const catalog::NcclDefect& defect : catalog::Faults().nccl_defect()) {
      if (release < catalog::NcclRelease(defect.from()) || release >= catalog::NcclRelease(defect.fixed())) continue;
      if (!Triggered(defect.trigger(), node) || !told.insert(defect.text()).second) continue;
      verdict->Warning(absl::StrCat("NCCL ", library.nccl(), ": ", defect.text()),
                       {absl::StrCat("A known defect, and what triggers it is here (", defect.reference(), ")."),
                        absl::StrCat("take ", defect.remedy()), defect.cause()});
    }
  }
}

void Look(const Question& question, Verdict* verdict) {
  const node::Node& now = question.now;
  const std::string driver = now.driver().version().empty() ? now.driver().kernel_version() : now.driver().version();
  if (driver.empty() && now.libraries_size() == 0) return verdict->NotPresent("no NVIDIA driver and no NCCL here");
  Driver(question, verdict);
  Nccl(question, verdict);
  Defects(now, verdict);
  std::string line = driver.empty() ? "no driver" : absl::StrCat("driver ", driver);
  for (const node::Library& library : now.libraries()) {
    if (library.nccl().empty()) continue;
    absl::StrAppend(&line, ", NCCL ", library.nccl());
    break;
  }
  verdict->Seen(line);
}

const RegisterCheck kRegister({"versions", "driver and libraries fit together, none with a defect that would show here", Look});

}  // namespace
}  // namespace ringscope::doctor
