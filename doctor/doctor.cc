#include "doctor/doctor.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <errno.h>
#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "doctor/check.h"
#include "doctor/probe.h"
#include "supervisor/collector.h"

namespace ringscope::doctor {
namespace {

constexpr int kVersion = 1;
constexpr size_t kMostBytes = size_t{16} << 20;

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// NVML has no PCI number for a GPU that it gives no handle for; the bus has.
void JoinProducts(node::Node* node) {
  for (node::Gpu& gpu : *node->mutable_gpus()) {
    for (const node::PciDevice& device : node->pci()) {
      if (gpu.product() == 0 && device.address() == gpu.bus_id()) gpu.set_product(device.device() << 16 | device.vendor());
    }
  }
}

absl::Status WriteWhole(const std::string& text, const std::string& file) {
  const std::string beside = absl::StrCat(file, ".", getpid(), ".new");
  FILE* out = fopen(beside.c_str(), "wxe");
  if (out == nullptr) return absl::UnavailableError(absl::StrCat(file, " cannot be written: ", strerror(errno)));
  bool good = fwrite(text.data(), 1, text.size(), out) == text.size();
  good = fflush(out) == 0 && good;
  good = fsync(fileno(out)) == 0 && good;
  const int why = errno;
  fclose(out);
  if (good && rename(beside.c_str(), file.c_str()) == 0) return absl::OkStatus();
  const int reason = good ? errno : why;
  unlink(beside.c_str());
  return absl::UnavailableError(absl::StrCat(file, " cannot be written: ", strerror(reason)));
}

}  // namespace

node::Node LookAtNode(const Place& place, double seconds) {
  node::Node node = Ask(place, Probes(), seconds);
  JoinProducts(&node);
  return node;
}

std::vector<std::string> UnknownNames(const std::vector<std::string>& names) {
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (std::none_of(Checks().begin(), Checks().end(), [&](const Check& c) { return c.name == name; })) unknown.push_back(name);
  }
  return unknown;
}

node::Report Judge(const node::Node& node, const node::Node* before, const std::vector<std::string>& only,
                   const std::vector<std::string>& skip) {
  node::Report report;
  *report.mutable_node() = node;
  report.set_status(node::Report::ok);
  bool present = false;
  for (const Check& check : Checks()) {
    if ((!only.empty() && !Has(only, check.name)) || Has(skip, check.name)) continue;
    node::Check* result = report.add_checks();
    result->set_name(check.name);
    Verdict verdict(result);
    check.look({node, before}, &verdict);
    std::stable_sort(result->mutable_problems()->begin(), result->mutable_problems()->end(),
                     [](const node::Problem& a, const node::Problem& b) { return a.status() > b.status(); });
    if (result->problems_size() > 0) result->set_status(result->problems(0).status());
    if (result->status() == node::Report::unspecified) result->set_status(node::Report::ok);
    present |= result->status() != node::Report::not_present;
    if (result->status() >= node::Report::warning) report.set_status(std::max(report.status(), result->status()));
  }
  if (!present) report.set_status(node::Report::not_present);
  return report;
}

absl::Status SaveBaseline(const node::Node& node, const std::string& ringscope_version, const std::string& file) {
  node::Baseline baseline;
  baseline.set_version(kVersion);
  baseline.set_ringscope(ringscope_version);
  baseline.set_saved(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()));
  *baseline.mutable_node() = node;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(baseline, &text, options);
  if (!status.ok()) return absl::InternalError(absl::StrCat("JSON: ", status.ToString()));
  return WriteWhole(text, file);
}

absl::StatusOr<node::Baseline> ReadBaseline(const std::string& file) {
  struct stat info;
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return absl::NotFoundError(absl::StrCat(file, ": ", strerror(errno), "; a baseline is written by --save"));
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  close(fd);
  const std::string again = "; take it again on a node that is in order: ringscope doctor --save FILE";
  if (!regular) return absl::InvalidArgumentError(absl::StrCat(file, ": not a file", again));
  const std::string text = supervisor::SmallFile(file, kMostBytes);
  node::Baseline baseline;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // of a newer release that only added fields
  const auto status = google::protobuf::util::JsonStringToMessage(text, &baseline, options);
  if (!status.ok()) {
    const std::string why(status.message().data(), std::min<size_t>(status.message().size(), 160));
    return absl::InvalidArgumentError(absl::StrCat(file, ": damaged, or no baseline: ", why, again));
  }
  if (baseline.version() == 0 || !baseline.has_node())
    return absl::InvalidArgumentError(absl::StrCat(file, ": no baseline of ringscope doctor", again));
  if (baseline.version() > kVersion)
    return absl::InvalidArgumentError(absl::StrCat(file, ": written by Ringscope ", baseline.ringscope(), " in version ",
                                                   baseline.version(), "; this one reads up to ", kVersion, again));
  return baseline;
}

}  // namespace ringscope::doctor
